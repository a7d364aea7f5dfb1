package verify

import (
	"context"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// ShortGroups counts, by switch, the port groups with fewer ports than the similar groups of
// most LIDs; -1: the switch is static, or its tables are unknown. Ports without a link do not
// count.
//
// Groups are similar if their switches have the same number of ports and both have hosts or
// both have none, and if their packets go to hosts at switches that are equally far away. In
// fat trees, similar groups have the same number of ports until links fail; in tori and random
// networks, they differ by design.
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
