package topology

import (
	"context"
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

// Target is where a request goes, resolved from what a script names.
type Target struct {
	Label string            // for messages: LID 17, "leaf-1" (0x...), route 0,1
	Route mad.DirectedRoute // SMPs go along it; nil: they go by LID
	LID   mad.LID           // 0: none is known
	Node  *fabric.Node      // nil where only an address is known
	guard engine.Guard      // whose M_Key SMPs to it need, as far as is known
	Port  int               // what a port target says; NoPortGiven if it was none
	Err   error             // why there is no such target
}

// NoPortGiven: neither the target nor a parameter names a port.
const NoPortGiven = -1

// Resolver finds the targets of one call.
type Resolver struct {
	C     *lang.Call
	local *engine.Port // read when it is first needed
}

// targets resolves the argument `target`. many: it was an iterable, and so is
// the result. What a script got wrong is the error; a target that is not there
// has err set.
func (r *Resolver) Targets(v starlark.Value) (list []Target, many bool, err error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		t, err := r.target(v)
		if err != nil {
			return nil, false, lang.ParamError("target", "%w", err)
		}
		return []Target{t}, false, nil
	}
	for i, v := range lang.Collect(it) {
		t, err := r.target(v)
		if err != nil {
			return nil, true, lang.ParamError("target", "element %d: %w", i, err)
		}
		list = append(list, t)
	}
	return list, true, nil
}

// Target resolves one target.
func (r *Resolver) target(v starlark.Value) (Target, error) {
	switch v := v.(type) {
	case starlark.Int:
		n, err := lang.ToInt(v)
		switch {
		case err != nil || n < 0 || n > 0xffff:
			return Target{}, fmt.Errorf("LID %s is out of range, 1..%d", v, mad.MaxUnicastLID)
		case n == 0:
			return Target{}, fmt.Errorf("LID 0 is nobody's; a port without a LID is reached by a directed route")
		case n > int(mad.MaxUnicastLID):
			return Target{}, fmt.Errorf("LID %d is no unicast LID, 1..%d", n, mad.MaxUnicastLID)
		}
		t := Target{Label: fmt.Sprintf("LID %d", n), LID: mad.LID(n), Port: NoPortGiven}
		if f := EnvOf(r.C.Runtime()).Current; f != nil {
			t.guard = guardOf(f.F.PortByLID(t.LID))
		}
		return t, nil
	case Route:
		if err := r.checkRoute(v.directed()); err != nil {
			return Target{}, err
		}
		t := Target{Label: "route " + v.directed().String(), Route: v.directed(), Port: NoPortGiven}
		if f := EnvOf(r.C.Runtime()).Current; f != nil {
			t.guard = guardOf(f.F.PortAt(t.Route))
		}
		return t, nil
	case Node:
		return NodeTarget(v.Node), nil
	case Port:
		return portTarget(v.Port), nil
	case starlark.String:
		return r.named(string(v)), nil
	case *lang.Failure:
		return Target{Label: v.Target, Port: NoPortGiven, Err: v.Err}, nil
	}
	return Target{}, fmt.Errorf("got %s, want a LID, a GUID or GID, a node name, NAME/PORT, dr(...), a node or a port", v.Type())
}

// checkRoute: the first hop leaves through the local port.
func (r *Resolver) checkRoute(route mad.DirectedRoute) error {
	if route.Hops() == 0 {
		return nil
	}
	p, err := r.LocalPort()
	if err != nil {
		return err
	}
	if p.Num != 0 && route[1] != p.Num { // 0: we sit on a switch
		return fmt.Errorf("route %v leaves the local node through port %d, but this session is on port %d of %s: begin with 0,%d",
			route, route[1], p.Num, p.Device, p.Num)
	}
	return nil
}

func (r *Resolver) LocalPort() (*engine.Port, error) {
	if r.local != nil {
		return r.local, nil
	}
	p, err := LocalPort(r.C)
	if err != nil {
		return nil, err
	}
	r.local = &p
	return r.local, nil
}

// LocalPort reads the facts of the port that the session is on.
func LocalPort(c *lang.Call) (p engine.Port, err error) {
	e, err := EngineOf(c)
	if err != nil {
		return p, err
	}
	err = c.Block(func(context.Context) (err error) {
		p, err = e.Port()
		return err
	})
	return p, err
}

