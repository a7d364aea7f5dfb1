// Package traffic measures how much of the load goes over each link.
//
// MeasureBalance counts how evenly routes are spread over links, MeasureCongestion and
// MeasureFlows the flows that meet on links under a pattern of traffic or a traffic matrix,
// and MeasureAdaptive the loads where switches choose among ports, under the best and the
// worst choices. CountRerouted compares two tables: how many paths differ, and what that
// does to the load.
//
// The functions use all cores, and may run concurrently on shared tables, which must not
// change meanwhile. Results belong to the caller. Package graph explains the letters of
// times.
package traffic

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Distribution describes how evenly a load is spread over channels.
type Distribution struct {
	Max, Min int64
	Mean     float64
	Sum      int64
	Busiest  int // the first channel with Max, or -1
}

// DistributionOf describes loads by channel.
func DistributionOf(loads []int64) Distribution {
	s := Distribution{Busiest: -1}
	for c, n := range loads {
		s.Sum += n
		if c == 0 || n > s.Max {
			s.Max, s.Busiest = n, c
		}
		if c == 0 || n < s.Min {
			s.Min = n
		}
	}
	if len(loads) > 0 {
		s.Mean = float64(s.Sum) / float64(len(loads))
	}
	return s
}

// Loads describe how evenly a load per capacity is spread over channels.
type Loads struct {
	Max, Mean, Min float64
	Busiest        int // the first channel with Max
}

// LargestLoad is the largest number of routes on a channel, by their counts; where rates differ, in routes that load
// the fastest link as much, rounded up.
func LargestLoad(g *graph.Graph, counts []int64) int64 {
	c := g.Capacity()
	return int64(math.Ceil(c.Routes(DistributionOf(c.Weigh(counts)).Max)))
}

// Balance describes how evenly tables use the channels.
type Balance struct {
	// Routes are, for each channel, the pairs of an endpoint and a LID of
	// another whose packets take it. Its Max is the edge forwarding index
	// (Heydemann, Meyer, Sotteau, "On forwarding indices of networks", 1989).
	Routes Distribution
	// LIDs are, for each channel, the LIDs whose packets take it: ibdmchk calls
	// them the DLIDs of a port.
	LIDs Distribution

	PerChannel []int64 // routes, by channel
	DLIDs      []int64 // by channel

	// Weighed are routes per capacity: a route on a link of half the rate of the fastest counts twice.
	// Nil: all links between switches have one rate, or rates are unknown.
	Weighed *Loads

	routes *routes.Routes
}

// LIDsBy is to how many LIDs packets leave a port of a switch: its DLIDs or, for a port to an
// endpoint, the LIDs that the table forwards there. False: it is not a port of a switch of the
// tables, or the table is empty, as of a switch that has not answered.
func (b *Balance) LIDsBy(p *fabric.Port) (lids int64, known bool) {
	g := b.routes.Graph()
	if p.Node().Fabric() != g.Fabric() {
		return 0, false
	}
	s := g.SwitchOf(p.Node())
	if s < 0 || !slices.ContainsFunc(b.routes.Row(s), func(out uint8) bool { return out != routes.NoPort }) {
		return 0, false
	}
	if c := g.ChannelOf(p); c >= 0 {
		return b.DLIDs[c], true
	}
	return int64(bytes.Count(b.routes.Row(s), []byte{uint8(p.Num())})), true
}

// MeasureBalance counts the routes from endpoints of class c; 0: all CAs and routers. With lids,
// it counts only the routes to these, of any class; nil: the routes to all of the endpoints.
//
// Time: O(L*S).
func MeasureBalance(ctx context.Context, r *routes.Routes, c graph.Class, lids []mad.LID) (*Balance, error) {
	g := r.Graph()
	e, err := balanceEndpoints(g, c, lids)
	if err != nil {
		return nil, err
	}
	dlids := make([][]int64, g.Workers())
	b := &Balance{DLIDs: make([]int64, len(g.Channels())), routes: r}
	b.PerChannel, err = verify.CountRoutes(ctx, r, e, func(worker int, w *verify.Walk, _ mad.LID) {
		if dlids[worker] == nil {
			dlids[worker] = make([]int64, len(g.Channels()))
		}
		for _, s := range w.Order {
			if c := w.Via[s]; c >= 0 && w.State[s] >= 0 && w.Flow[s] > 0 {
				dlids[worker][c]++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, list := range dlids {
		for c, n := range list {
			b.DLIDs[c] += n
		}
	}
	b.Routes, b.LIDs = DistributionOf(b.PerChannel), DistributionOf(b.DLIDs)
	if c := g.Capacity(); c.Costs() != nil {
		w := DistributionOf(c.Weigh(b.PerChannel))
		b.Weighed = &Loads{c.Routes(w.Max), c.Routes(w.Sum) / float64(len(b.PerChannel)), c.Routes(w.Min), w.Busiest}
	}
	return b, nil
}

// balanceEndpoints are the endpoints that MeasureBalance counts the routes between.
func balanceEndpoints(g *graph.Graph, c graph.Class, lids []mad.LID) (*verify.Endpoints, error) {
	e := verify.SelectEndpoints(g, c)
	if lids != nil {
		clear(e.Wanted)
		for _, lid := range lids {
			t := g.TerminalByLID(lid)
			if t < 0 {
				return nil, fmt.Errorf("balance: no port has LID %d; the highest is %d", lid, g.Top())
			}
			e.Wanted[lid] = true
		}
	}
	return e, nil
}
