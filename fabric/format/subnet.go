package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindSubnet is opensm-subnet.lst.
const KindSubnet FormatName = "opensm-subnet"

var opensmSubnet = fileFormat{
	kind:       KindSubnet,
	about:      "a topology of OpenSM (opensm-subnet.lst)",
	file:       "`opensm-subnet.lst` of OpenSM, `.lst` of ibdiagnet",
	beginnings: []string{"{ SW", "{ CA", "{ Rt", "{ **"},
	load:       loadSubnet,
	write:      writeSubnet,
	dumpHelp:   `"opensm-subnet", as opensm-subnet.lst`,
}

// loadSubnet reads what OpenSM writes as opensm-subnet.lst, and ibdiagnet as
// .lst: a line for each end of each link, with both nodes in full. All numbers
// are hexadecimal.
func loadSubnet(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	s := subnetReader{topology: newTopology(), lines: newLines(r, name)}
	for s.next() {
		if text := skipSpace(s.text); len(text) > 0 && text[0] != '#' {
			s.line(text)
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if len(s.sm) == 1 {
		s.smLID = s.sm[0]
	}
	if s.cut {
		s.endsWithin(s.lines.at)
	}
	s.oneEnd(name)
	return s.fabric(name)
}

// oneEnd reports links of which one end has a line, in a file in which other links have a line for
// each end: the file was cut short.
func (s *subnetReader) oneEnd(name string) {
	both, one := 0, 0
	var first *portLine
	for i := range s.nodes {
		for j := range s.nodes[i].lines {
			if p := &s.nodes[i].lines[j]; !p.implied {
				both++
			} else if one++; first == nil {
				first = p
			}
		}
	}
	if both > one && one > 0 {
		s.problems = append(s.problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: %s no line of the other end, such as the one at %s; the file may be cut short", name, plural.Count(one, "link has", "links have"), first.at)})
	}
}

type subnetReader struct {
	*topology
	*lines
	sm []mad.LID // of the nodes marked -SM: one, unless the file is of several subnets; at most two are kept
}

// subnetEnd is what a line has of one end of the link.
type subnetEnd struct {
	info     mad.NodeInfo
	name     string
	portGUID mad.GUID
	lid      mad.LID
	port     int
}

// line parses `{ SW Ports:24 ... } { CA Ports:02 ... } PHY=4x LOG=ACT SPD=25`:
// a link, and how its first end runs.
func (s *subnetReader) line(text []byte) {
	near, text := s.end(text)
	far, text := s.end(text)
	if s.err != nil {
		return
	}
	var r rate
	var state mad.PortState
	ok := true
	for word, rest := field(text); len(word) > 0 && ok; word, rest = field(rest) {
		key, value, _ := strings.Cut(string(word), "=")
		switch key {
		case "PHY":
			r.inUse, ok = true, r.setWidth(value)
		case "SPD":
			ok = r.setSpeed(subnetSpeeds[value]) || value == "??"
		case "LOG":
			state, ok = subnetStates[value]
		default:
			ok = false
		}
	}
	if !ok || !r.inUse {
		s.fail("PHY=, LOG= and SPD= with a width, a state and a speed after the two nodes, as in PHY=4x LOG=ACT SPD=25: %q", fabric.Clip(string(text)))
		return
	}
	a, b := s.node(&near), s.node(&far)
	if s.err != nil {
		return
	}
	s.addLine(a, portLine{at: s.at, num: near.port, far: s.nodes[b].id, farPort: far.port, guid: near.portGUID, lid: near.lid, rate: r, state: state})
	s.addLine(b, portLine{at: s.at, num: far.port, far: s.nodes[a].id, farPort: near.port, guid: far.portGUID, lid: far.lid, rate: r, state: state, implied: true})
}

var (
	subnetStates = map[string]mad.PortState{"ACT": mad.PortStateActive, "ARM": mad.PortStateArmed, "INI": mad.PortStateInitialize, "DWN": mad.PortStateDown}
	// subnetSpeeds are the speeds by Gb/s a lane. OpenSM up to 3.3 writes ?? for
	// speeds above 50.
	subnetSpeeds = map[string]string{"2.5": "sdr", "5": "ddr", "10": "qdr", "FDR10": "fdr10", "14": "fdr", "25": "edr", "50": "hdr", "100": "ndr", "200": "xdr"}
	subnetTypes  = map[string]mad.NodeType{"SW": mad.NodeTypeSwitch, "CA": mad.NodeTypeCA, "Rt": mad.NodeTypeRouter, "**": 0}
)

// end parses one end of a link, and returns the text after it. VenID and Rev
// have 6 or 8 digits. DevID has 4; or 8 of which the last four are 0, or fewer
// where it begins with zeros: OpenSM prints the 16 bits as 32 at the second end,
// older versions at both.
func (s *subnetReader) end(text []byte) (e subnetEnd, rest []byte) {
	if s.err != nil {
		return e, nil
	}
	whole := text
	word, text := field(text)
	ok := string(word) == "{"
	word, text = field(text)
	kind, isSM := strings.CutSuffix(string(word), "-SM")
	t, known := subnetTypes[kind]
	ok = ok && known
	number := func(key string, bits int) uint64 {
		word, text = field(text)
		digits, found := bytes.CutPrefix(word, []byte(key+":"))
		v, end, isHex := hexDigits(digits)
		if bits == 16 && v > 0xffff {
			v >>= 16
		}
		ok = ok && found && isHex && len(end) == 0 && (bits == 64 || v < 1<<bits)
		return v
	}
	e.info = mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: t, PartitionCap: 1}
	e.info.NumPorts = uint8(number("Ports", 8))
	e.info.SystemImageGUID = mad.GUID(number("SystemGUID", 64))
	e.info.NodeGUID = mad.GUID(number("NodeGUID", 64))
	e.portGUID = mad.GUID(number("PortGUID", 64))
	e.info.VendorID = uint32(number("VenID", 24))
	e.info.DeviceID = uint16(number("DevID", 16))
	e.info.Revision = uint32(number("Rev", 32))
	if text = skipSpace(text); len(text) > 0 && text[0] == '{' {
		i := bytes.Index(text, []byte("} LID:")) // a name may contain braces
		if i < 0 {
			s.fail("a node's name in braces, and LID: after it: %q", fabric.Clip(string(text)))
			return e, nil
		}
		e.name, text = string(text[1:i]), text[i+1:]
	}
	e.lid = mad.LID(number("LID", 64))
	e.port = int(number("PN", 8))
	word, text = field(text)
	if !ok || string(word) != "}" {
		s.fail("{ SW, CA or Rt, Ports:, SystemGUID:, NodeGUID:, PortGUID:, VenID:, DevID:, Rev:, {name}, LID:, PN: and }: %q", fabric.Clip(string(whole)))
		return e, nil
	}
	if e.lid > mad.MaxUnicastLID || e.info.NumPorts == 0 || e.info.NumPorts > maxPorts || e.port < 1 || e.port > int(e.info.NumPorts) {
		s.fail("1 to %d ports, a LID up to %X and PN: one of the ports: %q", maxPorts, mad.MaxUnicastLID, fabric.Clip(string(whole)))
	}
	if isSM && e.lid != 0 && !slices.Contains(s.sm, e.lid) && len(s.sm) < 2 {
		s.sm = append(s.sm, e.lid)
	}
	if t == mad.NodeTypeSwitch {
		e.info.PortGUID = e.portGUID
	}
	return e, text
}

// node returns the index of the node at an end, which is added if it is new.
func (s *subnetReader) node(e *subnetEnd) int {
	id := nodeID(e.info.NodeType, e.info.NodeGUID)
	i, ok := s.ids[id]
	if !ok {
		if err := s.countPorts(s.at, int(e.info.NumPorts), s.bytes); err != nil {
			s.err = err
			return 0
		}
		i = s.add(node{at: s.at, id: id, info: e.info, name: e.name, lid: e.lid})
	}
	n := &s.nodes[i]
	switch {
	case n.info.NumPorts != e.info.NumPorts:
		s.fail("%d ports of %s, as in %s, not %d", n.info.NumPorts, e.info.NodeGUID, n.at, e.info.NumPorts)
	case n.lid != e.lid && e.info.NodeType == mad.NodeTypeSwitch:
		s.fail("LID %04X of switch %s, as in %s, not %04X", uint16(n.lid), e.info.NodeGUID, n.at, uint16(e.lid))
	}
	return i
}

// addLine adds what a line has of a port of node i. The port's own line
// replaces what the other end's line has implied.
func (s *subnetReader) addLine(i int, p portLine) {
	n := &s.nodes[i]
	for j := range n.lines {
		q := &n.lines[j]
		if q.num != p.num {
			continue
		}
		if q.far != p.far || q.farPort != p.farPort {
			s.fail("port %d of %s to be connected to port %d of %s, as in %s, not to port %d of %s", p.num, n.info.NodeGUID, q.farPort, q.far[2:], q.at, p.farPort, p.far[2:])
			return
		}
		if q.implied {
			*q = p
		}
		return
	}
	n.lines = append(n.lines, p)
}

// writeSubnet writes what OpenSM writes as opensm-subnet.lst, byte for byte, its
// old errors included (opensm/osm_dump.c, dump_topology_node): VenID and DevID
// of the second end have 8 digits, and a speed above QDR is written only where the
// other end is capable of it. A connected port whose state is unknown is
// written as ACT, because ibdm skips ports that are neither ACT, ARM nor INI.
func writeSubnet(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriterSize(w, 1<<16)
	for _, n := range openSMOrder(f.Nodes()) {
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil {
				continue
			}
			i, j := n.Info(), q.Node().Info()
			fmt.Fprintf(out, "{ %s VenID:%06X DevID:%04X %s } ", subnetHead(p), i.VendorID, i.DeviceID, subnetTail(p))
			fmt.Fprintf(out, "{ %s VenID:%08X DevID:%04X %s } ", subnetHead(q), j.VendorID, uint32(j.DeviceID)<<16, subnetTail(q))
			if _, err := fmt.Fprintf(out, "PHY=%s LOG=%s SPD=%s\n", subnetWidth(p), subnetState(p), subnetSpeed(p, q)); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func subnetHead(p *fabric.Port) string {
	n := p.Node()
	kind := "**"
	for word, t := range subnetTypes {
		if t == n.Type() {
			kind = word
		}
	}
	if i := addressInfo(p); i != nil && i.LID != 0 && i.LID == i.MasterSMLID {
		kind += "-SM"
	}
	return fmt.Sprintf("%s Ports:%02X SystemGUID:%016x NodeGUID:%016x PortGUID:%016x", kind, n.NumPorts(), uint64(n.Info().SystemImageGUID), uint64(n.GUID()), uint64(p.GUID()))
}

func subnetTail(p *fabric.Port) string {
	return fmt.Sprintf("Rev:%08X {%s} LID:%04X PN:%02X", p.Node().Info().Revision, description(p.Node()), uint16(p.LID()), p.Num())
}

// addressInfo returns the PortInfo that has the LID of p: for a switch the PortInfo of port 0.
func addressInfo(p *fabric.Port) *mad.PortInfo {
	if p.Node().IsSwitch() {
		return p.Node().Port(0).Info()
	}
	return p.Info()
}

func subnetWidth(p *fabric.Port) string {
	if w := p.Width(); w != "" {
		return w
	}
	return "??"
}

func subnetState(p *fabric.Port) string {
	for word, s := range subnetStates {
		if s == p.State() {
			return word
		}
	}
	return "ACT"
}

// subnetSpeed returns the speed of p, in Gb/s a lane; q is the other end.
func subnetSpeed(p, q *fabric.Port) string {
	i, caps := p.Info(), addressInfo(q)
	if i == nil {
		return "??"
	}
	s := "??"
	switch i.LinkSpeedActive {
	case mad.LinkSpeedSDR:
		s = "2.5"
	case mad.LinkSpeedDDR:
		s = "5"
	case mad.LinkSpeedQDR:
		s = "10"
	}
	if p.Speed() == "fdr10" {
		s = "FDR10"
	}
	if caps == nil || caps.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported == 0 {
		return s
	}
	switch i.LinkSpeedExtActive {
	case 0:
		return s
	case mad.LinkSpeedExtFDR:
		return "14"
	case mad.LinkSpeedExtEDR:
		return "25"
	case mad.LinkSpeedExtHDR:
		return "50"
	}
	return "??"
}
