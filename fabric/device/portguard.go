package device

import (
	"context"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// CautionError is the refusal of a change that could not easily be undone. Force
// overrides it.
type CautionError struct{ Reason string }

func (e *CautionError) Error() string { return e.Reason }

// guard refuses to take down a link that this session needs to reach the node, or
// that is on the path between the subnet manager and the node or this session,
// by the current forwarding tables. Hosts may be cut off: that may be the
// purpose.
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
		out, err := forwards(ctx, e, c.Dest, to.lid)
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

// forwards is the port through which a switch sends packets to lid.
func forwards(ctx context.Context, e *engine.Engine, d fabric.Dest, lid mad.LID) (int, error) {
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
			num, err := forwards(ctx, e, fabric.Dest{Route: n.Route(), Guard: n.Guard()}, to.lid)
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
