// Package routes has the tables of a routing as a value: linear forwarding tables, service
// levels of paths, and virtual lanes of service levels.
//
// Routes are all tables, and Row is the table of one switch. Load reads them from files,
// OfFabric takes them from a fabric, and engines compute them; Routes.Diff compares two,
// and Routes.Trace follows a Path. Tables may share rows until one changes them.
//
// Routes may be read by several goroutines at once. Writing is for one, while none reads;
// tables that share rows (ShareRows) may be written by different goroutines. A Row is
// memory of its Routes.
package routes

import (
	"bytes"
	"slices"
	"sync"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
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
	// RunInOpenSM is the advice of the engine to let OpenSM find the lanes, if any.
	RunInOpenSM string
	// Notes are remarks of the engine, on what it had to decide.
	Notes []string
	// ReadNotes are remarks on reading: parts of a file that do not match the
	// fabric, which switches did not answer.
	ReadNotes []string
	// Unread are the switches, by number, whose table the file does not have: what they do with
	// packets is unknown. nil: all tables were read.
	Unread []bool
	// SL and SL2VL are nil where all paths have SL 0 and VL 0.
	SL    *SL
	SL2VL *SL2VL

	graph    *graph.Graph
	top      mad.LID
	stride   int       // a row's entries, filled up to whole blocks
	rows     [][]uint8 // by switch: the entries
	shared   *sharedRows
	origin   Origin // nil: unknown
	edited   bool   // by a script
	adaptive *adaptiveRows
}

// Origin describes what made tables. It is immutable.
type Origin interface {
	// UpDownRanks are the ranks by which all paths go up and then down; nil: none.
	UpDownRanks() *graph.Ranks
}

// FromFile is the Engine of tables that a file has, FromSwitches of those that were read from switches.
const FromFile, FromSwitches = "file", "live"

// New makes tables that drop all packets, for LIDs up to top, or to the
// highest of the graph if that is higher.
func New(g *graph.Graph, top mad.LID) *Routes {
	top = max(top, g.Top())
	r := &Routes{graph: g, top: top, stride: (int(top)/block + 1) * block, adaptive: newAdaptiveRows(len(g.Switches()))}
	r.setRows(slices.Repeat([]uint8{NoPort}, r.stride*len(g.Switches())))
	return r
}

// Origin is what made r; nil: nothing is known of it, or entries were changed since.
func (r *Routes) Origin() Origin { return r.origin }

// SetOrigin sets what made r.
func (r *Routes) SetOrigin(o Origin) { r.origin = o }

// ForgetOrigin notes that entries were changed by hand: a repair then keeps what works.
func (r *Routes) ForgetOrigin() { r.origin = nil }

// SetEdited notes that a script changed entries.
func (r *Routes) SetEdited() { r.edited = true }

// IsEdited reports whether a script changed entries since the tables were made or read.
func (r *Routes) IsEdited() bool { return r.edited }

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
	c.setRows(slices.Concat(r.rows...))
	c.Notes, c.ReadNotes = slices.Clone(r.Notes), slices.Clone(r.ReadNotes)
	c.Unread = slices.Clone(r.Unread)
	c.SL, c.SL2VL = r.SL.clone(), r.SL2VL.clone()
	c.adaptive = r.adaptive.share(len(r.rows), sameSwitch)
	return &c
}

// EndsUnread reports whether packets for lid that are at switch s come to a switch of Unread.
func (r *Routes) EndsUnread(s int32, lid mad.LID) bool {
	if r.Unread == nil {
		return false
	}
	for range r.rows { // a loop ends too
		if r.Unread[s] {
			return true
		}
		target := r.graph.Target(s, r.Entry(s, lid))
		if !target.IsChannel() {
			return false
		}
		s = r.graph.ChannelTo(target.Channel())
	}
	return false
}

