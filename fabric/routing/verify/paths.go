package verify

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// CountAllRoutes counts the routes over each channel, between all CAs and routers.
func CountAllRoutes(ctx context.Context, r *routes.Routes) ([]int64, error) {
	return CountRoutes(ctx, r, SelectEndpoints(r.Graph(), 0), nil)
}

// CountRoutes counts the routes between the endpoints; each, if not nil, is called for
// each LID.
func CountRoutes(ctx context.Context, r *routes.Routes, e *Endpoints, each func(worker int, w *Walk, lid mad.LID)) ([]int64, error) {
	g := r.Graph()
	loads := make([][]int64, g.Workers())
	err := EachDest(ctx, r, g.Workers(), e.Wanted, func(worker int, w *Walk, lid mad.LID) {
		if loads[worker] == nil {
			loads[worker] = make([]int64, len(g.Channels()))
		}
		load, ports := loads[worker], w.Column(lid)
		for _, s := range e.Sources {
			w.From(s, ports, int32(g.TerminalByLID(lid)))
		}
		copy(w.Flow, e.On)
		for _, s := range slices.Backward(w.Order) {
			if c := w.Via[s]; c >= 0 && w.State[s] >= 0 {
				load[c] += int64(w.Flow[s])
				w.Flow[g.ChannelTo(c)] += w.Flow[s]
			}
		}
		if each != nil {
			each(worker, w, lid)
		}
	})
	if err != nil {
		return nil, err
	}
	sum := make([]int64, len(g.Channels()))
	for _, load := range loads {
		for c, n := range load {
			sum[c] += n
		}
	}
	return sum, nil
}

// Dependencies returns the graph of all paths between the endpoints, on one virtual lane: by the
// rows of tables, and by all choices of switches that route adaptively.
func Dependencies(ctx context.Context, r *routes.Routes, e *Endpoints) (*DependencyGraph, error) {
	g := r.Graph()
	graphs := make([]*DependencyGraph, g.Workers())
	err := EachDest(ctx, r, g.Workers(), e.Wanted, func(worker int, w *Walk, lid mad.LID) {
		if graphs[worker] == nil {
			graphs[worker] = NewDependencyGraph(g, 1)
		}
		t, ports := int32(g.TerminalByLID(lid)), w.Column(lid)
		for _, s := range e.Sources {
			w.From(s, ports, t)
		}
		w.AddDependencies(graphs[worker])
	})
	if err != nil {
		return nil, err
	}
	all := NewDependencyGraph(g, 1)
	for _, d := range graphs {
		if d != nil {
			all.Union(d)
		}
	}
	return all, addChoices(ctx, all, r, e)
}

// addChoices adds those of packets that switches which route adaptively choose a port for.
func addChoices(ctx context.Context, all *DependencyGraph, r *routes.Routes, e *Endpoints) error {
	if !r.HasChoices() {
		return nil
	}
	one := r
	if r.SL2VL != nil { // all on one lane
		one = r.Clone()
		one.SL2VL = nil
	}
	g := r.Graph()
	for _, k := range PacketKinds(one) {
		if k.Static {
			continue
		}
		classes, err := ChoiceClasses(ctx, one, k, e.Wanted)
		if err != nil {
			return err
		}
		walks, graphs := make([]*Choices, g.Workers()), make([]*DependencyGraph, g.Workers())
		err = graph.Each(ctx, g.Workers(), len(classes), func(worker, i int) {
			if walks[worker] == nil {
				walks[worker], graphs[worker] = NewChoices(one, k, 1), NewDependencyGraph(g, 1)
			}
			walks[worker].Begin(classes[i][0])
			for t, is := range e.Is {
				if s := g.Terminals()[t].Switch; is && s >= 0 {
					walks[worker].From(graphs[worker], int32(s), g.Terminals()[t].Out)
				}
			}
		})
		if err != nil {
			return err
		}
		for _, d := range graphs {
			if d != nil {
				all.Union(d)
			}
		}
	}
	return nil
}

// WithSwitches is graph with the dependencies of packets from CAs to switches, or
// graph itself where both together have a cycle.
func WithSwitches(ctx context.Context, r *routes.Routes, graph *DependencyGraph) (*DependencyGraph, error) {
	e := SelectEndpoints(r.Graph(), 0)
	clear(e.Wanted)
	for _, d := range r.Graph().Dests() {
		e.Wanted[d.LID] = d.Out == 0
	}
	all, err := Dependencies(ctx, r, e)
	if err != nil {
		return nil, err
	}
	all.Union(graph)
	if !all.Acyclic() {
		return graph, nil
	}
	return all, nil
}

// AddDependencies adds those of the paths that w has followed, with SL 0.
func (w *Walk) AddDependencies(d *DependencyGraph) {
	for _, s := range w.Order {
		c := w.Via[s]
		if c < 0 {
			continue
		}
		d.Use(c)
		if next := w.Via[w.Graph.ChannelTo(c)]; next >= 0 {
			d.Add(c, next)
		}
	}
}
