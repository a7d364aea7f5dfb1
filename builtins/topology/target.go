package topology

import (
	"errors"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Target is the destination of a request, resolved from a value of the script.
type Target struct {
	Label string            // for messages: LID 17, "leaf-1" (0x...), route 0,1
	Route mad.DirectedRoute // for SMPs; nil: they use the LID
	LID   mad.LID           // 0: unknown
	Node  *fabric.Node      // nil if only an address is known
	guard engine.Guard      // the port whose M_Key its SMPs require, if known
	Port  int               // number of a port target; NoPortGiven for others
	name  string            // the text in the script, if it was a text
	Err   error             // why the target does not exist
}

// NoPortGiven means that neither the target nor a parameter names a port.
const NoPortGiven = -1

// Kinds of parameters that name a target.
var (
	KindTarget = &lang.Kind{}                                                                                      // one target or an iterable of them
	KindPort   = &lang.Kind{Convert: lang.KindInt.Convert, Type: lang.KindInt.Type, Default: lang.KindInt.Default} // a port number
)

// NodeTarget returns n as a target: for a switch, its port 0.
func NodeTarget(n *fabric.Node) Target {
	return Target{Label: n.Label(), Route: n.Route(), LID: n.LID(), Node: n, guard: n.Guard(), Port: NoPortGiven}
}

// portTarget returns p as a target; a port of a switch is reached through port 0.
func portTarget(p *fabric.Port) Target {
	return Target{Label: p.Label(), Route: p.Route(), LID: p.LID(), Node: p.Node(), guard: p.Guard(), Port: p.Num()}
}

// guardOf returns the port whose M_Key SMPs to p require; zero if p is unknown.
func guardOf(p *fabric.Port) engine.Guard {
	if p == nil {
		return engine.Guard{}
	}
	return p.Guard()
}

// Reachable returns an error if SMPs cannot be addressed to t.
func (t *Target) Reachable() error { return t.AddressSMP(new(engine.Call)) }

// Dest returns t in the form for package fabric.
func (t *Target) Dest() fabric.Dest { return fabric.Dest{Route: t.Route, LID: t.LID, Guard: t.guard} }

// GUID returns the GUID of the node that must answer; 0 if only an address is known.
func (t *Target) GUID() mad.GUID {
	if t.Node == nil {
		return 0
	}
	return t.Node.GUID()
}

// Answer returns r with its origin t; port is the port that it describes, or NoPortGiven
// for that of t.
func (t *Target) Answer(r *records.Record, port int) *records.Record {
	return r.AskedOf(t.Origin(port))
}

// Origin returns t as the origin of an answer about port, or, for NoPortGiven, about that
// of t.
func (t *Target) Origin(port int) records.Origin {
	o := records.Origin{Of: starlark.None, LID: starlark.None, Port: starlark.None}
	switch {
	case t.Node != nil:
		o.Of = Node{t.Node}
	case t.Route != nil:
		o.Of = route(t.Route)
	case t.name != "":
		o.Of = starlark.String(t.name)
	}
	if t.LID != 0 {
		o.LID = starlark.MakeInt(int(t.LID))
	}
	if port == NoPortGiven {
		port = t.Port
	}
	if port != NoPortGiven {
		o.Port = starlark.MakeInt(port)
	}
	return o
}

// Read reports whether t, a node or a port, has answered r in this session, in the
// latest sweep or after it. Keys in it are then current, unlike those of a file.
func (t *Target) Read(c *lang.Call, r *records.Record, port int) bool {
	s := EnvOf(c.Runtime())
	if t.Node == nil || !s.swept || t.Node.Fabric() != s.Fabric() {
		return false
	}
	of, _ := r.Attr("of")
	at, _ := r.Attr("port")
	number, _ := lang.ToInt(at)
	return of == starlark.Value(Node{t.Node}) && (port == NoPortGiven || number == port)
}

// NeedsLID returns an error if t has no LID, which general management packets require.
func (t *Target) NeedsLID() error {
	switch {
	case t.Err != nil:
		return t.Err
	case t.LID != 0:
		return nil
	case t.Node == nil:
		return &TargetError{err: errors.New(`only SMPs support directed routes; use the LID, smp_get("PortInfo", route, 0).lid`)}
	}
	if !t.knowsLID() {
		return ErrLIDUnread
	}
	return ErrNoLID
}

// knowsLID reports whether PortInfo was read from the port that has t's LID.
func (t *Target) knowsLID() bool {
	if t.Node.IsSwitch() {
		return t.Node.Port(0).Info() != nil
	}
	for p := range t.Node.Ports() {
		if p.Info() != nil && (t.Port == NoPortGiven || t.Port == p.Num()) {
			return true
		}
	}
	return false
}

// ErrNoLID is the error of a request by LID to a port without one, ErrLIDUnread of one to
// a port whose LID was not read.
var (
	ErrNoLID     = &TargetError{err: errors.New("it has no LID; a subnet manager must assign one first")}
	ErrLIDUnread = &TargetError{err: errors.New("its LID is unknown, because the sweep did not read its PortInfo; run discover() again")}
)

// AddressSMP addresses an SMP to t: along its directed route, else by LID.
func (t *Target) AddressSMP(call *engine.Call) error {
	switch {
	case t.Err != nil:
		return t.Err
	case t.Route == nil && t.LID == 0:
		return &TargetError{err: errors.New("it has neither a directed route nor a LID; run discover() on a live fabric")}
	}
	t.Dest().Address(call)
	return nil
}

// TargetError is the error of a name or GUID that is not a target.
type TargetError struct {
	err   error
	named bool // err names the target
}

func (e *TargetError) Error() string { return e.err.Error() }
