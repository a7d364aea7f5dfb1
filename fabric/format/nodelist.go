package format

import (
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindNodeList is a list of nodes: of ibnetdiscover -l, ibhosts, ibswitches, ibrouters,
// ibnodes.
const KindNodeList FormatName = "ibnetdiscover-l"

var nodeList = fileFormat{
	kind:       KindNodeList,
	about:      "a list of nodes (ibnetdiscover -l, ibhosts, ibswitches)",
	file:       "list of nodes of `ibnetdiscover -l`, `ibhosts`, `ibswitches`, `ibrouters`, `ibnodes`, which has no links",
	beginnings: listBeginnings(),
	load:       loadNodeList,
}

var nodeListTypes = map[string]mad.NodeType{"Ca": mad.NodeTypeCA, "Switch": mad.NodeTypeSwitch, "Router": mad.NodeTypeRouter, "Rt": mad.NodeTypeRouter}

// listBeginnings returns the beginnings of lines: a type, a tab, perhaps a blank, and a colon. A
// terminal shows blanks in place of the tab.
func listBeginnings() (list []string) {
	for _, word := range []string{"Ca", "Switch", "Router", "Rt"} {
		list = append(list, word+"\t : 0x", word+"\t: 0x")
		for n := 1; n < 10; n++ { // without any, it is a header of iblinkinfo
			list = append(list, word+strings.Repeat(" ", n)+": 0x")
		}
	}
	return list
}

// loadNodeList reads lines of nodes (rdma-core infiniband-diags/ibnetdiscover.c, list_node;
// scripts/ibswitches.in):
// `Switch	 : 0x0002c90300001030 ports 8 devid 0xcb20 vendid 0x2c9 "leaf 1"`,
// `Switch	: 0x0002c90300001030 ports 8 "leaf 1" base port 0 lid 1 lmc 0`.
func loadNodeList(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	l := newLines(r, name)
	t := &recordReader{topology: newTopology()}
	t.lacksLIDs = true
	var c capture
	var unknown error
	for l.next() {
		line := strings.TrimLeft(string(l.text), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		n, err := listedNode(l, line)
		if err == nil {
			t.at = l.at
			err = c.begin()
		} else {
			if unknown == nil {
				unknown = err
			}
			if err = c.stray(l.at, line, err); err == nil {
				if l.cut && beginsNode(line) {
					t.endsWithin(l.at)
				}
				continue
			}
		}
		if err == nil {
			err = t.countPorts(l.at, int(n.node.info.NumPorts), l.bytes)
		}
		if err == nil {
			err = n.node.comment(t, n.comment, true)
		}
		if err != nil {
			return nil, err
		}
		if k, twice := t.ids[n.node.id]; twice {
			return nil, l.expected("one line for node %s, but %s is one too", n.node.info.NodeGUID, t.nodes[k].at)
		}
		t.add(n.node)
		if l.cut {
			t.endsWithin(l.at)
		}
	}
	switch {
	case l.err != nil:
		return nil, l.err
	case len(t.nodes) == 0 && unknown != nil:
		return nil, unknown
	}
	t.problems = append(t.problems, fabric.Problem{Kind: fabric.ProblemNoLinks, Text: name + " is a list of nodes: it has no links"},
		fabric.Problem{Kind: fabric.ProblemLeftOut, Text: name + " is a list of nodes: GUIDs of ports and systems are unknown"})
	t.problems = append(t.problems, c.problems()...)
	return t.fabric(name)
}

// beginsNode reports whether line may be the beginning of a line of the list, not a prompt.
func beginsNode(line string) bool {
	for word := range nodeListTypes {
		if strings.HasPrefix(line, word) || strings.HasPrefix(word, line) {
			return true
		}
	}
	return false
}

// listed is a line of the list.
type listed struct {
	node    node
	comment string // the name in quotes, and what follows it
}

func listedNode(l *lines, line string) (n listed, err error) {
	want := func() (listed, error) {
		return n, l.expected("a node as in Switch\t: 0x0002c90300001030 ports 36 \"leaf 1\": %q", l.shown())
	}
	word, rest, ok := strings.Cut(line, ":")
	t, known := nodeListTypes[strings.TrimSpace(word)]
	if !ok || !known {
		return want()
	}
	guid, rest, ok := listGUID(rest)
	if !ok {
		return want()
	}
	settings, name, ok := strings.Cut(rest, `"`)
	if !ok {
		return want()
	}
	i := &n.node.info
	*i = mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: t, NodeGUID: guid, PartitionCap: 1}
	words := strings.Fields(settings)
	if len(words)%2 != 0 {
		return want()
	}
	for k := 0; k < len(words); k += 2 {
		v, known, ok := dbNumber([]byte(words[k+1]))
		if !known || !ok {
			return want()
		}
		switch words[k] {
		case "ports":
			if v < 1 || v > maxPorts {
				return n, l.expected("1 to %d ports: %q", maxPorts, l.shown())
			}
			i.NumPorts = uint8(v)
		case "devid":
			if i.DeviceID = uint16(v); v > 0xffff {
				return want()
			}
		case "vendid":
			if i.VendorID = uint32(v); v > 0xffffff {
				return want()
			}
		default:
			return want()
		}
	}
	if i.NumPorts == 0 {
		return want()
	}
	if t == mad.NodeTypeSwitch {
		i.PortGUID = guid
	}
	n.node.at, n.node.id = l.at, nodeID(t, guid)
	n.comment = `"` + name
	return n, nil
}
