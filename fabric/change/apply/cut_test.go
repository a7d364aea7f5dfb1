package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/device"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
func (r *rig) portCells(t *testing.T, ports map[string]mad.PortPhysicalState) []*apply.Cell {
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
		p.Sets = append(p.Sets, change.Set{Attr: mad.AttrPortInfo, Modifier: port, Target: change.Target{GUID: r.f.OfType(mad.NodeTypeSwitch)[i].GUID()},
			Fields: []change.Field{{Name: "port_physical_state", Old: uint64(mad.PortPhysicalStateLinkUp), New: uint64(ports[name])}}})
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

		j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells})
		if err != nil {
			t.Fatal(err)
		}
		p := apply.Prover{Engine: e, Fabric: r.f, Cells: r.cells, Back: true, Log: func(text string) { fmt.Fprintln(&told, text) }}
		sets = nil
		back := apply.Change{Engine: e, Journal: j, Order: p.Order, Sleep: clock{}.Sleep}
		if err := back.Revert(t.Context(), "test"); err != nil || len(sets) != 5 {
			t.Errorf("%v, %x", err, sets)
		}
	})
}

// clock is the time of a test.
type clock struct{}

func (clock) Now() time.Time                                 { return time.Now() }
func (clock) Sleep(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }
