package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestSimUnderIbsim: ibsim takes what fabsh sim writes for the same fabric.
func TestSimUnderIbsim(t *testing.T) {
	const code = `f = discover(); print(len(f.switches), len(f.cas), len(f.links), sorted([p.name + "-" + p.peer.name for p in f.ports if p.peer]))`
	for _, spec := range []string{"fattree:k=4,levels=3", "torus:dims=3/3,hosts=2", "hyperx:dims=3/3,hosts=1", "dragonfly:a=3,p=1,h=1", "random:n=10,degree=3,hosts=2,remove_links=2,remove_switches=1,seed=4", "ring:n=3"} {
		t.Run(spec, func(t *testing.T) {
			net := filepath.Join(t.TempDir(), "net")
			if got := outcome(fabsh(t, nil, "sim", spec, "--out", net)); got != "[exit status 0]\n" {
				t.Fatal(got)
			}
			text, err := os.ReadFile(net)
			if err != nil {
				t.Fatal(err)
			}
			f := ibsimtest.Start(t, string(text), ibsimtest.FixtureOptions{})
			theirs, ours := outcome(on(t, f, "-c", code)), outcome(fabsh(t, nil, "-F", "sim:"+spec, "-c", code))
			again := outcome(fabsh(t, nil, "-F", fmt.Sprintf("sim:%s:delay=0s", net), "-c", code))
			if theirs != ours || again != ours {
				t.Errorf("on ibsim\n%sread again\n%swant\n%s", theirs, again, ours)
			}
		})
	}
}
