package discover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestDead: any number of nodes that do not answer behind links that are up cost
// the time of one call's retries, and each is a problem.
func TestDead(t *testing.T) {
	golden := loadGolden(t, "testdata/dead.txt")
	for _, test := range []struct {
		name string
		kill func(n *fakeNet)
	}{
		{"two hosts and a switch", func(n *fakeNet) {
			for _, b := range n.nodes {
				b.dead = b.name == "host 0" || b.name == "host 1" || b.name == "s2"
			}
		}},
		{"a switch that answers NodeInfo only", func(n *fakeNet) {
			n.lost = func(p *packet) bool { return p.node.name == "s1" && p.h.Attribute != mad.AttrNodeInfo.ID }
		}},
		{"PortInfo of some ports", func(n *fakeNet) {
			n.lost = func(p *packet) bool {
				return p.node.name == "s1" && p.h.Attribute == mad.AttrPortInfo.ID && p.h.Modifier >= 3
			}
		}},
		{"NodeInfo through one end of a link", func(n *fakeNet) {
			n.lost = func(p *packet) bool { return p.node.name == "s1" && p.in == 5 }
		}},
		{"names", func(n *fakeNet) {
			n.lost = func(p *packet) bool { return p.h.Attribute == mad.AttrNodeDescription.ID }
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNet{delay: jitter(1)}
				chain(n)
				test.kill(n)
				e := engine.New(n.attach(), engine.Options{})
				defer e.Close()
				begin := time.Now()
				f, err := Sweep(t.Context(), e, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if d := time.Since(begin); d < 3*time.Second || d > 3200*time.Millisecond {
					t.Errorf("took %v", d)
				}
				golden.check(t, test.name, describe(f))
			})
		})
	}
}

// TestChanges changes the cabling after each number of requests, in many orders
// of answers: the sweep always ends, no node is invented, and what contradicts
// itself is a problem.
func TestChanges(t *testing.T) {
	changes := []struct {
		name    string
		noticed int // at least, of 60; the others come before or after all that matters
		do      func(n *fakeNet)
	}{
		{"pull", 30, func(n *fakeNet) { n.unlink(n.nodes[1], 2); n.unlink(n.nodes[1], 4) }},
		{"move a host", 10, func(n *fakeNet) {
			h := n.nodes[4]
			n.unlink(h, 1)
			n.link(h, 1, n.nodes[1], 5)
		}},
		{"swap the ends of two cables", 10, func(n *fakeNet) {
			s0, s1 := n.nodes[1], n.nodes[3]
			n.unlink(s0, 2)
			n.unlink(s0, 4)
			n.link(s0, 2, s1, 5)
			n.link(s0, 4, s1, 1)
		}},
		{"another node", 0, func(n *fakeNet) {
			h := n.nodes[4]
			n.unlink(h, 1)
			n.link(n.ca(0x99, 1, "new"), 1, n.nodes[3], 3)
		}},
	}
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			noticed := 0
			for after := range 60 {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{delay: jitter(int64(after))}
					chain(n)
					nodes := len(n.nodes)
					n.hook = func(n *fakeNet) {
						if n.asked == after+1 {
							change.do(n)
						}
					}
					e := engine.New(n.attach(), engine.Options{})
					defer e.Close()
					f, err := Sweep(t.Context(), e, Options{})
					if err != nil {
						t.Fatal(err)
					}
					if got := len(f.Nodes()); got > nodes+1 {
						t.Errorf("after %d requests: %s", after, describe(f))
					}
					for _, p := range f.Problems() {
						if !p.Kind.Missing() {
							t.Errorf("after %d requests: %s", after, describe(f))
						}
					}
					if !f.Complete() {
						noticed++
					}
				})
			}
			t.Logf("noticed %d of 60", noticed)
			if noticed < change.noticed {
				t.Errorf("noticed %d of 60, not %d", noticed, change.noticed)
			}
		})
	}
}

