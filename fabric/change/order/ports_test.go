package order

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// uplinks are the ports of a node whose links lead to switches.
func uplinks(f *fabric.Fabric, name string) (ports []*fabric.Port) {
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.Name() == name {
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					ports = append(ports, p)
				}
			}
		}
	}
	return ports
}

func TestPorts(t *testing.T) {
	f := topology(t, "fattree:k=4,levels=3")
	g, err := routing.NewGraph(f, routing.GraphOptions{})
	if err != nil {
		t.Fatal(err)
	}
	leaf := uplinks(f, "leaf-1")
	var cable []*fabric.Port // of a host there
	for p := range leaf[0].Node().Ports() {
		if q := p.Peer(); cable == nil && q != nil && !q.Node().IsSwitch() {
			cable = []*fabric.Port{q}
		}
	}
	far := uplinks(f, "spine-1")
	lid := func(p *fabric.Port) mad.LID { return g.Terminals()[g.TerminalOf(p)].LID }
	tables := compute(t, g, "ftree", routing.Options{})
	for _, c := range []struct {
		what    string
		in      PortsInput
		lost    int64
		refusal string
		want    []*fabric.Port
	}{
		{what: "one uplink", in: PortsInput{Ports: leaf[:1]}, want: leaf[:1]},
		{what: "both sides", in: PortsInput{Ports: []*fabric.Port{leaf[0], leaf[0].Peer()}}, want: leaf[:1]},
		{what: "the nearer side", in: PortsInput{Ports: []*fabric.Port{leaf[0].Peer()}, Host: cable[0]}, want: leaf[:1]},
		{what: "the SM's last", in: PortsInput{Ports: []*fabric.Port{leaf[0], far[2]}, Last: []mad.LID{lid(cable[0])}}, want: []*fabric.Port{far[2], leaf[0]}},
		{what: "all uplinks", in: PortsInput{Ports: leaf}, lost: 2 * 2 * 14, refusal: "56 pairs would lose their last path"},
		{what: "all uplinks, accepted", in: PortsInput{Ports: leaf, AcceptLost: true}, lost: 56, want: leaf},
		{what: "a host", in: PortsInput{Ports: cable}, lost: 30, refusal: "30 pairs would lose their last path"},
		{what: "a host, accepted", in: PortsInput{Ports: cable, AcceptLost: true}, lost: 30, want: []*fabric.Port{cable[0].Peer()}},
		{what: "too many", in: PortsInput{Ports: far, Max: 3}, refusal: "4 links of 48 would be disabled, more than 3"},
	} {
		c.in.Graph, c.in.Tables = g, tables
		p, err := Ports(c.in)
		r := new(Refusal)
		switch {
		case c.refusal != "" && (!errors.As(err, &r) || !strings.Contains(r.Reason, c.refusal)):
			t.Errorf("%s: %v, expected %q", c.what, err, c.refusal)
		case c.refusal == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.lost != p.Lost || c.refusal == "" && (p.Routed == 0 || len(p.Disable) != len(c.want)):
			t.Errorf("%s: %+v, expected %d pairs lost", c.what, p, c.lost)
		case c.refusal == "":
			for i := range c.want {
				if p.Disable[i] != c.want[i] {
					t.Errorf("%s: disables %s, expected %s", c.what, p.Disable[i].Label(), c.want[i].Label())
				}
			}
		}
	}
}

// TestMulticast: in any mixture of a round no switch has a branch that is not in the
// tree before it or not in that after it.
func TestMulticast(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	for range 200 {
		var all []Masks
		for s := range 4 {
			m := Masks{Switch: s, Modifier: uint32(s), Old: make([]byte, 64), New: make([]byte, 64)}
			for i := range m.Old {
				m.Old[i] = byte(random.Uint32() & random.Uint32())
				m.New[i] = m.Old[i] ^ byte(random.Uint32()&random.Uint32()&random.Uint32())*byte(random.IntN(2))
			}
			all = append(all, m)
		}
		now := map[int][]byte{}
		for _, m := range all {
			now[m.Switch] = m.Old
		}
		breaks, makes := Multicast(all)
		for k, round := range [][]Masks{breaks, makes} {
			for _, m := range round {
				if !bytes.Equal(now[m.Switch], m.Old) || bytes.Equal(m.Old, m.New) {
					t.Fatal("a write does not begin where the last ended, or changes nothing")
				}
				now[m.Switch] = m.New
			}
			for _, m := range all {
				for i, b := range now[m.Switch] {
					if k == 0 && b&^(m.Old[i]&m.New[i]) != 0 {
						t.Fatal("a branch is left after the first round that is not in both")
					}
				}
			}
		}
		for _, m := range all {
			if !bytes.Equal(now[m.Switch], m.New) {
				t.Fatal("it does not end at the new tables")
			}
		}
	}
}
