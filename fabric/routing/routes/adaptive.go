package routes

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// AdaptiveKnown reports whether it is known which switches route adaptively: not for
// tables of a file without adaptive routing.
func (r *Routes) AdaptiveKnown() bool { return r.adaptive.list != nil }

// SetAdaptive sets the adaptive routing of switch s; nil: it routes statically. If a is
// active, the row gets the static ports of its first table; LIDs above Top are left out.
// Routes keeps a, which must not change afterwards.
func (r *Routes) SetAdaptive(s int, a *adaptive.Switch) {
	if a == nil {
		r.adaptive.set(s, nil)
		return
	}
	c := *a
	c.Tables = make([]*adaptive.Table, len(a.Tables))
	for i, t := range a.Tables {
		if t != nil {
			c.Tables[i] = t.UpTo(r.top)
		}
	}
	if a.Active() && a.Table(0) != nil && !bytes.Equal(r.Row(s), c.Tables[0].Ports()) {
		copy(r.EditRow(s), c.Tables[0].Ports())
	}
	switch {
	case c.Table(0) != nil:
		c.Tables[0] = c.Tables[0].WithPorts(nil) // they are in the row
	case a.Active():
		copy(r.EditRow(s), slices.Repeat([]uint8{NoPort}, int(r.top)+1))
	}
	r.adaptive.set(s, &c)
}

// Adaptive is the adaptive routing of switch s, with the entries of its row as the static
// ports of its first table; nil: it routes statically, or that is unknown. It shares memory
// of r, and must not be changed.
func (r *Routes) Adaptive(s int) *adaptive.Switch {
	if r.adaptive.list == nil || r.adaptive.list[s] == nil {
		return nil
	}
	c := *r.adaptive.list[s]
	if c.Table(0) != nil {
		c.Tables = slices.Clone(c.Tables)
		c.Tables[0] = c.Tables[0].WithPorts(r.Row(s))
	}
	return &c
}

// DescribeAdaptive is adaptive.Describe of the switches of r.
func DescribeAdaptive(r *Routes) string {
	list := make([]*adaptive.Switch, len(r.rows))
	for s := range list {
		list[s] = r.Adaptive(s)
	}
	return adaptive.Describe(list)
}

// ActiveSwitches are the adaptive routing of the switches of r, as of Adaptive; nil for
// switches that follow their row.
func ActiveSwitches(r *Routes) []*adaptive.Switch {
	list := make([]*adaptive.Switch, len(r.rows))
	for s := range list {
		if a := r.Adaptive(s); a.Active() {
			list[s] = a
		}
	}
	return list
}

// HasChoices reports whether some switch routes adaptively, or by hashes.
func (r *Routes) HasChoices() bool {
	return slices.ContainsFunc(r.adaptive.list, (*adaptive.Switch).Active)
}

// Choice is what switch s does with a packet.
func (r *Routes) Choice(s int, p adaptive.Packet) adaptive.Choice {
	if a := r.Adaptive(s); a.Active() {
		return a.Choose(p, Down(r.graph, s))
	}
	return adaptive.Single(r.Row(s).Port(p.LID))
}

// Down reports ports of switch s that have no link; port 0 has none that could be down.
func Down(g *graph.Graph, s int) func(port uint8) bool {
	return func(port uint8) bool { return port > 0 && g.Target(int32(s), port) == graph.NoTarget }
}

// SetChoices lets switch s choose among ports for packets to LIDs: adaptively, for SLs and
// transports as OpenSM sets them (all SLs; RC and DC). Equal sets share a group. The static
// port stays if it is among the ports, and else is the lowest of them; one port alone is a
// static entry. All private LFTs get the entries.
func (r *Routes) SetChoices(s int, lids []mad.LID, ports adaptive.Ports) error {
	n := r.graph.Switches()[s]
	if ports.Empty() {
		return fmt.Errorf("%s: expected at least one port", n.Label())
	}
	for p := range ports.All() {
		if p == 0 || int(p) > n.NumPorts() {
			return fmt.Errorf("%s has ports 1 to %d, not %d", n.Label(), n.NumPorts(), p)
		}
	}
	for _, lid := range lids {
		if lid > r.top {
			return fmt.Errorf("no path goes to LID %d; the highest is %d", lid, r.top)
		}
	}
	a := r.adaptive.edit(s, r.top)
	row := r.EditRow(s)
	for i, t := range a.Tables {
		if t == nil {
			continue
		}
		e := adaptive.Entry{State: adaptive.Static}
		if ports.Len() > 1 {
			group, err := t.Groups.Place(ports)
			if err != nil {
				return fmt.Errorf("%s: %w", n.Label(), err)
			}
			e.State, e.Group = adaptive.Bounded, uint16(group)
		}
		for _, lid := range lids {
			e.Port = t.Entry(lid).Port
			if i == 0 {
				e.Port = row.Port(lid)
			}
			if !ports.Has(e.Port) {
				e.Port = ports.First()
			}
			if i == 0 {
				row[lid] = e.Port
			}
			t.Set(lid, e)
		}
	}
	return nil
}

// StaticPart is a copy of r without adaptive routing: its static ports.
func (r *Routes) StaticPart() *Routes {
	c := r.Clone()
	c.adaptive = newAdaptiveRows(len(r.rows))
	return c
}

// adaptiveRows are the adaptive routing of switches, whose first tables have their static ports
// in rows. Tables may share the adaptive routing of a switch until one changes it.
type adaptiveRows struct {
	switches int
	list     []*adaptive.Switch // by switch; nil: unknown of all

	mu  sync.Mutex
	own []bool // by switch: shared with no other tables; nil: false for all
}

func newAdaptiveRows(switches int) *adaptiveRows { return &adaptiveRows{switches: switches} }

// ensure makes the list, unless it is there.
func (x *adaptiveRows) ensure() {
	if x.list == nil {
		x.list = make([]*adaptive.Switch, x.switches)
	}
}

// set sets the adaptive routing of switch s, which others may share.
func (x *adaptiveRows) set(s int, a *adaptive.Switch) {
	x.ensure()
	x.list[s] = a
	x.setOwn(s, false)
}

// edit is the adaptive routing of switch s for changes, enabled.
func (x *adaptiveRows) edit(s int, top mad.LID) *adaptive.Switch {
	x.ensure()
	switch own := x.setOwn(s, true); {
	case !x.list[s].Active():
		t := adaptive.NewTable(top, adaptive.NewGroups(1)).WithPorts(nil)
		x.list[s] = &adaptive.Switch{Enabled: true, SLs: adaptive.AllSLs, Static: adaptive.OpenSMStatic, Tables: []*adaptive.Table{t}}
	case !own:
		x.list[s] = x.list[s].Clone()
	}
	return x.list[s]
}

// setOwn notes whether the adaptive routing of switch s is shared with no other tables, and
// returns whether that was noted before.
func (x *adaptiveRows) setOwn(s int, own bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own == nil {
		x.own = make([]bool, x.switches)
	}
	was := x.own[s]
	x.own[s] = own
	return was
}

// share is x for tables of so many switches, of which s has number was(s) in x or -1.
func (x *adaptiveRows) share(switches int, was func(s int) int) *adaptiveRows {
	o := newAdaptiveRows(switches)
	if x.list == nil {
		return o
	}
	x.mu.Lock()
	x.own = nil
	x.mu.Unlock()
	o.ensure()
	for s := range o.list {
		if from := was(s); from >= 0 {
			o.list[s] = x.list[from]
		}
	}
	return o
}
