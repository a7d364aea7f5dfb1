package format

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// topology is the nodes and cables of a file, by the names that the file gives
// them. fabric makes a Fabric of it.
type topology struct {
	nodes    []node
	ids      map[string]int     // node by id
	alias    map[string]lineRef // port by alias
	from     string             // "NODEGUID port PORTGUID", in hexadecimal: where the sweep began
	smLID    mad.LID            // of the master SM; 0: unknown
	ports    int                // of all nodes
	problems []fabric.Problem
	unquoted strayLines // names without the quote at the end

	plan *fabric.Plan // by index of the node; nil: not a plan

	noLIDs    int  // records of ports without a valid LID, where the format has one
	noLIDAt   pos  // of the first
	lacksLIDs bool // the format has none for some nodes: they stay unknown
}

// node is a node as a file describes it.
type node struct {
	at       pos
	id       string // by which ports name it
	info     mad.NodeInfo
	name     string
	enhanced bool // port 0
	port0    bool // the file gives lid and lmc of port 0
	lid      mad.LID
	lmc      uint8
	lines    []portLine  // in file order
	device   *planDevice // of a plan
	facts    planFacts   // of a plan
}

// portLine is what a file has of a port and its cable.
type portLine struct {
	at       pos
	num      int
	far      string // id of the node at the other end, or an alias with an @
	farPort  int
	alias    bool // far is another name of this port, not of the other end
	guid     mad.GUID
	farGUID  mad.GUID
	label    string // of the panel
	cable    fabric.PlanCable
	lid      mad.LID
	lmc      uint8
	farLID   mad.LID // 0: unknown
	farName  string
	rate     rate
	best     rate                  // what both ends support and enable; 0: unknown
	state    mad.PortState         // 0: unknown
	physical mad.PortPhysicalState // 0: as the state suggests
	open     bool                  // the file has the port, without another end
	implied  bool                  // the line was the other end's
	linked   bool                  // the Builder has the link
}

// noLID counts a record of a port without a valid LID.
func (t *topology) noLID(at pos) {
	if t.noLIDs++; t.noLIDs == 1 {
		t.noLIDAt = at
	}
}

