package discover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestDiscover sweeps small nets, each with something unusual, 20 times with the
// answers in another order: the fabric is always the same.
func TestDiscover(t *testing.T) {
	tests := []struct {
		name  string
		build func(n *fakeNet)
		opt   Options
	}{
		{name: "one switch", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "leaf")
			n.link(h, 1, s, 3)
		}},
		{name: "ring with double links", build: func(n *fakeNet) {
			h := n.ca(0x10, 1, "host")
			var ring []*fakeNode
			for i := range 4 {
				ring = append(ring, n.sw(mad.GUID(0x21+2*i), 6, fmt.Sprint("s", i)))
			}
			n.link(h, 1, ring[0], 6)
			for i := range 4 {
				n.link(ring[i], 1, ring[(i+1)%4], 3)
				n.link(ring[i], 2, ring[(i+1)%4], 4)
			}
			n.link(ring[2], 5, n.ca(0x11, 1, "far"), 1)
		}},
		{name: "two CAs with one GUID", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "leaf")
			n.link(h, 1, s, 1)
			n.link(n.ca(0x30, 1, "twin 1"), 1, s, 2)
			n.link(n.ca(0x30, 1, "twin 2"), 1, s, 4)
		}},
		{name: "two CAs with one GUID, on different ports", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "leaf")
			n.link(h, 1, s, 1)
			n.link(n.ca(0x30, 2, "twin 1"), 1, s, 2)
			n.link(n.ca(0x30, 2, "twin 2"), 2, s, 4)
		}},
		{name: "a CA with the GUID of a switch and of the local CA", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x20, 4, "leaf")
			n.link(h, 1, s, 1)
			n.link(n.ca(0x20, 1, "like leaf"), 1, s, 2)
			n.link(n.ca(0x10, 1, "like host"), 1, s, 3)
		}},
		{name: "two switches with one GUID", build: func(n *fakeNet) {
			h, top, top2 := n.ca(0x10, 1, "host"), n.sw(0x21, 6, "top"), n.sw(0x23, 6, "top 2")
			n.link(h, 1, top, 6)
			a, b := n.sw(0x25, 6, "twin a"), n.sw(0x25, 6, "twin b")
			for i, leaf := range []*fakeNode{a, b} {
				n.link(top, i+1, leaf, 1)
				n.link(top2, i+1, leaf, 2)
				n.link(top, i+3, leaf, 3+i)
				n.link(leaf, 6, n.ca(mad.GUID(0x30+i), 1, fmt.Sprint("host ", i)), 1)
			}
		}},
		{name: "two switches with one GUID, next to each other", build: func(n *fakeNet) {
			h, a, b := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "a"), n.sw(0x21, 4, "b")
			n.link(h, 1, a, 1)
			n.link(a, 2, b, 3)
			n.link(a, 3, b, 2)
			n.link(a, 4, b, 4)
			n.link(b, 1, n.ca(0x11, 1, "far"), 1)
		}},
		{name: "GUID 0", build: func(n *fakeNet) {
			h, s, z := n.ca(0x10, 1, "host"), n.sw(0x21, 6, "leaf"), n.sw(0, 6, "nobody")
			n.link(h, 1, s, 1)
			n.link(s, 2, z, 1)
			n.link(s, 3, z, 2)
			n.link(s, 4, n.ca(0, 1, "nobody"), 1)
			n.link(z, 4, n.ca(0, 1, "nobody"), 1)
		}},
		{name: "loopback plug and a cable to itself", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "leaf")
			n.link(h, 1, s, 1)
			n.link(s, 2, s, 2)
			n.link(s, 3, s, 4)
		}},
		{name: "loopback plug at the local port", build: func(n *fakeNet) {
			h := n.ca(0x10, 2, "host")
			n.link(h, 1, h, 1)
		}},
		{name: "cable from the local port to the other one", build: func(n *fakeNet) {
			h := n.ca(0x10, 2, "host")
			n.link(h, 1, h, 2)
		}},
		{name: "no cable", build: func(n *fakeNet) { n.ca(0x10, 2, "host") }},
		{name: "a CA on the fabric twice", build: func(n *fakeNet) {
			h, s, s2 := n.ca(0x10, 2, "host"), n.sw(0x21, 4, "leaf"), n.sw(0x23, 4, "leaf 2")
			n.link(h, 1, s, 1)
			n.link(h, 2, s2, 1)
			n.link(s, 2, s2, 2)
			x := n.ca(0x30, 3, "two")
			n.link(x, 3, s, 3)
			n.link(x, 2, s2, 3)
		}},
		{name: "router, and a type that does not exist", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "host"), n.sw(0x21, 4, "leaf")
			n.link(h, 1, s, 1)
			n.link(n.add(mad.NodeTypeRouter, 0x40, 2, "router"), 2, s, 2)
			n.link(n.add(9, 0x50, 1, "strange"), 1, s, 3)
		}},
		{name: "back to back", build: func(n *fakeNet) {
			n.link(n.ca(0x10, 2, "here"), 2, n.ca(0x11, 2, "there"), 1)
		}},
		{name: "names", build: func(n *fakeNet) {
			h, s := n.ca(0x10, 1, "a/1 \"b\""), n.sw(0x21, 5, "")
			n.link(h, 1, s, 1)
			n.link(s, 2, n.ca(0x11, 1, "Büro\xff\x01"), 1)
			n.link(s, 3, n.ca(0x12, 1, strings.Repeat("x", 64)), 1)
			n.link(s, 4, n.ca(0x13, 1, "cut\x00off"), 1)
		}},
		{name: "from a switch", build: func(n *fakeNet) {
			s, s2 := n.sw(0x21, 4, "here"), n.sw(0x23, 4, "there")
			n.link(s, 1, s2, 2)
			n.link(s, 2, n.ca(0x10, 1, "host"), 1)
		}},
		{name: "around a switch, 1 hop", opt: Options{Around: mad.DirectedRoute{0, 1, 2}, Hops: 1}, build: chain},
		{name: "around a CA, 2 hops", opt: Options{Around: mad.DirectedRoute{0, 1, 2, 3}, Hops: 2}, build: chain},
		{name: "around a switch, no end", opt: Options{Around: mad.DirectedRoute{0, 1, 2}}, build: chain},
		{name: "3 hops, one node being found on a detour at times", opt: Options{Hops: 3}, build: func(n *fakeNet) {
			h, s0, s1, s2 := n.ca(0x10, 1, "host"), n.sw(0x21, 3, "s0"), n.sw(0x23, 3, "s1"), n.sw(0x25, 3, "s2")
			n.link(h, 1, s0, 3)
			n.link(s0, 1, s1, 1)
			n.link(s0, 2, s2, 1)
			n.link(s1, 2, s2, 2)
			n.link(s2, 3, n.ca(0x11, 1, "far"), 1)
		}},
		{name: "1 hop", opt: Options{Hops: 1}, build: chain},
		{name: "a PortInfo that is refused", build: func(n *fakeNet) {
			chain(n)
			n.status = func(p *packet) mad.Status {
				if p.node.name == "s1" && p.h.Attribute == mad.AttrPortInfo.ID && p.h.Modifier >= 2 {
					return mad.StatusBadValue
				}
				return 0
			}
		}},
		{name: "a NodeInfo that makes no sense", build: func(n *fakeNet) {
			chain(n)
			n.nodes[2].info.NumPorts = 0
		}},
	}
	golden := loadGolden(t, "testdata/discover.txt")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for seed := range int64(20) {
				synctest.Test(t, func(t *testing.T) {
					n := &fakeNet{delay: jitter(seed)}
					test.build(n)
					e := engine.New(n.attach(), engine.Options{})
					defer e.Close()
					f, err := Sweep(t.Context(), e, test.opt)
					if err != nil {
						t.Fatal(err)
					}
					golden.check(t, test.name, describe(f))
				})
			}
		})
	}
}

