package verify

import (
	"context"
	"encoding/binary"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// States of a switch in a walk. From 0 up: the path arrives, after so many links
// between switches.
const (
	Unknown   = -1 - iota // no packet was followed from the switch
	Looping               // packets loop for ever
	misrouted             // packets are dropped, or arrive at another terminal
	onStack               // on the path that is followed now
)

// atOnce is how many LIDs are followed together: the entries that share a block of a table.
const atOnce = mad.LFTBlock

// Walk follows the packets to one LID from many switches. As a table sends all
// packets of a LID to one port, the paths that arrive are a tree, and each
// switch is visited once.
//
// Time: O(S) for each LID, whatever the number of sources.
type Walk struct {
	Graph *graph.Graph
	rows  []uint8  // entries of a block of LIDs, by LID, then switch
	State []int32  // by switch
	Via   []int32  // by switch: the channel its packets take; NoChannel: none
	Order []int32  // switches whose state is known, each after its next hop
	Flow  []uint32 // by switch, for callers that count packets
	stack []int32
}

// NewWalk makes a Walk for tables of g. Begin begins a LID.
func NewWalk(g *graph.Graph) *Walk {
	n := len(g.Switches())
	return &Walk{Graph: g, rows: make([]uint8, atOnce*n), State: make([]int32, n), Via: make([]int32, n), Flow: make([]uint32, n)}
}

// EachDest calls do for each LID that is wanted (nil: all), with a walk that has
// begun. Workers get blocks of LIDs, which share cache lines, in rising order.
func EachDest(ctx context.Context, r *routes.Routes, workers int, wanted []bool, do func(worker int, w *Walk, lid mad.LID)) error {
	g := r.Graph()
	walks := make([]*Walk, workers)
	return graph.Each(ctx, workers, (int(g.Top())+atOnce)/atOnce, func(worker, b int) {
		first := b * atOnce
		any := false
		for lid := first; lid < min(first+atOnce, int(g.Top())+1); lid++ {
			any = any || int32(g.TerminalByLID(mad.LID(lid))) >= 0 && (wanted == nil || wanted[lid])
		}
		if !any {
			return
		}
		if walks[worker] == nil {
			walks[worker] = NewWalk(g)
		}
		w := walks[worker]
		w.transpose(r, b)
		for i := range atOnce {
			lid := first + i
			if lid < int(g.Top())+1 && int32(g.TerminalByLID(mad.LID(lid))) >= 0 && (wanted == nil || wanted[lid]) {
				w.Begin()
				do(worker, w, mad.LID(lid))
			}
		}
	})
}

// transpose fills in the entries of block b, eight LIDs of eight switches at a time.
func (w *Walk) transpose(r *routes.Routes, b int) {
	const eight = 8
	n := len(w.State)
	for s := 0; s < n; s += eight {
		var rows [eight][]byte
		for i := range rows {
			rows[i] = r.Block(min(s+i, n-1), b)
		}
		for first := 0; first < atOnce; first += eight {
			var x [eight]uint64
			for i := range x {
				x[i] = binary.LittleEndian.Uint64(rows[i][first:])
			}
			transpose8(&x)
			for i := range x {
				to := w.rows[(first+i)*n+s:]
				if s+eight <= n {
					binary.LittleEndian.PutUint64(to, x[i])
					continue
				}
				for j := range n - s {
					to[j] = uint8(x[i] >> (8 * j))
				}
			}
		}
	}
}

// transpose8 exchanges rows and columns of 8 x 8 bytes, the first of a row being its
// lowest: halves, then quarters, then neighbours (Warren, "Hacker's Delight", 7-3).
func transpose8(x *[8]uint64) {
	for _, step := range [...]struct {
		rows int
		mask uint64
	}{{4, 0x00000000ffffffff}, {2, 0x0000ffff0000ffff}, {1, 0x00ff00ff00ff00ff}} {
		bits := 8 * step.rows
		for i := range x {
			if i&step.rows == 0 {
				t := (x[i]>>bits ^ x[i+step.rows]) & step.mask
				x[i+step.rows] ^= t
				x[i] ^= t << bits
			}
		}
	}
}

// Begin forgets the last LID.
func (w *Walk) Begin() {
	for s := range w.State {
		w.State[s] = Unknown
	}
	w.Order = w.Order[:0]
}

// Column are the entries of all switches for lid, which is in the present block.
func (w *Walk) Column(lid mad.LID) []uint8 {
	n := len(w.State)
	return w.rows[int(lid)%atOnce*n:][:n]
}

// From follows packets to terminal t from switch s, by the entries ports. The
// result is in state, via and order.
func (w *Walk) From(s int32, ports []uint8, t int32) {
	g := w.Graph
	at := s
	for w.State[at] == Unknown {
		target := g.Target(at, ports[at])
		if c := target.Channel(); c >= 0 {
			w.Via[at] = c
			w.State[at] = onStack
			w.stack = append(w.stack, at)
			at = g.ChannelTo(c)
			continue
		}
		w.Via[at] = graph.NoChannel
		w.State[at] = misrouted
		if target == graph.ToTerminal(t) {
			w.State[at] = 0
		}
		w.Order = append(w.Order, at)
	}
	state := w.State[at]
	if state == onStack {
		state = Looping
	}
	for i := len(w.stack) - 1; i >= 0; i-- {
		if state >= 0 {
			state++
		}
		w.State[w.stack[i]] = state
		w.Order = append(w.Order, w.stack[i])
	}
	w.stack = w.stack[:0]
}

// Endpoints are the terminals between which packets go.
type Endpoints struct {
	Is       []bool   // by terminal: it is an endpoint
	On       []uint32 // by switch: endpoints on it
	Self     []bool   // by switch: its port 0 is an endpoint
	Sources  []int32  // switches with endpoints
	Wanted   []bool   // by LID: it is an endpoint's
	All      int      // endpoints
	Detached int      // of these, endpoints on no switch
}

// Lost is how many packets of endpoints, one each, do not arrive at the LID that w follows. The endpoint that
// has it does not send to itself.
func (e *Endpoints) Lost(w *Walk, lid mad.LID) (n int64) {
	own := -1
	if t := w.Graph.TerminalByLID(lid); t >= 0 {
		own = w.Graph.Terminals()[t].Switch
	}
	for _, s := range e.Sources {
		if w.State[s] < 0 {
			if n += int64(e.On[s]); int(s) == own && e.Wanted[lid] {
				n--
			}
		}
	}
	return n
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

// Only returns e with only the LIDs in set.
func (e *Endpoints) Only(set []bool) *Endpoints { return e.where(set, true) }

// Without returns e without the LIDs in set.
func (e *Endpoints) Without(set []bool) *Endpoints { return e.where(set, false) }

func (e *Endpoints) where(set []bool, in bool) *Endpoints {
	w := *e
	w.Wanted = slices.Clone(e.Wanted)
	for lid := range w.Wanted {
		w.Wanted[lid] = w.Wanted[lid] && (lid < len(set) && set[lid]) == in
	}
	return &w
}

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

// addChoices adds the dependencies of packets for which switches that route adaptively choose a
// port.
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
		walks, graphs := make([]*choiceWalk, g.Workers()), make([]*DependencyGraph, g.Workers())
		err = graph.Each(ctx, g.Workers(), len(classes), func(worker, i int) {
			if walks[worker] == nil {
				walks[worker], graphs[worker] = newChoiceWalk(one, k, 1), NewDependencyGraph(g, 1)
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

// AddDependencies adds the dependencies of the paths that w has followed, with SL 0.
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
