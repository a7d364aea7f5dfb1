package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindTopo is a topology of ibdm.
const KindTopo FormatName = "topo"

var ibdmTopo = fileFormat{
	kind:     KindTopo,
	about:    "a topology of ibdm (.topo)",
	file:     "`.topo` of ibdm, which needs the `.ibnl` files of its systems",
	sniff:    sniffTopo,
	load:     loadTopo,
	write:    writeTopo,
	dumpHelp: `"topo" and "ibnl", of ibdm`,
}

// sniffTopo takes the first cable below a system.
func sniffTopo(l *headLine) bool {
	return l.belowWords && l.class == lineOther && l.indented() && bytes.Contains(l.text, []byte("->"))
}

// loadTopo reads a .topo file of ibdm: systems, and the cables between their
// plugs. The parts of a system are in its .ibnl file.
//
//	MTS14400 SL1-1 CFG: leaf3=R
//	   L1/P1 -8X-5G-> MT23108 H-1 P1
func loadTopo(r io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	if open == nil {
		return nil, fmt.Errorf("%s: expected the .ibnl files that define its systems, but only this file is available", name)
	}
	t := topoReader{
		topology: newTopology(), lines: newLines(r, name), guids: newGUIDBases(), systems: map[string]*topoSystem{},
		library: library{open: open, dir: path.Dir(name), known: map[string]*ibnl{}},
	}
	for t.next() {
		if words := strings.Fields(string(t.text)); len(words) == 0 {
			t.current = nil
		} else if words[0][0] != '#' {
			t.line(words)
		}
	}
	if t.err == nil && len(t.order) == 0 {
		t.fail("systems, and found none in %d lines", t.at.line)
	}
	if t.err != nil {
		return nil, t.err
	}
	if t.generic != nil {
		return t.withoutTypes(name)
	}
	if err := t.finish(); err != nil {
		return nil, err
	}
	if t.cut {
		t.endsWithin(t.lines.at)
	}
	return t.fabric(name)
}

type topoReader struct {
	*topology
	*lines
	library library
	guids   map[mad.NodeType]*guidBase
	systems map[string]*topoSystem // by name
	order   []string               // of systems in the file
	generic *topoSystem            // the first whose type no .ibnl file defines: then none does
	current *topoSystem            // the one whose cables are being read
	name    string                 // of current
	cables  []cable
	parts   int // boards, chips and wires so far
	names   int // bytes of their names
}

// cable is a line of a .topo file that connects two plugs.
type cable struct {
	at         pos
	name, plug string
	far        string
	farPlug    string
	rate       rate
}

// line parses the first line of a system, or one of its cables.
func (t *topoReader) line(words []string) {
	if len(words) > 1 && strings.HasSuffix(words[1], ">") && words[1][0] == '-' {
		r, ok := parseArrow(words[1])
		switch {
		case t.current == nil:
			t.fail("a system above its cables: %q", t.shown())
		case !ok || len(words) != 5:
			t.fail("a plug, an arrow, the type and name of the other system and its plug, as in P1 -4X-5G-> MT23108 H-1 P1: %q", t.shown())
		default:
			if t.system(words[2], words[3]) != nil {
				t.cables = append(t.cables, cable{t.at, t.name, words[0], words[3], words[4], r})
			}
		}
		return
	}
	if len(words) < 2 || len(words) > 2 && words[2] != "CFG:" && !strings.HasPrefix(words[2], "CFG:") {
		t.fail("a system, as in MTS2400 S-1 CFG: leaf1=R, or a cable, as in P1 -> MT23108 H-1 P1: %q", t.shown())
		return
	}
	c := t.system(words[0], words[1])
	if c == nil {
		return
	}
	t.current, t.name = c, words[1]
	config := strings.TrimPrefix(strings.Join(words[2:], ""), "CFG:")
	for m := range strings.SplitSeq(config, ",") {
		key, value, ok := strings.Cut(m, "=")
		if m != "" && (!ok || value == "") {
			t.fail("boards and their variants after CFG:, with commas between, as in leaf1=12x,leaf3=R: %q", fabric.Clip(config))
			return
		}
		if m != "" && c.mods != nil {
			c.mods[key] = value
		}
	}
}