// EngineOf is what reaches the fabric.
func EngineOf(c *lang.Call) (*engine.Engine, error) {
	if e := EnvOf(c.Runtime()).Engine; e != nil {
		return e, nil
	}
	if absent := EnvOf(c.Runtime()).Absent; absent != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.Name, ErrNoFabric, absent)
	}
	return nil, fmt.Errorf("%s: %w: this session reads a file; open one with -F (for example -F sim)", c.Name, ErrNoFabric)
}

func NodeTarget(n *fabric.Node) Target {
	return Target{Label: n.Label(), Route: n.Route(), LID: n.LID(), Node: n, guard: n.Guard(), Port: NoPortGiven}
}

// portTarget: a switch's port is reached through its port 0.
func portTarget(p *fabric.Port) Target {
	return Target{Label: p.Label(), Route: p.Route(), LID: p.LID(), Node: p.Node(), guard: p.Guard(), Port: p.Num()}
}

func guardOf(p *fabric.Port) engine.Guard {
	if p == nil {
		return engine.Guard{}
	}
	return p.Guard()
}

// Kinds of parameters that say who is meant.
var (
	KindTarget = &lang.Kind{}                                                                                      // one target or an iterable of them
	KindPort   = &lang.Kind{Convert: lang.KindInt.Convert, Type: lang.KindInt.Type, Default: lang.KindInt.Default} // a port number
)

// missing is a target that is not there.
func missing(name, format string, args ...any) Target {
	return Target{Label: name, Port: NoPortGiven, Err: &TargetError{msg: fmt.Sprintf(format, args...), named: true}}
}

// TargetError says why a name or GUID is no target.
type TargetError struct {
	msg   string
	named bool // msg names the target
}

func (e *TargetError) Error() string { return e.msg }

// named resolves a GUID, a GID or a name. GUIDs go first: a node may call
// itself as it likes.
func (r *Resolver) named(name string) Target {
	if strings.HasPrefix(name, "0x") || strings.HasPrefix(name, "0X") || strings.Count(name, ":") == 3 {
		if g, ok := records.GUIDText(name); ok {
			return r.GUID(name, g)
		}
	}
	if strings.Contains(name, ":") {
		if g, err := records.ParseGID(starlark.String(name)); err == nil {
			return r.gid(name, g)
		}
	}
	f := EnvOf(r.C.Runtime()).Current
	if lid, err := strconv.ParseUint(name, 10, 16); err == nil && (f == nil || len(f.F.NodeByName(name)) == 0) {
		return missing(name, "no node is named %q: a LID is a number, %d, and no text (int(%[1]q) makes it one)", name, lid)
	}
	if f == nil {
		return missing(name, "no fabric is known to look %q up in: run discover() first", name)
	}
	if nodes := f.F.NodeByName(name); len(nodes) > 0 {
		if len(nodes) > 1 {
			return ambiguousName(name, nodes)
		}
		return NodeTarget(nodes[0])
	}
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		num, err := strconv.ParseUint(name[i+1:], 10, 16)
		nodes := f.F.NodeByName(name[:i])
		switch {
		case err != nil || len(nodes) == 0:
		case len(nodes) > 1:
			return ambiguousName(name[:i], nodes)
		default:
			p := nodes[0].Port(int(num))
			if p == nil {
				return missing(name, "%v", NoPort(nodes[0], name[i+1:]))
			}
			return portTarget(p)
		}
	}
	var names []string
	for i := range f.F.Nodes() {
		names = append(names, f.F.Nodes()[i].Name())
	}
	return missing(name, "the fabric has no node named %q%s; if it is new, run discover() again", name, fabric.DidYouMean(name, names))
}

func ambiguousName(name string, nodes []*fabric.Node) Target {
	var guids []string
	for _, n := range nodes {
		guids = append(guids, n.GUID().String())
	}
	return missing(name, "%d nodes are named %q: use a GUID, one of %s", len(nodes), name, strings.Join(guids, ", "))
}

// guid resolves a GUID: a port's first, then a node's; in the fabric first,
// then through the subnet administrator.
func (r *Resolver) GUID(name string, g mad.GUID) Target {
	if g == 0 {
		return missing(name, "GUID 0 is nobody's")
	}
	if f := EnvOf(r.C.Runtime()).Current; f != nil {
		if t, ok := guidIn(f.F, name, g); ok {
			return t
		}
	}
	return r.guidFromSA(name, g)
}

