// Package routes has the tables of a routing as a value: linear forwarding tables, service
// levels of paths, and virtual lanes of service levels.
//
//	routes.go Routes, and Row, the table of one switch
//	shared.go rows that tables share until one changes them
//	adaptive.go adaptive routing: the ports that a packet may take
//	sl.go     SL and SL2VL: service levels and virtual lanes
//	diff.go   the entries that differ between two Routes
//	trace.go  Path: one path; step.go: all paths that switches may choose
//	load.go   reading tables from files; far.go, ibdiagnet2.far; write.go writes them
//
// Routes may be read by several goroutines at once. Writing is for one, while none reads;
// tables that share rows, as those of ShareRows, may be written by different ones. A Row
// is memory of its Routes.
package routes

import (
	"bytes"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// NoPort is the entry of a LID that is dropped.
const NoPort = mad.NoPort

// block is the number of entries that one MAD reads or writes.
const block = mad.LFTBlock

// Routes are the linear forwarding tables of all switches of a graph, the service
// levels of paths, and the virtual lanes of service levels. An entry takes a byte,
// and the entries of a switch are a row.
type Routes struct {
	// Engine is what made them: "ftree".
	Engine string
	// RunInOpenSM is the advice of the engine to let OpenSM find the lanes; "": it has
	// none.
	RunInOpenSM string
	// Notes are remarks of the engine, on what it had to decide.
	Notes []string
	// ReadNotes are remarks on reading: parts of a file that do not match the
	// fabric, which switches did not answer.
	ReadNotes []string
	// SL and SL2VL are nil where all paths have SL 0 and VL 0.
	SL    *SL
	SL2VL *SL2VL

	graph    *graph.Graph
	top      mad.LID
	stride   int       // a row's entries, filled up to whole blocks
	rows     [][]uint8 // by switch: the entries
	shared   *sharedRows
	origin   Origin // nil: unknown
	adaptive *adaptiveRows
}

// Origin describes what made tables. It is immutable.
type Origin interface {
	// UpDownRanks are the ranks by which all paths go up and then down; nil: none.
	UpDownRanks() *graph.Ranks
}

// FromFile is the Engine of tables that a file has.
const FromFile = "file"

// New makes tables that drop all packets, for LIDs up to top, or to the
// highest of the graph if that is higher.
func New(g *graph.Graph, top mad.LID) *Routes {
	top = max(top, g.Top())
	r := &Routes{graph: g, top: top, stride: (int(top)/block + 1) * block, adaptive: newAdaptiveRows(len(g.Switches()))}
	r.cut(slices.Repeat([]uint8{NoPort}, r.stride*len(g.Switches())))
	return r
}

// Origin is what made r; nil: nothing is known of it, or entries were changed since.
func (r *Routes) Origin() Origin { return r.origin }

// SetOrigin sets what made r.
func (r *Routes) SetOrigin(o Origin) { r.origin = o }

// ForgetOrigin notes that entries were changed by hand: a repair then keeps what works.
func (r *Routes) ForgetOrigin() { r.origin = nil }

// Graph is the graph of r.
func (r *Routes) Graph() *graph.Graph { return r.graph }

// Top is the last LID of every row.
func (r *Routes) Top() mad.LID { return r.top }

// Row is the table of switch s, by LID from 0 to Top. It shares r's memory, which other
// tables may share: EditRow and WritableRow are for writing.
func (r *Routes) Row(s int) Row { return Row(r.rows[s][:int(r.top)+1]) }

// Entry is the port of switch s for lid; NoPort beyond the last LID.
func (r *Routes) Entry(s int32, lid mad.LID) uint8 {
	if row := r.rows[s]; int(lid) < len(row) {
		return row[lid]
	}
	return NoPort
}

// Clone is a copy that shares only the graph with r.
func (r *Routes) Clone() *Routes {
	c := *r
	c.cut(slices.Concat(r.rows...))
	c.Notes, c.ReadNotes = slices.Clone(r.Notes), slices.Clone(r.ReadNotes)
	c.SL, c.SL2VL = r.SL.clone(), r.SL2VL.clone()
	c.adaptive = r.adaptive.share(len(r.rows), sameSwitch)
	return &c
}

func sameSwitch(s int) int { return s }

// UpTo is a copy of r whose rows have the LIDs up to top.
func (r *Routes) UpTo(top mad.LID) *Routes {
	if top == r.Top() {
		return r.Clone()
	}
	w := New(r.graph, top)
	w.SL, w.SL2VL = r.SL.clone(), r.SL2VL.clone()
	for s := range r.graph.Switches() {
		copy(w.Row(s), r.Row(s))
	}
	if r.AdaptiveKnown() {
		for s := range w.rows {
			w.SetAdaptive(s, r.Adaptive(s))
		}
	}
	return w
}

// On is a copy of r for another graph of the same subnet, such as one with a link
// less. Switches are matched by GUID, and terminals by LID; new switches drop all
// packets.
func (r *Routes) On(g *graph.Graph) *Routes {
	if g == r.graph {
		return r.Clone()
	}
	o := New(g, r.top)
	o.Engine, o.RunInOpenSM, o.ReadNotes = r.Engine, r.RunInOpenSM, slices.Clone(r.ReadNotes)
	if r.SL != nil {
		o.SL = &SL{Dest: slices.Clone(r.SL.Dest)}
	}
	if r.SL != nil && r.SL.Pair != nil {
		o.SL.Pair = make([][]uint8, len(g.Terminals()))
		for i, t := range g.Terminals() {
			if from := r.graph.TerminalByLID(t.LID); from >= 0 && from < len(r.SL.Pair) {
				o.SL.Pair[i] = slices.Clone(r.SL.Pair[from])
			}
		}
	}
	if r.SL2VL != nil {
		o.SL2VL = NewSL2VL(g)
	}
	o.adaptive = r.adaptive.share(len(o.rows), func(s int) int { return r.graph.SwitchByGUID(g.Switches()[s].GUID()) })
	for s, n := range g.Switches() {
		from := r.graph.SwitchByGUID(n.GUID())
		if from < 0 {
			continue
		}
		copy(o.Row(s), r.Row(from))
		if o.SL2VL != nil && r.SL2VL.tables != nil && r.graph.Switches()[from].NumPorts() == n.NumPorts() {
			o.SL2VL.tables[s] = slices.Clone(r.SL2VL.tables[from])
		}
	}
	return o
}

// SeenOn is On for reading only: the result may share the tables of r.
func (r *Routes) SeenOn(g *graph.Graph) *Routes {
	switch {
	case r == nil || g == r.graph:
		return r
	case r.SL != nil || r.SL2VL != nil || r.top < g.Top() || !slices.EqualFunc(r.graph.Switches(), g.Switches(), sameGUID):
		return r.On(g)
	}
	o := *r
	o.graph = g
	return &o
}

func sameGUID(a, b *fabric.Node) bool { return a.GUID() == b.GUID() }

// Entries is the number of LIDs with a port, over all switches.
func (r *Routes) Entries() int {
	n := 0
	for _, row := range r.rows {
		n += len(row) - bytes.Count(row, dropped[:1])
	}
	return n
}

// Row is the forwarding table of one switch: ports by LID. Methods that write ignore
// LIDs beyond its end.
type Row []uint8

// Port is the entry of lid; NoPort beyond the end.
func (r Row) Port(lid mad.LID) uint8 {
	if int(lid) >= len(r) {
		return NoPort
	}
	return r[lid]
}

// Fill sets the entries of lids to port.
func (r Row) Fill(lids []mad.LID, port uint8) {
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = port
		}
	}
}

