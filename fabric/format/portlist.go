package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindPortsReport is the list of ports that ibnetdiscover -p prints.
const KindPortsReport FormatName = "ibnetdiscover-p"

var portsReport = fileFormat{
	kind:       KindPortsReport,
	about:      "a list of ports (ibnetdiscover -p)",
	file:       "list of ports of `ibnetdiscover -p`, which lacks models and states",
	beginnings: []string{"CA  ", "SW  ", "RT  "},
	load: func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
		return loadPortList(r, name, (*portList).reportRow)
	},
}

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

// portList makes a topology of a list of ports, each with its other end, as
// ibnetdiscover -p and iblinkinfo print. Nodes are named by GUIDs of ports; build
// derives which ports belong to one node.
type portList struct {
	*topology
	*lines
	capture capture
	header  portEnd // iblinkinfo: the node of the lines below
	rows    []portRow
	names   int          // bytes in rows
	untyped bool         // lines do not have the types of nodes
	lost    int          // ports that are up, without another end
	unknown unknownTexts // speeds and verdicts
	orphans int          // rows whose other end is unknown, and
	orphan  pos          // the first
}

// portRow is a line: a port, and the other end if it is connected.
type portRow struct {
	at        pos
	near, far portEnd
	connected bool
	rate      rate
	best      rate          // what both ends support; 0: unknown
	state     mad.PortState // 0: unknown
	physical  mad.PortPhysicalState
}

// portEnd is a port as a line names it.
type portEnd struct {
	t    mad.NodeType // 0: unknown
	guid mad.GUID     // of the port; for a switch of its port 0; 0: unknown
	num  int
	lid  mad.LID
	name string
}

// maxListText is how many bytes the names of a list may have.
const maxListText = 128 << 20

