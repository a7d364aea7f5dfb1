package verify

import (
	"slices"

	"fabsh/fabric/routing/graph"
)

// Endpoints are the terminals between which packets go.
type Endpoints struct {
	Is       []bool   // by terminal: it is an endpoint
	On       []uint32 // by switch: endpoints on it
	Self     []bool   // by switch: its port 0 is an endpoint
	Sources  []int32  // switches with endpoints
	Wanted   []bool   // by LID: it is an endpoint's
	All      int      // endpoints
	Detached int      // of these, those on no switch
}

// SelectEndpoints finds the endpoints of class, as graph.Terminal.IsEndpoint has it, and where they
// are.
func SelectEndpoints(g *graph.Graph, class graph.Class) *Endpoints {
	e := &Endpoints{
		Is: make([]bool, len(g.Terminals())), Wanted: make([]bool, int(g.Top())+1),
		On: make([]uint32, len(g.Switches())), Self: make([]bool, len(g.Switches())),
	}
	for i := range g.Terminals() {
		t := &g.Terminals()[i]
		if !t.IsEndpoint(class) {
			continue
		}
		e.Is[i] = true
		e.All++
		if t.Switch < 0 {
			e.Detached++
		} else {
			e.On[t.Switch]++
			e.Self[t.Switch] = e.Self[t.Switch] || t.Out == 0
		}
		for j := range t.Count {
			e.Wanted[int(t.LID)+j] = true
		}
	}
	for s, n := range e.On {
		if n > 0 {
			e.Sources = append(e.Sources, int32(s))
		}
	}
	return e
}

// Only returns e for those of its LIDs that are in set.
func (e *Endpoints) Only(set []bool) *Endpoints { return e.where(set, true) }

// Without returns e for those that are not.
func (e *Endpoints) Without(set []bool) *Endpoints { return e.where(set, false) }

func (e *Endpoints) where(set []bool, in bool) *Endpoints {
	w := *e
	w.Wanted = slices.Clone(e.Wanted)
	for lid := range w.Wanted {
		w.Wanted[lid] = w.Wanted[lid] && (lid < len(set) && set[lid]) == in
	}
	return &w
}
