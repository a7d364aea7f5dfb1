package change

import (
	"context"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// CautionError is why a change that could be made is not: it could not easily
// be undone.
type CautionError struct{ Reason string }

func (e *CautionError) Error() string { return e.Reason }

// guard looks whether the link at c's port is on our own way or on the subnet
// manager's, which for that is asked of the forwarding tables as they are.
// What becomes of hosts behind it is not looked at: that may be the purpose.
func (c *PortChange) guard(ctx context.Context, e *engine.Engine, changes []*PortChange) error {
	if c.Num == int(c.Node.LocalPortNum) {
		return c.cutOff("this session reaches the node through it")
	}
	for _, other := range changes {
		if other != c && other.passes(c.Known) {
			return c.cutOff("this session reaches %s, which is to change too, through it", other.Known.Label())
		}
	}
	if !c.IsSwitch() {
		return nil // it has another port, where we came in
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
			return c.cutOff("it cannot be known whether the node reaches %s through it: %v", to.what, err)
		}
		if out == c.Num {
			return c.cutOff("the node reaches %s (LID %d) through it", to.what, to.lid)
		}
	}
	if local.SMLID == 0 || c.leadsToHost(ctx, e) {
		return nil
	}
	node := party{what: "the node"}
	if c.Known != nil {
		node.lid = c.Known.Node().LID()
	}
	us, manager := party{local.LID, "this session"}, party{local.SMLID, "the subnet manager"}
	ways := [][2]party{{manager, node}}
	if us.lid != 0 {
		ways = append(ways, [2]party{us, manager}, [2]party{manager, us})
	}
	for _, way := range ways {
		if err := c.guardWay(ctx, e, way[0], way[1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *PortChange) cutOff(format string, args ...any) error {
	reason := "not taken down, for " + fmt.Sprintf(format, args...)
	if !c.IsSwitch() && c.Action == DisablePort {
		reason += ", and a disabled port of a CA may come back only by its host"
	}
	return &CautionError{reason}
}

// passes: the way to c's node leads over the link at p.
func (c *PortChange) passes(p *fabric.Port) bool {
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

// leadsToHost: what is at the other end forwards nothing; whether it is the
// subnet manager's, or ours, the forwarding table has said.
func (c *PortChange) leadsToHost(ctx context.Context, e *engine.Engine) bool {
	to := c.neighbour()
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

// party is where a way by the forwarding tables begins or ends.
type party struct {
	lid  mad.LID
	what string
}

func (p party) String() string {
	if p.lid == 0 || p.what == "the node" {
		return p.what
	}
	return fmt.Sprintf("%s (LID %d)", p.what, p.lid)
}

// guardWay follows the forwarding tables from one port to another: the link
// must not be on the way. The directed routes of the subnet manager nobody
// knows; it finds others when one is gone.
func (c *PortChange) guardWay(ctx context.Context, e *engine.Engine, from, to party) error {
	unknown := func(format string, args ...any) error {
		return c.cutOff("it cannot be known whether %v reaches %v through it: %s", from, to, fmt.Sprintf(format, args...))
	}
	if c.Known == nil {
		return unknown("run discover(), and name the port by it")
	}
	if to.lid == 0 {
		return unknown("%v has no LID", to)
	}
	f := c.Known.Node().Fabric()
	at, goal := f.PortByLID(from.lid), f.PortByLID(to.lid)
	if at == nil || goal == nil {
		return unknown("the fabric that was discovered has no such LID")
	}
	for range mad.MaxHops {
		n := at.Node()
		if n == goal.Node() {
			return nil
		}
		out := at // a host's
		if n.IsSwitch() {
			if n.Route() == nil {
				return unknown("the way leads through %s", n.Label())
			}
			num, err := forwards(ctx, e, fabric.Dest{Route: n.Route(), Guard: n.Guard()}, to.lid)
			if err != nil {
				return unknown("%v", err)
			}
			if num == mad.NoPort || n.Port(num) == nil || num == 0 {
				return unknown("%s forwards nothing to LID %d", n.Label(), to.lid)
			}
			out = n.Port(num)
		}
		if at = out.Peer(); at == nil {
			return unknown("the way leaves the fabric that was discovered")
		}
		if out == c.Known || at == c.Known {
			return c.cutOff("%v reaches %v through it", from, to)
		}
		if !at.Node().IsSwitch() && at.Node() != goal.Node() {
			return unknown("the way leads through %s", at.Node().Label())
		}
	}
	return unknown("the forwarding tables lead round in circles")
}