// system returns the system of that name, which is added if it is new.
func (t *topoReader) system(kind, name string) *topoSystem {
	if c := t.systems[name]; c != nil {
		if c.kind != kind && (c.def == nil || !slices.Contains(c.def.names, kind)) {
			t.fail("%s to be a %s, as in %s, not a %s", name, c.kind, c.at, kind)
			return nil
		}
		return c
	}
	def, err := t.library.find(kind)
	if err != nil {
		t.err = err
		return nil
	}
	if def == nil && (len(t.order) == 0 || t.generic != nil) {
		c := &topoSystem{kind: kind, at: t.at}
		if t.generic == nil {
			t.generic = c
		}
		t.systems[name] = c
		t.order = append(t.order, name)
		return c
	}
	if def != nil && t.generic != nil {
		t.at, kind, def = t.generic.at, t.generic.kind, nil
	}
	if def == nil {
		t.fail("a type of system that a .ibnl file beside this one or in the directory ibnl there defines, not %q; ibutils has some in /usr/lib/*/ibdm*/ibnl", kind)
		return nil
	}
	c := &topoSystem{kind: kind, def: def, mods: map[string]string{}, at: t.at}
	t.systems[name] = c
	t.order = append(t.order, name)
	return c
}

// finish builds the systems, once the variants of all their boards are known,
// and connects the cables.
func (t *topoReader) finish() error {
	for _, name := range t.order {
		if err := t.build(name, t.systems[name]); err != nil {
			return err
		}
	}
	for _, c := range t.cables {
		n, p, err := t.plug(c.at, c.name, c.plug)
		if err != nil {
			return err
		}
		m, q, err := t.plug(c.at, c.far, c.farPlug)
		if err != nil {
			return err
		}
		if err := t.link(c.at, n, p, m, q, c.rate); err != nil {
			return err
		}
	}
	t.problems = append(t.problems, fabric.Problem{Kind: fabric.ProblemAssignedGUIDs, Text: t.at.file + " has no GUIDs; they were assigned in its order"})
	return nil
}

// withoutTypes makes a fabric of a file without .ibnl files, as NVIDIA's tools write it: a system is one
// switch whose plugs P<n> are its ports, or a host whose plugs mlx5_<n>/P<m> are those of adapters.
func (t *topoReader) withoutTypes(name string) (*fabric.Fabric, error) {
	b := newPlanBook(name, PlanOptions{})
	b.kind, b.strict, b.bytes = KindTopo, true, t.bytes
	for _, c := range t.cables {
		r := planRow{at: c.at, source: fmt.Sprintf("line %d", c.at.line), rate: c.rate}
		for i, plug := range [2]struct{ name, plug string }{{c.name, c.plug}, {c.far, c.farPlug}} {
			e := b.plainEnd(plug.name, plug.plug, "plug")
			kind := t.systems[plug.name].kind
			e.device.facts.model = kind
			if e.name.form != portNumber && e.name.form != portHCA {
				return nil, fmt.Errorf("%s: expected a .ibnl file of type %s beside this one or in the directory ibnl there, or plugs P<n> and mlx5_<n>/P<m>, not %q", c.at, kind, fabric.Clip(plug.plug))
			}
			if e.name.form == portNumber && !strings.HasPrefix(kind, "HCA") && !scans(kind, "MT%d", new(int)) {
				e.device.isSwitch = true
			}
			r.ends[i] = e
		}
		if err := b.add(r); err != nil {
			return nil, err
		}
	}
	b.problems = append(b.problems, fabric.Problem{Kind: fabric.ProblemPlan, Text: fmt.Sprintf("%s: no .ibnl file defines type %s or any other; each system is read as one device", name, t.generic.kind)})
	if t.cut {
		b.endsWithin(t.lines.at)
	}
	return b.fabric()
}

// plug returns the node and port that a plug of a system is wired to.
func (t *topoReader) plug(at pos, name, plug string) (node, port int, err error) {
	c := t.systems[name]
	w, ok := c.def.top.plugs[plug]
	if ok {
		if node, port, err = c.built.trace(w.inst, w.from); err != nil || node >= 0 {
			return node, port, err
		}
		return 0, 0, fmt.Errorf("%s: expected a plug that %s has in this variant, but %s leads to no chip", at, name, plug)
	}
	have := slices.Sorted(maps.Keys(c.def.top.plugs))
	return 0, 0, fmt.Errorf("%s: expected a plug of %s, which is a %s and has no %q; it has %s", at, name, c.kind, fabric.Clip(plug), some(have))
}

// topoSystem is a system of a .topo file.
type topoSystem struct {
	kind  string // its type: a name of def
	def   *ibnl
	mods  map[string]string // variants of boards, by place: leaf1
	at    pos
	built *builtBoard
}

// builtBoard is a board at its place in a system.
type builtBoard struct {
	*board
	parts []builtPart // of its insts
}