// chain is host - s0 - s1 - s2 with two links between neighbours, and a host at each.
func chain(n *fakeNet) {
	h := n.ca(0x10, 1, "host")
	var s []*fakeNode
	for i := range 3 {
		s = append(s, n.sw(mad.GUID(0x21+2*i), 5, fmt.Sprint("s", i)))
		n.link(s[i], 3, n.ca(mad.GUID(0x30+i), 1, fmt.Sprint("host ", i)), 1)
	}
	n.link(h, 1, s[0], 1)
	for i := range 2 {
		n.link(s[i], 2, s[i+1], 1)
		n.link(s[i], 4, s[i+1], 5)
	}
}

var _ = time.Second

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

// TestRenamed: all views of the renamed fabric have the new names, and the fabric
// that it was made of keeps its own.
func TestRenamed(t *testing.T) {
	n := &fakeNet{}
	chain(n)
	e := engine.New(n.attach(), engine.Options{})
	defer e.Close()
	f, err := Sweep(t.Context(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Renamed(nil) != f {
		t.Error("without names, another fabric")
	}
	g := f.Renamed(map[mad.GUID]string{0x21: "z", 0x999: "nobody"})
	for _, view := range []struct {
		f         *fabric.Fabric
		name, not string
	}{{f, "s0", "z"}, {g, "z", "s0"}} {
		nodes := view.f.NodeByName(view.name)
		if len(nodes) != 1 || nodes[0].Name() != view.name || nodes[0].GUID() != 0x21 || len(view.f.NodeByName(view.not)) != 0 {
			t.Fatalf("%s: %v", view.name, nodes)
		}
		if nodes[0].Fabric() != view.f || nodes[0].Port(1).Peer().Peer().Node() != nodes[0] || nodes[0].Port(1).Name() != view.name+"/1" {
			t.Errorf("%s: its ports are not its own", view.name)
		}
		if len(view.f.NodeByName("s1")) != 1 {
			t.Error("a name that is in no map is gone")
		}
	}
	if f.String() != g.String() {
		t.Errorf("%v, %v", f, g)
	}
}
