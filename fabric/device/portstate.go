package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Action is what is done to a port's link.
type Action uint8

const (
	Disable Action = iota // the link goes down and stays down
	Enable                // a port that is disabled polls for its neighbour
	Reset                 // the link trains again
)

// PortState changes the state of a port's link.
type PortState struct {
	PortTarget
	Action Action
	// Force makes the change even where a CautionError would refuse it.
	Force bool
	// Wait is how long the link may take to get into that state.
	Wait time.Duration
}

// SetPortStates makes all changes at once; the outcome of each is in its Err. The error is the
// end of ctx.
//
// A Set changes nothing but the state: all other fields are sent as they were read, or as "no
// change" (IBA 14.2.5.6; rdma-core infiniband-diags/ibportstate.c main). It is sent once. If no
// answer comes, the state of the port is read.
func SetPortStates(ctx context.Context, e *engine.Engine, changes ...*PortState) error {
	targets := make([]*PortTarget, len(changes))
	for i, c := range changes {
		targets[i] = &c.PortTarget
	}
	if err := readPorts(ctx, e, targets); err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, c := range changes {
		if c.Err == nil && c.takesDown() && !c.Force {
			all.Go(func() { c.Err = c.guard(ctx, e, changes) })
		}
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var sets []*Set
	var open []*PortState
	for _, c := range changes {
		switch {
		case c.Err != nil:
		case c.idle():
			c.After = c.Before
		default:
			open = append(open, c)
			sets = append(sets, c.set())
		}
	}
	if err := SetAttributes(ctx, e, sets...); err != nil {
		return err
	}
	if e.Interceptor() != nil { // nothing was sent, so there is nothing to wait for
		for i, c := range open {
			c.Err, c.After = sets[i].Err, sets[i].After
		}
		return nil
	}
	return settlePorts(ctx, e, open, sets)
}

// CautionError reports the refusal of a change that could not easily be undone. Force
// overrides it.
type CautionError struct{ Reason string }

func (e *CautionError) Error() string { return e.Reason }

// idle reports whether the port already is in the requested state. A Set of Polling would take
// down a link that is up.
func (c *PortState) idle() bool {
	i := c.PortInfo()
	disabled := i.PortPhysicalState == mad.PortPhysicalStateDisabled
	switch c.Action {
	case Disable:
		return disabled
	case Enable:
		return !disabled && i.PortPhysicalState != mad.PortPhysicalStateSleep
	}
	return false
}

// takesDown reports whether a link that is up goes down.
func (c *PortState) takesDown() bool {
	return c.Action != Enable && c.PortInfo().PortState != mad.PortStateDown
}

// set returns the Set of PortPhysicalState. Polling takes down a link that is up, and lets it
// train again. So a reset is one Set: if it were two, the second could be lost, and the port
// would stay disabled.
func (c *PortState) set() *Set {
	to := mad.PortPhysicalStatePolling
	if c.Action == Disable {
		to = mad.PortPhysicalStateDisabled
	}
	return &Set{
		Dest: c.Dest, GUID: c.GUID, Attr: mad.AttrPortInfo, Modifier: uint32(c.Num), Once: true, Named: []string{"port_physical_state"},
		Edit: func(data []byte) { mad.AttrPortInfo.Field("port_physical_state").SetUint(data, uint64(to)) },
	}
}

// settlePorts waits until the links are in the requested states.
func settlePorts(ctx context.Context, e *engine.Engine, open []*PortState, sets []*Set) error {
	start, pause := time.Now(), 20*time.Millisecond
	lost := map[*PortState]error{}
	for i, c := range open {
		var key *KeyError
		if c.Err = sets[i].Err; sets[i].Before != nil && errors.Is(c.Err, engine.ErrTimeout) && !errors.As(c.Err, &key) {
			lost[c], c.Err = c.Err, nil
		}
	}
	open = slices.DeleteFunc(open, func(c *PortState) bool { return c.Err != nil })
	for len(open) > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, time.Second)
		calls := make([]engine.Call, len(open))
		gets := make([]*engine.Call, len(open))
		for i, c := range open {
			gets[i] = c.get(&calls[i], c.Num)
		}
		if err := e.Do(ctx, gets...); err != nil {
			return err
		}
		var waiting []*PortState
		for i, c := range open {
			c.Err = calls[i].Err
			if c.Err == nil {
				c.After = slices.Clone(calls[i].Data()[:mad.AttrPortInfo.Size])
			}
			switch late := time.Since(start) >= c.Wait; {
			case c.Err == nil && c.settled():
			case !late:
				waiting = append(waiting, c)
			case lost[c] != nil:
				c.Err = fmt.Errorf("%w; it was not sent again; %s", lost[c], c.now())
			case c.Err != nil:
				c.Err = fmt.Errorf("the Set was answered, but the port no longer answers: %w", c.Err)
			default:
				c.Err = c.unsettled()
			}
		}
		open = waiting
	}
	return nil
}

