package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// maxCalls bounds the memory of calls.
const maxCalls = 8192

// access reads and writes cells over an engine.
type access struct {
	engine *engine.Engine
	cells  []*certificate.Change
	way    map[mad.GUID]int // which of a node's routes is answered
}

func newAccess(e *engine.Engine, cells []*certificate.Change) *access {
	return &access{engine: e, cells: cells, way: map[mad.GUID]int{}}
}

// exchange is one request for a cell, and its answer.
type exchange struct {
	cell int
	data []byte // of a Set: what it writes; then the answer
	err  error
}

// read reads cells, after it has checked that the nodes at their addresses are the
// intended ones. The result of each is in its exchange. The error is an *AccessError if some
// could not be read, or the end of ctx.
func (a *access) read(ctx context.Context, cells []int) ([]exchange, error) {
	var nodes []exchange
	seen := map[mad.GUID]int{}
	for _, i := range cells {
		if _, ok := seen[a.cells[i].Node]; !ok {
			seen[a.cells[i].Node] = len(nodes)
			nodes = append(nodes, exchange{cell: i})
		}
	}
	if err := a.do(ctx, mad.MethodGet, mad.AttrNodeInfo, nodes); err != nil {
		return nil, err
	}
	for i := range nodes {
		n := &nodes[i]
		if n.err != nil {
			continue
		}
		var info mad.NodeInfo
		info.Decode(n.data)
		if c := a.cells[n.cell]; info.NodeGUID != c.Node {
			n.err = fmt.Errorf("%s: the node at %v is now %v, not %v", c.Name, a.address(c), info.NodeGUID, c.Node)
		}
	}
	all := make([]exchange, len(cells))
	var open []exchange
	for i, cell := range cells {
		all[i].cell = cell
		if all[i].err = nodes[seen[a.cells[cell].Node]].err; all[i].err == nil {
			open = append(open, exchange{cell: cell})
		}
	}
	if err := a.do(ctx, mad.MethodGet, nil, open); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].err == nil {
			all[i], open = open[0], open[1:]
		}
	}
	return all, exchangeError(all)
}

// tryRead is read, without an error for cells that could not be read.
func (a *access) tryRead(ctx context.Context, cells []int) ([]exchange, error) {
	all, err := a.read(ctx, cells)
	if errors.As(err, new(*AccessError)) {
		err = nil
	}
	return all, err
}

// all returns all cells.
func (a *access) all() []int {
	cells := make([]int, len(a.cells))
	for i := range cells {
		cells[i] = i
	}
	return cells
}

// do sends a request for each exchange; attr is an attribute with modifier 0 that
// replaces the cells' own. A request without an answer is sent once more over the node's
// other route, which stays in use if it is answered.
func (a *access) do(ctx context.Context, m mad.Method, attr *mad.Attribute, all []exchange) error {
	for batch := range slices.Chunk(all, maxCalls) {
		open := make([]*exchange, len(batch))
		for i := range batch {
			open[i] = &batch[i]
		}
		turned := map[mad.GUID]bool{} // by node that is queried over its other route: it is better
		for range 2 {
			calls := make([]*engine.Call, len(open))
			for i, x := range open {
				calls[i] = a.call(m, attr, x)
			}
			if err := a.engine.Do(ctx, calls...); err != nil {
				return err
			}
			var again []*exchange
			for i, x := range open {
				c := a.cells[x.cell]
				_, second := turned[c.Node]
				if second && calls[i].Err != nil {
					continue
				}
				switch x.err = calls[i].Err; {
				case x.err == nil:
					x.data = slices.Clone(calls[i].Data()[:mad.ClassSubn.DataSize()])
					if second {
						turned[c.Node] = true
					}
				case !second && errors.Is(x.err, engine.ErrTimeout) && len(c.Routes) > 1:
					again = append(again, x)
				}
			}
			if len(turned) > 0 || len(again) == 0 {
				break
			}
			for _, x := range again {
				turned[a.cells[x.cell].Node] = false
			}
			for node := range turned {
				a.way[node]++
			}
			open = again
		}
		for node, better := range turned {
			if !better {
				a.way[node]--
			}
		}
	}
	return nil
}

// call returns the request of an exchange.
func (a *access) call(m mad.Method, attr *mad.Attribute, x *exchange) *engine.Call {
	c, call := a.cells[x.cell], new(engine.Call)
	if attr != nil {
		call.PutSMP(m, attr.ID, 0, nil)
	} else {
		modifier := c.Modifier
		if m == mad.MethodGet && c.Attr == mad.AttrPortInfo {
			modifier &^= mad.ExtendedSpeeds // of Sets
		}
		call.PutSMP(m, c.Attr.ID, modifier, x.data)
	}
	call.Guard = engine.Guard{Port: c.PortGUID, Node: c.Node}
	if route := a.route(c); route != nil {
		call.SetRoute(route)
	} else {
		call.SetLID(c.LID)
	}
	return call
}