// endsWithin adds the problem that the last line, at, has no line end.
func (t *topology) endsWithin(at pos) {
	t.problems = append(t.problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: the last line has no line end; the file may be cut short; if it is whole, add a line feed", at)})
}

// lineRef is a portLine by indices: of the node, and among its lines.
type lineRef struct{ node, line int }

func newTopology() *topology {
	return &topology{ids: map[string]int{}, alias: map[string]lineRef{}}
}

// add appends a node, and returns its index.
func (t *topology) add(n node) int {
	t.ids[n.id] = len(t.nodes)
	t.nodes = append(t.nodes, n)
	return len(t.nodes) - 1
}

// link connects port p of node n to port q of node m. A file may have it twice,
// once for each end.
func (t *topology) link(at pos, n, p, m, q int, r rate) error {
	for _, e := range [][4]int{{n, p, m, q}, {m, q, n, p}} {
		near, far := &t.nodes[e[0]], &t.nodes[e[2]]
		i := slices.IndexFunc(near.lines, func(x portLine) bool { return x.num == e[1] })
		if i < 0 {
			near.lines = append(near.lines, portLine{at: at, num: e[1], far: far.id, farPort: e[3], rate: r})
			continue
		}
		if x := near.lines[i]; x.far != far.id || x.farPort != e[3] {
			return fmt.Errorf("%s: expected port %d of %s to be free, but %s connects it to port %d of %s", at, e[1], near.id, x.at, x.farPort, x.far)
		}
	}
	return nil
}

// Limits of a subnet, which has at most 48k LIDs. Ports take memory even if only a few words
// claim them: a file of some kilobytes may have freePorts, a larger one
// one more for each bytesPerPort.
const (
	maxNodes      = 1 << 16
	maxTotalPorts = 1 << 20
	freePorts     = 1 << 17
	bytesPerPort  = 4
)

// tooManyPorts names the limit that a file with a number of ports in its first bytes
// exceeds; empty: none.
func tooManyPorts(ports int, bytes int64) string {
	if limit := min(maxTotalPorts, freePorts+int(bytes/bytesPerPort)); ports > limit {
		return fmt.Sprintf("nodes of at most %d ports in all", limit)
	}
	return ""
}

// countPorts adds the ports of a node to the ports of the file, and fails at a limit. bytes is how
// much of the file has been read.
func (t *topology) countPorts(at pos, ports int, bytes int64) error {
	t.ports += ports
	if len(t.nodes) >= maxNodes {
		return fmt.Errorf("%s: expected at most %d nodes", at, maxNodes)
	}
	if want := tooManyPorts(t.ports, bytes); want != "" {
		return fmt.Errorf("%s: expected %s", at, want)
	}
	return nil
}

// guidBase counts GUIDs up from a base that the file sets.
type guidBase struct{ base, next mad.GUID }

// newGUIDBases returns the first GUIDs of nodes whose GUIDs the file does not give:
// as in ibsim (ibsim/sim_net.c, absguids).
func newGUIDBases() map[mad.NodeType]*guidBase {
	return map[mad.NodeType]*guidBase{
		mad.NodeTypeCA: {0x100000, 0x100000}, mad.NodeTypeSwitch: {0x200000, 0x200000}, mad.NodeTypeRouter: {}, 0: {},
	}
}

// fabric makes a Fabric.
func (t *topology) fabric(name string) (*fabric.Fabric, error) {
	if len(t.nodes) == 0 {
		return nil, fmt.Errorf("%s: expected a topology of ibnetdiscover, OpenSM, ibdm or ibdiagnet, a net file of ibsim, a plan of cables or a snapshot: there is no record of a node (Switch, Ca, Rt)", name)
	}
	b := fabric.NewBuilder()
	b.SetEndUnknown()
	if t.plan != nil {
		b.SetPlan(t.plan)
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		s := fabric.NodeSpec{Info: n.info, Name: n.name, FileID: n.id}
		if n.port0 {
			s.Switch = &mad.SwitchInfo{EnhancedPort0: n.enhanced}
		}
		b.AddNode(s)
	}
	if err := t.assignLIDs(b, name); err != nil {
		return nil, err
	}
	for i := range t.nodes {
		if t.nodes[i].info.NodeType == mad.NodeTypeSwitch {
			b.SetPort(i, 0, &mad.PortInfo{LID: t.nodes[i].lid, LMC: t.nodes[i].lmc, MasterSMLID: t.smLID, CapabilityMask: capabilities, CapabilityMask2: capabilities2})
		}
		for j := range t.nodes[i].lines {
			if err := t.connect(b, i, j); err != nil {
				return nil, err
			}
		}
	}
	if t.noLIDs > 0 {
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemNoLIDs, Text: fmt.Sprintf("%s: %s no valid LID, which is unknown: no number, or one above %d", t.noLIDAt, plural.Count(t.noLIDs, "record has", "records have"), mad.MaxUnicastLID)})
	}
	if t.unquoted.n > 0 {
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: %s not closed: %s; names and rates there may be damaged", t.unquoted.first, plural.Count(t.unquoted.n, "quote is", "quotes are"), t.unquoted.text)})
	}
	for _, p := range t.problems {
		b.AddProblem(p)
	}
	if !t.setFrom(b) {
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s has no record of the node that the sweep began at (%s): the file may be cut short", name, fabric.Clip(t.from))})
	}
	return b.Build(), nil
}

