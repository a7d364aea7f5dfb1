package apply

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// A host can be moved to another subnet, and simulated fabrics have the same GUIDs. A
// journal is that of the current subnet by the rule of fabric.Subnet.Is: switches that are
// missing are an outage, in which an open change must be found.

// Member is a switch of the subnet of a change, and its directed route at that time.
type Member struct {
	GUID  mad.GUID          `json:"guid"`
	Route mad.DirectedRoute `json:"route,omitempty"`
}

// membersOf returns the switches of f, with routes that do not cross ports that cells
// disable, where these exist.
func membersOf(f *fabric.Fabric, cells []*Cell) []Member {
	var members []Member
	nodes := f.Nodes()
	others := aroundCells(f, cells)
	for i := range nodes {
		if n := &nodes[i]; n.IsSwitch() {
			route := n.Route()
			if others != nil && others[i] != nil {
				route = others[i]
			}
			members = append(members, Member{n.GUID(), route})
		}
	}
	return members
}

// subnet returns the subnet of the change.
func (b *Begin) subnet() fabric.Subnet {
	s := fabric.Subnet{Prefix: b.Prefix}
	for _, m := range b.Switches {
		s.Switches = append(s.Switches, m.GUID)
	}
	slices.Sort(s.Switches)
	return s
}

// checkSubnet returns a *fabric.OtherSubnetError if the journal in dir, of the change b,
// is not of the current subnet. It is nil for a journal without switches, which an older
// version wrote.
func (b *Begin) checkSubnet(dir string, current fabric.Subnet) error {
	recorded := b.subnet()
	if len(recorded.Switches) == 0 || current.Is(recorded) {
		return nil
	}
	return &fabric.OtherSubnetError{
		Path: JournalIn(dir), Recorded: recorded.String(), Current: current.String(), Found: current.Common(recorded), Of: len(recorded.Switches),
		Remedy: "give --state DIR for the changes of this subnet",
	}
}

// present returns the subnet of a local port as far as the recorded routes of b lead to
// switches of b: without a sweep.
func (b *Begin) present(ctx context.Context, e *engine.Engine, port *engine.Port) (fabric.Subnet, error) {
	here := fabric.Subnet{Prefix: port.GIDPrefix}
	a := newAccess(e, nil)
	var calls []exchange
	for _, m := range b.Switches {
		if len(m.Route) > 0 {
			calls = append(calls, exchange{cell: len(a.cells)})
			a.cells = append(a.cells, &Cell{Node: m.GUID, Routes: []mad.DirectedRoute{m.Route}, PortGUID: m.GUID})
		}
	}
	if err := a.do(ctx, mad.MethodGet, mad.AttrNodeInfo, calls); err != nil {
		return here, err
	}
	for _, x := range calls {
		if x.err == nil {
			var info mad.NodeInfo
			info.Decode(x.data)
			here.Switches = append(here.Switches, info.NodeGUID)
		}
	}
	slices.Sort(here.Switches)
	here.Switches = slices.Compact(here.Switches)
	return here, nil
}

// checkSubnetOf checks the journal in dir: by the recorded routes to its switches, and if
// these do not lead to half of them, by a sweep.
func (h *Host) checkSubnetOf(ctx context.Context, dir string, b *Begin, port *engine.Port) error {
	if len(b.Switches) == 0 {
		return nil
	}
	here, err := b.present(ctx, h.Engine, port)
	if err != nil || here.HasHalf(b.subnet()) {
		return err
	}
	f, err := discover.Sweep(ctx, h.Engine, h.Sweep)
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	return b.checkSubnet(dir, fabric.SubnetOf(f, ""))
}