func (a *access) route(c *certificate.Change) mad.DirectedRoute {
	if len(c.Routes) == 0 {
		return nil
	}
	return c.Routes[a.way[c.Node]%len(c.Routes)]
}

// address returns the address at which c's node is queried, for messages.
func (a *access) address(c *certificate.Change) string {
	if route := a.route(c); route != nil {
		return fmt.Sprint(route)
	}
	return fmt.Sprintf("LID %d", c.LID)
}

// exchangeError returns the error of exchanges without an answer.
func exchangeError(all []exchange) error {
	var e AccessError
	for i := range all {
		if all[i].err != nil {
			if e.Count++; e.Count == 1 {
				e.First = all[i].err
			}
		}
	}
	if e.Count == 0 {
		return nil
	}
	return &e
}

func cellsOf(writes []certificate.Write) []int {
	cells := make([]int, len(writes))
	for i, w := range writes {
		cells[i] = w.Change
	}
	return cells
}

// Routes finds directed routes to the nodes of a fabric that was swept from the local
// port.
type Routes struct {
	f     *fabric.Fabric
	nodes []way // by node number
	round int
}

// way is how the search reached a node.
type way struct {
	in    *fabric.Port // the port through which it was reached
	done  int          // the round in which it was reached
	found int          // the round in which it was found, by a link that is not shared
}

// NewRoutes finds routes in f.
func NewRoutes(f *fabric.Fabric) *Routes { return &Routes{f: f, nodes: make([]way, len(f.Nodes()))} }

// To returns at most two directed routes to n: the route of the sweep, and a shortest one
// among the routes that share the fewest links with it.
func (w *Routes) To(n *fabric.Node) []mad.DirectedRoute {
	first := n.Route()
	if first == nil {
		return nil
	}
	if second := w.other(n, first); second != nil && !slices.Equal(second, first) {
		return []mad.DirectedRoute{first, second}
	}
	return []mad.DirectedRoute{first}
}

// other searches breadth first along the links that first does not cross; when these are
// exhausted, it continues behind the links that first crosses.
func (w *Routes) other(n *fabric.Node, first mad.DirectedRoute) mad.DirectedRoute {
	from := w.f.From()
	if from == nil || first.Hops() == 0 {
		return nil
	}
	var shared []*fabric.Port
	for hops := 1; hops <= first.Hops(); hops++ {
		in := w.f.PortAt(first[:hops+1])
		if in == nil {
			return nil
		}
		shared = append(shared, in.Peer())
	}
	w.round++
	start := from.Node()
	level := []*fabric.Port{nil} // the ports where the search continues
	for len(level) > 0 {
		var next []*fabric.Port
		for queue := level; len(queue) > 0; queue = queue[1:] {
			in, at := queue[0], start
			if in != nil {
				at = in.Node()
			}
			place := &w.nodes[at.ID()]
			if place.done == w.round {
				continue
			}
			place.done, place.in = w.round, in
			if at == n {
				return w.back(n)
			}
			for p := range at.Ports() {
				peer := p.Peer()
				switch {
				case peer == nil, at == start && !at.IsSwitch() && p != from:
				case !peer.Node().IsSwitch() && peer.Node() != n:
				case slices.Contains(shared, p):
					next = append(next, peer)
				default:
					if to := &w.nodes[peer.Node().ID()]; to.found != w.round && to.done != w.round {
						to.found = w.round
						queue = append(queue, peer)
					}
				}
			}
		}
		level = next
	}
	return nil
}

// back returns the route by which the search reached n; nil: it is too long.
func (w *Routes) back(n *fabric.Node) mad.DirectedRoute {
	var route mad.DirectedRoute
	for in := w.nodes[n.ID()].in; in != nil; in = w.nodes[in.Peer().Node().ID()].in {
		route = append(route, uint8(in.Peer().Num()))
	}
	slices.Reverse(route)
	if len(route) > mad.MaxHops {
		return nil
	}
	return append(mad.DirectedRoute{0}, route...)
}

// routesAround returns, by node number, shortest directed routes to the nodes of f that cross
// none of the ports that a change takes down; nil: not found.
func routesAround(f *fabric.Fabric, down map[*fabric.Port]bool) []mad.DirectedRoute {
	routes := make([]mad.DirectedRoute, len(f.Nodes()))
	from := f.From()
	if from == nil {
		return routes
	}
	start := from.Node()
	routes[start.ID()] = mad.DirectedRoute{0}
	for queue := []*fabric.Node{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		route := routes[at.ID()]
		if at != start && !at.IsSwitch() || len(route) > mad.MaxHops {
			continue
		}
		for p := range at.Ports() {
			peer := p.Peer()
			if peer == nil || down[p] || routes[peer.Node().ID()] != nil || at == start && !at.IsSwitch() && p != from {
				continue
			}
			routes[peer.Node().ID()] = append(slices.Clip(route), uint8(p.Num()))
			queue = append(queue, peer.Node())
		}
	}
	return routes
}
