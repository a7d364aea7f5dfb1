package discover

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
