package format

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// NodeRef is how a file of tables names a node, and in which line. What the
// file lacks is 0.
type NodeRef struct {
	File  string
	Line  int
	GUID  mad.GUID // of the node or of a port of it, depending on the format
	LID   mad.LID
	Route mad.DirectedRoute
	Name  string
}

// Position is file and line, for messages.
func (r *NodeRef) Position() string { return pos{r.File, r.Line}.String() }

// Find is the node of f that r names: by node GUID, else by port GUID; without
// a GUID by LID, without a LID by directed route.
func (r *NodeRef) Find(f *fabric.Fabric) (*fabric.Node, error) {
	if r.GUID != 0 {
		nodes := f.NodeByGUID(r.GUID)
		if len(nodes) == 0 {
			for _, p := range f.PortByGUID(r.GUID) {
				nodes = append(nodes, p.Node())
			}
		}
		switch len(nodes) {
		case 0:
			return nil, fmt.Errorf("%s: expected a node of the fabric, which has no GUID %s", r.Position(), r.GUID)
		case 1:
			return nodes[0], nil
		}
		return nil, fmt.Errorf("%s: expected the GUID of one node, but %s is that of %s", r.Position(), r.GUID, labels(nodes))
	}
	if r.LID != 0 {
		if p := f.PortByLID(r.LID); p != nil {
			return p.Node(), nil
		}
		return nil, fmt.Errorf("%s: expected a node of the fabric, which has no LID %d", r.Position(), r.LID)
	}
	if n := follow(f, r.Route); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%s: expected a node of the fabric; route %s leads to no node", r.Position(), r.Route)
}

// follow is the node at the end of a directed route, which begins where f was
// discovered from.
func follow(f *fabric.Fabric, route mad.DirectedRoute) *fabric.Node {
	if f.From() == nil || len(route) == 0 {
		return nil
	}
	n := f.From().Node()
	for _, num := range route[1:] {
		p := n.Port(int(num))
		if p == nil || p.Peer() == nil {
			return nil
		}
		n = p.Peer().Node()
	}
	return n
}

func labels(nodes []*fabric.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Label()
	}
	return strings.Join(names, " and of ")
}

// parseDestination parses what ibroute, dump_fts and smpquery print of the node
// they asked: "Lid 7", or "DR path slid 65535; dlid 65535; 0,1,3".
func (r *NodeRef) parseDestination(s string) {
	if rest, ok := strings.CutPrefix(s, "Lid "); ok {
		if lid, _, ok := decimal([]byte(rest)); ok && lid <= int(mad.MaxUnicastLID) {
			r.LID = mad.LID(lid)
		}
	}
	if i := strings.LastIndex(s, "DR path "); i >= 0 {
		s = s[i:]
		if route, err := mad.ParseRoute(strings.TrimSpace(s[strings.LastIndexByte(s, ';')+1:])); err == nil {
			r.Route = route
		}
	}
}
