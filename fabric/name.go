package fabric

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fabsh/mad"
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
// not of a host, or a placeholder (Unidentified).
func HostName(name string) (string, bool) {
	host, ok := hostWord(name)
	if !ok || Unidentified(name) != "" {
		return "", false
	}
	return host, true
}

// hostWord returns the first word of the name of an adapter, also of a placeholder.
func hostWord(name string) (string, bool) {
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
	if h, ok := hostWord(host); !ok || h != host {
		return nil
	}
	prefix := host + " "
	i, _ := slices.BinarySearchFunc(f.byName, prefix, func(id int32, prefix string) int {
		return strings.Compare(f.nodes[id].name, prefix)
	})
	var found []*Node
	for ; i < len(f.byName) && strings.HasPrefix(f.nodes[f.byName[i]].name, prefix); i++ {
		n := &f.nodes[f.byName[i]]
		if h, ok := hostWord(n.name); ok && h == host && !n.IsSwitch() {
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
		if host, ok := hostWord(n.name); ok && word && !n.IsSwitch() {
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

// DidYouMean is " (did you mean x?)" with the candidate nearest to name, for
// the end of a message; "" where none is near.
func DidYouMean(name string, candidates []string) string {
	if c := Nearest(name, candidates); c != "" {
		return " (did you mean " + c + "?)"
	}
	return ""
}

// Nearest is the candidate that takes the fewest edits, fewer than half of name's
// length; case and underscores do not count. "": none is near.
func Nearest(name string, candidates []string) string {
	fold := func(s string) []rune { return []rune(strings.ToLower(strings.ReplaceAll(s, "_", ""))) }
	from := fold(name)
	best, bestEdits := "", (len(from)+1)/2
	for _, c := range candidates {
		to := fold(c)
		if max(len(to)-len(from), len(from)-len(to)) >= bestEdits {
			continue // and a name of megabytes takes no time
		}
		if n := edits(from, to); n < bestEdits {
			best, bestEdits = c, n
		}
	}
	return best
}

// edits is the Levenshtein distance of a and b, with the transposition of two
// neighbours as one edit (the optimal string alignment distance).
func edits(a, b []rune) int {
	older, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			substitute := prev[j]
			if a[i] != b[j] {
				substitute++
			}
			row[j+1] = min(substitute, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, prev, row = prev, row, older
	}
	return prev[len(b)]
}

// CompareNames orders names with the numbers in them by value: leaf-2, leaf-10.
func CompareNames(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if digit(a[i]) && digit(b[j]) {
			x, y := number(a[i:]), number(b[j:])
			i, j = i+len(x), j+len(y)
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			continue
		}
		if a[i] != b[j] {
			return cmp.Compare(a[i], b[j])
		}
		i++
		j++
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), strings.Compare(a, b))
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// number is the digits that s begins with.
func number(s string) string {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return s[:n]
}

// Renamed is f with the names that names has; other nodes keep theirs.
func (f *Fabric) Renamed(names map[mad.GUID]string) *Fabric {
	if len(names) == 0 {
		return f
	}
	g := f.clone()
	for i := range g.nodes {
		g.nodes[i].name = cmp.Or(names[g.nodes[i].GUID()], g.nodes[i].name)
	}
	g.indexNames()
	return g
}

// Label is n in messages: its name, quoted, and its GUID.
func (n *Node) Label() string { return NodeLabel(n.name, n.info.NodeGUID) }

// place names n where its GUID does not identify it: `switch "leaf-1" on route 0,1`.
func (n *Node) place() string {
	s := typeWord(n.Type()) + " " + strconv.Quote(n.name)
	if n.route != nil {
		s += " on route " + n.route.String()
	}
	return s
}

// Label is p in messages.
func (p *Port) Label() string { return "port " + strconv.Itoa(p.Num()) + " of " + p.Node().Label() }

// mellanox is NodeInfo.VendorID of Mellanox, and of NVIDIA after it.
const mellanox = 0x2c9

// twoInCage are the switches of which two ports share a cage, by NodeInfo.DeviceID:
// QM9700 and QM9790 (their user manual; Mellanox/ufm_sdk_3.0
// plugins/UFM_NDT_Plugin, ports "1/16/1").
const twoInCage = 0xd2f2

// PanelLabel is the label of p as a file of ibdiagnet has it: "1/2/1", chip, cage and port; of an
// adapter "B26D0F0/0/0/1", with its PCI address. Empty where unknown.
func (p *Port) PanelLabel() string { return p.fabric.labels[p.id] }

// Panel is the label of p on the front of its switch: "cage 2/1", or "label 5/1"; empty where
// it is unknown or the number of the port.
func (p *Port) Panel() string {
	n := p.Node()
	switch label := p.PanelLabel(); {
	case !n.IsSwitch():
		return ""
	case n.info.VendorID == mellanox && n.info.DeviceID == twoInCage && p.Num() >= 1 && p.Num() <= 64:
		return fmt.Sprintf("cage %d/%d", (p.Num()+1)/2, 2-p.Num()%2)
	case label != "" && label != strconv.Itoa(p.Num()):
		return "label " + label
	}
	return ""
}

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

// keyLine matches a key with its name, m_key 0x1, and a line of OpenSM's file guid2mkey: a GUID and
// a key.
var keyLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[^a-z])([a-z0-9]+_)*m?key["']?[\s=:,;]+["']?(0x)?[0-9a-f]*[0-9]|^\s*0x[0-9a-f]{1,16}\s+0x[0-9a-f]{1,16}\s*(#.*)?$`)
})

// HoldsKey reports whether a line of a file may hold a management key. Messages do not quote such a
// line: the file may be one of keys that was given to another option. Of a line beyond 4 KiB it only
// looks for the word: the expression takes a third of a second for 1 MiB.
func HoldsKey(line string) bool {
	switch named := strings.Contains(strings.ToLower(line), "key"); {
	case !named && !strings.HasPrefix(strings.TrimSpace(line), "0"):
		return false
	case len(line) > 4<<10:
		return named
	}
	return keyLine().MatchString(line)
}

// HiddenLine is what messages have in place of a line, or a part of it, that may hold a key.
const HiddenLine = "(not shown: it may hold a key)"

// Clip shortens text from outside, such as a line of a file, for messages, and hides keys.
func Clip(s string) string {
	const most = 60 // bytes
	if HoldsKey(s) {
		return HiddenLine
	}
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
