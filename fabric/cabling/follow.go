package cabling

import (
	"context"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// MaxPorts is the number of ports that a round of a Follower reads. Of more, rounds read some in turn.
const MaxPorts = 256

// perPort is the number of requests for a port: NodeInfo and PortInfo, and at the other end NodeInfo
// and NodeDescription.
const perPort = 4

// Follower reads the ports of actions again, until all are done. It is not safe for concurrent use.
type Follower struct {
	live *fabric.Fabric
	open []*Action
	// moving are the ports of the actions.
	moving map[endKey]bool
	next   int // the action at which the next round begins
}

// NewFollower returns a Follower of the actions of r. live is the fabric that r compared, or a later
// sweep of it: its routes lead to the ports.
func NewFollower(r *Report, live *fabric.Fabric) *Follower {
	f := &Follower{live: live, open: slices.Clone(r.Actions), moving: map[endKey]bool{}}
	for _, x := range r.Actions {
		for _, e := range []End{x.From, x.To} {
			f.moving[endKey{e.GUID, e.Port}] = true
		}
	}
	return f
}

// Swept sets a later sweep of the fabric.
func (f *Follower) Swept(live *fabric.Fabric) { f.live = live }

// Open is the actions that are not done.
func (f *Follower) Open() []*Action { return f.open }

// MaxRequests is how many requests the next round sends at most, without retries.
func (f *Follower) MaxRequests() int {
	ports := 0
	for _, x := range f.open {
		ports += len(x.links())
	}
	return perPort * min(ports, MaxPorts)
}

// links are the links that show whether x is done.
func (x *Action) links() [][2]End {
	if x.want == nil {
		return [][2]End{{x.From, x.To}}
	}
	return x.want
}

// watch is a link that is read at one of its ends.
type watch struct {
	action *Action
	near   *fabric.Port
	far    End
	node   *engine.Call // NodeInfo of the near end: the route may lead elsewhere by now
	port   *engine.Call
	peer   *engine.Call // NodeInfo of the far end; nil: not requested
	name   *engine.Call
	bad    bool
}

// Round reads the ports of actions that are not done, by directed routes: at most MaxPorts. It returns
// the actions that are done, and of how many others a port could not be read: no route leads there.
func (f *Follower) Round(ctx context.Context, do func(context.Context, ...*engine.Call) error) (done []*Action, away int, err error) {
	if len(f.open) == 0 {
		return nil, 0, nil
	}
	var list []*watch
	var calls []*engine.Call
	read := 0
	for read < len(f.open) {
		x := f.open[(f.next+read)%len(f.open)]
		if len(list) > 0 && len(list)+len(x.links()) > MaxPorts {
			break
		}
		read++
		for _, l := range x.links() {
			w := f.watch(x, l)
			if list = append(list, w); w.bad {
				continue
			}
			to := fabric.Dest{Route: w.near.Node().Route(), Guard: w.near.Node().Guard()}
			w.node = to.Put(new(engine.Call), mad.MethodGet, mad.AttrNodeInfo, 0, nil)
			w.port = to.Put(new(engine.Call), mad.MethodGet, mad.AttrPortInfo, uint32(w.near.Num()), nil)
			calls = append(calls, w.node, w.port)
		}
	}
	if err := do(ctx, calls...); err != nil {
		return nil, 0, err
	}
	calls = calls[:0]
	for _, w := range list {
		if w.bad = w.bad || !w.reached(); w.bad || !w.up() {
			continue
		}
		to := fabric.Dest{Route: w.near.Node().Route().Append(uint8(w.near.Num()))}
		w.peer = to.Put(new(engine.Call), mad.MethodGet, mad.AttrNodeInfo, 0, nil)
		calls = append(calls, w.peer)
		if w.far.GUID == 0 {
			w.name = to.Put(new(engine.Call), mad.MethodGet, mad.AttrNodeDescription, 0, nil)
			calls = append(calls, w.name)
		}
	}
	if len(calls) > 0 {
		if err := do(ctx, calls...); err != nil {
			return nil, 0, err
		}
	}
	state := map[*Action]*watch{} // of actions that are not done: a port that shows it
	for _, w := range list {
		if s := state[w.action]; !w.isDone() && (s == nil || w.bad) {
			state[w.action] = w
		}
	}
	next := f.open[(f.next+read)%len(f.open)]
	seen := map[*Action]bool{}
	for _, w := range list {
		x := w.action
		if seen[x] {
			continue
		}
		seen[x] = true
		switch s := state[x]; {
		case s == nil:
			done = append(done, x)
		case s.bad:
			away++
		}
	}
	f.open = slices.DeleteFunc(f.open, func(x *Action) bool { return slices.Contains(done, x) })
	f.next = max(slices.Index(f.open, next), 0)
	return done, away, nil
}

// watch returns the end of a link that can be read: a switch, which directed routes lead through;
// better one whose route crosses no cable that is about to move. bad: no end is in reach.
func (f *Follower) watch(x *Action, l [2]End) *watch {
	best := &watch{action: x, bad: true}
	for _, ends := range [][2]End{l, {l[1], l[0]}} {
		if ends[0].GUID == 0 {
			continue
		}
		nodes := f.live.NodeByGUID(ends[0].GUID)
		if len(nodes) != 1 || nodes[0].Route() == nil || nodes[0].Route().Hops() >= mad.MaxHops {
			continue
		}
		p := nodes[0].Port(ends[0].Port)
		if p == nil || !nodes[0].IsSwitch() && nodes[0].Route().Hops() > 0 {
			continue
		}
		w := &watch{action: x, near: p, far: ends[1]}
		if !f.crosses(nodes[0]) {
			return w
		}
		if best.bad {
			best = w
		}
	}
	return best
}

// crosses reports whether the route to n leaves a port at which an action that is not done begins or
// ends.
func (f *Follower) crosses(n *fabric.Node) bool {
	at := f.live.From()
	if at == nil {
		return true
	}
	from := at.Node()
	for _, num := range n.Route()[1:] {
		p := from.Port(int(num))
		if p == nil || p.Peer() == nil || f.moving[endKey{from.GUID(), int(num)}] || f.moving[endKey{p.Peer().Node().GUID(), p.Peer().Num()}] {
			return true
		}
		from = p.Peer().Node()
	}
	return false
}

// endKey is a port.
type endKey struct {
	node mad.GUID
	port int
}

// reached reports whether the device at the near end answered, and is the one that the fabric has.
func (w *watch) reached() bool {
	var n mad.NodeInfo
	if w.node.Err != nil || w.port.Err != nil {
		return false
	}
	n.Decode(w.node.Data())
	return n.NodeGUID == w.near.Node().GUID()
}

func (w *watch) info() *mad.PortInfo {
	var i mad.PortInfo
	i.Decode(w.port.Data())
	return &i
}

// up reports whether the near end has a link.
func (w *watch) up() bool { return w.info().PortPhysicalState == mad.PortPhysicalStateLinkUp }

// isDone reports whether the link is as it should be.
func (w *watch) isDone() bool {
	if w.bad {
		return false
	}
	linked := w.linked()
	switch x := w.action; {
	case x.want == nil:
		return !linked
	case x.Kind == Slower && linked:
		return !w.slow()
	}
	return linked
}

// linked reports whether the far end is the one that is wanted.
func (w *watch) linked() bool {
	if w.peer == nil || w.peer.Err != nil {
		return false
	}
	var n mad.NodeInfo
	n.Decode(w.peer.Data())
	if int(n.LocalPortNum) != w.far.Port {
		return false
	}
	if w.far.GUID != 0 {
		return n.NodeGUID == w.far.GUID
	}
	if w.name.Err != nil {
		return false
	}
	var d mad.NodeDescription
	d.Decode(w.name.Data())
	return sameName(w.far.Device, d.String())
}

// slow reports whether the link is still slower than planned.
func (w *watch) slow() bool {
	i := w.info()
	caps := i
	if n := w.near.Node(); n.IsSwitch() && n.Port(0).Info() != nil {
		caps = n.Port(0).Info()
	}
	width, speed := w.action.width, w.action.speed
	return before(widths, mad.ActiveWidth(i), width) || before(speeds, fabric.ActiveSpeed(caps, i), speed)
}

// before reports whether a word comes before another one; "": unknown, which nothing comes before.
func before(all []string, word, other string) bool {
	return slices.Index(all, word) < slices.Index(all, other)
}

// sameName reports whether two names are spellings of one.
func sameName(a, b string) bool {
	x, y := withoutSite(fold(a)), withoutSite(fold(b))
	return x != "" && y != "" && (x == y || hostKey(x, true) == hostKey(y, false) || hostKey(x, false) == hostKey(y, true))
}
