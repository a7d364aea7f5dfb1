package verify

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// GroupFault is what is wrong with a port group of a switch that routes adaptively. A group has
// at most one: the first of the kinds.
type GroupFault struct {
	Switch int
	Kind   GroupFaultKind
	PLFT   uint8
	Group  uint16
	LID    mad.LID // the first of the group for which it holds
	LIDs   int     // how many LIDs have the group
	Port   uint8   // the port at fault; the static port for GroupLacksStatic
}

// GroupFaultKind is what is wrong with a group.
type GroupFaultKind uint8

const (
	GroupAbove       GroupFaultKind = iota // the group is above the last one
	GroupEmpty                             // it has no ports
	GroupDead                              // a port of it does not exist, or has no link
	GroupIllegal                           // a port of it leads to another end port, or back
	GroupLacksStatic                       // it lacks the static port of a LID
	GroupUnequal                           // LIDs of one switch have groups with different ports
)

var groupFaultNames = [...]string{"above", "empty", "dead", "illegal", "lacks_static", "unequal"}

// String is the name of the kind in reports: "dead".
func (k GroupFaultKind) String() string { return groupFaultNames[k] }

// Groups returns the faults of the port groups that LIDs of end ports have, by switch, private
// LFT and group. Groups of private LFTs whose tables are unknown are left out.
//
// A port leads back if its neighbour is not nearer to the destination, and packets may return
// from there to the switch, by the choices of all switches. So longer ways, as of up*/down* or
// of secondary sub-groups, are not faults.
//
// Time: O(S*L) and the distances; a search for each group with a port that is not minimal.
func Groups(ctx context.Context, r *routes.Routes) ([]GroupFault, error) {
	g := r.Graph()
	hops, err := graph.LinkHops(ctx, g)
	if err != nil {
		return nil, err
	}
	x := &groupChecker{r: r, g: g, hops: hops, switches: routes.ActiveSwitches(r)}
	found := make([][]GroupFault, len(x.switches))
	err = graph.Each(ctx, g.Workers(), len(x.switches), func(_, s int) {
		if a := x.switches[s]; a != nil {
			for plft, t := range a.Tables {
				if t != nil {
					found[s] = append(found[s], x.table(s, uint8(plft), t)...)
				}
			}
		}
	})
	return slices.Concat(found...), err
}

// AdaptiveLIDs are the LIDs of end ports to which some switch routes packets adaptively, in
// order.
func AdaptiveLIDs(r *routes.Routes) (lids []mad.LID) {
	g := r.Graph()
	is := make([]bool, int(g.Top())+1)
	for _, a := range routes.ActiveSwitches(r) {
		if a == nil || !a.Enabled {
			continue
		}
		for _, t := range a.Tables {
			if t == nil {
				continue
			}
			for lid := range min(len(is), int(t.Top())+1) {
				is[lid] = is[lid] || t.Entry(mad.LID(lid)).State.Adaptive()
			}
		}
	}
	for lid, adaptive := range is {
		if adaptive && g.TerminalByLID(mad.LID(lid)) >= 0 {
			lids = append(lids, mad.LID(lid))
		}
	}
	return lids
}

// hasChoice reports whether some switch may choose among several ports for packets to an end port.
func hasChoice(r *routes.Routes) bool {
	g := r.Graph()
	for _, a := range routes.ActiveSwitches(r) {
		if a == nil {
			continue
		}
		for _, t := range a.Tables {
			if t == nil {
				continue
			}
			for lid := mad.LID(1); lid <= min(t.Top(), g.Top()); lid++ {
				e := t.Entry(lid)
				if e.State == adaptive.Static && !a.FastRecovery || g.TerminalByLID(lid) < 0 {
					continue
				}
				ports := t.Groups.All(int(e.Group))
				if e.Port != mad.NoPort {
					ports.Add(e.Port)
				}
				if ports.Len() > 1 {
					return true
				}
			}
		}
	}
	return false
}

// groupChecker is the state of Groups.
type groupChecker struct {
	r        *routes.Routes
	g        *graph.Graph
	hops     *graph.Hops
	switches []*adaptive.Switch // nil: static
}

// groupUse is the LIDs that have a group.
type groupUse struct {
	group uint16
	lids  []mad.LID
}

