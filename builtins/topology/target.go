package topology

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	start mad.LID           // of a combined route, the LID at which Route begins; otherwise 0
	local mad.LID           // of a combined route, the LID of the local port
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
func (t *Target) Dest() fabric.Dest {
	return fabric.Dest{Route: t.Route, LID: t.LID, Start: t.start, Source: t.local, Guard: t.guard}
}

// GUID returns the GUID of the node that must answer; 0 if only an address is known.
func (t *Target) GUID() mad.GUID {
	if t.Node == nil {
		return 0
	}
	return t.Node.GUID()
}

// Answer returns r with its origin t; port is the port that it describes, or NoPortGiven
// for the port of t.
func (t *Target) Answer(r *records.Record, port int) *records.Record {
	return r.WithOrigin(t.Origin(port))
}

// Origin returns t as the origin of an answer about port, or, for NoPortGiven, about the
// port of t.
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
// latest sweep or after it. Keys in it are then current, unlike keys in a file.
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

// Resolver resolves the targets of one call.
type Resolver struct {
	Call  *lang.Call
	local *engine.Port // read when first needed
}

// Targets resolves the argument `target`. many reports whether it was an iterable, so
// that the result is a list. Errors of the script are returned; a target that does not
// exist has Err set.
func (r *Resolver) Targets(v starlark.Value) (list []Target, many bool, err error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		t, err := r.target(v)
		if err != nil {
			return nil, false, lang.ParamError("target", "%w", err)
		}
		return []Target{t}, false, nil
	}
	values := lang.Collect(it)
	list = make([]Target, 0, len(values))
	for i, v := range values {
		t, err := r.target(v)
		if err != nil {
			return nil, true, lang.ParamError("target", "element %d: %w", i, err)
		}
		list = append(list, t)
	}
	return list, true, nil
}

// target resolves one target.
func (r *Resolver) target(v starlark.Value) (Target, error) {
	switch v := v.(type) {
	case starlark.Int:
		n, err := lang.ToInt(v)
		switch {
		case err != nil || n < 0 || n > 0xffff:
			return Target{}, fmt.Errorf("LID %s is out of range, 1..%d%s", v, mad.MaxUnicastLID, guidAdvice(v))
		case n == 0:
			return Target{}, fmt.Errorf("invalid LID 0; a port without a LID is reached by a directed route")
		case n > int(mad.MaxUnicastLID):
			return Target{}, fmt.Errorf("LID %d is not a unicast LID, 1..%d", n, mad.MaxUnicastLID)
		}
		t := Target{Label: fmt.Sprintf("LID %d", n), LID: mad.LID(n), Port: NoPortGiven}
		if f := EnvOf(r.Call.Runtime()).Current; f != nil {
			p := f.PortByLID(t.LID)
			t.guard = guardOf(p)
			if local, err := r.LocalPort(); err == nil && local.Planarized && p != nil {
				t.Route = p.Route() // required for SMPs (rdma-core infiniband-diags/ibdiag_dr.c)
			}
		}
		return t, nil
	case route:
		if err := r.checkRoute(v.directed()); err != nil {
			return Target{}, err
		}
		t := Target{Label: "route " + v.directed().String(), Route: v.directed(), Port: NoPortGiven}
		if f := EnvOf(r.Call.Runtime()).Current; f != nil {
			t.guard = guardOf(f.PortAt(t.Route))
		}
		return t, nil
	case Node:
		return NodeTarget(v.Node), nil
	case Port:
		return portTarget(v.Port), nil
	case starlark.String:
		t := r.named(string(v))
		t.name = string(v)
		return t, nil
	case *lang.Failure:
		return Target{Label: v.Target, Port: NoPortGiven, Err: v.Err}, nil
	}
	return Target{}, fmt.Errorf("got %s, want a LID, a GUID or GID, a node name, NAME/PORT, dr(...), a node or a port", v.Type())
}

