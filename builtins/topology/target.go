package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Target is where a request goes, resolved from what a script names.
type Target struct {
	Label string            // for messages: LID 17, "leaf-1" (0x...), route 0,1
	Route mad.DirectedRoute // SMPs go along it; nil: they go by LID
	LID   mad.LID           // 0: none is known
	Node  *fabric.Node      // nil where only an address is known
	guard engine.Guard      // whose M_Key SMPs to it need, as far as is known
	Port  int               // what a port target says; NoPortGiven if it was none
	name  string            // what the script wrote, where that was a text
	Err   error             // why there is no such target
}

// NoPortGiven: neither the target nor a parameter names a port.
const NoPortGiven = -1

// Kinds of parameters that say who is meant.
var (
	KindTarget = &lang.Kind{}                                                                                      // one target or an iterable of them
	KindPort   = &lang.Kind{Convert: lang.KindInt.Convert, Type: lang.KindInt.Type, Default: lang.KindInt.Default} // a port number
)

// NodeTarget is n as a target: of a switch, its port 0.
func NodeTarget(n *fabric.Node) Target {
	return Target{Label: n.Label(), Route: n.Route(), LID: n.LID(), Node: n, guard: n.Guard(), Port: NoPortGiven}
}

// portTarget: a switch's port is reached through its port 0.
func portTarget(p *fabric.Port) Target {
	return Target{Label: p.Label(), Route: p.Route(), LID: p.LID(), Node: p.Node(), guard: p.Guard(), Port: p.Num()}
}

// guardOf is whose M_Key SMPs to p need; zero where p is not known.
func guardOf(p *fabric.Port) engine.Guard {
	if p == nil {
		return engine.Guard{}
	}
	return p.Guard()
}

// Reachable: SMPs can be addressed to t.
func (t *Target) Reachable() error { return t.AddressSMP(new(engine.Call)) }

// Dest is t as packages below take it.
func (t *Target) Dest() fabric.Dest { return fabric.Dest{Route: t.Route, LID: t.LID, Guard: t.guard} }

// GUID is the node GUID that must answer; 0 where only an address is known.
func (t *Target) GUID() mad.GUID {
	if t.Node == nil {
		return 0
	}
	return t.Node.GUID()
}

// Answer is a record that t answered; port is the one that is meant, NoPortGiven
// where that is for t to say.
func (t *Target) Answer(r *records.Record, port int) *records.Record {
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
	return r.AskedOf(o)
}

// Read: r is what t, a node or a port, has answered in this session, the latest sweep
// or a call after it. Keys in it are those that t has, as none of a file are.
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

// NeedsLID is why no general management packet can go to t, which takes a LID;
// nil: it has one.
func (t *Target) NeedsLID() error {
	switch {
	case t.Err != nil:
		return t.Err
	case t.LID != 0:
		return nil
	case t.Node == nil:
		return &TargetError{msg: `only subnet management goes by directed route: use the LID, smp_get("PortInfo", route, 0).lid`}
	}
	if !t.knowsLID() {
		return ErrLIDUnread
	}
	return ErrNoLID
}

// knowsLID: PortInfo was read of the port whose LID is t's.
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

// ErrNoLID ends what goes by LID to a port without one, ErrLIDUnread to one that was not
// read.
var (
	ErrNoLID     = &TargetError{msg: "it has no LID: a subnet manager must give it one first"}
	ErrLIDUnread = &TargetError{msg: "its LID is not known, for the sweep did not read its PortInfo: run discover() again"}
)

// AddressSMP addresses an SMP to t: along its directed route, else by LID.
func (t *Target) AddressSMP(call *engine.Call) error {
	switch {
	case t.Err != nil:
		return t.Err
	case t.Route == nil && t.LID == 0:
		return &TargetError{msg: "it has neither a directed route nor a LID: run discover() on a live fabric"}
	}
	t.Dest().Address(call)
	return nil
}

// TargetError says why a name or GUID is no target.
type TargetError struct {
	msg   string
	named bool // msg names the target
}

func (e *TargetError) Error() string { return e.msg }
