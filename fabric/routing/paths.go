package routing

import (
	"context"
	"slices"

	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// routesLoad counts the routes over each channel, between all CAs and routers.
func routesLoad(ctx context.Context, r *routes.Routes) ([]int64, error) {
	return loadOf(ctx, r, SelectEndpoints(r.Graph(), 0), nil)
}

// loadOf counts the routes between the endpoints; each, if not nil, is called for
// each LID.
func loadOf(ctx context.Context, r *routes.Routes, e *Endpoints, each func(worker int, w *walk, lid mad.LID)) ([]int64, error) {
	g := r.Graph()
	loads := make([][]int64, g.Workers())
	err := eachDest(ctx, r, g.Workers(), e.Wanted, func(worker int, w *walk, lid mad.LID) {
		if loads[worker] == nil {
			loads[worker] = make([]int64, len(g.Channels()))
		}
		load, ports := loads[worker], w.column(lid)
		for _, s := range e.Sources {
			w.from(s, ports, int32(g.TerminalByLID(lid)))
		}
		copy(w.flow, e.On)
		for _, s := range slices.Backward(w.order) {
			if c := w.via[s]; c >= 0 && w.state[s] >= 0 {
				load[c] += int64(w.flow[s])
				w.flow[g.ChannelTo(c)] += w.flow[s]
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

// dependencies returns the graph of all paths between the endpoints, with SL 0 and on one
// virtual lane.
func dependencies(ctx context.Context, r *routes.Routes, e *Endpoints) (*cdg.Graph, error) {
	g := r.Graph()
	graphs := make([]*cdg.Graph, g.Workers())
	err := eachDest(ctx, r, g.Workers(), e.Wanted, func(worker int, w *walk, lid mad.LID) {
		if graphs[worker] == nil {
			graphs[worker] = cdg.New(g, 1)
		}
		t, ports := int32(g.TerminalByLID(lid)), w.column(lid)
		for _, s := range e.Sources {
			w.from(s, ports, t)
		}
		w.addDependencies(graphs[worker])
	})
	if err != nil {
		return nil, err
	}
	all := cdg.New(g, 1)
	for _, d := range graphs {
		if d != nil {
			all.Union(d)
		}
	}
	return all, nil
}

// addDependencies adds those of the paths that w has followed, with SL 0.
func (w *walk) addDependencies(d *cdg.Graph) {
	for _, s := range w.order {
		c := w.via[s]
		if c < 0 {
			continue
		}
		d.Use(c)
		if next := w.via[w.g.ChannelTo(c)]; next >= 0 {
			d.Add(c, next)
		}
	}
}