// FillMod sets the entry of the i-th of lids to ports[i/div mod len(ports)]: d-mod-k,
// by the digit of weight div.
func (r Row) FillMod(lids []mad.LID, ports []uint8, div int) {
	if len(ports) == 0 {
		return
	}
	div = max(div, 1)
	digit, left := 0, div
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = ports[digit]
		}
		if left--; left == 0 {
			left = div
			if digit++; digit == len(ports) {
				digit = 0
			}
		}
	}
}

// Copy copies the entries of lids, or all if lids is nil, from another row.
func (r Row) Copy(from Row, lids []mad.LID) {
	if lids == nil {
		copy(r, from)
		return
	}
	for _, lid := range lids {
		if int(lid) < len(r) && int(lid) < len(from) {
			r[lid] = from[lid]
		}
	}
}

// Map replaces port p by ports[p] in the entries of lids, or in all if lids is nil.
// Ports that are not in ports stay.
func (r Row) Map(ports map[uint8]uint8, lids []mad.LID) {
	var to [256]uint8
	for p := range to {
		to[p] = uint8(p)
	}
	for p, q := range ports {
		to[p] = q
	}
	if lids == nil {
		for lid := range r {
			r[lid] = to[r[lid]]
		}
		return
	}
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = to[r[lid]]
		}
	}
}

// dropped is a block beyond the end of a table.
var dropped = bytes.Repeat([]byte{NoPort}, block)

// Block is block i of the table of switch s. Rows are filled up with NoPort.
func (r *Routes) Block(s, i int) []byte {
	if (i+1)*block > r.stride {
		return dropped
	}
	return r.rows[s][i*block:][:block]
}

// Column are those of all switches for lid.
func (r *Routes) Column(lid mad.LID) []uint8 {
	list := make([]uint8, len(r.graph.Switches()))
	for s := range list {
		list[s] = r.Row(s)[lid]
	}
	return list
}
