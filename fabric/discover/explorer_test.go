package discover

import (
	"testing"
	"testing/synctest"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// star is a switch with hosts, as seen from the switch.
func star(hosts int) *fakeNet {
	n := &fakeNet{delay: jitter(1)}
	s := n.sw(0x21, hosts, "s")
	for i := range hosts {
		n.link(s, i+1, n.ca(mad.GUID(0x30+i), 1, "host"), 1)
	}
	return n
}

// TestMKeyProbe: where no node but the first answers, few requests go out; one
// answer, and all are asked as often as always.
func TestMKeyProbe(t *testing.T) {
	golden := loadGolden(t, "testdata/mkeyprobe.txt")
	for _, test := range []struct {
		name   string
		keys   *engine.Keys
		silent func(host int) bool // by the port of the switch
		most   int                 // requests for NodeInfo of hosts
	}{
		{name: "all silent", silent: func(int) bool { return true }, most: 4*6 + 32},
		{name: "all silent, with keys", keys: &engine.Keys{M: 1}, silent: func(int) bool { return true }, most: 4*6 + 32},
		{name: "half of them silent", silent: func(host int) bool { return host <= 18 }, most: 18*6 + 18 + 18},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := star(36)
				asked := 0
				n.lost = func(p *packet) bool {
					if p.node == n.local {
						return false
					}
					if p.h.Attribute == mad.AttrNodeInfo.ID {
						asked++
					}
					return test.silent(p.node.ports[p.in].at)
				}
				e := engine.New(n.attach(), engine.Options{Keys: test.keys})
				defer e.Close()
				f, err := Sweep(t.Context(), e, Options{})
				if err != nil {
					t.Fatal(err)
				}
				n.mu.Lock()
				if asked > test.most {
					t.Errorf("%d requests, more than %d", asked, test.most)
				}
				n.mu.Unlock()
				golden.check(t, test.name, describe(f))
			})
		})
	}
}

// TestMKeyProbeLoss: nodes that were asked once are asked again when another
// answers.
func TestMKeyProbeLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := star(36)
		tries := map[*fakeNode]int{}
		n.lost = func(p *packet) bool {
			if p.h.Attribute != mad.AttrNodeInfo.ID || p.node == n.local {
				return false
			}
			tries[p.node]++
			port := p.node.ports[p.in].at
			return port <= 4 || port < 36 && tries[p.node] == 1 // 1 to 4 are dead, of the others the first is lost
		}
		e := engine.New(n.attach(), engine.Options{})
		defer e.Close()
		f, err := Sweep(t.Context(), e, Options{})
		if err != nil || len(f.Nodes()) != 33 {
			t.Errorf("%v, %v, %v", f, err, f.Problems())
		}
	})
}
