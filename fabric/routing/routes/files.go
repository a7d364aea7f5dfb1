package routes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
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
	read := make([]bool, len(g.Switches()))
	for at, n := range g.Switches() {
		if n.LFT() != nil {
			copy(r.Row(at), n.LFT())
			found++
			read[at] = true
		}
	}
	r.SetRead(read)
	r.loadAdaptive(f, "", func(n *fabric.Node) int { return g.SwitchOf(n) })
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
	read := make([]bool, len(r.graph.Switches()))
	notes, err := format.ReadLFTs(capture(r, buffered), name, r.graph.Fabric(), func(n *fabric.Node) []byte {
		s := r.graph.SwitchOf(n)
		read[s] = true
		return r.Row(s)
	})
	r.SetRead(read)
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
	read := make([]bool, len(r.graph.Switches()))
	for i := range s.Nodes() {
		n := &s.Nodes()[i]
		if at := r.graph.SwitchByGUID(n.GUID()); at >= 0 && n.LFT() != nil {
			copy(r.Row(at), n.LFT())
			found++
			read[at] = true
		}
	}
	r.SetRead(read)
	r.loadAdaptive(s, name+": ", func(n *fabric.Node) int { return r.graph.SwitchByGUID(n.GUID()) })
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
// r's graph, or -1; name begins the note on it.
func (r *Routes) loadAdaptive(f *fabric.Fabric, name string, at func(*fabric.Node) int) {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if a := n.Adaptive(); a != nil && at(n) >= 0 {
			r.SetAdaptive(at(n), a)
		}
	}
	r.noteAssumed(name)
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
				sls.Pair[t] = slices.Repeat([]uint8{unknownSL}, int(r.top)+1)
			}
			if int(p.DLID) < len(sls.Pair[t]) {
				sls.Pair[t][p.DLID] = p.SL
			}
		}
	}
	if missing, all := r.fillSLs(sls); missing > 0 {
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("%s: no service level of %d of %d paths between CAs and routers, which are taken to have SL 0; the file may be cut short", name, missing, all))
	}
	r.SL = sls
	return nil
}

// unknownSL is in the rows of an SL for paths that the file does not have.
const unknownSL = 0xff

// fillSLs sets SL 0 where none was read, and counts the paths between CAs and routers, and those
// without one.
func (r *Routes) fillSLs(sls *SL) (missing, all int) {
	g := r.graph
	for t := range g.Terminals() {
		row := sls.Pair[t]
		for _, d := range g.Dests() {
			to := int(g.TerminalByLID(d.LID))
			if g.Terminals()[t].Out == 0 || d.Out == 0 || to == t {
				continue
			}
			if all++; row == nil || int(d.LID) >= len(row) || row[d.LID] == unknownSL {
				missing++
			}
		}
		for lid, sl := range row {
			if sl == unknownSL {
				row[lid] = 0
			}
		}
	}
	return missing, all
}

// sourcesOf are the ports at which a path of a file begins: the ports with its port GUID,
// else all ports of the node.
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
	found := make([][]bool, len(g.Switches())) // by port in, then port out
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
		if found[s] == nil {
			found[s] = make([]bool, (n.NumPorts()+1)*(n.NumPorts()+1))
		}
		found[s][int(x.In)*(n.NumPorts()+1)+int(x.Out)] = true
	}
	if missing, all := missingLanes(g, found); missing > 0 {
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("%s: no virtual lanes from port to port of switches for %d of %d pairs of ports with a cable, where SL n is taken to be on VL n; the file may be cut short", name, missing, all))
	}
	r.SL2VL = lanes
	return nil
}

