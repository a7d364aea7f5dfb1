package format

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

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

// Limits of a whole .topo file: a few boards, each with many of the next, are
// many chips.
const (
	maxParts      = 1 << 20  // boards, chips, and wires
	maxPartsNames = 64 << 20 // bytes
)

// countPart counts a board, chip or wire, whose name is as long as that.
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

// board is the definition of board i, which is at place, in the variant that
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

// deviceOf is the first number in the name of a device.
func deviceOf(s string) uint16 {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return 0
	}
	n, _, _ := decimal([]byte(s[i:]))
	return uint16(n)
}
