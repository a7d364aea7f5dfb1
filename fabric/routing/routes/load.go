package routes

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// Files are the files of a routing. SL and SL2VL may be "": then all paths
// have SL 0, and SL n has VL n.
type Files struct {
	LFTs  string // linear forwarding tables, a snapshot, or ibdiagnet2.far
	SL    string // service levels of paths
	SL2VL string // virtual lanes of service levels, or a snapshot with all tables
	FAR   string // adaptive routing: ibdiagnet2.far
}

// Load reads the tables of f from files, which open opens. What of the files
// does not match f, but does no harm, is in ReadNotes.
func Load(f *fabric.Fabric, files Files, open format.Opener) (*Routes, error) {
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		return nil, err
	}
	r := New(g, 0)
	r.Engine = FromFile
	for _, part := range []struct {
		path string
		read func(in io.Reader, name string) error
	}{{files.LFTs, r.readLFTs}, {files.SL, r.readSLs}, {files.SL2VL, r.readSL2VLs}, {files.FAR, r.readFARs}} {
		if part.path == "" {
			continue
		}
		in, err := open(part.path)
		if err != nil {
			return nil, err
		}
		err = part.read(in, part.path)
		in.Close()
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// OfFabric are the tables that came with f; nil without tables.
func OfFabric(f *fabric.Fabric) (*Routes, error) {
	if !f.HasLFTs() {
		return nil, nil
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		return nil, err
	}
	r := New(g, 0)
	r.Engine = FromFile
	found := 0
	for at, n := range g.Switches() {
		if n.LFT() != nil {
			copy(r.Row(at), n.LFT())
			found++
		}
	}
	r.loadAdaptive(f, func(n *fabric.Node) int { return g.SwitchOf(n) })
	if all := len(g.Switches()); found < all {
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("the file has tables of %d of %d switches", found, all))
	}
	return r, nil
}

func (r *Routes) readLFTs(in io.Reader, name string) error {
	buffered := bufio.NewReaderSize(in, 1<<16)
	head, _ := buffered.Peek(1 << 16) // the reader returns an error again
	switch format.Recognise(head) {
	case format.KindSnapshot:
		return r.readSnapshot(buffered, name)
	case format.KindFAR:
		return r.readFARs(buffered, name)
	}
	notes, err := format.ReadLFTs(capture(r, buffered), name, r.graph.Fabric(), func(n *fabric.Node) []byte {
		return r.Row(r.graph.SwitchOf(n))
	})
	r.ReadNotes = append(r.ReadNotes, notes...)
	return err
}

// capture returns in as a file that may be a saved terminal session; what is skipped is a note of
// r.
func capture(r *Routes, in io.Reader) io.Reader {
	return &format.Capture{Reader: in, Note: func(text string) { r.ReadNotes = append(r.ReadNotes, text) }}
}

// readSnapshot reads the tables of a snapshot. Switches are matched by GUID: the
// fabric of the snapshot may be an older one.
func (r *Routes) readSnapshot(in io.Reader, name string) error {
	s, err := format.ReadSnapshot(in, name)
	if err != nil {
		return err
	}
	found := 0
	for i := range s.Nodes() {
		n := &s.Nodes()[i]
		if at := r.graph.SwitchByGUID(n.GUID()); at >= 0 && n.LFT() != nil {
			copy(r.Row(at), n.LFT())
			found++
		}
	}
	r.loadAdaptive(s, func(n *fabric.Node) int { return r.graph.SwitchByGUID(n.GUID()) })
	all := len(r.graph.Switches())
	if found == 0 {
		return fmt.Errorf("%s: no forwarding tables of switches of the fabric in this snapshot", name)
	}
	if found < all {
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("%s: tables of %d of %d switches", name, found, all))
	}
	return nil
}

// loadAdaptive sets the adaptive routing that came with f; at is the number of a switch of f in
// r's graph, or -1.
func (r *Routes) loadAdaptive(f *fabric.Fabric, at func(*fabric.Node) int) {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if a := n.Adaptive(); a != nil && at(n) >= 0 {
			r.SetAdaptive(at(n), a)
		}
	}
}

func (r *Routes) readSLs(in io.Reader, name string) error {
	g := r.graph
	sls := &SL{Pair: make([][]uint8, len(g.Terminals()))}
	for p, err := range format.PathSLs(capture(r, in), name) {
		if err != nil {
			return err
		}
		sources, err := sourcesOf(g.Fabric(), p)
		if err != nil {
			return err
		}
		for _, q := range sources {
			t := g.TerminalOf(q)
			if t < 0 {
				continue
			}
			if sls.Pair[t] == nil {
				sls.Pair[t] = make([]uint8, int(r.top)+1)
			}
			if int(p.DLID) < len(sls.Pair[t]) {
				sls.Pair[t][p.DLID] = p.SL
			}
		}
	}
	r.SL = sls
	return nil
}

