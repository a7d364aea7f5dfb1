package traffic

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// demand is the traffic to the LIDs of a class. Packets to all of them may take the same
// paths, so they are split together.
type demand struct {
	class  *classNet
	from   []source
	active []place // that packets may pass, each before those that it sends to
}

// place is a vertex with its choices.
type place struct {
	vertex int32
	hops   []hop
}

// source is the traffic that begins at a vertex.
type source struct {
	vertex int32
	amount float64
}

// demands collect flows.
type demands struct {
	x    *choiceNet
	of   map[*classNet]map[int32]float64
	lost int64 // flows that some choice loses
}

func newDemands(x *choiceNet) *demands { return &demands{x: x, of: map[*classNet]map[int32]float64{}} }

// add adds n equal flows from a terminal to lid.
func (d *demands) add(terminal int32, lid mad.LID, n int64, traffic float64) {
	sl := d.x.level(terminal, lid)
	class, v := d.x.levels[sl].of[lid], d.x.begin(terminal, sl)
	if class.safe[v/64]>>(v%64)&1 == 0 {
		d.lost += n
		return
	}
	from := d.of[class]
	if from == nil {
		from = map[int32]float64{}
		d.of[class] = from
	}
	from[v] += float64(n) * traffic
}

// group are terminals whose packets have the same choices.
type group struct {
	first int32
	flows int64 // of all of them
}

// groups sorts terminals into groups; of is by terminal, -1 for others.
func (x *choiceNet) groups(terminals []int32, flows []int64) (groups []group, of []int) {
	of = make([]int, len(x.g.Terminals()))
	for t := range of {
		of[t] = -1
	}
	on := make([][]int, len(x.g.Switches())) // groups
	for _, t := range terminals {
		s := x.g.Terminals()[t].Switch
		at := slices.IndexFunc(on[s], func(i int) bool { return x.alike(groups[i].first, t) })
		if at < 0 {
			at = len(on[s])
			on[s] = append(on[s], len(groups))
			groups = append(groups, group{first: t})
		}
		of[t] = on[s][at]
		groups[of[t]].flows += flows[t]
	}
	return groups, of
}

// list are the demands, in an order that depends on the flows alone.
func (d *demands) list(ctx context.Context) ([]*demand, error) {
	var list []*demand
	for class, from := range d.of {
		one := &demand{class: class}
		for v, amount := range from {
			one.from = append(one.from, source{v, amount})
		}
		slices.SortFunc(one.from, func(a, b source) int { return cmp.Compare(a.vertex, b.vertex) })
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *demand) int {
		return cmp.Or(cmp.Compare(a.class.lid, b.class.lid), cmp.Compare(a.class.sl, b.class.sl))
	})
	reached := make([][]bool, d.x.g.Workers())
	return list, graph.Each(ctx, len(reached), len(list), func(worker, i int) {
		if reached[worker] == nil {
			reached[worker] = make([]bool, d.x.vertices())
		}
		list[i].activate(reached[worker])
	})
}

// activate finds the vertices that packets may pass. reached is by vertex, and false before and
// after.
func (d *demand) activate(reached []bool) {
	for _, from := range d.from {
		reached[from.vertex] = true
	}
	for _, p := range d.class.order {
		if !reached[p.vertex] {
			continue
		}
		reached[p.vertex] = false
		d.active = append(d.active, p)
		for _, h := range p.hops {
			if h != noHop {
				reached[h.to] = true
			}
		}
	}
}
