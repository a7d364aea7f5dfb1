package routing

import (
	"bytes"
	"fmt"
	"slices"

	"fabsh/fabric"
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
	// Engine says what made them: "ftree".
	Engine string
	// RunInOpenSM is the advice of the engine to let OpenSM find the lanes; "": it has
	// none.
	RunInOpenSM string
	// Notes are remarks of the engine, on what it had to decide.
	Notes []string
	// ReadNotes are remarks on what was read: what of a file does not match the
	// fabric, which switches did not answer.
	ReadNotes []string
	// SL and SL2VL are nil where all paths have SL 0 and VL 0.
	SL    *SL
	SL2VL *SL2VL

	graph   *Graph
	top     mad.LID
	stride  int       // a row's entries, filled up to whole blocks
	rows    [][]uint8 // by switch: the entries
	loan    *loan
	missing int    // entries that lead to CAs, which complete could not add
	basis   *basis // nil: nothing is known of what made them
}

// FromFile is the Engine of tables that a file has.
const FromFile = "file"

// NewRoutes makes tables that drop all packets, for LIDs up to top, or to the
// highest of the graph if that is higher.
func NewRoutes(g *Graph, top mad.LID) *Routes {
	top = max(top, g.Top())
	r := &Routes{graph: g, top: top, stride: (int(top)/block + 1) * block}
	r.cut(slices.Repeat([]uint8{NoPort}, r.stride*len(g.switches)))
	return r
}

// Graph is the graph of r.
func (r *Routes) Graph() *Graph { return r.graph }

// Top is the last LID of every row.
func (r *Routes) Top() mad.LID { return r.top }

// Row is the table of switch s, by LID from 0 to Top. It shares r's memory, which other
// tables may share: Own is for writing.
func (r *Routes) Row(s int) Row { return Row(r.rows[s][:int(r.top)+1]) }

// Clone is a copy that shares only the graph with r.
func (r *Routes) Clone() *Routes {
	c := *r
	c.cut(slices.Concat(r.rows...))
	c.Notes, c.ReadNotes = slices.Clone(r.Notes), slices.Clone(r.ReadNotes)
	c.SL, c.SL2VL = r.SL.clone(), r.SL2VL.clone()
	return &c
}

// UpTo is a copy of r whose rows have the LIDs up to top.
func (r *Routes) UpTo(top mad.LID) *Routes {
	if top == r.Top() {
		return r.Clone()
	}
	w := NewRoutes(r.graph, top)
	w.SL, w.SL2VL = r.SL.clone(), r.SL2VL.clone()
	for s := range r.graph.switches {
		copy(w.Row(s), r.Row(s))
	}
	return w
}

// On is a copy of r for another graph of the same subnet, such as one with a link
// less. Switches are matched by GUID, and terminals by LID; new switches drop all
// packets.
func (r *Routes) On(g *Graph) *Routes {
	if g == r.graph {
		return r.Clone()
	}
	o := NewRoutes(g, r.top)
	o.Engine, o.RunInOpenSM, o.ReadNotes = r.Engine, r.RunInOpenSM, slices.Clone(r.ReadNotes)
	if r.SL != nil {
		o.SL = &SL{Dest: slices.Clone(r.SL.Dest)}
	}
	if r.SL != nil && r.SL.Pair != nil {
		o.SL.Pair = make([][]uint8, len(g.terminals))
		for i, t := range g.terminals {
			if from := r.graph.TerminalByLID(t.LID); from >= 0 && from < len(r.SL.Pair) {
				o.SL.Pair[i] = slices.Clone(r.SL.Pair[from])
			}
		}
	}
	if r.SL2VL != nil {
		o.SL2VL = NewSL2VL(g)
	}
	for s, n := range g.switches {
		from := r.graph.SwitchByGUID(n.GUID())
		if from < 0 {
			continue
		}
		copy(o.Row(s), r.Row(from))
		if o.SL2VL != nil && r.SL2VL.tables != nil && r.graph.switches[from].NumPorts() == n.NumPorts() {
			o.SL2VL.tables[s] = slices.Clone(r.SL2VL.tables[from])
		}
	}
	return o
}