// settled reports whether the link is in the requested state.
func (c *PortState) settled() bool {
	i := c.PortInfo()
	if c.Action == Disable {
		return i.PortPhysicalState == mad.PortPhysicalStateDisabled
	}
	return i.PortPhysicalState == mad.PortPhysicalStateLinkUp && i.PortState != mad.PortStateDown
}

// unsettled returns the error of a link that is not in the requested state; nil if that is not
// an error: a port that is enabled may have no peer.
func (c *PortState) unsettled() error {
	i := c.PortInfo()
	var before mad.PortInfo
	before.Decode(c.Before)
	switch {
	case c.Action == Disable:
		return fmt.Errorf("the Set was answered, but after %v %s", c.Wait, c.now())
	case c.Action == Enable && i.PortPhysicalState != mad.PortPhysicalStateDisabled,
		c.Action == Reset && before.PortState == mad.PortStateDown:
		return nil
	}
	return fmt.Errorf("the link is not up after %v: %s", c.Wait, c.now())
}

// now describes the state of the link in messages.
func (c *PortState) now() string {
	if c.Err != nil {
		return fmt.Sprintf("the result is unknown: %v", c.Err)
	}
	i := c.PortInfo()
	return fmt.Sprintf("the port is %v and %v", i.PortState, i.PortPhysicalState)
}

