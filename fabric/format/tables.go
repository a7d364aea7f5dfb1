package format

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// NodeRef is how a file of tables names a node, and in which line. Fields that the
// file lacks are 0.
type NodeRef struct {
	File  string
	Line  int
	GUID  mad.GUID // of the node or of a port of it, depending on the format
	LID   mad.LID
	Route mad.DirectedRoute
	Name  string
}

// Position returns file and line, for messages.
func (r *NodeRef) Position() string { return pos{r.File, r.Line}.String() }

// Find returns the node of f that r names: by node GUID, else by port GUID; without
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

// follow returns the node at the end of a directed route, which begins at the node from which f
// was discovered; nil: none.
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

// parseHeader parses `Switch 0x0002c90300001000, base LID 2, "name"`, the line
// that begins the tables of a node.
func (r *NodeRef) parseHeader(s []byte) bool {
	for _, t := range []mad.NodeType{mad.NodeTypeSwitch, mad.NodeTypeCA, mad.NodeTypeRouter} {
		rest, ok := bytes.CutPrefix(s, []byte(typeName(t)+" "))
		if !ok {
			continue
		}
		g, rest, ok := hex(rest)
		*r = NodeRef{File: r.File, GUID: mad.GUID(g)}
		if after, found := bytes.CutPrefix(rest, []byte(", base LID ")); found {
			if lid, _, isLID := decimal(after); isLID && lid <= int(mad.MaxUnicastLID) {
				r.LID = mad.LID(lid)
			}
		}
		if i, j := bytes.IndexByte(rest, '"'), bytes.LastIndexByte(rest, '"'); i >= 0 && i < j {
			r.Name = string(rest[i+1 : j])
		}
		return ok && len(rest) > 0 && rest[0] == ','
	}
	return false
}

// parseDestination parses what ibroute, dump_fts and smpquery print of the node
// they queried: "Lid 7", or "DR path slid 65535; dlid 65535; 0,1,3".
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

// rowReader reads a file of tables row by row. An error is the last.
type rowReader[T any] func(r io.Reader, name string) iter.Seq2[T, error]

// How long files of rows may be, in bytes. Rows are read one by one, so length
// is time and no memory.
const (
	// maxTables is for a line of 128 bytes for each of 49,151 LIDs in each of
	// 10,000 switches, or for so many pairs.
	maxTables = 64 << 30
	// maxList is for four lines of 256 bytes for each of 65,536 nodes: their
	// names, roots, ids.
	maxList = 64 << 20
)

// readRows reads a file of at most max bytes with the reader that its format has
// for such rows, else with fallback, which reports what it expected. The file may be a Capture.
func readRows[T any](r io.Reader, name string, max int64, fallback rowReader[T], of func(*fileFormat) rowReader[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		capture, _ := r.(*Capture)
		if capture != nil {
			r = capture.Reader
		}
		r, err := unpacked(r, name, max)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		if capture != nil {
			r = cleaned(r, name, func(_ fabric.ProblemKind, text string) { capture.Note(text) })
		}
		in, f := sniffFile(r)
		rest := io.Reader(in)
		is := func(f *fileFormat) bool { return of(f) != nil }
		if capture != nil {
			var below *fileFormat
			if rest, below = skipPreamble(in, name, capture.Note, is); below != nil {
				f = below
			}
		}
		read := fallback
		head, _ := in.Peek(sniffSize)
		if head = bytes.Clone(head); f == nil && notText(head) != "" || BinaryKind(head) != "" { // the buffer is reused
			var none T
			yield(none, fmt.Errorf("%s: expected a table or list, but this is %s", name, notText(head)))
			return
		}
		if f != nil && is(f) {
			read = of(f)
			if capture != nil {
				rest = &postamble{in: bufio.NewReaderSize(rest, lineBuffer), name: name, note: capture.Note, is: is}
			}
		}
		read(rest, name)(func(row T, err error) bool { return yield(row, explained(err, head)) })
	}
}

// Tables are the tables of a routing of a fabric. A format needs some of them.
type Tables struct {
	// LFT is the forwarding table of a switch, ports by LID; nil: none.
	LFT func(sw *fabric.Node) []byte
	// Adaptive is the adaptive routing of a switch, nil where it is unknown; the function is
	// nil where it is unknown for all switches.
	Adaptive func(sw *fabric.Node) *adaptive.Switch
	// Hops is called once by the formats that have numbers of hops, which
	// take long to compute.
	Hops func() (HopsFunc, error)
	// SL is the service level of the path from a port to a LID. It is false
	// without such a path.
	SL    func(src *fabric.Port, dlid mad.LID) (uint8, bool)
	SL2VL SL2VLFunc
}

// DumpTables writes the tables of f that a format holds.
func DumpTables(w io.Writer, f *fabric.Fabric, kind FormatName, t *Tables) error {
	for _, k := range formats {
		if k.kind == kind && k.writeTables != nil {
			return k.writeTables(w, f, t)
		}
	}
	return fmt.Errorf("unknown format %q; supported: %s", kind, TablesHelp())
}

// TablesHelp lists the kinds of DumpTables.
func TablesHelp() string {
	return dumpHelp(func(f *fileFormat) bool { return f.writeTables != nil })
}

// openSMOrder returns nodes sorted as OpenSM on a little-endian machine does: by GUID, whose
// bytes it compares in reverse order. Files of both can then be
// compared line by line.
func openSMOrder(nodes []fabric.Node) []*fabric.Node {
	sorted := make([]*fabric.Node, len(nodes))
	for i := range nodes {
		sorted[i] = &nodes[i]
	}
	slices.SortStableFunc(sorted, func(m, n *fabric.Node) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(m.GUID())), bits.ReverseBytes64(uint64(n.GUID())))
	})
	return sorted
}

// openSMPorts returns port 0 of all switches and the connected ports of other nodes,
// by port GUID, in the order of openSMOrder.
func openSMPorts(f *fabric.Fabric) []*fabric.Port {
	var ports []*fabric.Port
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Node().IsSwitch() != (p.Num() == 0) || p.Num() > 0 && p.Peer() == nil {
			continue
		}
		ports = append(ports, p)
	}
	slices.SortStableFunc(ports, func(p, q *fabric.Port) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(p.GUID())), bits.ReverseBytes64(uint64(q.GUID())))
	})
	return ports
}

// typeName returns the name of node type t in OpenSM and infiniband-diags (opensm
// include/iba/ib_types.h, ib_get_node_type_str).
func typeName(t mad.NodeType) string {
	switch t {
	case mad.NodeTypeCA:
		return "Channel Adapter"
	case mad.NodeTypeSwitch:
		return "Switch"
	case mad.NodeTypeRouter:
		return "Router"
	}
	return "UNKNOWN"
}

// description returns the node description as OpenSM prints it, at most 63 bytes
// (opensm complib/cl_nodenamemap.c, clean_nodedesc).
func description(n *fabric.Node) string {
	name := printable(n.Name())
	return name[:min(len(name), 63)]
}

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// appendHex appends the last n hexadecimal digits of v.
func appendHex(b []byte, v uint64, n int, digits string) []byte {
	for n--; n >= 0; n-- {
		b = append(b, digits[v>>(4*n)&15])
	}
	return b
}
