package verify

import (
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// WithoutLoop returns v without its credit loop, which is not judged for a reason.
func (v *Verdict) WithoutLoop(why string) *Verdict {
	w := *v
	w.Cycle, w.LoopUnknown = nil, why
	return &w
}

// lidsOfTurn and sourcesOfTurn are how many paths PathsThrough takes of each turn.
const lidsOfTurn, sourcesOfTurn = 8, 4

// PathsThrough returns paths between endpoints that take the turns of a credit loop, from each link of
// it to the next: up to 32 of each, spread over the destinations, and most in total.
//
// Time: O(K*(L + T*H)), K turns, T terminals, H links of a path.
func PathsThrough(r *routes.Routes, cycle []CycleChannel, most int) []*routes.Path {
	g := r.Graph()
	e := SelectEndpoints(g, 0)
	var paths []*routes.Path
	seen := map[[2]mad.LID]bool{}
	for i := range cycle {
		a, b := cycle[i].Port, cycle[(i+1)%len(cycle)].Port
		from, next := g.SwitchOf(a.Node()), g.SwitchOf(b.Node())
		var lids []mad.LID
		first, second := r.Row(from), r.Row(next)
		for lid := range e.Wanted {
			if e.Wanted[lid] && first.Port(mad.LID(lid)) == uint8(a.Num()) && second.Port(mad.LID(lid)) == uint8(b.Num()) {
				lids = append(lids, mad.LID(lid))
			}
		}
		step, took := max(1, len(lids)/lidsOfTurn), 0
		for k := range lids { // the first of each step, then the second ones
			lid := lids[min(k%lidsOfTurn*step+k/lidsOfTurn, len(lids)-1)]
			found := 0
			for t := range g.Terminals() {
				src := &g.Terminals()[t]
				if found == sourcesOfTurn || len(paths) == most {
					break
				}
				if !e.Is[t] || src.Switch < 0 || src.Out == 0 || src.LID == lid || !passes(r, int32(src.Switch), lid, int32(from)) {
					continue
				}
				found++
				if pair := [2]mad.LID{src.LID, lid}; !seen[pair] {
					seen[pair] = true
					if p, err := r.Trace(src.LID, lid); err == nil && p.Broken == "" {
						paths = append(paths, p)
					}
				}
			}
			if found > 0 {
				took++
			}
			if took == lidsOfTurn {
				break
			}
		}
	}
	return paths
}

// passes reports whether packets to lid from switch at pass switch via.
func passes(r *routes.Routes, at int32, lid mad.LID, via int32) bool {
	g := r.Graph()
	for range g.Switches() {
		if at == via {
			return true
		}
		target := g.Target(at, r.Row(int(at)).Port(lid))
		if !target.IsChannel() {
			return false
		}
		at = g.Channels()[target.Channel()].To
	}
	return false
}

// LoopOf returns a credit loop of paths alone, on the virtual lanes that their service levels have in r; nil: they
// close none.
func LoopOf(r *routes.Routes, paths []*routes.Path) []CycleChannel {
	g := r.Graph()
	lanes := r.Lanes()
	for _, p := range paths {
		for _, h := range p.Hops {
			lanes = max(lanes, int(min(r.SL2VL.VL(h.Switch, h.In, h.Out, p.SL), mad.DropVL))+1)
		}
	}
	d := NewDependencyGraph(g, lanes)
	lid := map[int32]mad.LID{} // an example, by vertex
	for _, p := range paths {
		last := int32(-1)
		for _, h := range p.Hops {
			target := g.Target(int32(h.Switch), h.Out)
			vl := r.SL2VL.VL(h.Switch, h.In, h.Out, p.SL)
			if !target.IsChannel() || vl >= mad.DropVL {
				break
			}
			v := d.Vertex(target.Channel(), vl)
			if d.Use(v); last >= 0 {
				d.Add(last, v)
				lid[last] = p.LID
			}
			last = v
		}
	}
	var loop []CycleChannel
	for _, v := range d.Cycle() {
		loop = append(loop, CycleChannel{Port: g.ChannelPort(int(v) / lanes), VL: uint8(int(v) % lanes), LID: lid[v]})
	}
	return loop
}
