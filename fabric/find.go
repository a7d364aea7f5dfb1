package fabric

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// hostWords matches a host and perhaps one word for its adapter: "node-7 HCA-1", "node-7
// mlx5_0". That is what rdma-ndd and the drivers write; what vendors ship, such as "MT4123
// ConnectX6 Mellanox Technologies", has more words. It is made when a name is first read:
// that takes a millisecond.
var hostWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?: +[!-~]+)? *$`)
})

// MaxHostName is the maximum length of a host's name, in bytes (RFC 1123).
const MaxHostName = 253

// HostName returns the host in the name of an adapter, its first word; false: the name is
// not that of a host.
func HostName(name string) (string, bool) {
	m := hostWords().FindStringSubmatch(name)
	if m == nil || len(m[1]) > MaxHostName {
		return "", false
	}
	return m[1], true
}

// dnsName matches names of RFC 1123. It is made when a name is first read.
var dnsName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
})

// IsDNSName reports whether a node of Kubernetes can have the name (RFC 1123).
func IsDNSName(name string) bool { return len(name) <= MaxHostName && dnsName().MatchString(name) }

// FindNode returns the node with a name. A host also has the first word of the name of its
// adapter as a name, if that is its only one: "node-7" means "node-7 HCA-1". The error is a
// *NameError.
func (f *Fabric) FindNode(name string) (*Node, error) {
	nodes := f.NodeByName(name)
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	e := &NameError{Name: name, Nodes: nodes, in: f}
	if len(nodes) == 0 {
		if e.Nodes = f.adaptersOf(name); len(e.Nodes) == 1 {
			return e.Nodes[0], nil
		}
		e.host = len(e.Nodes) > 0
	}
	return nil, e
}

// adaptersOf returns the adapters of a host, by name.
func (f *Fabric) adaptersOf(host string) []*Node {
	if h, ok := HostName(host); !ok || h != host {
		return nil
	}
	prefix := host + " "
	i, _ := slices.BinarySearchFunc(f.byName, prefix, func(id int32, prefix string) int {
		return strings.Compare(f.nodes[id].name, prefix)
	})
	var found []*Node
	for ; i < len(f.byName) && strings.HasPrefix(f.nodes[f.byName[i]].name, prefix); i++ {
		n := &f.nodes[f.byName[i]]
		if h, ok := HostName(n.name); ok && h == host && !n.IsSwitch() {
			found = append(found, n)
		}
	}
	return found
}

// NameError is the error of a name that does not name exactly one node. It does not change,
// and is safe for concurrent use.
type NameError struct {
	Name  string
	Nodes []*Node // the nodes or adapters that it names; none: unknown
	host  bool    // Nodes are the adapters of a host
	in    *Fabric
}

// maxNamed is the maximum number of nodes that an error lists.
const maxNamed = 8

func (e *NameError) Error() string {
	switch n := len(e.Nodes); {
	case e.host:
		return fmt.Sprintf("node %q: has %d adapters: %s; use one of these, or f.select(%q)", e.Name, n, e.list((*Node).unique), e.Name+" *")
	case n > 0:
		return fmt.Sprintf("%d nodes are named %q; use a GUID, one of %s", n, e.Name, e.list(func(n *Node) string { return n.GUID().String() }))
	case e.IsPattern():
		return fmt.Sprintf("unknown node %q; a target is one node: f.select(%[1]q) returns all nodes that match", e.Name)
	}
	near := e.Nearest()
	if near != "" {
		near = " (did you mean " + printable(near) + "?)"
	}
	return fmt.Sprintf("unknown node %q%s", e.Name, near)
}

// IsPattern reports whether the name has wildcards.
func (e *NameError) IsPattern() bool { return strings.ContainsAny(e.Name, "*?") }

// Nearest returns the name of a node or host that is similar; "": none is.
func (e *NameError) Nearest() string {
	word := !strings.Contains(e.Name, " ")
	names := make([]string, len(e.in.nodes))
	for i := range e.in.nodes {
		n := &e.in.nodes[i]
		names[i] = n.name
		if host, ok := HostName(n.name); ok && word && !n.IsSwitch() {
			names[i] = host
		}
	}
	return Nearest(e.Name, names)
}

// list returns the nodes in the words of name, as many as a line should have.
func (e *NameError) list(name func(*Node) string) string {
	var names []string
	for i, n := range e.Nodes {
		if i == maxNamed {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(e.Nodes)-i)
		}
		names = append(names, name(n))
	}
	return strings.Join(names, ", ")
}

// unique returns the name of n, quoted, if no other node has it, else its GUID.
func (n *Node) unique() string {
	if len(n.fabric.NodeByName(n.name)) == 1 {
		return strconv.Quote(n.name)
	}
	return n.GUID().String()
}

// printable returns a name for a message, quoted if it has control characters.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
		return quoted
	}
	return name
}