// table returns the faults of the groups of a table.
func (x *groupChecker) table(s int, plft uint8, t *adaptive.Table) (found []GroupFault) {
	at := map[uint16]int{}
	var uses []groupUse
	for lid := range min(int(t.Top()), int(x.g.Top())) + 1 {
		lid := mad.LID(lid)
		to := x.g.TerminalByLID(lid)
		if to < 0 || x.g.Terminals()[to].Switch == s && x.g.Terminals()[to].Out == 0 {
			continue
		}
		e := t.Entry(lid)
		if e.State == adaptive.Static {
			continue
		}
		i, ok := at[e.Group]
		if !ok {
			i = len(uses)
			at[e.Group] = i
			uses = append(uses, groupUse{group: e.Group})
		}
		uses[i].lids = append(uses[i].lids, lid)
	}
	slices.SortFunc(uses, func(a, b groupUse) int { return cmp.Compare(a.group, b.group) })
	sound := uses[:0:0]
	for _, u := range uses {
		if f, ok := x.fault(s, plft, t, u); ok {
			found = append(found, f)
		} else {
			sound = append(sound, u)
		}
	}
	return append(found, x.unequal(s, plft, t, sound)...)
}

// fault returns the fault of a group; not ok: it has none.
func (x *groupChecker) fault(s int, plft uint8, t *adaptive.Table, u groupUse) (f GroupFault, ok bool) {
	f = GroupFault{Switch: s, PLFT: plft, Group: u.group, LID: u.lids[0], LIDs: len(u.lids)}
	ports := t.Groups.All(int(u.group))
	switch {
	case int(u.group) >= t.Groups.Len():
		f.Kind = GroupAbove
		return f, true
	case ports.Empty():
		// Group 0 stays empty with Dragonfly+, whose private LFTs have groups of their own
		// (opensm-mlnx osm_ar_dfp_algorithm.hpp).
		f.Kind = GroupEmpty
		return f, u.group != 0 || len(x.switches[s].Tables) == 1
	}
	for p := range ports.All() {
		if x.g.Target(int32(s), p) == graph.NoTarget {
			f.Kind, f.Port = GroupDead, p
			return f, true
		}
	}
	searched := map[int]bool{} // switches of destinations
	for _, lid := range u.lids {
		to := x.g.TerminalByLID(lid)
		home := x.g.Terminals()[to].Switch
		for p := range ports.All() {
			if x.leadsAway(s, plft, p, lid, to, home, searched) {
				f.Kind, f.Port, f.LID = GroupIllegal, p, lid
				return f, true
			}
		}
		searched[home] = true
	}
	for _, lid := range u.lids {
		if e := t.Entry(lid); e.Port != mad.NoPort && !ports.Has(e.Port) {
			f.Kind, f.Port, f.LID = GroupLacksStatic, e.Port, lid
			return f, true
		}
	}
	return f, false
}

// leadsAway reports whether a port leads to another end port than the destination, or to a
// switch from which packets may return. Switches of destinations that were searched are not
// searched again.
func (x *groupChecker) leadsAway(s int, plft, p uint8, lid mad.LID, to, home int, searched map[int]bool) bool {
	switch target := x.g.Target(int32(s), p); {
	case target.IsTerminal():
		return target != graph.ToTerminal(int32(to)) && !x.samePort(int(target.Terminal()), to)
	case home < 0 || searched[home]:
		return false
	default:
		c := &x.g.Channels()[target.Channel()]
		here, there := x.hops.Distance(s, home), x.hops.Distance(int(c.To), home)
		return (there < 0 || there >= here) && x.returns(s, plft, c, lid)
	}
}

// samePort reports whether two terminals are planes of one port (XDR): they have one GUID.
func (x *groupChecker) samePort(a, b int) bool {
	return x.g.Terminals()[a].Port.GUID() == x.g.Terminals()[b].Port.GUID()
}

// returns reports whether packets to lid that take channel c may come back to switch s, and
// there follow that private LFT again.
func (x *groupChecker) returns(s int, plft uint8, c *graph.Channel, lid mad.LID) bool {
	sl := x.levelOf(s)
	type place struct {
		s    int32
		plft uint8
	}
	enter := func(c *graph.Channel) place {
		if a := x.switches[c.To]; a != nil {
			return place{c.To, a.PLFT(c.PeerPort, sl)}
		}
		return place{c.To, 0}
	}
	for open, seen := []place{enter(c)}, map[place]bool{}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		switch {
		case at == place{int32(s), plft}:
			return true
		case seen[at]:
			continue
		}
		seen[at] = true
		ports := adaptive.Single(x.r.Entry(at.s, lid)).Ports
		if a := x.switches[at.s]; a != nil {
			ports = a.PortsOf(at.plft, adaptive.Packet{SL: sl}, lid, routes.Down(x.g, int(at.s)))
		}
		for p := range ports.All() {
			if target := x.g.Target(at.s, p); target.IsChannel() {
				open = append(open, enter(&x.g.Channels()[target.Channel()]))
			}
		}
	}
	return false
}

// levelOf is a service level that switch s routes adaptively.
func (x *groupChecker) levelOf(s int) uint8 {
	for sl := range uint8(16) {
		if x.switches[s].SLs.Has(sl) {
			return sl
		}
	}
	return 0
}

