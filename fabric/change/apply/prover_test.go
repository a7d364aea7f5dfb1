package apply_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestBranches: branches of multicast are taken away in a round before the one in which
// new ones come: in between no switch has one that is not in both trees, and so no
// packet goes round, whatever the order within a round.
func TestBranches(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	for range 200 {
		var cells []*certificate.Change
		var now, want [][]byte
		for s := range 4 {
			from, to := make([]byte, 64), make([]byte, 64)
			for i := range from {
				from[i] = byte(random.Uint32() & random.Uint32())
				to[i] = from[i] ^ byte(random.Uint32()&random.Uint32()&random.Uint32())*byte(random.IntN(2))
			}
			cells = append(cells, &certificate.Change{Node: mad.GUID(s), Attr: mad.AttrMulticastForwardingTable})
			now, want = append(now, from), append(want, to)
		}
		old, taken := slices.Clone(now), false
		for c := range old {
			for i, b := range old[c] {
				taken = taken || b&^want[c][i] != 0
			}
		}
		before, rounds, routed := apply.Unrouted(cells, now, want)
		if before != nil || routed || len(rounds) > 2 || taken && len(rounds) < 2 {
			t.Fatalf("%d rounds", len(rounds))
		}
		for k, r := range rounds {
			for _, step := range r.Writes {
				if bytes.Equal(now[step.Change], step.Data) {
					t.Fatal("a write changes nothing")
				}
				now[step.Change] = step.Data
			}
			for c := range now {
				for i, b := range now[c] {
					if k == 0 && len(rounds) == 2 && b&^(old[c][i]&want[c][i]) != 0 {
						t.Fatal("a branch is left after the first round that is not in both trees")
					}
				}
			}
		}
		for c := range now {
			if !bytes.Equal(now[c], want[c]) {
				t.Fatal("it does not end at the new tables")
			}
		}
	}
}

// TestKinds: what makes ways comes before the forwarding tables, and what takes them
// after.
func TestKinds(t *testing.T) {
	port := func(from, to mad.PortPhysicalState) (*certificate.Change, []byte, []byte) {
		a, b := make([]byte, mad.AttrPortInfo.Size), make([]byte, mad.AttrPortInfo.Size)
		f := mad.AttrPortInfo.Field("port_physical_state")
		f.SetUint(a, uint64(from))
		f.SetUint(b, uint64(to))
		return &certificate.Change{Attr: mad.AttrPortInfo, Fields: []string{"port_physical_state"}, Old: a, New: b}, a, b
	}
	off, offNow, offWant := port(mad.PortPhysicalStateLinkUp, mad.PortPhysicalStateDisabled)
	on, onNow, onWant := port(mad.PortPhysicalStateDisabled, mad.PortPhysicalStatePolling)
	lft := &certificate.Change{Attr: mad.AttrLinearForwardingTable}
	before, after, routed := apply.Unrouted([]*certificate.Change{off, lft, on}, [][]byte{offNow, make([]byte, 64), onNow}, [][]byte{offWant, bytes.Repeat([]byte{1}, 64), onWant})
	if len(before) != 1 || len(after) != 1 || !routed || before[0].Writes[0].Change != 2 || after[0].Writes[0].Change != 0 {
		t.Errorf("%v, %v, %v; want the port that comes, the table, the port that goes", before, routed, after)
	}
}

// noted is a transport that notes which ports' PortInfo is set.
type noted struct {
	engine.Transport
	sets *[]uint32
}

func (n noted) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (n noted) BeforeWait(func() bool) bool            { return false }

func (n noted) Send(d *engine.Datagram) error {
	m := d.MAD[:]
	if mad.Method(m[3]) == mad.MethodSet {
		hops := uint32(m[7])
		*n.sets = append(*n.sets, hops<<8|uint32(m[23]))
	}
	return n.Transport.Send(d)
}