// guard refuses to take down a link that this session needs to reach the node, or that is, by
// the current forwarding tables, on the path between the subnet manager and the node or this
// session. Hosts may be cut off: that may be the purpose.
func (c *PortState) guard(ctx context.Context, e *engine.Engine, changes []*PortState) error {
	if c.Num == int(c.Node.LocalPortNum) {
		return c.cutOff("this session reaches the node through it")
	}
	for _, other := range changes {
		if other != c && other.passes(c.Known) {
			return c.cutOff("this session reaches %s, which also changes, through it", other.Known.Label())
		}
	}
	if !c.IsSwitch() {
		return nil // the request came in through another port
	}
	local, err := e.Port()
	if err != nil {
		return err
	}
	for _, to := range []struct {
		lid  mad.LID
		what string
	}{{local.LID, "this session"}, {local.SMLID, "the subnet manager"}} {
		if to.lid == 0 {
			continue
		}
		out, err := forwardingPort(ctx, e, c.Dest, to.lid)
		if err != nil {
			return c.cutOff("it is unknown whether the node reaches %s through it: %v", to.what, err)
		}
		if out == c.Num {
			return c.cutOff("the node reaches %s (LID %d) through it", to.what, to.lid)
		}
	}
	if local.SMLID == 0 || c.peerForwardsNothing(ctx, e) {
		return nil
	}
	node := pathEnd{what: "the node"}
	if c.Known != nil {
		node.lid = c.Known.Node().LID()
	}
	us, manager := pathEnd{local.LID, "this session"}, pathEnd{local.SMLID, "the subnet manager"}
	paths := [][2]pathEnd{{manager, node}}
	if us.lid != 0 {
		paths = append(paths, [2]pathEnd{us, manager}, [2]pathEnd{manager, us})
	}
	for _, path := range paths {
		if err := c.guardPath(ctx, e, path[0], path[1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *PortState) cutOff(format string, args ...any) error {
	reason := "not taken down: " + fmt.Sprintf(format, args...)
	if !c.IsSwitch() && c.Action == Disable {
		reason += "; a disabled port of a CA may come back only from its host"
	}
	return &CautionError{reason}
}

// passes reports whether the directed route to c's node crosses the link at p.
func (c *PortState) passes(p *fabric.Port) bool {
	if p == nil || c.Known == nil || c.Dest.Route == nil {
		return false
	}
	f := c.Known.Node().Fabric()
	for hops := 1; hops <= c.Dest.Route.Hops(); hops++ {
		in := f.PortAt(c.Dest.Route[:hops+1])
		if in != nil && (in == p || in.Peer() == p) {
			return true
		}
	}
	return false
}

// forwardingPort returns the port through which a switch sends packets to lid.
func forwardingPort(ctx context.Context, e *engine.Engine, d fabric.Dest, lid mad.LID) (int, error) {
	var c engine.Call
	d.Put(&c, mad.MethodGet, mad.AttrLinearForwardingTable, uint32(lid/mad.LFTBlock), nil)
	if err := e.Do(ctx, &c); err != nil {
		return 0, err
	}
	if c.Err != nil {
		return 0, c.Err
	}
	return int(c.Data()[lid%mad.LFTBlock]), nil
}

// peerForwardsNothing reports that the peer is not a switch, so no path leads through the link.
// The forwarding table of this node has shown whether one ends there.
func (c *PortState) peerForwardsNothing(ctx context.Context, e *engine.Engine) bool {
	to := c.peer()
	if to == nil {
		return false
	}
	var call engine.Call
	to.Dest.Put(&call, mad.MethodGet, mad.AttrNodeInfo, 0, nil)
	if e.Do(ctx, &call) != nil || call.Err != nil {
		return false
	}
	var info mad.NodeInfo
	info.Decode(call.Data())
	return info.NodeType != mad.NodeTypeSwitch
}

// pathEnd is where a path begins or ends.
type pathEnd struct {
	lid  mad.LID
	what string
}

func (p pathEnd) String() string {
	if p.lid == 0 || p.what == "the node" {
		return p.what
	}
	return fmt.Sprintf("%s (LID %d)", p.what, p.lid)
}

// guardPath follows the path from one port to another by the forwarding tables:
// the link must not be on it. The subnet manager's directed routes are not
// known; it finds others when a link is down.
func (c *PortState) guardPath(ctx context.Context, e *engine.Engine, from, to pathEnd) error {
	unknown := func(format string, args ...any) error {
		return c.cutOff("it is unknown whether %v reaches %v through it: %s", from, to, fmt.Sprintf(format, args...))
	}
	if c.Known == nil {
		return unknown("run discover() and use its port")
	}
	if to.lid == 0 {
		return unknown("%v has no LID", to)
	}
	f := c.Known.Node().Fabric()
	at, goal := f.PortByLID(from.lid), f.PortByLID(to.lid)
	if at == nil || goal == nil {
		return unknown("that LID is not in the discovered fabric")
	}
	for range mad.MaxHops {
		n := at.Node()
		if n == goal.Node() {
			return nil
		}
		out := at // a host's
		if n.IsSwitch() {
			if n.Route() == nil {
				return unknown("the path leads through %s", n.Label())
			}
			num, err := forwardingPort(ctx, e, fabric.Dest{Route: n.Route(), Guard: n.Guard()}, to.lid)
			if err != nil {
				return unknown("%v", err)
			}
			if num == mad.NoPort || n.Port(num) == nil || num == 0 {
				return unknown("%s has no route to LID %d", n.Label(), to.lid)
			}
			out = n.Port(num)
		}
		if at = out.Peer(); at == nil {
			return unknown("the path leaves the discovered fabric")
		}
		if out == c.Known || at == c.Known {
			return c.cutOff("%v reaches %v through it", from, to)
		}
		if !at.Node().IsSwitch() && at.Node() != goal.Node() {
			return unknown("the path leads through %s", at.Node().Label())
		}
	}
	return unknown("the forwarding tables contain a loop")
}