type builtPart struct {
	node  int         // of a chip
	inner *builtBoard // a board's; nil: the variant does not have it
}

// build adds the nodes of a system, and the links within it.
func (t *topoReader) build(name string, c *topoSystem) error {
	first := len(t.nodes)
	var err error
	if c.built, err = t.chips(name, c, c.def.top, "", 0); err != nil {
		return err
	}
	for i := first; i < len(t.nodes); i++ {
		t.nodes[i].info.SystemImageGUID = t.nodes[first].info.NodeGUID
	}
	return t.wires(c.built)
}

// maxBoards is how many boards may be within one another. No known system has
// more than two.
const maxBoards = 8

// Limits of a whole .topo file: a few boards that each contain many others
// have many chips.
const (
	maxParts      = 1 << 20  // boards, chips, and wires
	maxPartsNames = 64 << 20 // bytes
)

// countPart counts a board, chip or wire; name is the length of its name.
func (t *topoReader) countPart(at pos, name int) error {
	if t.parts++; t.parts > maxParts {
		return fmt.Errorf("%s: expected systems of at most %d boards, chips and wires in all", at, maxParts)
	}
	if t.names += name; t.names > maxPartsNames {
		return fmt.Errorf("%s: expected systems whose parts have names of at most %d MB in all", at, maxPartsNames>>20)
	}
	return nil
}

// chips adds the nodes of board b, whose place in the system is the prefix
// place, and of the boards within it.
func (t *topoReader) chips(system string, c *topoSystem, b *board, place string, depth int) (*builtBoard, error) {
	if depth > maxBoards {
		return nil, fmt.Errorf("%s: expected at most %d nested boards; is one within itself?", b.at, maxBoards)
	}
	built := &builtBoard{board: b}
	for _, i := range b.insts {
		if err := t.countPart(c.at, len(system)+2*len(place)+2*len(i.name)); err != nil {
			return nil, err
		}
		if i.kind != 0 {
			n := node{at: c.at, id: system + "/" + place + i.name, name: system + "/" + place + i.name, info: mad.NodeInfo{
				BaseVersion: 1, ClassVersion: 1, NodeType: i.kind, NumPorts: uint8(i.ports), PartitionCap: 1,
				DeviceID: deviceOf(i.master), NodeGUID: t.guids[i.kind].next,
			}}
			n.info.PortGUID = n.info.NodeGUID
			t.guids[i.kind].next += mad.GUID(i.ports) + 1
			if err := t.countPorts(c.at, i.ports, t.bytes); err != nil {
				return nil, err
			}
			if _, ok := t.ids[n.id]; ok {
				return nil, fmt.Errorf("%s: expected a node of its own, but there is another %s", c.at, n.id)
			}
			built.parts = append(built.parts, builtPart{node: t.add(n)})
			continue
		}
		for key, value := range i.mods {
			if err := t.countPart(c.at, len(place)+len(i.name)+len(key)); err != nil {
				return nil, err
			}
			if key = place + i.name + "/" + key; c.mods[key] == "" {
				c.mods[key] = value
			}
		}
		var inner *builtBoard
		def, err := c.board(i, place)
		if err == nil && def != nil {
			inner, err = t.chips(system, c, def, place+i.name+"/", depth+1)
		}
		if err != nil {
			return nil, err
		}
		built.parts = append(built.parts, builtPart{inner: inner})
	}
	return built, nil
}

// board returns the definition of board i, which is at place, in the variant that
// CFG: names; nil where CFG: removes it.
func (c *topoSystem) board(i *inst, place string) (*board, error) {
	master := i.master
	switch mod := c.mods[place+i.name]; mod {
	case "R", "X", "Removed":
		return nil, nil
	case "":
	default:
		master += ":" + mod
	}
	if b := c.def.boards[master]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%s: expected a board %q of %s, which %s is to have as %s, but %s has none", c.at, master, c.kind, i.at, place+i.name, i.at.file)
}

