package format

import (
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
	if err := t.finish(); err != nil {
		return nil, err
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
		if m != "" {
			c.mods[key] = value
		}
	}
}

// system is the system of that name, which is added where it is new.
func (t *topoReader) system(kind, name string) *topoSystem {
	if c := t.systems[name]; c != nil {
		if c.kind != kind && !slices.Contains(c.def.names, kind) {
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

// plug is the node and port behind a plug of a system.
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
