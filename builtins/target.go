package builtins

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// target is where a request goes, resolved from what a script names.
type target struct {
	label string            // for messages: LID 17, "leaf-1" (0x...), route 0,1
	route mad.DirectedRoute // SMPs go along it; nil: they go by LID
	lid   mad.LID           // 0: none is known
	node  *fabric.Node      // nil where only an address is known
	guard engine.Guard      // whose M_Key SMPs to it need, as far as is known
	port  int               // what a port target says; noPortGiven if it was none
	err   error             // why there is no such target
}

// noPortGiven: neither the target nor a parameter names a port.
const noPortGiven = -1

// resolver finds the targets of one call.
type resolver struct {
	c     *call
	local *engine.Port // read when it is first needed
}

// targets resolves the argument `target`. many: it was an iterable, and so is
// the result. What a script got wrong is the error; a target that is not there
// has err set.
func (r *resolver) targets(v starlark.Value) (list []target, many bool, err error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		t, err := r.target(v)
		if err != nil {
			return nil, false, r.c.paramError("target", "%w", err)
		}
		return []target{t}, false, nil
	}
	for i, v := range collect(it) {
		t, err := r.target(v)
		if err != nil {
			return nil, true, r.c.paramError("target", "element %d: %w", i, err)
		}
		list = append(list, t)
	}
	return list, true, nil
}

// target resolves one target.
func (r *resolver) target(v starlark.Value) (target, error) {
	switch v := v.(type) {
	case starlark.Int:
		n, err := toInt(v)
		switch {
		case err != nil || n < 0 || n > 0xffff:
			return target{}, fmt.Errorf("LID %s is out of range, 1..%d", v, mad.MaxUnicastLID)
		case n == 0:
			return target{}, fmt.Errorf("LID 0 is nobody's; a port without a LID is reached by a directed route")
		case n > int(mad.MaxUnicastLID):
			return target{}, fmt.Errorf("LID %d is no unicast LID, 1..%d", n, mad.MaxUnicastLID)
		}
		t := target{label: fmt.Sprintf("LID %d", n), lid: mad.LID(n), port: noPortGiven}
		if f := envOf(r.c.runtime()).fabric; f != nil {
			t.guard = guardOf(f.f.PortByLID(t.lid))
		}
		return t, nil
	case route:
		if err := r.checkRoute(v.directed()); err != nil {
			return target{}, err
		}
		t := target{label: "route " + v.directed().String(), route: v.directed(), port: noPortGiven}
		if f := envOf(r.c.runtime()).fabric; f != nil {
			t.guard = guardOf(f.f.PortAt(t.route))
		}
		return t, nil
	case node:
		return nodeTarget(v.Node), nil
	case port:
		return portTarget(v.Port), nil
	case starlark.String:
		return r.named(string(v)), nil
	case *failure:
		return target{label: v.target, port: noPortGiven, err: v.err}, nil
	}
	return target{}, fmt.Errorf("got %s, want a LID, a GUID or GID, a node name, NAME/PORT, dr(...), a node or a port", v.Type())
}

// checkRoute: the first hop leaves through the local port.
func (r *resolver) checkRoute(route mad.DirectedRoute) error {
	if route.Hops() == 0 {
		return nil
	}
	p, err := r.localPort()
	if err != nil {
		return err
	}
	if p.Num != 0 && route[1] != p.Num { // 0: we sit on a switch
		return fmt.Errorf("route %v leaves the local node through port %d, but this session is on port %d of %s: begin with 0,%d",
			route, route[1], p.Num, p.Device, p.Num)
	}
	return nil
}

func (r *resolver) localPort() (*engine.Port, error) {
	if r.local != nil {
		return r.local, nil
	}
	p, err := localPort(r.c)
	if err != nil {
		return nil, err
	}
	r.local = &p
	return r.local, nil
}

// localPort reads the facts of the port that the session is on.
func localPort(c *call) (p engine.Port, err error) {
	e, err := engineOf(c)
	if err != nil {
		return p, err
	}
	err = c.wait(func(context.Context) (err error) {
		p, err = e.Port()
		return err
	})
	return p, err
}