// Combined returns the target at the end of a combined route, which begins at lid, a LID or a
// target that has one, and continues along path, a route or its text (smpquery -c).
func (r *Resolver) Combined(lid, path starlark.Value) (Target, error) {
	if lid == nil || path == nil {
		return Target{}, lang.Errorf("a combined route requires lid= and route=")
	}
	at, err := r.target(lid)
	if err == nil {
		err = at.NeedsLID()
	}
	if err != nil {
		return Target{}, lang.ParamError("lid", "%w", err)
	}
	hops, isRoute := path.(route)
	if text, ok := starlark.AsString(path); ok {
		parsed, err := mad.ParseRoute(text)
		if err != nil {
			return Target{}, lang.ParamError("route", "%w", err)
		}
		hops = route(parsed)
	} else if !isRoute {
		return Target{}, lang.ParamError("route", "got %s, want a route", path.Type())
	}
	local, err := r.LocalPort()
	switch {
	case err != nil:
		return Target{}, err
	case local.Planarized:
		return Target{}, lang.Errorf("combined routes are not supported by devices whose SMPs are sent by other devices (planarized); use a directed route")
	case local.LID == 0 || local.LID > mad.MaxUnicastLID:
		return Target{}, lang.Errorf("a combined route requires a LID of the local port, to which the answer is sent; %s/%d has none", local.Device, local.Num)
	}
	t := Target{Label: fmt.Sprintf("LID %d, then route %s", at.LID, hops.directed()), Route: hops.directed(), start: at.LID, local: local.LID, Port: NoPortGiven}
	if f := EnvOf(r.Call.Runtime()).Current; f != nil {
		if p := f.PortByLID(at.LID); p != nil {
			t.guard = guardOf(p.Along(t.Route))
		}
	}
	return t, nil
}

// guidAdvice returns advice for a number that is too large for a LID: GUIDs are texts.
func guidAdvice(v starlark.Int) string {
	if g, ok := v.Uint64(); ok && g > 0xffff_ffff {
		return fmt.Sprintf("; GUIDs are texts: write %q", mad.GUID(g).String())
	}
	return ""
}

// checkRoute checks that the first hop leaves through the local port; otherwise the SMP
// would not leave the node (IBA 14.2.2).
func (r *Resolver) checkRoute(route mad.DirectedRoute) error {
	if route.Hops() == 0 {
		return nil
	}
	p, err := r.LocalPort()
	if err != nil {
		return err
	}
	if p.Num != 0 && route[1] != p.Num { // 0: the session is on a switch
		return fmt.Errorf("route %v leaves the local node through port %d, but this session is on port %d of %s; begin with 0,%d",
			route, route[1], p.Num, p.Device, p.Num)
	}
	return nil
}

// LocalPort returns the session's local port, read once for each call.
func (r *Resolver) LocalPort() (*engine.Port, error) {
	if r.local != nil {
		return r.local, nil
	}
	p, err := LocalPort(r.Call)
	if err != nil {
		return nil, err
	}
	r.local = &p
	return r.local, nil
}

// named resolves a GUID, a GID, a name, or NAME/PORT. GUIDs come first, because a node
// can have any name. A name may have slashes, so the whole text is looked up before its
// last part is taken for a port.
func (r *Resolver) named(name string) Target {
	if looksLikeGUID(name) {
		if g, ok := records.GUIDText(name); ok {
			return r.guid(name, g)
		}
	}
	if strings.Contains(name, ":") {
		if g, err := records.ParseGID(starlark.String(name)); err == nil {
			return r.gid(name, g)
		}
	}
	f := EnvOf(r.Call.Runtime()).Current
	if lid, err := strconv.ParseUint(name, 10, 16); err == nil && (f == nil || !hasName(f.Fabric, name)) {
		return missingTarget(name, "no node is named %q; a LID is a number, %d, not a string (int(%[1]q) converts it)", name, lid)
	}
	if env := EnvOf(r.Call.Runtime()); f == nil && env.Recent != nil && env.Engine != nil {
		found, err := sweep(r.Call, env.SweepOptions())
		if err != nil {
			return Target{Label: name, name: name, Port: NoPortGiven, Err: err}
		}
		f = found
	}
	if f == nil {
		return missingTarget(name, "unknown name %q: no fabric is known; run discover() first", name)
	}
	return nameIn(f.Fabric, name)
}

