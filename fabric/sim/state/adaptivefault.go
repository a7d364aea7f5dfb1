package state

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// AdaptiveFault is a fault of the adaptive routing of a switch.
type AdaptiveFault uint8

// The faults of tables concern the groups of one other switch: the first to which the switch
// has a choice. They come back whenever the subnet manager computes the tables.
const (
	FaultStale   AdaptiveFault = iota // the group lacks the static port, as before its cable was there
	FaultEmpty                        // the group has no ports
	FaultDead                         // the group has a port more, which has no link
	FaultIllegal                      // the group has a port more, by which packets do not get nearer
	FaultTop                          // GroupTop is below the group
	FaultSL                           // EnableBySLMask lacks SL 1
	FaultKey                          // the vendor's keys (VS and N2N) do not protect
	FaultOff                          // adaptive routing is off, at this switch alone
)

// adaptiveFaults are the names and effects of faults, by number.
var adaptiveFaults = []struct{ name, doc string }{
	{"stale", "a group is of an earlier time, and lacks the static port"},
	{"empty", "a group has no ports"},
	{"dead", "a group has a port without a link"},
	{"illegal", "a group has a port that does not lead nearer"},
	{"top", "a group is above GroupTop"},
	{"sl", "the mask of service levels lacks SL 1"},
	{"key", "the keys of the vendor's classes do not protect"},
	{"off", "the switch alone does not route adaptively"},
}

// AdaptiveFaultNames are the names of all faults.
func AdaptiveFaultNames() (names []string) {
	for _, f := range adaptiveFaults {
		names = append(names, f.name)
	}
	return names
}

// AdaptiveFaultDoc is one line on all faults.
func AdaptiveFaultDoc() string {
	var list []string
	for _, f := range adaptiveFaults {
		list = append(list, f.name+" ("+f.doc+")")
	}
	return strings.Join(list, ", ")
}

// AdaptiveFaultNamed returns the fault with a name.
func AdaptiveFaultNamed(name string) (AdaptiveFault, error) {
	names := AdaptiveFaultNames()
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown fault %q%s; supported: %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
	}
	return AdaptiveFault(i), nil
}

// Break gives switch n a fault of adaptive routing. Before the tables are computed, those
// that are not possible are ignored.
func (n *Node) Break(f AdaptiveFault) error {
	a := n.Adaptive
	if a == nil {
		return fmt.Errorf("%s does not support adaptive routing; start the simulated fabric with ar=updn", n.Label)
	}
	if slices.Contains(a.Faults, f) {
		return nil
	}
	switch f {
	case FaultSL:
		a.Info.BySLEn, a.Info.EnableBySLMask = true, a.Info.EnableBySLMask&^2
	case FaultKey:
		n.VSKey.ProtectBit, n.N2NKey.ProtectBit = false, false
	case FaultOff:
		a.Info.E = false
	default:
		if len(a.Tables) > 0 && !n.Subnet.TablesStale.Load() && !n.injectGroup(f) {
			return fmt.Errorf("%s has no group with which fault %s is possible", n.Label, adaptiveFaults[f].name)
		}
	}
	a.Faults = append(a.Faults, f)
	a.Update()
	return nil
}

// repeatFaults causes the faults of tables again, which were computed. One may no longer be
// possible: the switch may have lost its cables.
func (n *Node) repeatFaults() {
	if n.Adaptive == nil {
		return
	}
	for _, f := range n.Adaptive.Faults {
		if f <= FaultTop {
			n.injectGroup(f)
		}
	}
}

// injectGroup causes a fault of a group, and reports whether that was possible.
func (n *Node) injectGroup(f AdaptiveFault) bool {
	if len(n.Adaptive.Tables) == 0 {
		return false
	}
	t := n.Adaptive.Tables[0]
	group, lid, ok := n.groupInUse(t)
	if !ok {
		return false
	}
	ports := t.Groups.Ports(group, 0)
	switch f {
	case FaultTop: // see GroupTop
		return true
	case FaultEmpty:
		for sub := range t.Groups.SubGroups() {
			if t.Groups.Set(group, sub, adaptive.Ports{}) != nil {
				return false
			}
		}
		return true
	case FaultStale:
		if ports.Remove(t.Entry(lid).Port); ports.Empty() {
			ok = n.addPort(&ports, func(p *Port) bool { return p.Up && p.Num != t.Entry(lid).Port })
		}
	case FaultDead:
		if !n.addPort(&ports, func(p *Port) bool { return !p.Up }) {
			ports.Add(uint8(min(len(n.Ports), maxPort))) // a port that does not exist
		}
	case FaultIllegal:
		ok = n.addPort(&ports, func(p *Port) bool { return p.Up && n.Subnet.leadsAway(p, lid) }) ||
			n.addPort(&ports, func(p *Port) bool { return p.Up })
	}
	return ok && t.Groups.Set(group, 0, ports) == nil
}

// maxPort is the highest number of a port.
const maxPort = 254

// groupInUse returns a group above 1, and a LID to which packets are routed by it. If there
// is no such group, a LID gets one, of its static port.
func (n *Node) groupInUse(t *adaptive.Table) (group int, lid mad.LID, ok bool) {
	static := -1
	for i := range int(t.Top()) + 1 {
		e := t.Entry(mad.LID(i))
		switch {
		case e.State != adaptive.Static && e.Group > 1:
			return int(e.Group), mad.LID(i), true
		case static < 0 && e.Port > 0 && int(e.Port) < len(n.Ports):
			static = i
		}
	}
	if static < 0 {
		return 0, 0, false
	}
	lid = mad.LID(static)
	e := t.Entry(lid)
	group = max(2, t.Groups.Len())
	if t.Groups.Set(group, 0, adaptive.PortSet(e.Port)) != nil {
		return 0, 0, false
	}
	t.Set(lid, adaptive.Entry{State: adaptive.Bounded, Port: e.Port, Group: uint16(group)})
	return group, lid, true
}

// addPort adds the first port for which ok holds.
func (n *Node) addPort(to *adaptive.Ports, ok func(*Port) bool) bool {
	for i := range n.Ports[1:] {
		if p := &n.Ports[1+i]; !to.Has(p.Num) && !p.FNM && ok(p) {
			to.Add(p.Num)
			return true
		}
	}
	return false
}

// leadsAway reports whether port p leads to another end port than that of the LID, or to a
// switch whose route to it returns.
func (s *Subnet) leadsAway(p *Port, lid mad.LID) bool {
	to := p.Peer
	if !to.Node.IsSwitch {
		return !to.hasLID(lid)
	}
	at := to.Node
	for range MaxLIDHops { // by the static ports
		if !at.IsSwitch || int(lid) >= len(at.LFT) || int(at.LFT[lid]) >= len(at.Ports) {
			return false
		}
		out := &at.Ports[at.LFT[lid]]
		if out.Peer == nil {
			return false
		}
		if at = out.Peer.Node; at == p.Node {
			return true
		}
	}
	return false
}