// wires adds the links within board b, and within the boards of b.
func (t *topoReader) wires(b *builtBoard) error {
	for _, i := range b.insts {
		for _, w := range i.wires {
			if err := t.countPart(w.at, 0); err != nil {
				return err
			}
			n, p, err := b.trace(i.name, w.from)
			if err != nil {
				return err
			}
			m, q, err := b.trace(w.inst, w.to)
			if err != nil {
				return err
			}
			if n < 0 || m < 0 { // a variant of a board that does not have that plug
				continue
			}
			if err := t.link(w.at, n, p, m, q, w.rate); err != nil {
				return err
			}
		}
		if inner := b.parts[i.index].inner; inner != nil {
			if err := t.wires(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// trace follows the wires from a port of a chip, or a plug of a board, named
// name on board b, down to a node and its port; node -1: none in this
// variant.
func (b *builtBoard) trace(name, port string) (node, num int, err error) {
	for {
		i := b.byName[name]
		if i == nil {
			return -1, 0, fmt.Errorf("%s: expected connections to lead to parts of the board, but there is no %q", b.at, name)
		}
		part := b.parts[i.index]
		if i.kind != 0 {
			num, rest := number(port)
			if num < 1 || num > i.ports || rest != "" {
				return -1, 0, fmt.Errorf("%s: expected connections to %s to lead to a port from 1 to %d, not %q", i.at, i.name, i.ports, fabric.Clip(port))
			}
			return part.node, num, nil
		}
		if part.inner == nil {
			return -1, 0, nil
		}
		w, ok := part.inner.plugs[port]
		if !ok {
			return -1, 0, nil
		}
		b, name, port = part.inner, w.inst, w.from
	}
}

// deviceOf returns the first number in the name of a device.
func deviceOf(s string) uint16 {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return 0
	}
	n, _, _ := decimal([]byte(s[i:]))
	return uint16(n)
}

// writeTopo writes a .topo file of ibdm in which each node is a system, of a type
// that WriteIBNLs defines. ibdm knows no speed above 10 Gb/s a lane and no width
// of 2x: they are left out, and ibdm assumes SDR or 4x.
func writeTopo(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	out.WriteString("# Systems and cables, written by fabsh\n")
	names := systemNames(f)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		fmt.Fprintf(out, "\n%s %s\n", systemType(n), names[i])
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil {
				continue
			}
			if _, err := fmt.Fprintf(out, "   P%d %s %s %s P%d\n", p.Num(), arrow(p), systemType(q.Node()), names[q.Node().ID()], q.Num()); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// WriteIBNLs writes a .ibnl file for each type of system in the .topo file that
// Dump writes of f. A type is a number of ports and a device. create creates a
// file; the files belong into the directory of the .topo file, or into a directory of ibdm's
// IBDM_IBNL_PATH.
func WriteIBNLs(f *fabric.Fabric, create func(name string) (io.WriteCloser, error)) error {
	done := map[string]bool{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		kind := systemType(n)
		if done[kind] {
			continue
		}
		done[kind] = true
		var b strings.Builder
		node := "CA"
		if n.IsSwitch() {
			node = "SW"
		}
		fmt.Fprintf(&b, "TOPSYSTEM %s\n\nNODE %s %d DEV%d U1\n", kind, node, n.NumPorts(), n.Info().DeviceID)
		for num := 1; num <= n.NumPorts(); num++ {
			fmt.Fprintf(&b, "   %d -> P%d\n", num, num)
		}
		w, err := create(kind + ".ibnl")
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, b.String())
		if e := w.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// systemType returns the type of system that n is: SW36-53000, by ports and device.
func systemType(n *fabric.Node) string {
	kind := "CA"
	if n.IsSwitch() {
		kind = "SW"
	}
	return fmt.Sprintf("%s%d-%d", kind, n.NumPorts(), n.Info().DeviceID)
}

// systemNames returns the nodes' names, with _ for characters that would end a word,
// and with the GUID where they are not unique.
func systemNames(f *fabric.Fabric) []string {
	names := make([]string, len(f.Nodes()))
	count := map[string]int{}
	for i := range names {
		names[i] = strings.Map(func(r rune) rune {
			if strings.ContainsRune(" /#,=>", r) {
				return '_'
			}
			return r
		}, printable(f.Nodes()[i].Name()))
		count[names[i]]++
	}
	for i, name := range names {
		if name == "" || count[name] > 1 {
			n := &f.Nodes()[i]
			if names[i] = strings.TrimPrefix(name+"_"+n.GUID().String(), "_"); len(f.NodeByGUID(n.GUID())) > 1 {
				names[i] += fmt.Sprintf("_%d", i)
			}
		}
	}
	return names
}

// arrow returns the arrow of a cable, -4x-10G->, without a width or speed that ibdm does not know.
func arrow(p *fabric.Port) string {
	s := "-"
	switch w := p.Width(); w {
	case "1x", "4x", "8x", "12x":
		s += w + "-"
	}
	for gbps, speed := range subnetSpeeds {
		if speed == p.Speed() && (gbps == "2.5" || gbps == "5" || gbps == "10") {
			s += gbps + "G-"
		}
	}
	return s + ">"
}
