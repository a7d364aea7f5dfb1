package verify

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// Disjointness describes how far apart the paths to the LIDs of one port are (LMC, IBA
// 7.11.1): a sender that has several paths goes on where a link or a switch fails.
type Disjointness struct {
	Ports int   // endpoints with several LIDs, on a switch
	LIDs  int   // the most of one
	Pairs int64 // of an endpoint and such a port on another switch
	// Links are numbers of pairs, by how many of their paths no two of which share a
	// channel between switches: the most that can be chosen. 0: none arrives.
	Links []int64
	// Switches are the same, of paths that share no switch but the first and the last.
	Switches []int64
}

// measureDisjointness measures that of the paths between endpoints; nil: no endpoint has
// several LIDs.
//
// Time: O(P) for each LID of several and each switch with endpoints, P links a path.
func measureDisjointness(ctx context.Context, r *routes.Routes, e *Endpoints) (*Disjointness, error) {
	g := r.Graph()
	var several []int
	for i := range g.Terminals() {
		if t := &g.Terminals()[i]; e.Is[i] && t.Count > 1 && t.Switch >= 0 {
			several = append(several, i)
		}
	}
	if len(several) == 0 {
		return nil, nil
	}
	type worker struct {
		*Siblings
		sum Disjointness
	}
	workers := make([]worker, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(several), func(number, i int) {
		x := &workers[number]
		if x.Siblings == nil {
			x.Siblings = NewSiblings(g)
		}
		t := &g.Terminals()[several[i]]
		x.Read(r, t)
		for _, s := range e.Sources {
			if int(s) != t.Switch {
				links, switches := x.Disjoint(s, t)
				x.sum.count(links, switches, t.Count, int64(e.On[s]))
			}
		}
	})
	d := &Disjointness{Ports: len(several)}
	for _, i := range several {
		d.LIDs = max(d.LIDs, g.Terminals()[i].Count)
	}
	d.Links, d.Switches = make([]int64, d.LIDs+1), make([]int64, d.LIDs+1)
	for _, x := range workers {
		d.Pairs += x.sum.Pairs
		for n := range x.sum.Links {
			d.Links[n] += x.sum.Links[n]
			d.Switches[n] += x.sum.Switches[n]
		}
	}
	return d, err
}

// count adds pairs with so many disjoint paths, of a port with so many LIDs.
func (d *Disjointness) count(links, switches, lids int, pairs int64) {
	d.Pairs += pairs
	d.Links, d.Switches = grow(d.Links, lids), grow(d.Switches, lids)
	d.Links[links] += pairs
	d.Switches[switches] += pairs
}
