package verify

import (
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// SplitPart is a part of a split network.
type SplitPart struct {
	Part fabric.Part
	// Cut are ports without a link that packets between this part and the largest are sent to:
	// what cuts it off, where the tables have not changed since.
	Cut []*fabric.Port
}

// partsOfSwitches returns the part of the fabric that each switch is in, nil if all are in one.
func partsOfSwitches(g *graph.Graph) []int32 {
	f := g.Fabric()
	if len(f.Parts()) < 2 {
		return nil
	}
	parts := make([]int32, len(g.Switches()))
	for s, n := range g.Switches() {
		parts[s] = int32(f.PartOf(n.Port(0)))
	}
	return parts
}

// apart reports whether two switches are in different parts; -1: no switch.
func (v *verification) apart(s, t int) bool {
	return v.parts != nil && s >= 0 && t >= 0 && v.parts[s] != v.parts[t]
}

// endsOfPart is how many ports of a part are traced for what cuts it off.
const endsOfPart = 16

// splitParts returns the parts that have endpoints.
func (v *verification) splitParts(r *routes.Routes) []SplitPart {
	all := v.g.Fabric().Parts()
	ends := make([][]*graph.Terminal, len(all))
	for i, is := range v.Is {
		t := &v.g.Terminals()[i]
		if is && t.Switch >= 0 && v.parts[t.Switch] >= 0 && len(ends[v.parts[t.Switch]]) < endsOfPart {
			ends[v.parts[t.Switch]] = append(ends[v.parts[t.Switch]], t)
		}
	}
	var parts []SplitPart
	var main []*graph.Terminal
	for i, list := range ends {
		if len(list) == 0 {
			continue
		}
		p := SplitPart{Part: all[i]}
		if main == nil {
			main = list
		} else {
			for k := range max(len(list), len(main)) {
				a, b := list[k%len(list)], main[k%len(main)]
				p.addCut(r, a, b)
				p.addCut(r, b, a)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// addCut adds the port without a link at which packets from a to b end.
func (p *SplitPart) addCut(r *routes.Routes, a, b *graph.Terminal) {
	path, err := r.Trace(a.LID, b.LID)
	if err != nil || path.Broken == "" || len(path.Hops) == 0 {
		return
	}
	last := path.Hops[len(path.Hops)-1]
	if last.Out == 0 {
		return
	}
	if port := r.Graph().Switches()[last.Switch].Port(int(last.Out)); port != nil && port.Peer() == nil && !slices.Contains(p.Cut, port) {
		p.Cut = append(p.Cut, port)
	}
}