// engineOf is what reaches the fabric.
func engineOf(c *call) (*engine.Engine, error) {
	if e := envOf(c.runtime()).Engine; e != nil {
		return e, nil
	}
	if absent := envOf(c.runtime()).Absent; absent != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.Name, errNoFabric, absent)
	}
	return nil, fmt.Errorf("%s: %w: this session reads a file; open one with -F (for example -F sim)", c.Name, errNoFabric)
}

func nodeTarget(n *fabric.Node) target {
	return target{label: n.Label(), route: n.Route(), lid: n.LID(), node: n, guard: n.Guard(), port: noPortGiven}
}

// portTarget: a switch's port is reached through its port 0.
func portTarget(p *fabric.Port) target {
	return target{label: p.Label(), route: p.Route(), lid: p.LID(), node: p.Node(), guard: p.Guard(), port: p.Num()}
}

func guardOf(p *fabric.Port) engine.Guard {
	if p == nil {
		return engine.Guard{}
	}
	return p.Guard()
}

// Kinds of parameters that say who is meant.
var (
	KindTarget = &Kind{}                                                   // one target or an iterable of them
	KindPort   = &Kind{Convert: KindInt.Convert, Default: KindInt.Default} // a port number
)

// missing is a target that is not there.
func missing(name, format string, args ...any) target {
	return target{label: name, port: noPortGiven, err: &targetError{msg: fmt.Sprintf(format, args...), named: true}}
}

// targetError says why a name or GUID is no target.
type targetError struct {
	msg   string
	named bool // msg names the target
}

func (e *targetError) Error() string { return e.msg }

// named resolves a GUID, a GID or a name. GUIDs go first: a node may call
// itself as it likes.
func (r *resolver) named(name string) target {
	if strings.HasPrefix(name, "0x") || strings.HasPrefix(name, "0X") || strings.Count(name, ":") == 3 {
		if g, ok := guidText(name); ok {
			return r.guid(name, g)
		}
	}
	if strings.Contains(name, ":") {
		if g, err := parseGID(starlark.String(name)); err == nil {
			return r.gid(name, g)
		}
	}
	f := envOf(r.c.runtime()).fabric
	if lid, err := strconv.ParseUint(name, 10, 16); err == nil && (f == nil || len(f.f.NodeByName(name)) == 0) {
		return missing(name, "no node is named %q: a LID is a number, %d, and no text (int(%[1]q) makes it one)", name, lid)
	}
	if f == nil {
		return missing(name, "no fabric is known to look %q up in: run discover() first", name)
	}
	if nodes := f.f.NodeByName(name); len(nodes) > 0 {
		if len(nodes) > 1 {
			return ambiguousName(name, nodes)
		}
		return nodeTarget(nodes[0])
	}
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		num, err := strconv.ParseUint(name[i+1:], 10, 16)
		nodes := f.f.NodeByName(name[:i])
		switch {
		case err != nil || len(nodes) == 0:
		case len(nodes) > 1:
			return ambiguousName(name[:i], nodes)
		default:
			p := nodes[0].Port(int(num))
			if p == nil {
				return missing(name, "%v", noPort(nodes[0], name[i+1:]))
			}
			return portTarget(p)
		}
	}
	var names []string
	for i := range f.f.Nodes() {
		names = append(names, f.f.Nodes()[i].Name())
	}
	return missing(name, "the fabric has no node named %q%s; if it is new, run discover() again", name, fabric.DidYouMean(name, names))
}

func ambiguousName(name string, nodes []*fabric.Node) target {
	var guids []string
	for _, n := range nodes {
		guids = append(guids, n.GUID().String())
	}
	return missing(name, "%d nodes are named %q: use a GUID, one of %s", len(nodes), name, strings.Join(guids, ", "))
}

// guid resolves a GUID: a port's first, then a node's; in the fabric first,
// then through the subnet administrator.
func (r *resolver) guid(name string, g mad.GUID) target {
	if g == 0 {
		return missing(name, "GUID 0 is nobody's")
	}
	if f := envOf(r.c.runtime()).fabric; f != nil {
		if t, ok := guidIn(f.f, name, g); ok {
			return t
		}
	}
	return r.guidFromSA(name, g)
}

