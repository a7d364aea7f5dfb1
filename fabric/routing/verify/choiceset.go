package verify

import (
	"context"
	"slices"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// choiceSets judges what switches that route adaptively may do, by the choices that their
// tables have: each must arrive, none may loop, and all of them together make the
// dependency graph.
type choiceSets struct {
	v      *verification
	kinds  []PacketKind // packets that not all switches send by their rows
	static []PacketKind // the others
	rows   uint16       // service levels of static, a bit each
	groups []vlGroup    // where packets begin
	index  []int32      // by switch: its group, from 1, where each has one; nil: several
	found  []kindStates
}

// kindStates are what becomes of packets of a kind.
type kindStates struct {
	class  []int32   // by LID: its class, or -1
	states [][]int32 // by class, then group: states of a choiceWalk
}

// prepareChoices makes the choiceSets of r and of Options.Union, where they have choices, and
// sets the virtual lanes of v to the lanes that all packets use.
func (v *verification) prepareChoices(r *routes.Routes) {
	tables := []*routes.Routes{r, v.o.Union}
	var kinds [2][]PacketKind
	for i, t := range tables {
		if t == nil || !t.HasChoices() {
			continue
		}
		kinds[i] = PacketKinds(t)
		v.inLanes = v.inLanes || t.SL.Any()
		for _, k := range kinds[i] {
			v.inLanes = v.inLanes || k.PerPort
			v.vls = max(v.vls, t.SL2VL.Lanes(k.SLs))
		}
	}
	for i, t := range tables {
		if kinds[i] != nil {
			*[]**choiceSets{&v.sets, &v.unionSets}[i] = v.newChoiceSets(t, kinds[i])
		}
	}
}

// newChoiceSets decides what must be followed.
func (v *verification) newChoiceSets(r *routes.Routes, kinds []PacketKind) *choiceSets {
	x := &choiceSets{v: v}
	for _, k := range kinds {
		if k.Static && (k.Expected || !v.inLanes) {
			x.static, x.rows = append(x.static, k), x.rows|k.SLs
		} else {
			x.kinds = append(x.kinds, k)
		}
	}
	if v.inLanes {
		x.groups = v.vlGroups(r)
		return x
	}
	x.index = make([]int32, len(v.g.Switches()))
	for i, is := range v.Is {
		t := &v.g.Terminals()[i]
		if !is || t.Switch < 0 {
			continue
		}
		if at := x.index[t.Switch]; at > 0 {
			x.groups[at-1].terminals = append(x.groups[at-1].terminals, int32(i))
			continue
		}
		x.groups = append(x.groups, vlGroup{int32(i), int32(t.Switch), []int32{int32(i)}})
		x.index[t.Switch] = int32(len(x.groups))
	}
	return x
}

// follow follows the packets of all kinds, and adds their dependencies to the graphs of the
// workers.
func (x *choiceSets) follow(ctx context.Context, r *routes.Routes) error {
	v := x.v
	x.found = nil
	for i := range x.kinds {
		k := &x.kinds[i]
		classes, err := ChoiceClasses(ctx, r, *k, v.Wanted)
		if err != nil {
			return err
		}
		states := kindStates{class: make([]int32, len(v.Wanted)), states: make([][]int32, len(classes))}
		for lid := range states.class {
			states.class[lid] = -1
		}
		for c, lids := range classes {
			for _, lid := range lids {
				states.class[lid] = int32(c)
			}
		}
		walks := make([]*choiceWalk, v.g.Workers())
		err = graph.Each(ctx, v.g.Workers(), len(classes), func(worker, c int) {
			f := &v.workers[worker]
			if f.graph == nil {
				f.graph = NewDependencyGraph(v.g, v.vls)
			}
			if walks[worker] == nil {
				walks[worker] = newChoiceWalk(r, *k, v.vls)
			}
			w := walks[worker]
			w.Begin(classes[c][0])
			list := make([]int32, len(x.groups))
			for at := range x.groups {
				group := &x.groups[at]
				list[at] = noPacket
				if x.sends(r, k, group, classes[c]) {
					list[at] = w.From(f.graph, group.on, v.g.Terminals()[group.first].Out)
				}
			}
			states.states[c] = list
		})
		if err != nil {
			return err
		}
		x.found = append(x.found, states)
	}
	return nil
}

// sends reports whether a group sends packets of a kind to some of lids.
func (x *choiceSets) sends(r *routes.Routes, k *PacketKind, group *vlGroup, lids []mad.LID) bool {
	for _, lid := range lids {
		if group.sendsTo(int32(x.v.g.TerminalByLID(lid))) && x.levelOf(r, k, group, lid) {
			return true
		}
	}
	return false
}

// levelOf reports whether the packets of a group to lid have a service level of the kind.
func (x *choiceSets) levelOf(r *routes.Routes, k *PacketKind, group *vlGroup, lid mad.LID) bool {
	return r.SL == nil || k.SLs>>(r.SL.Of(int(group.first), lid)&15)&1 != 0
}

// worst is the worst that becomes of packets of a group to lid, of all kinds.
func (x *choiceSets) worst(r *routes.Routes, group int, lid mad.LID) int32 {
	state := int32(noPacket)
	for i := range x.kinds {
		if class := x.found[i].class[lid]; class >= 0 && x.levelOf(r, &x.kinds[i], &x.groups[group], lid) {
			state = worseHops(state, x.found[i].states[class][group])
		}
	}
	return state
}

// withRows is worst, of packets from switch s; packets that all switches send by their rows
// are in state rows. Each switch has one group.
func (x *choiceSets) withRows(r *routes.Routes, s int32, lid mad.LID, rows int32) int32 {
	if x.rows == 0 {
		rows = noPacket
	}
	return worseHops(rows, x.worst(r, int(x.index[s])-1, lid))
}

// explain is the reason why packets from a terminal to lid may not arrive; "": they do.
func (x *choiceSets) explain(r *routes.Routes, from int32, lid mad.LID) string {
	t := &x.v.g.Terminals()[from]
	group := vlGroup{first: from}
	for _, k := range slices.Concat(x.kinds, x.static) {
		if t.Switch >= 0 && x.levelOf(r, &k, &group, lid) {
			w := newChoiceWalk(r, k, x.v.vls)
			w.Begin(lid)
			if why := w.Explain(int32(t.Switch), t.Out); why != "" {
				return why
			}
		}
	}
	return ""
}

// example is a LID whose packets, by some choices, take vertex at and then vertex next of a
// dependency graph; 0: none.
func (x *choiceSets) example(r *routes.Routes, at, next int32) mad.LID {
	v := x.v
	d := NewDependencyGraph(v.g, v.vls)
	for i := range x.kinds {
		k := &x.kinds[i]
		w := newChoiceWalk(r, *k, v.vls)
		done := make([]bool, len(x.found[i].states))
		for lid, class := range x.found[i].class {
			if class < 0 || done[class] {
				continue
			}
			done[class] = true
			d.Clear()
			w.Begin(mad.LID(lid))
			for g := range x.groups {
				if x.found[i].states[class][g] != noPacket {
					w.From(d, x.groups[g].on, v.g.Terminals()[x.groups[g].first].Out)
				}
			}
			if d.Has(at, next) {
				return mad.LID(lid)
			}
		}
	}
	return 0
}

// judgedLevels describes the packets that were followed.
func (x *choiceSets) judgedLevels(r *routes.Routes) string {
	switch {
	case r.SL == nil && r.SL2VL == nil:
		return "all service levels on VL 0"
	case r.SL == nil:
		return "all service levels and their virtual lanes"
	case r.SL2VL == nil:
		return "their service levels, all on VL 0"
	}
	return "their service levels and virtual lanes"
}

// samePrivate reports whether packets that come in by two ports of a switch follow equal
// private LFTs.
func samePrivate(a *adaptive.Switch, in, other uint8) bool {
	if a == nil {
		return true
	}
	for sl := range uint8(16) {
		if a.PLFT(in, sl) != a.PLFT(other, sl) {
			return false
		}
	}
	return true
}
