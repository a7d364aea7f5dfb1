package format

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Where is how a file of tables names a switch or other node, and where it
// does. What it does not say is 0.
type Where struct {
	File string
	Line int
	// GUID is that of the node, or of a port of it, as formats have it.
	GUID  mad.GUID
	LID   mad.LID
	Route mad.DirectedRoute
	Name  string
}

// Position is file and line, for messages.
func (w *Where) Position() string { return pos{w.File, w.Line}.String() }

// Find is the node of f that the file means. Nodes have it by GUID; a port
// GUID, a LID and a route are taken where there is no other.
func (w *Where) Find(f *fabric.Fabric) (*fabric.Node, error) {
	if w.GUID != 0 {
		nodes := f.NodeByGUID(w.GUID)
		if len(nodes) == 0 {
			for _, p := range f.PortByGUID(w.GUID) {
				nodes = append(nodes, p.Node())
			}
		}
		switch len(nodes) {
		case 0:
			return nil, fmt.Errorf("%s: expected a node of the fabric: it has none with GUID %s", w.Position(), w.GUID)
		case 1:
			return nodes[0], nil
		}
		return nil, fmt.Errorf("%s: expected the GUID of one node, but %s is that of %s", w.Position(), w.GUID, labels(nodes))
	}
	if w.LID != 0 {
		if p := f.PortByLID(w.LID); p != nil {
			return p.Node(), nil
		}
		return nil, fmt.Errorf("%s: expected a node of the fabric: it has none with LID %d", w.Position(), w.LID)
	}
	if n := follow(f, w.Route); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%s: expected a node of the fabric: route %s leads to none", w.Position(), w.Route)
}

// follow walks a route from where f was discovered.
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

// destination reads what ibroute, dump_fts and smpquery say of whom they
// asked: "Lid 7", "DR path slid 65535; dlid 65535; 0,1,3".
func (w *Where) destination(s string) {
	if rest, ok := strings.CutPrefix(s, "Lid "); ok {
		if lid, _, ok := decimal([]byte(rest)); ok && lid <= int(mad.MaxUnicastLID) {
			w.LID = mad.LID(lid)
		}
	}
	if i := strings.LastIndex(s, "DR path "); i >= 0 {
		s = s[i:]
		if r, err := mad.ParseRoute(strings.TrimSpace(s[strings.LastIndexByte(s, ';')+1:])); err == nil {
			w.Route = r
		}
	}
}