// sourcesOf are the ports at which a path of a file begins: those of a port GUID,
// else all of the node.
func sourcesOf(f *fabric.Fabric, p *format.PathSL) ([]*fabric.Port, error) {
	if ports := f.PortByGUID(p.GUID); len(ports) > 0 {
		return ports, nil
	}
	n, err := p.Find(f)
	if err != nil {
		return nil, err
	}
	if n.IsSwitch() {
		return []*fabric.Port{n.Port(0)}, nil
	}
	var ports []*fabric.Port
	for q := range n.Ports() {
		if q.Peer() != nil {
			ports = append(ports, q)
		}
	}
	return ports, nil
}

func (r *Routes) readSL2VLs(in io.Reader, name string) error {
	buffered := bufio.NewReaderSize(in, 1<<16)
	head, _ := buffered.Peek(1 << 16) // the reader returns an error again
	if format.Recognise(head) == format.KindSnapshot {
		lanes, err := storedSL2VLs(r.graph, buffered, name)
		r.SL2VL = lanes
		return err
	}
	g := r.graph
	lanes := NewSL2VL(g)
	for x, err := range format.SL2VLs(capture(r, buffered), name) {
		if err != nil {
			return err
		}
		n, err := x.Find(g.Fabric())
		if err != nil {
			return err
		}
		s := g.SwitchOf(n)
		if s < 0 {
			continue // a CA's: no packet waits for a link behind it
		}
		if max(x.In, x.Out) > n.NumPorts() {
			return fmt.Errorf("%s: expected ports from 0 to %d, which %s has, not %d", x.Position(), n.NumPorts(), n.Label(), max(x.In, x.Out))
		}
		if err := lanes.Set(s, uint8(x.In), uint8(x.Out), x.VLs); err != nil {
			return fmt.Errorf("%s: %w", x.Position(), err)
		}
	}
	r.SL2VL = lanes
	return nil
}

// storedSL2VLs reads the virtual lanes of a snapshot with all tables.
func storedSL2VLs(g *graph.Graph, in io.Reader, name string) (*SL2VL, error) {
	s, err := format.ReadSnapshot(in, name)
	if err != nil {
		return nil, err
	}
	lanes, found := NewSL2VL(g), make([]bool, len(g.Switches()))
	for _, a := range s.Answers() {
		if a.Class != mad.ClassSubn || a.ID != mad.AttrSLtoVLMappingTable.ID || a.Modifier > 0xffff || len(a.Data) < mad.AttrSLtoVLMappingTable.Size {
			continue
		}
		at := g.SwitchByGUID(s.Nodes()[a.Node].GUID())
		if at < 0 {
			continue
		}
		var row mad.SLtoVLMappingTable
		row.Decode(a.Data)
		if err := lanes.Set(at, uint8(a.Modifier>>8), uint8(a.Modifier), row.SLtoVL); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found[at] = true
	}
	switch missing := slices.Index(found, false); {
	case !slices.Contains(found, true):
		return nil, fmt.Errorf("%s: no virtual lanes of switches of the fabric in this snapshot; fabsh snapshot --all saves them", name)
	case missing >= 0:
		return nil, fmt.Errorf("%s: the virtual lanes of %s are not in this snapshot", name, g.Switches()[missing].Label())
	}
	return lanes, nil
}

// FillFrom copies from old, the current tables of the same graph, what tables of a file do
// not name: switches, and LIDs that no port has. Its note counts them. OpenSM's engine
// file leaves such switches alone too.
func (r *Routes) FillFrom(old *Routes) {
	g := r.graph
	switches, entries := 0, 0
	for s := range g.Switches() {
		row, was := r.WritableRow(s)[:int(r.top)+1], old.Row(s)
		named := slices.ContainsFunc(row, func(port uint8) bool { return port != NoPort })
		if !named {
			switches++
		}
		for lid := range min(len(row), len(was)) {
			if row[lid] == NoPort && was[lid] != NoPort && (!named || g.TerminalByLID(mad.LID(lid)) < 0) {
				row[lid] = was[lid]
				entries++
			}
		}
	}
	if entries > 0 {
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("%s that the file does not have: kept, of LIDs that no port has, and of %s", plural.Count(entries, "entry", "entries"), plural.Count(switches, "switch", "switches")))
	}
}
