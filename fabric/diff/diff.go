// Package diff compares two snapshots of a subnet: which cables, nodes, ports,
// settings and tables differ.
//
// Compare returns a Report of Changes. It first matches the nodes of both sides, by GUID, by name
// or by the places of their cables; then it compares nodes and their settings, cables,
// forwarding tables and other tables.
//
// Data missing from a snapshot is never reported as a change: what one side did not read is
// neither gone nor new. Names are the descriptions that nodes give themselves, so all texts have
// them quoted where they hold more than plain letters. The package has no state, and Compare is
// safe for concurrent use.
package diff

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/mad"
)

// Report is all that differs between two fabrics.
type Report struct {
	// Changes are the causes, in a fixed order: nodes, links, ports, tables.
	Changes []*Change
	// NotCompared is what one of the fabrics does not hold at all, such as the
	// settings of ports in a file of ibnetdiscover.
	NotCompared []string
	// Unread is what one side asked for and did not get: nothing is known of it.
	Unread []string
}

// Same reports whether nothing differs of all that was compared.
func (r *Report) Same() bool { return len(r.Changes) == 0 }

// Complete reports whether both sides got all that they requested.
func (r *Report) Complete() bool { return len(r.Unread) == 0 }

// Change is one difference. Text is for people: the subject is a name, not a key.
type Change struct {
	Kind    string // "node.gone", "link.swapped", "port.neighbor_mtu"
	Subject string // node "leaf-3", port "leaf-3/7", link "leaf-3/7 - spine-1/2"
	Before  string // "" where there was nothing
	After   string // "" where there is nothing
	Effect  string // what follows, counted; what to do
	// GUID and Port identify the node and port of Subject, of a link its first end. Without
	// them GUID is 0 and Port is NoPort.
	GUID mad.GUID
	Port int
	// Effects are changes that this one explains.
	Effects []*Change
}

// NoPort stands in Change.Port for none.
const NoPort = -1

// The kinds of changes that are not of a field. Kinds of fields are "node.", "port." or
// "switch." and the name of the field.
const (
	NodeGone      = "node.gone"
	NodeNew       = "node.new"
	NodeReplaced  = "node.replaced" // another node at its cables
	NodeName      = "node.name"
	LinkGone      = "link.gone"
	LinkNew       = "link.new"
	LinkMoved     = "link.moved"   // one end of a cable is at another port
	LinkSwapped   = "link.swapped" // the ends of two or more cables are exchanged
	LinkWidth     = "link.width"
	LinkSpeed     = "link.speed"
	RoutesChanged = "routes"
	TableLFT      = "table.lft"
	TableAdaptive = "table.ar"
)

// Compare returns the differences from old to new. It fails when ctx ends, or where no
// graph can be made of a fabric whose tables are to be compared.
//
// Time: O(P) for P ports, and O(S) for each destination whose paths may differ.
func Compare(ctx context.Context, old, new *fabric.Fabric) (*Report, error) {
	c := &comparison{match: matchNodes(old, new)}
	c.nodes()
	c.cables()
	c.settings()
	c.inventory()
	if err := c.routes(ctx); err != nil {
		return nil, err
	}
	c.tables()
	c.coverage()
	return &c.Report, nil
}

// comparison is a comparison that is under way.
type comparison struct {
	Report
	*match
	nodeChange [2]map[int32]*Change // of nodes that only one side has, by node id
}

// add reports a cause.
func (c *comparison) add(x *Change) *Change {
	c.Changes = append(c.Changes, x)
	return x
}

// ofNode returns a change of a node.
func ofNode(kind string, n *fabric.Node) *Change {
	return &Change{Kind: kind, Subject: nodeName(n), GUID: n.GUID(), Port: NoPort}
}

// ofPort returns a change of a port.
func ofPort(kind string, p *fabric.Port) *Change {
	return &Change{Kind: kind, Subject: portName(p), GUID: p.Node().GUID(), Port: p.Num()}
}

// ofLink returns a change of a link.
func ofLink(kind string, p, q *fabric.Port) *Change {
	if q.ID() < p.ID() {
		p, q = q, p
	}
	x := ofPort(kind, p)
	x.Subject = linkName(p, q)
	return x
}

// nodeName is the name of n, or its GUID where it has none.
func nodeName(n *fabric.Node) string {
	if n.Name() == "" {
		return n.GUID().String()
	}
	return plain(n.Name())
}

// portName is "leaf-3/7".
func portName(p *fabric.Port) string { return nodeName(p.Node()) + "/" + strconv.Itoa(p.Num()) }

func linkName(p, q *fabric.Port) string { return portName(p) + " - " + portName(q) }

// plain returns a name so that it is unambiguous in a line: quoted where
// it has quotes, commas, what does not print, or bytes that are not text.
func plain(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == ',' || r == '\\' }
	if !utf8.ValidString(name) || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