// looksLikeGUID reports whether a text is taken for a GUID rather than for a name.
func looksLikeGUID(text string) bool {
	return strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") || strings.Count(text, ":") == 3
}

// hasName reports whether a node or host has a name.
func hasName(f *fabric.Fabric, name string) bool {
	_, err := f.FindNode(name)
	return err == nil
}

// nameIn looks a name, or NAME/PORT, up in a fabric.
func nameIn(f *fabric.Fabric, name string) Target {
	n, err := f.FindNode(name)
	if err == nil {
		return NodeTarget(n)
	}
	var unknown *fabric.NameError
	errors.As(err, &unknown)
	if i := strings.LastIndexByte(name, '/'); i > 0 && len(unknown.Nodes) == 0 {
		if num, bad := strconv.ParseUint(name[i+1:], 10, 16); bad == nil {
			n, err := f.FindNode(name[:i])
			var several *fabric.NameError
			switch {
			case err == nil && n.Port(int(num)) != nil:
				return portTarget(n.Port(int(num)))
			case err == nil:
				return missingTarget(name, "%v", NoSuchPort(n, name[i+1:]))
			case errors.As(err, &several) && len(several.Nodes) > 0:
				return Target{Label: name, Port: NoPortGiven, Err: &TargetError{err: err, named: true}}
			}
		}
	}
	return Target{Label: name, Port: NoPortGiven, Err: &TargetError{err: unknownNode{unknown}, named: true}}
}

// unknownNode is the error of an unknown name, with advice. Its text is made when it is
// read, because it searches all names: a list may have many such targets.
type unknownNode struct{ *fabric.NameError }

func (e unknownNode) Error() string {
	if len(e.Nodes) > 0 || e.IsPattern() {
		return e.NameError.Error()
	}
	return e.NameError.Error() + "; if it is new, run discover() again"
}

// FindIn looks a GUID, a GID, a name or NAME/PORT up in a fabric.
func FindIn(f *fabric.Fabric, name string) Target {
	if looksLikeGUID(name) {
		if g, ok := records.GUIDText(name); ok {
			if t, ok := guidIn(f, name, g); ok {
				return t
			}
			return missingTarget(name, "the fabric has no GUID %s", g)
		}
	}
	if !hasName(f, name) && strings.Contains(name, ":") {
		if g, err := records.ParseGID(starlark.String(name)); err == nil {
			if t, ok := guidIn(f, name, g.GUID()); ok {
				return t
			}
		}
	}
	return nameIn(f, name)
}

// guid resolves a GUID: a port's first, then a node's; in the fabric first,
// then through the subnet administrator.
func (r *Resolver) guid(name string, g mad.GUID) Target {
	if g == 0 {
		return missingTarget(name, "invalid GUID 0")
	}
	if f := EnvOf(r.Call.Runtime()).Current; f != nil {
		if t, ok := guidIn(f.Fabric, name, g); ok {
			return t
		}
	}
	return r.guidFromSA(name, g)
}