// unequal returns a fault for the first group whose ports differ from the ports of another group
// for its switch: groups that are copies must be equal.
func (x *groupChecker) unequal(s int, plft uint8, t *adaptive.Table, uses []groupUse) []GroupFault {
	first := map[int]adaptive.Ports{} // by switch of the destination
	for _, u := range uses {
		ports := t.Groups.All(int(u.group))
		for _, lid := range u.lids {
			home := x.g.Terminals()[x.g.TerminalByLID(lid)].Switch
			if home < 0 || home == s {
				continue
			}
			other, ok := first[home]
			if !ok {
				first[home] = ports
			} else if other != ports {
				return []GroupFault{{Switch: s, Kind: GroupUnequal, PLFT: plft, Group: u.group, LID: lid, LIDs: len(u.lids)}}
			}
		}
	}
	return nil
}

// ShortGroups counts, by switch, the port groups with fewer ports than the similar groups of
// most LIDs; -1: the switch is static, or its tables are unknown. Ports without a link do not
// count.
//
// Groups are similar if their switches have equally many ports and both have hosts or both have
// none, and if their packets go to hosts at switches that are equally far away. In fat trees,
// similar groups have equally many ports until links fail; in tori and random networks, they
// differ by design.
//
// Time: O(S*L) and the distances.
func ShortGroups(ctx context.Context, r *routes.Routes) ([]int, error) {
	g := r.Graph()
	hops, err := graph.LinkHops(ctx, g)
	if err != nil {
		return nil, err
	}
	x := &shortGroups{g: g, hops: hops, hosts: g.Endpoints(), switches: routes.ActiveSwitches(r)}
	uses := make([][]similarGroup, len(x.switches))
	if err := graph.Each(ctx, g.Workers(), len(x.switches), func(_, s int) { uses[s] = x.of(s) }); err != nil {
		return nil, err
	}
	counts := map[similarity]map[int]int{} // LIDs, by the size of their groups
	for _, list := range uses {
		for _, u := range list {
			if counts[u.similarity] == nil {
				counts[u.similarity] = map[int]int{}
			}
			counts[u.similarity][u.size] += u.lids
		}
	}
	usual := map[similarity]int{}
	for k, sizes := range counts {
		for size, n := range sizes {
			if most := usual[k]; n > sizes[most] || n == sizes[most] && size > most {
				usual[k] = size
			}
		}
	}
	found := make([]int, len(x.switches))
	for s, a := range x.switches {
		if a == nil || a.Unknown != "" {
			found[s] = -1
			continue
		}
		short := map[plftGroup]bool{}
		for _, u := range uses[s] {
			if u.size < usual[u.similarity] {
				short[u.plftGroup] = true
			}
		}
		found[s] = len(short)
	}
	return found, nil
}

// similarity is what similar groups have in common.
type similarity struct {
	ports    int // of the switch
	hosts    bool
	distance int // to the switch of the destination, in links
}

type plftGroup struct {
	plft  uint8
	group uint16
}

// similarGroup is a group as packets to switches at one distance use it.
type similarGroup struct {
	plftGroup
	similarity
	size int // ports with a link
	lids int // that have the group
}

// shortGroups is the state of ShortGroups.
type shortGroups struct {
	g        *graph.Graph
	hops     *graph.Hops
	hosts    []int64            // by switch: its ports of hosts
	switches []*adaptive.Switch // nil: static
}

// of are the groups of a switch, once for each distance.
func (x *shortGroups) of(s int) (list []similarGroup) {
	a := x.switches[s]
	if a == nil || a.Unknown != "" {
		return nil
	}
	type use struct {
		plftGroup
		distance int
	}
	places := map[use]int{} // in list
	sizes := map[plftGroup]int{}
	for plft, t := range a.Tables {
		if t == nil {
			continue
		}
		for lid := range min(int(t.Top()), int(x.g.Top())) + 1 {
			e, to := t.Entry(mad.LID(lid)), x.g.TerminalByLID(mad.LID(lid))
			if to < 0 || e.State == adaptive.Static || int(e.Group) >= t.Groups.Len() {
				continue
			}
			home := x.g.Terminals()[to].Switch
			if home < 0 || home == s || x.g.Terminals()[to].Out == 0 {
				continue
			}
			at := plftGroup{uint8(plft), e.Group}
			size, ok := sizes[at]
			if !ok {
				for p := range t.Groups.All(int(e.Group)).All() {
					if x.g.Target(int32(s), p) != graph.NoTarget {
						size++
					}
				}
				sizes[at] = size
			}
			u := use{at, x.hops.Distance(s, home)}
			i, ok := places[u]
			if !ok {
				i = len(list)
				places[u] = i
				list = append(list, similarGroup{at, similarity{x.g.Switches()[s].NumPorts(), x.hosts[s] > 0, u.distance}, size, 0})
			}
			list[i].lids++
		}
	}
	return list
}