// assignLIDs numbers the ports in file order if the file has no LID at all.
func (t *topology) assignLIDs(b *fabric.Builder, name string) error {
	var lids []*mad.LID
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.info.NodeType == mad.NodeTypeSwitch {
			lids = append(lids, &n.lid)
			continue
		}
		for j := range n.lines {
			lids = append(lids, &n.lines[j].lid)
		}
	}
	if t.lacksLIDs || t.noLIDs > 0 || len(lids) == 0 {
		return nil
	}
	for _, lid := range lids {
		if *lid != 0 {
			return nil
		}
	}
	if len(lids) > int(mad.MaxUnicastLID) {
		return fmt.Errorf("%s: expected at most %d ports that need a LID, not %d", name, mad.MaxUnicastLID, len(lids))
	}
	for i, lid := range lids {
		*lid = mad.LID(i + 1)
	}
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemAssignedLIDs, Text: fmt.Sprintf("%s has no LIDs; they were assigned in its order, from 1 to %d", name, len(lids))})
	return nil
}

// connect makes a link of port line j of node i and the line of the other end.
func (t *topology) connect(b *fabric.Builder, i, j int) error {
	n := &t.nodes[i]
	p := &n.lines[j]
	b.SetLabel(i, p.num, p.label)
	if p.cable != (fabric.PlanCable{}) {
		b.SetCable(i, p.num, p.cable)
	}
	if p.open {
		if p.state != 0 {
			b.SetPort(i, p.num, &mad.PortInfo{PortState: p.state, PortPhysicalState: p.physical})
		}
		return nil
	}
	if p.alias || p.linked { // the line of the other end makes the link, or did
		return nil
	}
	far, err := t.otherEnd(i, p)
	if err != nil {
		return err
	}
	m := &t.nodes[far.node]
	q := &m.lines[far.line]
	p.linked, q.linked = true, true
	for _, e := range []struct {
		node int
		p, q *portLine
	}{{i, p, q}, {far.node, q, p}} {
		info, fdr10 := portInfo(e.p.rate.common(e.q.rate))
		if t.nodes[e.node].info.NodeType != mad.NodeTypeSwitch {
			info.LID, info.LMC, info.MasterSMLID = e.p.lid, e.p.lmc, t.smLID
		}
		info.VLCap = e.p.rate.vls
		if e.p.best.inUse || e.q.best.inUse {
			setBest(&info, e.p.best)
			setBest(&info, e.q.best)
			if e.p.best.speeds|e.q.best.speeds == 1<<speedFDR10 { // PortInfo does not have it
				info.LinkSpeedSupported, info.LinkSpeedEnabled = info.LinkSpeedActive, info.LinkSpeedActive
			}
		}
		if info.PortState = e.p.state; info.PortState == mad.PortStateDown {
			info.PortPhysicalState = 0
		}
		if e.p.physical != 0 {
			info.PortPhysicalState = e.p.physical
		}
		b.SetPort(e.node, e.p.num, &info)
		b.SetFDR10(e.node, e.p.num, fdr10)
		if t.nodes[e.node].info.NodeType != mad.NodeTypeSwitch {
			b.SetPortGUID(e.node, e.p.num, t.nodes[e.node].portGUID(e.p, e.q))
		}
	}
	if err := b.Link(i, p.num, far.node, q.num); err != nil {
		return fmt.Errorf("%s: expected a port that is free: %w", p.at, err)
	}
	return nil
}

// otherEnd returns the line of the port that p, a line of node i, is connected to.
// That line must name p in turn.
func (t *topology) otherEnd(i int, p *portLine) (lineRef, error) {
	n := &t.nodes[i]
	if r, ok := t.alias[p.far]; ok {
		return r, nil
	}
	k, ok := t.ids[p.far] // of a plan any text, with an @ too
	switch {
	case !ok && strings.Contains(p.far, "@"):
		return lineRef{}, fmt.Errorf("%s: no port has the alias %q", p.at, p.far)
	case !ok:
		return lineRef{}, fmt.Errorf("%s: no record of node %q, to which port %d of %q is connected", p.at, p.far, p.num, n.id)
	}
	m := &t.nodes[k]
	for j := range m.lines {
		q := &m.lines[j]
		if q.num != p.farPort {
			continue
		}
		switch {
		case q.alias:
		case q.far == n.id && q.farPort == p.num:
			return lineRef{k, j}, nil
		default:
			if r, ok := t.alias[q.far]; ok && r.node == i && n.lines[r.line].num == p.num {
				return lineRef{k, j}, nil
			}
		}
		return lineRef{}, fmt.Errorf("%s: expected %q[%d] to be connected to %q[%d], but %s has %q[%d]", p.at, m.id, q.num, n.id, p.num, q.at, q.far, q.farPort)
	}
	return lineRef{}, fmt.Errorf("%s: expected %q[%d] to be connected to %q[%d], but its record at %s has no line for that port", p.at, m.id, p.farPort, n.id, p.num, m.at)
}