// missingLanes counts the pairs of different ports of switches that packets may come in and go out
// by, and those without an entry in found.
func missingLanes(g *graph.Graph, found [][]bool) (missing, all int) {
	for s, n := range g.Switches() {
		var linked []int
		for p := range n.Ports() {
			if p.Peer() != nil {
				linked = append(linked, p.Num())
			}
		}
		for _, in := range linked {
			for _, out := range linked {
				if in == out {
					continue
				}
				if all++; found[s] == nil || !found[s][in*(n.NumPorts()+1)+out] {
					missing++
				}
			}
		}
	}
	return missing, all
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

// FillFrom copies from old, the current tables of r's graph, what tables of a file do not
// name: switches, and LIDs that no port has. Its note counts them. OpenSM's engine file
// leaves such switches alone too.
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

// readFARs reads the adaptive routing of switches from ibdiagnet2.far. The file does not have,
// or not in a public form, for which service levels and transports it is on: so all service
// levels and the transports of OpenSM's default are taken to route adaptively, the others to
// take the static port, or with HBF a port of the group: which service levels have HBF is
// unknown too, so both are judged.
func (r *Routes) readFARs(in io.Reader, name string) error {
	found := 0
	var unknown []string
	for far, err := range format.FARs(capture(r, in), name) {
		if err != nil {
			return err
		}
		s := r.graph.SwitchByGUID(far.GUID)
		if s < 0 {
			unknown = append(unknown, far.GUID.String())
			continue
		}
		n := r.graph.Switches()[s]
		if err := far.Check(n); err != nil {
			return err
		}
		found++
		r.SetAdaptive(s, far.Switch())
	}
	all := len(r.graph.Switches())
	if found == 0 {
		return fmt.Errorf("%s: no adaptive routing of switches of the fabric", name)
	}
	note := func(format string, args ...any) {
		r.ReadNotes = append(r.ReadNotes, name+": "+fmt.Sprintf(format, args...))
	}
	if found < all {
		note("adaptive routing of %d of %d switches; the others are taken to route statically", found, all)
	}
	for s := range all {
		if r.adaptive.list[s] == nil {
			r.SetAdaptive(s, nil)
		}
	}
	if len(unknown) > 0 {
		note("%s not in the fabric: %s", plural.Count(len(unknown), "of its switches is", "of its switches are"), firstOf(unknown))
	}
	r.noteAssumed(name + ": ")
	return nil
}

// noteAssumed adds the note on switches whose settings are not in the file that r is from.
func (r *Routes) noteAssumed(name string) {
	if !slices.ContainsFunc(r.adaptive.list, func(a *adaptive.Switch) bool { return a != nil && a.Assumed }) {
		return
	}
	note := "service levels and transports are not read from it; all service levels, and the transports RC and DC, are taken to route adaptively"
	if slices.ContainsFunc(r.adaptive.list, func(a *adaptive.Switch) bool { return a != nil && a.Assumed && a.HBF }) {
		note += "; packets of service levels with HBF and without are judged"
	}
	r.ReadNotes = append(r.ReadNotes, name+note)
}

// firstOf lists some texts.
func firstOf(list []string) string {
	const most = 3
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// Write writes the tables as a file of a kind. A snapshot has the choices of adaptive routing;
// other kinds have the static ports alone.
func (r *Routes) Write(ctx context.Context, w io.Writer, kind format.FormatName) error {
	g := r.graph
	tables := &format.Tables{
		LFT:   func(n *fabric.Node) []byte { return r.Row(g.SwitchOf(n)) },
		Hops:  func() (format.HopsFunc, error) { return hopsFunc(ctx, g) },
		SL:    r.slOf,
		SL2VL: r.vlsOf,
	}
	if r.AdaptiveKnown() {
		tables.Adaptive = func(n *fabric.Node) *adaptive.Switch { return r.Adaptive(g.SwitchOf(n)) }
	}
	return format.DumpTables(contextWriter{ctx, w}, g.Fabric(), kind, tables)
}

// contextWriter is a writer that fails when ctx ends: the tables of a large fabric are
// gigabytes of text.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (s contextWriter) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.w.Write(p)
}

// slOf is the service level of the path from a port; false: no path begins there.
func (r *Routes) slOf(src *fabric.Port, dlid mad.LID) (uint8, bool) {
	t := r.graph.TerminalOf(src)
	if t < 0 {
		return 0, false
	}
	return r.SL.Of(t, dlid), true
}

// vlsOf are the virtual lanes by service level from a port of a switch to
// another. On the link of a CA, SL n has VL n.
func (r *Routes) vlsOf(in, out *fabric.Port) (vls [16]uint8, ok bool) {
	for sl := range vls {
		switch {
		case in == nil:
			vls[sl] = uint8(sl)
		default:
			vls[sl] = r.SL2VL.VL(r.graph.SwitchOf(out.Node()), uint8(in.Num()), uint8(out.Num()), uint8(sl))
		}
	}
	return vls, true
}

// hopsFunc gives the distances of switches' LIDs by port, as OpenSM's minhop
// has them.
func hopsFunc(ctx context.Context, g *graph.Graph) (format.HopsFunc, error) {
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	from := make([][]graph.Channel, len(g.Switches()))
	for _, ch := range g.Channels() {
		from[ch.From] = append(from[ch.From], ch)
	}
	return func(sw *fabric.Node, lid mad.LID, hops []byte) bool {
		t := g.TerminalByLID(lid)
		if t < 0 || g.Terminals()[t].Class&graph.ClassSwitch == 0 {
			return false
		}
		s, d := g.SwitchOf(sw), g.Terminals()[t].Switch
		for i := range hops {
			hops[i] = format.NoPath
		}
		if s == d {
			hops[0] = 0
			return true
		}
		for _, ch := range from[s] {
			if far := h.Distance(int(ch.To), d); far >= 0 {
				hops[ch.Port] = uint8(far + 1)
				hops[0] = min(hops[0], uint8(far+1))
			}
		}
		return true
	}, nil
}