func guidIn(f *fabric.Fabric, name string, g mad.GUID) (Target, bool) {
	ports := f.PortByGUID(g)
	switch {
	case len(ports) > 1:
		return missing(name, "%d ports have GUID %s: use one of %s", len(ports), g, portNames(ports)), true
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
		return missing(name, "%d nodes have GUID %s: use one of %s", len(nodes), g, strings.Join(routes, ", ")), true
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
		return missing(name, "%s is a node with %d ports in use: use one of %s", g, len(linked), portNames(linked)), true
	}
	return NodeTarget(nodes[0]), true
}

func portNames(ports []*fabric.Port) string {
	var names []string
	for _, p := range ports {
		names = append(names, fmt.Sprintf("%s (port GUID %s)", p.Name(), p.GUID()))
	}
	return strings.Join(names, ", ")
}

// guidFromSA asks the subnet administrator for the ports of a GUID.
func (r *Resolver) guidFromSA(name string, g mad.GUID) Target {
	query := mad.NodeRecord{NodeInfo: mad.NodeInfo{PortGUID: g, NodeGUID: g}}
	for _, component := range []string{"port_guid", "node_guid"} {
		records, err := nodeRecords(r.C, &query, component)
		if err != nil {
			return Target{Label: name, Port: NoPortGiven, Err: fmt.Errorf("no fabric is known that has GUID %s, and the subnet administrator cannot be asked: %w; or run discover()", g, err)}
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
		return missing(name, "%s is a node with %d ports: use one of %s", g, len(records), strings.Join(names, ", "))
	}
	return missing(name, "nobody has GUID %s: neither the latest discover() nor the subnet administrator knows it", g)
}

// recordTarget is the port of a NodeRecord.
func recordTarget(name string, rec *mad.NodeRecord) Target {
	n := &rec.NodeInfo
	t := Target{Label: name, Port: NoPortGiven, LID: rec.LID, guard: engine.Guard{Port: n.PortGUID, Node: n.NodeGUID}}
	if n.NodeType != mad.NodeTypeSwitch {
		t.Port = int(n.LocalPortNum)
	}
	return t
}

// gid resolves a GID: through the fabric where its ports have it, else by a
// PathRecord.
func (r *Resolver) gid(name string, g mad.GID) Target {
	if f := EnvOf(r.C.Runtime()).Current; f != nil {
		for _, p := range f.F.PortByGUID(g.GUID()) {
			if i := p.Info(); i != nil && (i.GIDPrefix == g.Prefix() || g.Prefix() == linkLocalPrefix) {
				return r.GUID(name, g.GUID())
			}
		}
	}
	path, err := pathTo(r.C, g)
	if err != nil {
		return Target{Label: name, Port: NoPortGiven, Err: fmt.Errorf("no fabric is known that has GID %s, and the subnet administrator gives no path to it: %w; or run discover()", g, err)}
	}
	return Target{Label: name, Port: NoPortGiven, LID: path.DLID}
}

// linkLocalPrefix is the default subnet prefix (IBA 4.1.1).
const linkLocalPrefix = 0xfe80000000000000

// reachable: SMPs can be addressed to t.
func (t *Target) Reachable() error { return t.AddressSMP(new(engine.Call)) }

func (t *Target) Dest() fabric.Dest { return fabric.Dest{Route: t.Route, LID: t.LID, Guard: t.guard} }

// guid is the node GUID that must answer; 0 where only an address is known.
func (t *Target) GUID() mad.GUID {
	if t.Node == nil {
		return 0
	}
	return t.Node.GUID()
}

// NeedsLID: general management packets go by LID.
func (t *Target) NeedsLID() error {
	switch {
	case t.Err != nil:
		return t.Err
	case t.LID != 0:
		return nil
	case t.Node == nil:
		return &TargetError{msg: `only subnet management goes by directed route: use the LID, smp_get("PortInfo", route, 0).lid`}
	}
	return ErrNoLID
}

var ErrNoLID = &TargetError{msg: "it has no LID: a subnet manager must give it one first"}

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
