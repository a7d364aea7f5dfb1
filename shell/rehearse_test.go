//go:build linux && (amd64 || arm64)

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	simrun "fabsh/fabric/sim/run"
)

// TestRehearseSlow: a link that trains below what both ends have enabled is found, the example
// slow.star resets it, and it is gone. What fabsh keeps meanwhile is below --state.
func TestRehearseSlow(t *testing.T) {
	if !simrun.Supported() {
		t.Skip(simrun.ErrUnsupported)
	}
	t.Parallel()
	folder := t.TempDir()
	example, err := os.ReadFile("../examples/remedy/slow.star")
	for name, text := range map[string]string{
		"slow.star":  string(example),
		"fault.star": "def scenario(sim):\n    sim.speed(\"leaf-1/3\", \"edr\", once = True)\n",
		"rehearse.sh": `fabsh change status
fabsh --state kept remedy slow.star --audits links --out slow.plan | head -1
fabsh --state kept --write --override-sm change apply slow.plan >applied 2>&1 &
until fabsh --state kept change confirm --wait 2>/dev/null; do sleep .1; done
wait $! && tail -1 applied
fabsh audit links
find . "$HOME" -name subnet | sed 's/-.*//'
`,
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	c := fabsh(t, nil, "-q", "sim", "fattree:k=4", "--scenario", "fault.star", "--log", "/dev/null", "--run", "sh", "rehearse.sh")
	c.Dir = folder
	got := outcome(c)
	const want = `change status: no directory for the journal; give --state DIR
planned   reset    leaf-1/3 - spine-1/1: speed edr; supported by both ends: hdr
ok: the change is confirmed
ok: the change is confirmed
fabric    14 nodes (6 switches, 8 CAs), 16 links, complete
audits    links
coverage  100 % of 58 requests
findings  none
./kept/sm
[exit status 0]
`
	if got != want {
		t.Errorf("got\n%s", strings.ReplaceAll(got, folder, "FOLDER"))
	}
}