// loadPortList reads a list with row, which parses a line, or fails if the dump does not have
// such a line.
func loadPortList(r io.Reader, name string, row func(p *portList, line string) error) (*fabric.Fabric, error) {
	p := &portList{topology: newTopology(), lines: newLines(r, name)}
	p.lacksLIDs = true
	var unknown error
	for p.next() {
		line := strings.TrimLeft(string(p.lines.text), "\r")
		if p.cut && (beginsRow(line) || line == "" && p.header.t != 0 && !bytes.ContainsRune(p.raw, '\t')) { // rows below a header begin with spaces
			p.endsWithin(p.at)
		}
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		n := len(p.rows)
		err := row(p, line)
		if err == nil {
			if err = p.capture.begin(); err == nil && len(p.rows) > n {
				err = p.count(&p.rows[n])
			}
		} else {
			unknown = cmp.Or(unknown, err)
			if !p.capture.begun || !beginsRow(line) {
				err = p.capture.stray(p.at, line, err)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case len(p.rows) == 0 && unknown != nil:
		return nil, unknown
	case len(p.rows) == 0:
		return nil, fmt.Errorf("%s: no line has a port", name)
	}
	if err := p.build(); err != nil {
		return nil, err
	}
	p.notes(name)
	return p.fabric(name)
}

// rowWords are what lines of lists begin with.
var rowWords = []string{"0x", "CA ", "SW ", "RT ", "Switch: ", "CA: ", "Router: ", "Switch 0x"}

// beginsRow reports whether s begins as lines of lists do, or is their beginning: a damaged
// line, such as the last line of a file that is cut short, not a prompt.
func beginsRow(s string) bool {
	if text := skipBlanks(s); len(text) < len(s) { // iblinkinfo indents rows
		s = text
		if s != "" && s[0] >= '0' && s[0] <= '9' {
			return true
		}
	}
	return s != "" && slices.ContainsFunc(rowWords, func(w string) bool { return strings.HasPrefix(s, w) || strings.HasPrefix(w, s) })
}

// count checks the limits of a line.
func (p *portList) count(r *portRow) error {
	if p.names += len(r.near.name) + len(r.far.name); len(p.rows) > maxTotalPorts || p.names > maxListText {
		return p.expected("at most %d ports, and names of %d MB", maxTotalPorts, maxListText>>20)
	}
	for _, e := range []*portEnd{&r.near, &r.far} {
		switch {
		case e == &r.far && !r.connected:
			continue
		case e.num < 1 || e.num > maxPorts:
			return p.expected("ports from 1 to %d: %q", maxPorts, p.shown())
		case e.lid > mad.MaxUnicastLID:
			if e == &r.near {
				p.noLID(p.at)
			}
			e.lid = 0
		}
	}
	return nil
}

// notes adds problems that name what a list lacks, and what was derived.
func (p *portList) notes(name string) {
	problem := func(kind fabric.ProblemKind, format string, args ...any) {
		p.problems = append(p.problems, fabric.Problem{Kind: kind, Text: name + " " + fmt.Sprintf(format, args...)})
	}
	problem(fabric.ProblemLeftOut, "is a list of ports: models, GUIDs of systems, and GUIDs of CAs are unknown; a CA has the GUID of its first port")
	if p.untyped {
		problem(fabric.ProblemLeftOut, "has no types of nodes: a GUID with several ports is taken for that of a switch; make it without -l")
	}
	if p.lost > 0 {
		problem(fabric.ProblemFailed, "has %s up without another end", plural.Count(p.lost, "port that is", "ports that are"))
	}
	if p.orphans > 0 {
		problem(fabric.ProblemCut, "has %s without a line of the other end, which were left out (%s); make it of the whole fabric, or with -l", plural.Count(p.orphans, "link", "links"), p.orphan)
	}
	p.problems = append(p.problems, p.unknown.problems()...)
	p.problems = append(p.problems, p.capture.problems()...)
}

// lidNumber parses a LID and the number of a port: "     3    1[  ] ". The number outside of
// a chassis may be in brackets.
func lidNumber(s string) (lid mad.LID, num int, rest string, ok bool) {
	l, s := number(skipBlanks(s))
	num, rest = number(skipBlanks(s))
	ok = true
	if strings.HasPrefix(rest, "[") {
		_, rest, ok = strings.Cut(rest, "]")
	}
	return mad.LID(l), num, skipBlanks(rest), ok && l >= 0 && l <= 0xffff && num >= 0
}

// listGUID parses 0x and a GUID.
func listGUID(s string) (mad.GUID, string, bool) {
	v, rest, ok := hex([]byte(skipBlanks(s)))
	return mad.GUID(v), skipBlanks(string(rest)), ok && v != 0
}

// build makes the nodes and port lines of the rows.
func (p *portList) build() error {
	if err := p.findFarEnds(); err != nil {
		return err
	}
	p.deriveTypes()
	names := p.portNames()
	type group struct {
		t    mad.NodeType
		base mad.GUID // GUID of the port minus its number, as CAs assign GUIDs; for a switch the GUID of port 0
		name string
	}
	groups := map[group]int{}
	groupOf := func(e *portEnd) group {
		if e.t == mad.NodeTypeSwitch {
			return group{e.t, e.guid, ""}
		}
		return group{e.t, e.guid - mad.GUID(e.num), names[e.guid]}
	}
	for i := range p.rows {
		for _, e := range p.rows[i].ends() {
			k, ok := groups[groupOf(e)]
			if !ok {
				if err := p.countPorts(p.rows[i].at, 0, p.bytes); err != nil {
					return err
				}
				k = len(p.nodes)
				groups[groupOf(e)] = k
				n := node{at: p.rows[i].at, name: names[e.guid]}
				n.info = mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: e.t, NodeGUID: e.guid, PartitionCap: 1}
				if e.t == mad.NodeTypeSwitch {
					n.info.PortGUID = e.guid
				}
				p.nodes = append(p.nodes, n)
			}
			n := &p.nodes[k]
			n.info.NodeGUID = min(n.info.NodeGUID, e.guid)
			if e.t == mad.NodeTypeSwitch && e == &p.rows[i].near {
				n.lid = e.lid
			}
			if more := e.num - int(n.info.NumPorts); more > 0 {
				if err := p.countPorts(p.rows[i].at, more, p.bytes); err != nil {
					return err
				}
				n.info.NumPorts = uint8(e.num)
			}
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		n.id = nodeID(n.info.NodeType, n.info.NodeGUID)
		if k, twice := p.ids[n.id]; twice {
			return fmt.Errorf("%s: expected a node with a GUID of its own, but %s is also that of the one at %s", n.at, n.info.NodeGUID, p.nodes[k].at)
		}
		p.ids[n.id] = i
	}
	return p.addLines(func(e *portEnd) int { return groups[groupOf(e)] })
}

// ends returns the ends that the line names.
func (r *portRow) ends() []*portEnd {
	if !r.connected {
		return []*portEnd{&r.near}
	}
	return []*portEnd{&r.near, &r.far}
}

// addLines gives nodes the lines of their ports. A port that has no line in a partial list gets
// one from the other end.
func (p *portList) addLines(nodeOf func(*portEnd) int) error {
	type port struct{ node, num int }
	own := map[port]pos{}
	for i := range p.rows {
		r := &p.rows[i]
		k := port{nodeOf(&r.near), r.near.num}
		if at, twice := own[k]; twice {
			return fmt.Errorf("%s: expected one line for port %d of %s, but %s is one too", r.at, k.num, fabric.Clip(r.near.name), at)
		}
		own[k] = r.at
		l := portLine{at: r.at, num: r.near.num, guid: r.near.guid, lid: r.near.lid, rate: r.rate, best: r.best, state: r.state, physical: r.physical, open: !r.connected}
		if r.connected {
			l.far, l.farPort, l.farGUID = p.nodes[nodeOf(&r.far)].id, r.far.num, r.far.guid
		}
		p.nodes[k.node].lines = append(p.nodes[k.node].lines, l)
	}
	derived := 0
	var first pos
	for i := range p.rows {
		r := &p.rows[i]
		if !r.connected {
			continue
		}
		k := port{nodeOf(&r.far), r.far.num}
		if _, ok := own[k]; ok {
			continue
		}
		if derived++; derived == 1 {
			first = r.at
		}
		own[k] = r.at
		l := portLine{at: r.at, num: r.far.num, guid: r.far.guid, lid: r.far.lid, rate: r.rate, best: r.best, far: p.nodes[nodeOf(&r.near)].id, farPort: r.near.num, farGUID: r.near.guid}
		n := &p.nodes[k.node]
		n.lines = append(n.lines, l)
		if n.info.NodeType == mad.NodeTypeSwitch && n.lid == 0 {
			n.lid = r.far.lid
		}
	}
	if derived > 0 {
		p.problems = append(p.problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: %s no line and %s derived from the other end; the list is partial, or lines are missing", first, plural.Count(derived, "port has", "ports have"), map[bool]string{true: "was", false: "were"}[derived == 1])})
	}
	return nil
}

// endKey is a link as iblinkinfo shows it from one end.
type endKey struct {
	lid, farLID   mad.LID
	num, farNum   int
	name, farName string
}

// findFarEnds sets the GUID and type of far ends without a GUID, from the line that names this
// end in turn.
func (p *portList) findFarEnds() error {
	rows := map[endKey]int{}
	for i := range p.rows {
		r := &p.rows[i]
		if !r.connected || r.far.guid != 0 {
			continue
		}
		k := endKey{r.near.lid, r.far.lid, r.near.num, r.far.num, r.near.name, r.far.name}
		if j, twice := rows[k]; twice {
			return fmt.Errorf("%s: expected one link from port %d of %q to port %d of %q, but %s has one too: several nodes have these names; make the list with iblinkinfo -l, which has GUIDs", r.at, k.num, fabric.Clip(k.name), k.farNum, fabric.Clip(k.farName), p.rows[j].at)
		}
		rows[k] = i
	}
	for i := range p.rows {
		r := &p.rows[i]
		if !r.connected || r.far.guid != 0 {
			continue
		}
		j, ok := rows[endKey{r.far.lid, r.near.lid, r.far.num, r.near.num, r.far.name, r.near.name}]
		if ok {
			r.far.t, r.far.guid = p.rows[j].near.t, p.rows[j].near.guid
			continue
		}
		if p.orphans++; p.orphans == 1 {
			p.orphan = r.at
		}
		r.connected = false
	}
	return nil
}

// deriveTypes sets the type of ends without one: a switch if their GUID has several
// ports, else a CA.
func (p *portList) deriveTypes() {
	nums := map[mad.GUID]int{} // the number of the port; -1: several
	for i := range p.rows {
		for _, e := range p.rows[i].ends() {
			if e.t != 0 {
				continue
			}
			p.untyped = true
			if num, ok := nums[e.guid]; ok && num != e.num {
				nums[e.guid] = -1
			} else if !ok {
				nums[e.guid] = e.num
			}
		}
	}
	for i := range p.rows {
		for _, e := range p.rows[i].ends() {
			switch {
			case e.t != 0:
			case nums[e.guid] < 0:
				e.t = mad.NodeTypeSwitch
			default:
				e.t = mad.NodeTypeCA
			}
		}
	}
}

// portNames returns the names of nodes by the GUIDs of their ports, preferably as their own lines
// give them.
func (p *portList) portNames() map[mad.GUID]string {
	names := map[mad.GUID]string{}
	for i := range p.rows {
		if r := &p.rows[i]; r.connected {
			names[r.far.guid] = r.far.name
		}
	}
	for i := range p.rows {
		names[p.rows[i].near.guid] = p.rows[i].near.name
	}
	return names
}

var reportTypes = map[string]mad.NodeType{"CA": mad.NodeTypeCA, "SW": mad.NodeTypeSwitch, "RT": mad.NodeTypeRouter}

// reportRow parses a line (rdma-core infiniband-diags/ibnetdiscover.c, dump_ports_report):
// `SW     3  8 0x0002c90300001030 4x FDR - CA     7  2 0x0002c90300002022 ( 'leaf 1' - 'node-1 HCA-1' )`,
// or of a port without a cable `SW     3  8 0x0002c90300001030 4x SDR       'leaf 1'`.
func (p *portList) reportRow(line string) error {
	r := portRow{at: p.at}
	r.rate.inUse = true
	text, ok := reportEnd(line, &r.near)
	if !ok {
		return p.expected("a port as in CA     3  1 0x0002c90300000011 4x EDR - SW     1  5 0x0002c90300001000 ( 'node-1 HCA-1' - 'leaf 1' ): %q", p.shown())
	}
	width, text, _ := strings.Cut(text, " ")
	speed, text, _ := strings.Cut(skipBlanks(text), " ")
	if !r.rate.setWidth(width) {
		return p.expected("width and speed, as in 4x HDR, not %q", fabric.Clip(width+" "+speed))
	}
	if !r.rate.setSpeed(strings.ToLower(speed)) {
		p.unknown.add(p.at, speed)
	}
	text = skipBlanks(text)
	if far, ok := strings.CutPrefix(text, "- "); ok {
		r.connected = true
		text, ok = reportEnd(far, &r.far)
		names, opened := strings.CutPrefix(text, "( '")
		names, closed := strings.CutSuffix(names, "' )")
		parts := strings.Split(names, "' - '")
		if !ok || !opened || !closed || len(parts) != 2 {
			return p.expected("the other end, and the names of both, as in - SW     1  5 0x0002c90300001000 ( 'node-1 HCA-1' - 'leaf 1' ): %q", p.shown())
		}
		r.near.name, r.far.name = parts[0], parts[1]
	} else {
		name, opened := strings.CutPrefix(text, "'")
		name, closed := strings.CutSuffix(name, "'")
		if !opened || !closed {
			return p.expected("the name of the node in single quotes: %q", p.shown())
		}
		r.near.name = name
	}
	p.rows = append(p.rows, r)
	return nil
}

// reportEnd parses `CA     3  1 0x0002c90300000011 `.
func reportEnd(s string, e *portEnd) (rest string, ok bool) {
	word, rest, _ := strings.Cut(s, " ")
	if e.t, ok = reportTypes[word]; !ok {
		return s, false
	}
	if e.lid, e.num, rest, ok = lidNumber(rest); !ok {
		return s, false
	}
	e.guid, rest, ok = listGUID(rest)
	return rest, ok
}

// linkHeader parses the line above the lines of a node: `Switch: 0x0002c90300001030 leaf 1:`,
// `CA: node-1 HCA-1:`; before 2011 `Switch 0x0002c90300001030 leaf 1:`.
func linkHeader(s string) (e portEnd, ok bool) {
	for _, k := range []struct {
		word string
		t    mad.NodeType
	}{{"Switch: ", mad.NodeTypeSwitch}, {"CA: ", mad.NodeTypeCA}, {"Router: ", mad.NodeTypeRouter}, {"Switch ", mad.NodeTypeSwitch}} {
		name, is := strings.CutPrefix(s, k.word)
		name, ends := strings.CutSuffix(name, ":")
		if !is || !ends {
			continue
		}
		if e.t = k.t; e.t == mad.NodeTypeSwitch {
			if e.guid, name, is = listGUID(name); !is || k.word == "Switch " && name == "" {
				return e, false
			}
		}
		e.name = listName(name)
		return e, true
	}
	return e, false
}

// listName returns a name without blanks around it: iblinkinfo pads with them in one place, and
// omits them in another.
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
		p.couldBe(&r, far[i+1:])
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

// speedTexts are the texts of linkSpeeds, the longest first.
var speedTexts = slices.SortedFunc(maps.Keys(linkSpeeds), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })

// couldBe parses the verdict of iblinkinfo behind the other end (iblinkinfo.c, get_msg): `( )`
// where a link that is up has what both ends support, else `( Could be 4X / 53.125 Gbps )`.
func (p *portList) couldBe(r *portRow, s string) {
	if r.state == 0 || r.state == mad.PortStateDown || r.rate.widths == 0 || r.rate.speeds == 0 {
		return
	}
	text := strings.TrimSpace(strings.NewReplacer("(", " ", ")", " ").Replace(s))
	if strings.Contains(s, "(FDR10)") {
		text = strings.TrimSpace(strings.Trim(strings.TrimSpace(s), "()")) + ")"
	}
	best, rest := r.rate, strings.ReplaceAll(text, "Could be", " ")
	for _, speed := range speedTexts {
		if i := strings.Index(rest, speed); i >= 0 && (i == 0 || strings.IndexByte(" /", rest[i-1]) >= 0) {
			best.setSpeed(linkSpeeds[speed])
			rest = rest[:i] + rest[i+len(speed):]
			break
		}
	}
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" /,", r) }) {
		if !best.setWidth(strings.ToLower(word)) || best.widths == 0 {
			p.unknown.add(p.at, text)
			return
		}
	}
	r.best = best
}

// unknownTexts counts texts of widths and speeds that are unknown: of a later generation, or
// damaged.
type unknownTexts struct{ strayLines }

// problems returns the problem that quotes the first of them.
func (u *unknownTexts) problems() []fabric.Problem {
	if u.n == 0 {
		return nil
	}
	return []fabric.Problem{{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s: %s an unknown width or speed, which stays unknown: %q", u.first, plural.Count(u.n, "line has", "lines have"), u.text)}}
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
	text := strings.Join(words[1:], " ")
	if speed, known := linkSpeeds[text]; known {
		r.rate.setSpeed(speed)
	} else if !strings.HasPrefix(text, "undefined") && r.state != mad.PortStateDown {
		p.unknown.add(p.at, text)
	}
	return r.state != 0
}