// TestEnded: a sweep that is ended returns at once what was found.
func TestEnded(t *testing.T) {
	enough := errors.New("enough")
	unplugged := errors.New("unplugged")
	for _, test := range []struct {
		name, want string
		end        func(c *fakeConn, cancel context.CancelCauseFunc)
	}{
		{"cancelled", "the sweep ended after 4 nodes: enough", func(_ *fakeConn, cancel context.CancelCauseFunc) { cancel(enough) }},
		{"transport gone", "the sweep ended after 4 nodes: SubnGet(PortInfo) to route 0,1,2: unplugged", func(c *fakeConn, _ context.CancelCauseFunc) { c.fail(unplugged) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := new(fakeNet)
				chain(n)
				n.lost = func(p *packet) bool { return p.node.name == "s1" && p.h.Attribute == mad.AttrPortInfo.ID }
				c := n.attach()
				e := engine.New(c, engine.Options{})
				defer e.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { test.end(c, cancel) })
				begin := time.Now()
				f, err := Sweep(ctx, e, Options{})
				if err == nil || err.Error() != test.want {
					t.Errorf("got %v, want %s", err, test.want)
				}
				if d := time.Since(begin); d != time.Second {
					t.Errorf("took %v", d)
				}
				if d := cmp.Diff("fabric: 4 nodes (2 switches, 2 CAs), 3 links, incomplete: 1 cut short", fmt.Sprint(f)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestNobody: the first node does not answer.
func TestNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(fakeNet)
		chain(n)
		n.lost = func(p *packet) bool { return true }
		e := engine.New(n.attach(), engine.Options{})
		defer e.Close()
		for _, test := range []struct {
			around mad.DirectedRoute
			want   string
		}{
			{nil, "the node at route 0 did not answer: SubnGet(NodeInfo) to route 0: timed out after 6 attempts in 3s"},
			{mad.DirectedRoute{0, 1, 2}, "the node at route 0,1,2 did not answer: SubnGet(NodeInfo) to route 0,1,2: timed out after 6 attempts in 3s"},
			{mad.DirectedRoute{1}, "invalid directed route 1; it must begin with 0 and have at most 63 hops"},
		} {
			f, err := Sweep(t.Context(), e, Options{Around: test.around})
			if f != nil || err == nil || err.Error() != test.want {
				t.Errorf("got %v, %v, want %s", f, err, test.want)
			}
		}
	})
}

// TestTooFar: a chain longer than the longest directed route, and a ring that is
// not, whichever way round the answers come first.
func TestTooFar(t *testing.T) {
	for _, test := range []struct {
		name     string
		switches int
		ring     bool
		want     string
	}{
		{"chain", 70, false, `fabric: 64 nodes (63 switches, 1 CA), 63 links, incomplete: 1 too far
too far: the node behind port 2 of "s62" (0x0000000000000063) is more than 63 hops away; start from a nearer node
`},
		{"ring", 120, true, "fabric: 121 nodes (120 switches, 1 CA), 121 links, complete\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for seed := range int64(3) {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{delay: jitter(seed)}
					h := n.ca(0x10, 1, "host")
					var s []*fakeNode
					for i := range test.switches {
						s = append(s, n.sw(mad.GUID(0x25+i), 3, fmt.Sprint("s", i)))
						if i > 0 {
							n.link(s[i-1], 2, s[i], 1)
						}
					}
					n.link(h, 1, s[0], 3)
					if test.ring {
						n.link(s[len(s)-1], 2, s[0], 1)
					}
					e := engine.New(n.attach(), engine.Options{})
					defer e.Close()
					f, err := Sweep(t.Context(), e, Options{})
					if err != nil {
						t.Fatal(err)
					}
					got := fmt.Sprintln(f)
					for _, p := range f.Problems() {
						got += fmt.Sprintf("%s: %s\n", p.Kind, p.Text)
					}
					if d := cmp.Diff(test.want, got); d != "" {
						t.Errorf("(-want +got):\n%s", d)
					}
				})
			}
		})
	}
}