func guidIn(f *fabric.Fabric, name string, g mad.GUID) (target, bool) {
	ports := f.PortByGUID(g)
	switch {
	case len(ports) > 1:
		return missing(name, "%d ports have GUID %s: use one of %s", len(ports), g, portNames(ports)), true
	case len(ports) == 1 && ports[0].Num() == 0: // a switch's GUID means the switch
		return nodeTarget(ports[0].Node()), true
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
		return target{}, false
	case nodes[0].IsSwitch():
		return nodeTarget(nodes[0]), true
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
	return nodeTarget(nodes[0]), true
}

func portNames(ports []*fabric.Port) string {
	var names []string
	for _, p := range ports {
		names = append(names, fmt.Sprintf("%s (port GUID %s)", p.Name(), p.GUID()))
	}
	return strings.Join(names, ", ")
}

// guidFromSA asks the subnet administrator for the ports of a GUID.
func (r *resolver) guidFromSA(name string, g mad.GUID) target {
	for _, component := range []string{"port_guid", "node_guid"} {
		records, err := saLookup(r.c, mad.AttrNodeRecord, component, guidValue(g))
		if err != nil {
			return target{label: name, port: noPortGiven, err: fmt.Errorf("no fabric is known that has GUID %s, and the subnet administrator cannot be asked: %w; or run discover()", g, err)}
		}
		switch len(records) {
		case 0:
			continue
		case 1:
			return recordTarget(name, records[0])
		}
		var names []string
		for _, rec := range records {
			names = append(names, fmt.Sprintf("LID %v (port GUID %v)", rec.get("lid"), rec.get("port_guid")))
		}
		return missing(name, "%s is a node with %d ports: use one of %s", g, len(records), strings.Join(names, ", "))
	}
	return missing(name, "nobody has GUID %s: neither the latest discover() nor the subnet administrator knows it", g)
}

// recordTarget is the port of a NodeRecord.
func recordTarget(name string, rec *record) target {
	t := target{label: name, port: noPortGiven, lid: mad.LID(rec.uint("lid"))}
	t.guard = engine.Guard{Port: mad.GUID(rec.uint("port_guid")), Node: mad.GUID(rec.uint("node_guid"))}
	if rec.uint("node_type") != uint64(mad.NodeTypeSwitch) {
		t.port = int(rec.uint("local_port_num"))
	}
	return t
}

// gid resolves a GID: through the fabric where its ports have it, else by a
// PathRecord.
func (r *resolver) gid(name string, g mad.GID) target {
	if f := envOf(r.c.runtime()).fabric; f != nil {
		for _, p := range f.f.PortByGUID(g.GUID()) {
			if i := p.Info(); i != nil && (i.GIDPrefix == g.Prefix() || g.Prefix() == linkLocalPrefix) {
				return r.guid(name, g.GUID())
			}
		}
	}
	lid, err := pathLID(r.c, g)
	if err != nil {
		return target{label: name, port: noPortGiven, err: fmt.Errorf("no fabric is known that has GID %s, and the subnet administrator gives no path to it: %w; or run discover()", g, err)}
	}
	return target{label: name, port: noPortGiven, lid: lid}
}

// linkLocalPrefix is the default subnet prefix (IBA 4.1.1).
const linkLocalPrefix = 0xfe80000000000000

// reachable: SMPs can be addressed to t.
func (t *target) reachable() error { return t.addressSMP(new(engine.Call)) }

func (t *target) dest() fabric.Dest { return fabric.Dest{Route: t.route, LID: t.lid, Guard: t.guard} }

// guid is the node GUID that must answer; 0 where only an address is known.
func (t *target) guid() mad.GUID {
	if t.node == nil {
		return 0
	}
	return t.node.GUID()
}

// needsLID: general management packets go by LID.
func (t *target) needsLID() error {
	switch {
	case t.err != nil:
		return t.err
	case t.lid != 0:
		return nil
	case t.node == nil:
		return &targetError{msg: `only subnet management goes by directed route: use the LID, smp_get("PortInfo", route, 0).lid`}
	}
	return errNoLID
}

var errNoLID = &targetError{msg: "it has no LID: a subnet manager must give it one first"}

// addressSMP addresses an SMP to t: along its directed route, else by LID.
func (t *target) addressSMP(call *engine.Call) error {
	switch {
	case t.err != nil:
		return t.err
	case t.route == nil && t.lid == 0:
		return &targetError{msg: "it has neither a directed route nor a LID: run discover() on a live fabric"}
	}
	t.dest().Address(call)
	return nil
}
