package topology

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// named resolves a GUID, a GID, a name, or NAME/PORT. GUIDs come first, because a node
// can have any name. A name may have slashes, so the whole text is looked up before its
// last part is taken for a port.
func (r *Resolver) named(name string) Target {
	if strings.HasPrefix(name, "0x") || strings.HasPrefix(name, "0X") || strings.Count(name, ":") == 3 {
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
	if lid, err := strconv.ParseUint(name, 10, 16); err == nil && (f == nil || !named(f.Fabric, name)) {
		return missing(name, "no node is named %q; a LID is a number, %d, not a string (int(%[1]q) converts it)", name, lid)
	}
	if f == nil {
		return missing(name, "unknown name %q: no fabric is known; run discover() first", name)
	}
	return nameIn(f.Fabric, name)
}

// named reports whether a node or host has a name.
func named(f *fabric.Fabric, name string) bool {
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
				return missing(name, "%v", NoSuchPort(n, name[i+1:]))
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
	if strings.HasPrefix(name, "0x") || strings.HasPrefix(name, "0X") || strings.Count(name, ":") == 3 {
		if g, ok := records.GUIDText(name); ok {
			if t, ok := guidIn(f, name, g); ok {
				return t
			}
			return missing(name, "the fabric has no GUID %s", g)
		}
	}
	if !named(f, name) && strings.Contains(name, ":") {
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
		return missing(name, "invalid GUID 0")
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
		return missing(name, "%d ports have GUID %s; use one of %s", len(ports), g, portNames(ports)), true
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
		return missing(name, "%d nodes have GUID %s; use one of %s", len(nodes), g, strings.Join(routes, ", ")), true
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
		return missing(name, "%s is a node with %d ports in use; use one of %s", g, len(linked), portNames(linked)), true
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
		return missing(name, "%s is a node with %d ports; use one of %s", g, len(records), strings.Join(names, ", "))
	}
	return missing(name, "unknown GUID %s: neither the latest discover() nor the subnet administrator has it", g)
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

// missing returns a target that does not exist.
func missing(name, format string, args ...any) Target {
	return Target{Label: name, Port: NoPortGiven, Err: &TargetError{err: fmt.Errorf(format, args...), named: true}}
}