// portCells are the cells of a plan that gives ports of switches other physical states.
func (r *rig) portCells(t *testing.T, ports map[string]mad.PortPhysicalState) []*certificate.Change {
	t.Helper()
	p := &change.Plan{}
	names := make([]string, 0, len(ports))
	for name := range ports {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var node string
		var port uint32
		if _, err := fmt.Sscanf(name, "%s %d", &node, &port); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.f.OfType(mad.NodeTypeSwitch), func(n fabric.Node) bool { return n.Name() == node })
		p.Sets = append(p.Sets, certificate.Change{Attr: mad.AttrPortInfo, Modifier: port, Node: r.f.OfType(mad.NodeTypeSwitch)[i].GUID()}.With("port_physical_state", uint64(mad.PortPhysicalStateLinkUp), uint64(ports[name])))
	}
	cells, err := apply.Planned(p, r.f)
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

// TestCuts: links go down from the far end of the fabric to this host, those between this
// host and the subnet manager last; a link that is reset does so alone, and is waited for.
// Nothing of it is out of reach on the way, nor when it is taken back.
func TestCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4,levels=3,sm=node-0016 HCA-1")
		const off, again = mad.PortPhysicalStateDisabled, mad.PortPhysicalStatePolling
		r.cells = r.portCells(t, map[string]mad.PortPhysicalState{"leaf-1 4": off, "leaf-2 4": off, "leaf-4 4": off, "leaf-8 4": off, "spine-1 3": off, "leaf-1 3": again, "leaf-8 3": again})
		conn, err := r.subnet.Attach(r.node, 1)
		if err != nil {
			t.Fatal(err)
		}
		var sets []uint32
		e := engine.New(noted{conn, &sets}, engine.Options{Write: true})
		defer e.Close()
		client := &sa.Client{Engine: e}
		manager, err := client.FindSM(t.Context(), r.f)
		if err != nil {
			t.Fatal(err)
		}
		live, _, err := device.ReadRoutes(t.Context(), e, r.f)
		if err != nil {
			t.Fatal(err)
		}
		var told strings.Builder
		run := apply.Run{Host: &apply.Host{Engine: e, SA: client, Clock: clock{}, Log: &told}, Live: live}
		if outcome, err := run.Apply(t.Context(), r.f, manager, &apply.Begin{Cells: r.cells}); outcome != apply.Confirmed || err != nil {
			t.Fatal(outcome, err, told.String())
		}
		// By hops of the route and port: of leaf-4 and leaf-2, then those between this host
		// and the subnet manager, at leaf-8, spine-1 and leaf-1.
		want := []uint32{5<<8 | 4, 3<<8 | 4, 5<<8 | 3, 5<<8 | 4, 2<<8 | 3, 1<<8 | 3, 1<<8 | 4}
		if !slices.Equal(sets, want) {
			t.Errorf("set %x, want %x", sets, want)
		}

		j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		p := apply.Prover{Engine: e, Fabric: r.f, Cells: r.cells, Back: true, Log: func(text string) { fmt.Fprintln(&told, text) }}
		sets = nil
		back := (&apply.Writer{Engine: e, Journal: j, Sleep: clock{}.Sleep}).By(&p)
		if err := back.Revert(t.Context(), "test"); err != nil || len(sets) != 5 {
			t.Errorf("%v, %x", err, sets)
		}
	})
}

// TestPlannedEntries: a plan that was edited writes no entry that no table can have.
func TestPlannedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		first := r.cells[0]
		for _, c := range []struct {
			block, at int
			port      byte
			want      string
		}{
			{0, 5, 2, ""},
			{0, 5, mad.NoPort, ""},
			{0, 5, 77, "LID 5: no port 77; the switch has ports 0..4"},
			{0, 0, 1, "LID 0: not assigned to a port"},
			{768, 0, 1, "LID 49152: not assigned to a port"},
		} {
			after := slices.Clone(first.Old)
			after[c.at] = c.port
			p := &change.Plan{Sets: []certificate.Change{{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(c.block), Node: first.Node, Old: first.Old, New: after}}}
			cells, err := apply.Planned(p, r.f)
			if c.want == "" && (err != nil || len(cells) != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("entry %d of block %d to port %d: %v", c.at, c.block, c.port, err)
			}
		}
	})
}