// guidIn looks a GUID up in a fabric; false: the fabric does not have it.
func guidIn(f *fabric.Fabric, name string, g mad.GUID) (Target, bool) {
	ports := f.PortByGUID(g)
	switch {
	case len(ports) > 1:
		return missingTarget(name, "%d ports have GUID %s; use one of %s", len(ports), g, portNames(ports)), true
	case len(ports) == 1 && ports[0].Num() == 0: // a switch's GUID means the switch
		return NodeTarget(ports[0].Node()), true
	case len(ports) == 1:
		return portTarget(ports[0]), true
	}
	nodes := f.NodeByGUID(g)
	switch {
	case len(nodes) > 1:
		var routes []string
		for _, n := range nodes {
			routes = append(routes, fmt.Sprintf("dr(%q)", n.Route()))
		}
		return missingTarget(name, "%d nodes have GUID %s; use one of %s", len(nodes), g, strings.Join(routes, ", ")), true
	case len(nodes) == 0:
		return Target{}, false
	case nodes[0].IsSwitch():
		return NodeTarget(nodes[0]), true
	}
	var linked []*fabric.Port
	for p := range nodes[0].Ports() {
		if p.Peer() != nil || p.LID() != 0 {
			linked = append(linked, p)
		}
	}
	if len(linked) > 1 {
		return missingTarget(name, "%s is a node with %d ports in use; use one of %s", g, len(linked), portNames(linked)), true
	}
	return NodeTarget(nodes[0]), true
}

// portNames returns the ports that a GUID could mean, for a message.
func portNames(ports []*fabric.Port) string {
	var names []string
	for _, p := range ports {
		names = append(names, fmt.Sprintf("%s (port GUID %s)", p.Name(), p.GUID()))
	}
	return strings.Join(names, ", ")
}

// guidFromSA reads the ports of a GUID from the subnet administrator.
func (r *Resolver) guidFromSA(name string, g mad.GUID) Target {
	query := mad.NodeRecord{NodeInfo: mad.NodeInfo{PortGUID: g, NodeGUID: g}}
	for _, component := range []string{"port_guid", "node_guid"} {
		records, err := nodeRecords(r.Call, &query, component)
		if err != nil {
			return Target{Label: name, Port: NoPortGiven, Err: fmt.Errorf("no known fabric has GUID %s, and the subnet administrator did not answer: %w; or run discover()", g, err)}
		}
		switch len(records) {
		case 0:
			continue
		case 1:
			return recordTarget(name, &records[0])
		}
		var names []string
		for _, rec := range records {
			names = append(names, fmt.Sprintf("LID %d (port GUID %q)", rec.LID, rec.NodeInfo.PortGUID.String()))
		}
		return missingTarget(name, "%s is a node with %d ports; use one of %s", g, len(records), strings.Join(names, ", "))
	}
	return missingTarget(name, "unknown GUID %s: neither the latest discover() nor the subnet administrator has it", g)
}

// recordTarget returns the port of a NodeRecord. A switch's LocalPortNum is the port that
// received the request (IBA 14.2.5.3), not the target.
func recordTarget(name string, rec *mad.NodeRecord) Target {
	n := &rec.NodeInfo
	t := Target{Label: name, Port: NoPortGiven, LID: rec.LID, guard: engine.Guard{Port: n.PortGUID, Node: n.NodeGUID}}
	if n.NodeType != mad.NodeTypeSwitch {
		t.Port = int(n.LocalPortNum)
	}
	return t
}

// gid resolves a GID: in the fabric if one of its ports has it, else by a PathRecord.
func (r *Resolver) gid(name string, g mad.GID) Target {
	if f := EnvOf(r.Call.Runtime()).Current; f != nil {
		for _, p := range f.PortByGUID(g.GUID()) {
			if i := p.Info(); i != nil && (i.GIDPrefix == g.Prefix() || g.Prefix() == linkLocalPrefix) {
				return r.guid(name, g.GUID())
			}
		}
	}
	path, err := pathTo(r.Call, g)
	if err != nil {
		return Target{Label: name, Port: NoPortGiven, Err: fmt.Errorf("no known fabric has GID %s, and the subnet administrator returned no path to it: %w; or run discover()", g, err)}
	}
	return Target{Label: name, Port: NoPortGiven, LID: path.DLID}
}

// linkLocalPrefix is the default subnet prefix (IBA 4.1.1).
const linkLocalPrefix = 0xfe80000000000000

// missingTarget returns a target that does not exist.
func missingTarget(name, format string, args ...any) Target {
	return Target{Label: name, Port: NoPortGiven, Err: &TargetError{err: fmt.Errorf(format, args...), named: true}}
}
