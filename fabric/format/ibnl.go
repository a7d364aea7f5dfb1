package format

import (
	"io"
	"path"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindIBNL is a type of system, as ibdm defines it.
const KindIBNL FormatName = "ibnl"

var ibdmIBNL = fileFormat{
	kind:       KindIBNL,
	about:      "a system of ibdm (.ibnl), which .topo files consist of",
	file:       "`.ibnl` of ibdm: a type of system in `.topo` files",
	beginnings: []string{"TOPSYSTEM ", "SYSTEM "},
	system:     readIBNL,
	writeFiles: WriteIBNLs,
}

// ibnl is what a .ibnl file of ibdm defines: a type of system, and the boards
// that it consists of.
type ibnl struct {
	names  []string
	boards map[string]*board // by each of its names
	top    *board
}

// board is a board, or the system as a whole: chips, and boards within it.
type board struct {
	at     pos
	insts  []*inst
	byName map[string]*inst
	plugs  map[string]wire // by name of the plug: what it is wired to
}

// inst is an instance of a chip or of a board.
type inst struct {
	at    pos
	index int // in the insts of its board
	name  string
	kind  mad.NodeType // of a chip; 0: a board
	ports int          // of a chip
	// master is the device of a chip, MT47396, or the name of the board.
	master string
	mods   map[string]string // variants of boards within it
	wires  []wire
}

// wire connects a port of a chip, or a plug of a board, with a port or plug of another.
type wire struct {
	at   pos
	from string // plug, or port number
	inst string // at the other end; of a plug of the board itself, at this end
	to   string // plug, or port number; of a plug of the board itself ""
	rate rate
}

// readIBNL reads a .ibnl file.
func readIBNL(r io.Reader, name string) (*ibnl, error) {
	p := ibnlParser{lines: newLines(r, name), def: &ibnl{boards: map[string]*board{}}}
	for p.next() {
		if words := strings.Fields(string(p.text)); len(words) > 0 && words[0][0] != '#' {
			p.line(words)
		}
	}
	if p.err == nil && p.def.top == nil {
		p.fail("a line TOPSYSTEM and the names of the system, and found none")
	}
	return p.def, p.err
}

type ibnlParser struct {
	*lines
	def   *ibnl
	board *board
	inst  *inst
}

// line parses one line.
func (p *ibnlParser) line(words []string) {
	switch w := words[0]; {
	case w == "SYSTEM", w == "TOPSYSTEM":
		p.begin(w == "TOPSYSTEM", strings.Split(strings.Join(words[1:], ""), ","))
	case p.board == nil:
		p.fail("SYSTEM or TOPSYSTEM and names: %q", p.shown())
	case w == "NODE":
		p.node(words)
	case w == "SUBSYSTEM":
		if len(words) != 3 {
			p.fail("SUBSYSTEM, the board and its name in this place: %q", p.shown())
			return
		}
		p.add(&inst{name: words[2], master: words[1]})
	case w == "CFG:" && p.inst != nil && p.inst.kind == 0 && p.inst.wires == nil:
		p.inst.mods = map[string]string{}
		for _, m := range words[1:] {
			key, value, ok := strings.Cut(m, "=")
			if !ok {
				p.fail("a board and its variant, as in leaf1=12x: %q", fabric.Clip(m))
				return
			}
			p.inst.mods[key] = value
		}
	case p.inst != nil && len(words) > 2:
		p.wire(words)
	case p.inst == nil && strings.Contains(w, "="): // an attribute of a chip, for ibdm's topology matching
	default:
		p.fail("NODE, SUBSYSTEM or, below these, a connection, as in 1 -> U4 4 or 1 -4x-5G-> P1: %q", p.shown())
	}
}

// begin starts a board, or the system itself (top).
func (p *ibnlParser) begin(top bool, names []string) {
	p.board, p.inst = &board{at: p.at, byName: map[string]*inst{}, plugs: map[string]wire{}}, nil
	if slices.Contains(names, "") || top && p.def.top != nil {
		p.fail("names with commas between them, and one TOPSYSTEM: %q", p.shown())
		return
	}
	if top {
		p.def.top, p.def.names = p.board, names
		return
	}
	for _, n := range names {
		p.def.boards[n] = p.board
	}
}

// node parses `NODE SW 24 MT47396 U1`.
func (p *ibnlParser) node(words []string) {
	kinds := map[string]mad.NodeType{"SW": mad.NodeTypeSwitch, "CA": mad.NodeTypeCA, "HCA": mad.NodeTypeCA}
	if len(words) == 5 && kinds[words[1]] != 0 {
		if n, rest := number(words[2]); n >= 1 && n <= maxPorts && rest == "" {
			p.add(&inst{name: words[4], kind: kinds[words[1]], ports: n, master: words[3]})
			return
		}
	}
	p.fail("NODE, SW or CA, 1 to %d ports, the device and its name, as in NODE SW 24 MT47396 U1: %q", maxPorts, p.shown())
}

// add adds a chip or board, to which the lines below belong.
func (p *ibnlParser) add(i *inst) {
	if other := p.board.byName[i.name]; other != nil {
		p.fail("a name of its own, but %q is that of line %d", i.name, other.at.line)
		return
	}
	i.at, i.index, p.inst = p.at, len(p.board.insts), i
	p.board.byName[i.name] = i
	p.board.insts = append(p.board.insts, i)
}

// wire parses `1 -4x-5G-> U4 4`, to a chip or board, and `1 -> P16`, to a plug
// of the board itself.
func (p *ibnlParser) wire(words []string) {
	w := wire{at: p.at, from: words[0]}
	var ok bool
	if w.rate, ok = parseArrow(words[1]); !ok || len(words) > 4 {
		p.fail("an arrow, with width and speed or without, and where it leads, as in 1 -4x-5G-> U4 4: %q", p.shown())
		return
	}
	if p.inst.kind != 0 {
		if n, rest := number(w.from); n < 1 || n > p.inst.ports || rest != "" {
			p.fail("a port from 1 to %d of %s, not %q", p.inst.ports, p.inst.name, fabric.Clip(w.from))
			return
		}
	}
	if len(words) == 4 {
		w.inst, w.to = words[2], words[3]
		p.inst.wires = append(p.inst.wires, w)
		return
	}
	if other, taken := p.board.plugs[words[2]]; taken {
		p.fail("a plug of its own, but %q is that of line %d", words[2], other.at.line)
		return
	}
	w.inst = p.inst.name
	p.board.plugs[words[2]] = w
}

// parseArrow parses ->, -4x->, -5G-> and -4x-5G->. Without a width or speed it is
// 4x or SDR.
func parseArrow(s string) (rate, bool) {
	r := rate{inUse: true, widths: mad.LinkWidth4x, speeds: 1}
	s, ok := strings.CutPrefix(s, "-")
	s, end := strings.CutSuffix(s, ">")
	if !ok || !end {
		return r, false
	}
	for i, part := range strings.Split(strings.TrimSuffix(s, "-"), "-") {
		switch gbps, isSpeed := strings.CutSuffix(part, "G"); {
		case part == "" && i == 0:
		case isSpeed && subnetSpeeds[gbps] != "":
			r.setSpeed(subnetSpeeds[gbps])
		case i > 0 || part == "??" || !r.setWidth(strings.ToLower(part)):
			return r, false
		}
	}
	return r, true
}

// library finds types of systems in .ibnl files: in the directory of the .topo
// file, and in its directory ibnl. First it opens the file with the name of the type, then
// all files.
type library struct {
	open  Opener
	dir   string
	known map[string]*ibnl // by name
	all   bool             // all files were read
}

// find returns the type of system of that name, or nil.
func (l *library) find(name string) (*ibnl, error) {
	dirs := []string{l.dir, path.Join(l.dir, "ibnl")}
	for _, d := range dirs {
		if l.known[name] != nil || !isFileName(name) {
			break
		}
		if err := l.read(path.Join(d, name+".ibnl"), false); err != nil {
			return nil, err
		}
	}
	if l.known[name] != nil || l.all {
		return l.known[name], nil
	}
	l.all = true
	for _, d := range dirs {
		for _, file := range l.list(d) {
			if err := l.read(path.Join(d, file), true); err != nil {
				return nil, err
			}
		}
	}
	return l.known[name], nil
}

// maxIBNL limits a .ibnl file, in bytes; the file of the largest system
// of ibutils has 170 kB.
const maxIBNL = 16 << 20

// read reads a file. A file that cannot be opened is an error only if must is set.
func (l *library) read(name string, must bool) error {
	f, err := l.open(name)
	if err != nil {
		if must {
			return err
		}
		return nil
	}
	defer f.Close()
	r, err := Bounded(f, name, maxIBNL)
	if err != nil {
		return err
	}
	def, err := readIBNL(r, name)
	if err != nil {
		return err
	}
	for _, n := range def.names {
		if l.known[n] == nil {
			l.known[n] = def
		}
	}
	return nil
}

// list returns the names of the .ibnl files of a directory; none where the Opener does
// not list directories.
func (l *library) list(dir string) []string {
	f, err := l.open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	lister, ok := f.(interface{ Readdirnames(n int) ([]string, error) })
	if !ok {
		return nil
	}
	names, _ := lister.Readdirnames(-1)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(n string) bool { return path.Ext(n) != ".ibnl" })
}

// isFileName reports whether s, a word of a .topo file, names a file that is not
// in another directory.
func isFileName(s string) bool { return s != "" && !strings.ContainsAny(s, `/\`) && s[0] != '.' }