// SetRead states which tables were read: those for which read is true, by switch.
func (r *Routes) SetRead(read []bool) {
	if !slices.Contains(read, false) || !slices.Contains(read, true) {
		return
	}
	r.Unread = make([]bool, len(read))
	for s, ok := range read {
		r.Unread[s] = !ok
	}
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

// On is a copy of r for another graph of its subnet, such as one with a link less.
// Switches are matched by GUID, and terminals by LID; new switches drop all packets.
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

// Column are the entries of all switches for lid.
func (r *Routes) Column(lid mad.LID) []uint8 {
	list := make([]uint8, len(r.graph.Switches()))
	for s := range list {
		list[s] = r.Row(s)[lid]
	}
	return list
}

// sharedRows records which rows of tables others may share: repaired tables share nearly all
// rows with the tables before the repair.
type sharedRows struct {
	mu     sync.Mutex
	shared bool   // rows that are not own may be shared
	own    []bool // by switch; nil: false for all
}

// setRows makes the rows of all entries, which no other tables share.
func (r *Routes) setRows(entries []uint8) {
	r.rows, r.shared = make([][]uint8, len(r.graph.Switches())), &sharedRows{}
	for s := range r.rows {
		r.rows[s] = entries[s*r.stride:][:r.stride:r.stride]
	}
}

// ShareRows makes tables for g that share the rows of r; was is the number in r's graph of
// each switch, or -1, and r has all LIDs of g.
func (r *Routes) ShareRows(g *graph.Graph, was []int32) *Routes {
	r.shared.mu.Lock()
	r.shared.shared, r.shared.own = true, nil
	r.shared.mu.Unlock()
	o := &Routes{Engine: r.Engine, RunInOpenSM: r.RunInOpenSM, ReadNotes: slices.Clone(r.ReadNotes), graph: g, top: r.top, stride: r.stride}
	o.rows, o.shared = make([][]uint8, len(was)), &sharedRows{shared: true}
	for s, i := range was {
		if i >= 0 {
			o.rows[s] = r.rows[i]
		} else {
			o.rows[s] = slices.Repeat([]uint8{NoPort}, r.stride)
		}
	}
	o.adaptive = r.adaptive.share(len(was), func(s int) int { return int(was[s]) })
	return o
}

// EditRow is Row for changes by hand: it forgets the origin of r. Tables that share the row
// do not see the changes.
func (r *Routes) EditRow(s int) Row {
	r.ForgetOrigin()
	return r.WritableRow(s)
}

// WritableRow is Row for writing what keeps the promises of the engine that made r. Tables
// that share the row do not see it.
func (r *Routes) WritableRow(s int) Row {
	l := r.shared
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared {
		if l.own == nil {
			l.own = make([]bool, len(r.rows))
		}
		if !l.own[s] {
			r.rows[s], l.own[s] = slices.Clone(r.rows[s]), true
		}
	}
	return r.Row(s)
}

// CopyShared makes all rows writable.
func (r *Routes) CopyShared() {
	for s := range r.rows {
		r.WritableRow(s)
	}
}

// Replace gives r the entries, the adaptive routing, the notes and the origin of full, which is not used afterwards.
func (r *Routes) Replace(full *Routes) {
	r.rows, r.shared, r.Notes, r.origin, r.adaptive = full.rows, full.shared, full.Notes, full.origin, full.adaptive
}

// Diff is what changes in the tables from one Routes to another.
type Diff struct {
	Switches []SwitchDiff // switches with changes, by number
	Entries  int          // entries with another static port, or other choices
	Choices  int          // of these, entries with other choices of adaptive routing
	Blocks   int          // blocks to write
	LIDs     []mad.LID    // LIDs with a change on some switch
}

// SwitchDiff is what changes in the table of one switch.
type SwitchDiff struct {
	Switch  int // in the graph of the new tables
	Entries int
	Choices int
	Blocks  []int
}

// Diff compares r with the tables before it. Where the graphs differ, switches are
// matched by GUID, and all entries of a new one count.
//
// Time: O(S*L).
func (r *Routes) Diff(old *Routes) *Diff {
	old = old.SeenOn(r.graph)
	blocks := max(r.stride, old.stride) / block
	changed := make([]bool, blocks*block)
	d := &Diff{}
	for s := range r.graph.Switches() {
		sd := SwitchDiff{Switch: s}
		var differ func(lid mad.LID) bool
		if r.AdaptiveKnown() || old.AdaptiveKnown() {
			differ = adaptive.Differ(old.Adaptive(s), r.Adaptive(s))
		}
		for i := range blocks {
			x, y := old.Block(s, i), r.Block(s, i)
			same := bytes.Equal(x, y)
			if same && differ == nil {
				continue
			}
			if !same {
				sd.Blocks = append(sd.Blocks, i)
			}
			for j := range y {
				choices := differ != nil && differ(mad.LID(i*block+j))
				if choices {
					sd.Choices++
				}
				if x[j] != y[j] || choices {
					sd.Entries++
					changed[i*block+j] = true
				}
			}
		}
		if sd.Entries > 0 {
			d.Switches = append(d.Switches, sd)
			d.Entries += sd.Entries
			d.Choices += sd.Choices
			d.Blocks += len(sd.Blocks)
		}
	}
	for lid, is := range changed {
		if is {
			d.LIDs = append(d.LIDs, mad.LID(lid))
		}
	}
	return d
}