// seenOn is On for reading only: the result may share the tables of r.
func (r *Routes) seenOn(g *Graph) *Routes {
	switch {
	case r == nil || g == r.graph:
		return r
	case r.SL != nil || r.SL2VL != nil || r.top < g.Top() || !slices.EqualFunc(r.graph.switches, g.switches, sameGUID):
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

// SL are the service levels of paths.
type SL struct {
	// Dest are those of the paths to each LID, by LID; beyond its end: 0.
	Dest []uint8
	// Pair, if not nil, has for each terminal at which paths begin their levels
	// by LID, or nil if they are those of Dest.
	Pair [][]uint8

	shared bool // rows of Pair may be those of several terminals
}

// Of is the service level of paths from terminal t to lid.
func (l *SL) Of(t int, lid mad.LID) uint8 {
	switch {
	case l == nil:
	case t < len(l.Pair) && int(lid) < len(l.Pair[t]):
		return l.Pair[t][lid]
	case int(lid) < len(l.Dest):
		return l.Dest[lid]
	}
	return 0
}

// Any says whether some path has another service level than 0. OpenSM's engine file
// does not learn of these: its PathRecords follow its own rules.
func (l *SL) Any() bool {
	if l == nil {
		return false
	}
	other := func(sl uint8) bool { return sl != 0 }
	return slices.ContainsFunc(l.Dest, other) || slices.ContainsFunc(l.Pair, func(row []uint8) bool { return slices.ContainsFunc(row, other) })
}

func (l *SL) clone() *SL {
	if l == nil {
		return nil
	}
	c := &SL{Dest: slices.Clone(l.Dest), Pair: slices.Clone(l.Pair)}
	for i := range c.Pair {
		c.Pair[i] = slices.Clone(c.Pair[i])
	}
	return c
}

// SL2VL are the SLtoVLMappingTables of switches. The zero value maps SL n to VL n.
type SL2VL struct {
	graph  *Graph
	tables [][]uint8 // by switch: by port in, port out, SL
}

// NewSL2VL makes tables that map SL n to VL n.
func NewSL2VL(g *Graph) *SL2VL { return &SL2VL{g, make([][]uint8, len(g.switches))} }

// VL is the lane of a packet of service level sl that comes in by port in (0: from
// the switch itself) and leaves by port out of switch s.
func (v *SL2VL) VL(s int, in, out, sl uint8) uint8 {
	if v == nil {
		return 0
	}
	if v.tables == nil || v.tables[s] == nil {
		return sl
	}
	return v.tables[s][v.at(s, in, out)+int(sl&15)]
}

// Set sets the lanes of the 16 service levels from port in to port out.
func (v *SL2VL) Set(s int, in, out uint8, vls [16]uint8) error {
	n := v.graph.switches[s]
	if int(max(in, out)) > n.NumPorts() {
		return fmt.Errorf("%s has ports 0..%d, not %d", n.Label(), n.NumPorts(), max(in, out))
	}
	if v.tables[s] == nil {
		ports := n.NumPorts() + 1
		v.tables[s] = make([]uint8, ports*ports*16)
		for i := range v.tables[s] {
			v.tables[s][i] = uint8(i % 16)
		}
	}
	copy(v.tables[s][v.at(s, in, out):], vls[:])
	return nil
}

// Equal says whether the lanes are the same, of two of one graph.
func (v *SL2VL) Equal(o *SL2VL) bool {
	switch {
	case v == o:
		return true
	case v == nil || o == nil:
		return false
	case v.tables == nil || o.tables == nil:
		return v.tables == nil && o.tables == nil
	}
	return slices.EqualFunc(v.tables, o.tables, slices.Equal[[]uint8])
}

// Uniform says whether no lane depends on the switch or on its ports: then each lane has
// the dependencies that there would be if all packets were on one.
func (v *SL2VL) Uniform() bool {
	if v == nil || v.tables == nil {
		return true
	}
	var first []uint8
	for _, t := range v.tables {
		for row := range slices.Chunk(t, 16) {
			if first == nil {
				first = row
			}
			if !slices.Equal(row, first) {
				return false
			}
		}
	}
	return true
}

func (v *SL2VL) at(s int, in, out uint8) int {
	return (int(in)*(v.graph.switches[s].NumPorts()+1) + int(out)) * 16
}

func (v *SL2VL) clone() *SL2VL {
	if v == nil {
		return nil
	}
	c := &SL2VL{v.graph, slices.Clone(v.tables)}
	for i := range c.tables {
		c.tables[i] = slices.Clone(c.tables[i])
	}
	return c
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
