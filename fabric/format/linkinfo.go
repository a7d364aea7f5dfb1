package format

import (
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindLinkInfo is what iblinkinfo prints.
const KindLinkInfo FormatName = "iblinkinfo"

var linkInfo = fileFormat{
	kind:  KindLinkInfo,
	about: "a list of links (iblinkinfo)",
	file:  "list of links of `iblinkinfo`, with `-l`, `-p`: it lacks models",
	sniff: func(l *headLine) bool {
		_, ok := linkHeader(string(l.text))
		i := strings.Index(string(l.text), "==(")
		return ok || i >= 0 && strings.Contains(string(l.text[i:]), ")==>")
	},
	load: func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
		return loadPortList(r, name, (*portList).linkRow)
	},
}

// linkHeader parses the line above those of a node: `Switch: 0x0002c90300001030 leaf 1:`,
// `CA: node-1 HCA-1:`.
func linkHeader(s string) (e portEnd, ok bool) {
	for _, k := range []struct {
		word string
		t    mad.NodeType
	}{{"Switch: ", mad.NodeTypeSwitch}, {"CA: ", mad.NodeTypeCA}, {"Router: ", mad.NodeTypeRouter}} {
		name, is := strings.CutPrefix(s, k.word)
		name, ends := strings.CutSuffix(name, ":")
		if !is || !ends {
			continue
		}
		if e.t = k.t; e.t == mad.NodeTypeSwitch {
			if e.guid, name, is = listGUID(name); !is {
				return e, false
			}
		}
		e.name = listName(name)
		return e, true
	}
	return e, false
}

// listName is a name without blanks around: they are padding in one place, and lost in another.
func listName(name string) string { return strings.TrimSpace(name) }

// linkRow parses a line (rdma-core infiniband-diags/iblinkinfo.c, print_port): below a header
// `      0x0002c90300000011      3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    5[  ] "leaf 1" ( )`,
// of a switch without the GUID; with -l with both GUIDs and the name:
// `0x0002c90300000011 "node-1 HCA-1"      3    1[  ] ==(...)==>  0x0002c90300001000      1    5[  ] "leaf 1" ( )`.
func (p *portList) linkRow(line string) error {
	if e, ok := linkHeader(line); ok {
		p.header = e
		return nil
	}
	near, text, ok := strings.Cut(line, " ==(")
	link, far, ok2 := strings.Cut(text, ")==>")
	if !ok || !ok2 {
		return p.expected("a node as in Switch: 0x0002c90300001000 leaf 1:, or a link as in 3    1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==> ...: %q", p.shown())
	}
	r := portRow{at: p.at, near: p.header}
	if guid, rest, ok := listGUID(near); ok {
		r.near.guid, near = guid, rest
	}
	if strings.HasPrefix(near, `"`) {
		i := strings.LastIndexByte(near, '"')
		if i == 0 {
			return p.expected("a name in quotes: %q", p.shown())
		}
		r.near.t, r.near.name, near = 0, listName(near[1:i]), near[i+1:]
	} else if p.header.name == "" && p.header.t == 0 {
		return p.expected("the line of the node (Switch: ..., CA: ...) before a link: %q", p.shown())
	}
	if r.near.lid, r.near.num, near, ok = lidNumber(near); !ok || near != "" || r.near.guid == 0 {
		return p.expected("GUID, LID and port of this end, as in 0x0002c90300000011      3    1[  ]: %q", p.shown())
	}
	if !p.linkState(&r, link) {
		return p.expected("width, speed and state, as in ( 4X 25.78125 Gbps Active/  LinkUp), not %q", fabric.Clip(link))
	}
	far = skipBlanks(far)
	switch {
	case strings.HasPrefix(far, `[  ] ""`):
	case strings.HasPrefix(far, `"Port not available"`):
		p.lost++
	default:
		r.connected = true
		if guid, rest, ok := listGUID(far); ok {
			r.far.guid, far = guid, rest
		}
		r.far.lid, r.far.num, far, ok = lidNumber(far)
		i := strings.LastIndexByte(far, '"')
		if !ok || i < 1 || far[0] != '"' || !strings.HasSuffix(far, ")") {
			return p.expected("LID, port and name of the other end, as in 1    5[  ] \"leaf 1\": %q", p.shown())
		}
		r.far.name = listName(far[1:i])
	}
	p.rows = append(p.rows, r)
	return nil
}

// linkSpeeds are the speeds of a lane as iblinkinfo writes them (libibmad/dump.c,
// libibnetdisc/ibnetdisc.c).
var linkSpeeds = map[string]string{
	"2.5 Gbps": "sdr", "5.0 Gbps": "ddr", "10.0 Gbps": "qdr", "10.0 Gbps (FDR10)": "fdr10",
	"14.0625 Gbps": "fdr", "25.78125 Gbps": "edr", "53.125 Gbps": "hdr", "106.25 Gbps": "ndr", "212.5 Gbps": "xdr",
}

var linkStates = map[string]mad.PortState{
	"Down": mad.PortStateDown, "Initialize": mad.PortStateInitialize, "Armed": mad.PortStateArmed, "Active": mad.PortStateActive,
}

var linkPhysical = map[string]mad.PortPhysicalState{
	"Sleep": mad.PortPhysicalStateSleep, "Polling": mad.PortPhysicalStatePolling, "Disabled": mad.PortPhysicalStateDisabled,
	"PortConfigurationTraining": mad.PortPhysicalStatePortConfigurationTraining, "LinkUp": mad.PortPhysicalStateLinkUp,
	"LinkErrorRecovery": mad.PortPhysicalStateLinkErrorRecovery, "PhyTest": mad.PortPhysicalStatePhyTest,
}

// linkState parses ` 4X      25.78125 Gbps Active/  LinkUp`, and ` (HOQ:...` of -p after it;
// what is undefined stays unknown.
func (p *portList) linkState(r *portRow, s string) bool {
	s, _, _ = strings.Cut(s, ") (HOQ:")
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return false
	}
	r.physical = linkPhysical[strings.TrimSpace(s[i+1:])]
	words := strings.Fields(s[:i])
	if len(words) == 0 {
		return false
	}
	r.state = linkStates[words[len(words)-1]]
	if words = words[:len(words)-1]; len(words) == 0 {
		return r.state == mad.PortStateDown
	}
	r.rate = rate{inUse: true}
	if !r.rate.setWidth(strings.ToLower(words[0])) {
		return words[0] == "undefined"
	}
	speed, known := linkSpeeds[strings.Join(words[1:], " ")]
	return r.state != 0 && (!known || r.rate.setSpeed(speed))
}
