package audit

import (
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// SubjectKind is the kind of a subject.
type SubjectKind string

const (
	KindFabric SubjectKind = "fabric"
	KindNode   SubjectKind = "node"
	KindPort   SubjectKind = "port"
	KindLink   SubjectKind = "link"
)

// Subject is what a finding is about. A link has both its ends, the one that
// comes first in the fabric's order first.
type Subject struct {
	Kind SubjectKind
	Ends []End // none of a fabric, two of a link
}

// End is a node, or one of its ports.
type End struct {
	Node mad.GUID
	Num  int    // port number; NoPort: the node
	Name string // of the node, byte for byte as in the fabric: untrusted
	// Panel is where the port is on the front of the node; empty where
	// unknown, and in findings kept from another run.
	Panel string
}

// NoPort is the port number of a node as a whole.
const NoPort = -1

// OfFabric returns the subject that is the fabric as a whole.
func OfFabric() Subject { return Subject{Kind: KindFabric} }

// OfNode returns the subject that is a node.
func OfNode(n *fabric.Node) Subject {
	return Subject{KindNode, []End{{Node: n.GUID(), Num: NoPort, Name: n.Name()}}}
}

// OfPort returns the subject that is a port.
func OfPort(p *fabric.Port) Subject { return Subject{KindPort, []End{endOf(p)}} }

// OfLink returns the subject that is the link between two ports.
func OfLink(p, q *fabric.Port) Subject {
	if q.ID() < p.ID() {
		p, q = q, p
	}
	return Subject{KindLink, []End{endOf(p), endOf(q)}}
}

func endOf(p *fabric.Port) End { return End{p.Node().GUID(), p.Num(), p.Node().Name(), p.Panel()} }

// OfGUID returns the subject that is a node, or one of its ports, which need not be in the
// fabric. num is NoPort for the node.
func OfGUID(node mad.GUID, num int, name string) Subject {
	kind := KindPort
	if num == NoPort {
		kind = KindNode
	}
	return Subject{kind, []End{{Node: node, Num: num, Name: name}}}
}

// Key returns the subject's part of an ID: "0x0002c90300000001/7". A link has the key of
// its first end.
func (s Subject) Key() string {
	if len(s.Ends) == 0 {
		return string(KindFabric)
	}
	return s.Ends[0].key()
}

// keys returns the keys of all ends.
func (s Subject) keys() []string {
	if len(s.Ends) == 0 {
		return []string{s.Key()}
	}
	keys := make([]string, len(s.Ends))
	for i, e := range s.Ends {
		keys[i] = e.key()
	}
	return keys
}

func (e End) key() string {
	if e.Num == NoPort {
		return e.Node.String()
	}
	return e.Node.String() + "/" + strconv.Itoa(e.Num)
}

// Name returns the subject as text: "leaf-3/7 - node-0012 HCA-1/1".
func (s Subject) Name() string {
	if len(s.Ends) == 0 {
		return string(KindFabric)
	}
	names := make([]string, len(s.Ends))
	for i, e := range s.Ends {
		names[i] = e.Label()
	}
	return strings.Join(names, " - ")
}

// Label returns the end as text: "leaf-3/7", or "leaf-3/7 (cage 4/1)". A node without a name is
// shown by its GUID.
func (e End) Label() string {
	name := e.Name
	if name == "" {
		name = e.Node.String()
	}
	if e.Num != NoPort {
		name += "/" + strconv.Itoa(e.Num)
	}
	if e.Panel != "" {
		name += " (" + e.Panel + ")"
	}
	return name
}

// Covers reports whether t is s, or a part of it: a node covers its ports and
// the links at them, a link its ports, a port the link at it.
func (s Subject) Covers(t Subject) bool {
	for _, e := range s.Ends {
		for _, x := range t.Ends {
			if e.Node == x.Node && (e.Num == NoPort || e.Num == x.Num) {
				return true
			}
		}
	}
	return s.Kind == KindFabric && t.Kind == KindFabric
}
