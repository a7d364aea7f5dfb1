package fabric

import (
	"strconv"

	"fabsh/mad"
)

// Label is n in messages: its name, quoted, and its GUID.
func (n *Node) Label() string { return NodeLabel(n.name, n.info.NodeGUID) }

// place names n where its GUID says nothing: `switch "leaf-1" on route 0,1`.
func (n *Node) place() string {
	s := typeWord(n.Type()) + " " + strconv.Quote(n.name)
	if n.route != nil {
		s += " on route " + n.route.String()
	}
	return s
}

// Label is p in messages.
func (p *Port) Label() string { return "port " + strconv.Itoa(p.Num()) + " of " + p.Node().Label() }

// NodeLabel is a node in messages: its name, quoted, and its GUID, or its GUID
// alone where it has no name.
func NodeLabel(name string, guid mad.GUID) string {
	if name == "" {
		return guid.String()
	}
	return strconv.Quote(name) + " (" + guid.String() + ")"
}

// typeWord is the type of a node in messages.
func typeWord(t mad.NodeType) string {
	if t == mad.NodeTypeCA {
		return "CA"
	}
	return t.String()
}

// Plural is a number and its noun in messages: "1 node", "2 nodes".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