// portGUID returns the port GUID that the port's line p or the other end's line q
// gives; else the node GUID plus the port number, as in ibsim.
func (n *node) portGUID(p, q *portLine) mad.GUID {
	switch {
	case p.guid != 0:
		return p.guid
	case q.farGUID != 0:
		return q.farGUID
	}
	return n.info.NodeGUID + mad.GUID(p.num)
}

// setFrom finds the port that the sweep began at; for a switch it is port 0. It is false where
// the node of that port is not in the file.
func (t *topology) setFrom(b *fabric.Builder) bool {
	var nodeGUID, portGUID uint64
	if _, err := fmt.Sscanf(t.from, "%x port %x", &nodeGUID, &portGUID); err != nil {
		return true
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.info.NodeGUID != mad.GUID(nodeGUID) {
			continue
		}
		num := 0
		for _, p := range n.lines {
			if n.info.NodeType != mad.NodeTypeSwitch && n.portGUID(&p, &p) == mad.GUID(portGUID) {
				num = p.num
			}
		}
		b.SetFrom(i, num)
		return true
	}
	return false
}

// isLabel reports whether s may be the label of a port: 1/2/1, sw1p1, B26D0F0/0/0/1.
func isLabel(s string) bool {
	const most = 32 // bytes
	return s != "" && len(s) <= most && strings.Trim(s, "/._-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

// rate is the width and speed of a port: the active ones (inUse), or all that are
// enabled.
type rate struct {
	inUse  bool
	widths mad.LinkWidth
	speeds uint16  // bit n: speedWords[n]
	vls    mad.VLs // PortInfo.VLCap; 0: unknown
}

var speedWords = []string{"sdr", "ddr", "qdr", "fdr10", "fdr", "edr", "hdr", "ndr", "xdr"}

// Bits of rate.speeds.
const (
	speedQDR   = 2
	speedFDR10 = 3
	speedFDR   = 4
)

var widthWords = []struct {
	word string
	bit  mad.LinkWidth
}{ // the widest first: common takes the first that both ends have
	{"12x", mad.LinkWidth12x}, {"8x", mad.LinkWidth8x}, {"4x", mad.LinkWidth4x}, {"2x", mad.LinkWidth2x}, {"1x", mad.LinkWidth1x},
}

// common returns the width and speed of the link between ports with rates r and s:
// the highest that both have enabled, unless one of them has the active ones. 0 and "" are
// unknown.
func (r rate) common(s rate) (width mad.LinkWidth, speed string) {
	if !r.inUse {
		if s.inUse {
			return s.common(s)
		}
		r.widths, r.speeds = r.widths&s.widths, r.speeds&s.speeds
	}
	for _, w := range widthWords {
		if r.widths&w.bit != 0 {
			width = w.bit
			break
		}
	}
	if r.speeds != 0 {
		speed = speedWords[bits.Len16(r.speeds)-1]
	}
	return width, speed
}

// parseRate parses "4xHDR". ?? and ??? stand for an unknown width and speed. If only the speed is
// one that it does not know, r is in use.
func parseRate(s string) (r rate, ok bool) {
	i := strings.IndexByte(s, 'x')
	if strings.HasPrefix(s, "??") {
		i = 1
	}
	if i < 0 {
		return r, false
	}
	if !r.setWidth(s[:i+1]) {
		return r, false
	}
	r.inUse = true
	return r, r.setSpeed(strings.ToLower(s[i+1:]))
}

// setWidth sets the width named s: "4x", or ?? where it is unknown.
func (r *rate) setWidth(s string) bool {
	for _, w := range widthWords {
		if w.word == s {
			r.widths = w.bit
			return true
		}
	}
	r.widths = 0
	return s == "??"
}

// setSpeed sets the speed named s: "hdr", or ??? where it is unknown.
func (r *rate) setSpeed(s string) bool {
	r.speeds = 0
	if j := slices.Index(speedWords, s); j >= 0 {
		r.speeds = 1 << j
	}
	return r.speeds != 0 || s == "???"
}

// option parses w=, s= and e= of ibsim, which are the masks of enabled widths,
// speeds and extended speeds (ibsim/sim_net.c, parse_port_opt). After an active
// rate the options come from ibnetdiscover -f: v= is VLCap, and w= and s=
// repeat the rate.
func (r *rate) option(s string) bool {
	key, value, ok := strings.Cut(s, "=")
	v, err := strconv.ParseUint(value, 0, 8)
	if !ok || err != nil {
		return false
	}
	if r.inUse {
		if key == "v" {
			r.vls = mad.VLs(v)
		}
		return true
	}
	switch key {
	case "w":
		if r.widths = mad.LinkWidth(v); v < 1 || v > 31 {
			return false
		}
	case "s":
		if v == 0 {
			v = 1 << speedQDR
		}
		if r.speeds = r.speeds&^7 | uint16(v); v > 7 {
			return false
		}
	case "e":
		if r.speeds = r.speeds&7 | uint16(v)<<speedFDR; v > 15 {
			return false
		}
	}
	return true
}

// portInfo returns the PortInfo of a port whose link has that width and speed.
func portInfo(width mad.LinkWidth, speed string) (i mad.PortInfo, fdr10 bool) {
	i.PortPhysicalState = mad.PortPhysicalStateLinkUp
	i.LinkWidthActive = width
	switch speed {
	case "sdr":
		i.LinkSpeedActive = mad.LinkSpeedSDR
	case "ddr":
		i.LinkSpeedActive = mad.LinkSpeedDDR
	case "qdr", "fdr10":
		i.LinkSpeedActive = mad.LinkSpeedQDR
	case "fdr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtFDR
	case "edr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtEDR
	case "hdr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtHDR
	case "ndr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtNDR
	case "xdr":
		i.LinkSpeedExtActive2 = mad.LinkSpeedExt2XDR
	}
	i.CapabilityMask, i.CapabilityMask2 = capabilities, capabilities2
	return i, speed == "fdr10"
}

// setBest adds the width and speed of r to those that a port supports and enables.
func setBest(i *mad.PortInfo, r rate) {
	width, speed := r.common(r)
	best, _ := portInfo(width, speed)
	i.LinkWidthSupported |= width | i.LinkWidthActive
	i.LinkWidthEnabled = i.LinkWidthSupported
	i.LinkSpeedSupported |= best.LinkSpeedActive | i.LinkSpeedActive
	i.LinkSpeedEnabled = i.LinkSpeedSupported
	i.LinkSpeedExtSupported |= best.LinkSpeedExtActive | i.LinkSpeedExtActive
	i.LinkSpeedExtEnabled = i.LinkSpeedExtSupported
	i.LinkSpeedExtSupported2 |= best.LinkSpeedExtActive2 | i.LinkSpeedExtActive2
	i.LinkSpeedExtEnabled2 = i.LinkSpeedExtSupported2
}

// The capabilities without which a port's extended speeds are not valid.
const (
	capabilities  = mad.CapabilityMaskIsExtendedSpeedsSupported | mad.CapabilityMaskIsCapabilityMask2Supported
	capabilities2 = mad.CapabilityMask2IsExtendedSpeeds2Supported
)
