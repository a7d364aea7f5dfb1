package fabric

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestDiscover sweeps small nets, each with its own oddity, ten times with
// answers in other orders: all views are the same.
func TestDiscover(t *testing.T) {
	tests := []struct {
		name  string
		build func(n *fakeNet)
		opt   DiscoverOptions
		want  string
	}{
		{name: "one switch", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "leaf")
			n.link(h, 1, s, 3)
		}, want: `fabric: 2 nodes (1 switch, 1 CA), 1 link, complete
switch "leaf" (0x0000000000000021) lid 2 at 0,1
  3 - node 1 host/1
CA "host" (0x0000000000000010) lid 17 at 0
  1 - node 0 leaf/3
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for seed := range int64(10) {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{delay: jitter(seed)}
					test.build(n)
					e := mad.NewEngine(n.attach(), mad.Options{})
					defer e.Close()
					f, err := Discover(t.Context(), e, test.opt)
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(test.want, describe(f)); d != "" {
						t.Fatalf("seed %d (-want +got):\n%s", seed, d)
					}
				})
			}
		})
	}
}

var _ = fmt.Sprint
var _ = time.Second
