package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindDBCSV is the data base of ibdiagnet.
const KindDBCSV FormatName = "ibdiagnet-db-csv"

var ibdiagnetDB = fileFormat{
	kind:  KindDBCSV,
	about: "the data base of ibdiagnet (ibdiagnet2.db_csv)",
	file:  "`ibdiagnet2.db_csv` of ibdiagnet: nodes, ports, links, counters",
	sniff: func(l *headLine) bool { return isSection(l.text, "START_") },
	load:  loadDBCSV,
}

// isSection reports whether a line begins or ends a section: START_PM_INFO.
func isSection(line []byte, prefix string) bool {
	name, ok := bytes.CutPrefix(line, []byte(prefix))
	return ok && len(name) > 0 && len(bytes.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")) == 0
}

// loadDBCSV reads the data base that ibdiagnet writes: sections of comma-separated
// values, each with the names of its columns in the first line (Mellanox/ufm_sdk_3.0
// plugins/UFM_NDT_Plugin ibdiag_db_csv_parser.py; names of columns as the readers of
// other projects have them). Columns are found by name, in any order; unknown columns and
// sections are skipped.
//
// NodeInfo, SwitchInfo, PortInfo and the counters become answers of the nodes.
// An attribute that the file has only in part is left out, because 0 would be an answer; so is a
// key.
func loadDBCSV(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	d := newDBReader(newLines(r, name))
	seen := map[string]bool{}
	for d.next() {
		if !isSection(d.text, "START_") {
			continue
		}
		section := string(d.text[len("START_"):])
		seen[section] = true
		if i := slices.IndexFunc(dbSections, func(s dbSection) bool { return s.name == section }); i >= 0 {
			d.section(&dbSections[i])
		} else {
			d.section(&dbSection{name: section})
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	if len(d.nodes) == 0 {
		return nil, fmt.Errorf("%s: no section NODES with a line for each node", name)
	}
	for _, s := range dbSections {
		switch {
		case seen[s.name]:
		case s.name == dbLinks:
			d.noLinks = fmt.Sprintf("%s has no section %s: links are unknown", name, dbLinks)
		case s.when == always:
			d.cutShorts = append(d.cutShorts, fmt.Sprintf("%s has no section %s; the file may be cut short", name, s.name))
		case s.when == usually:
			d.lacks["has no section "+s.name]++
			d.endless = true
		}
	}
	if d.cut {
		d.cutShorts = append(d.cutShorts, fmt.Sprintf("%s: the last line has no line end; the file may be cut short", d.at))
	}
	return d.build()
}

// dbSection is a section of which something is made. What is made of others, dbAttributes and
// dbRegisters have; columns that none of these has, and all other sections, are kept as text.
type dbSection struct {
	name    string
	when    dbPresence
	columns []string // that must be there
	row     func(d *dbReader)
	other   string // columns that row reads, or that are not kept
}

// dbPresence is when a file has a section.
type dbPresence uint8

const (
	sometimes dbPresence = iota
	usually              // ibdiagnet may leave it out; without it, the end of the file is unknown
	always               // without it, the nodes, ports and links of the fabric are not all known
)

// dbSections are all of them. NODES is the first in the file.
var dbSections = []dbSection{
	{"NODES", always, []string{"NodeGUID", "NodeType", "NumPorts"}, (*dbReader).node, "NodeDesc LocalPortNum BaseVersion ClassVersion SystemImageGUID PortGUID VendorID DeviceID revision PartitionCap"},
	{"PORTS", always, []string{"NodeGuid", "PortNum"}, (*dbReader).port, "PortGuid MKey"},
	{"SWITCHES", usually, []string{"NodeGUID"}, (*dbReader).switchInfo, ""},
	{dbLinks, always, []string{"NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"}, (*dbReader).link, ""},
	{"PORT_HIERARCHY_INFO", sometimes, []string{"NodeGUID", "PortNum", "Label"}, (*dbReader).label, ""},
	{"PM_INFO", usually, []string{"NodeGUID", "PortNumber"}, (*dbReader).counters, "PortGUID"},
	{"RUN_INFO", sometimes, []string{"Date"}, (*dbReader).runInfo, ""},
	{"PKEY", sometimes, []string{"NodeGUID", "LocalPortNum", "BlockNum", "Index", "PKey", "Membership"}, (*dbReader).pkey, "PortGUID"},
	{"INDEX_TABLE", sometimes, nil, nil, "Name Offset Size Line Rows"},
}

// isKeyColumn reports whether a column has keys: MKey, Sm_Key.
func isKeyColumn(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	return strings.HasSuffix(name, "key") && name != "pkey" && name != "qkey"
}

// dbLinks is the section of links.
const dbLinks = "LINKS"

// maxText is how much memory the text of sections takes, in bytes.
const maxText = 128 << 20

type dbReader struct {
	*csvLines
	nodes   []fabric.NodeSpec
	ids     map[mad.GUID]int // nodes by GUID
	total   int              // ports of all nodes
	rows    int              // of the section
	columns map[string]int   // of the section
	blocks  []dbBlock        // attributes in the section
	ports   []dbPort
	links   []dbLink
	labels  []dbLabel
	counts  []dbCounts                           // of indices of nodes
	agents  map[dbAgent]map[mad.AttributeID]uint // the sets of each attribute
	began   time.Time                            // of the run; zero: unknown
	seen    map[dbKey]bool
	lacks   map[string]int // what the file lacks, and of how many nodes or ports

	cutShorts []string // signs that the file was cut short
	noLinks   string   // why links are unknown; "": the file has a section of them
	endless   bool     // sections are missing that may be left out, or were cut off

	plain        map[string]int // columns of the section, by plainColumn
	answers      []fabric.Answer
	registers    map[dbRegisterKey]dbRegisterAt // indices of answers
	supplies     map[int]int                    // lines of power supplies, by index of nodes
	announced    map[int][]byte                 // GeneralInfo, likewise
	hasRegisters map[int]bool                   // by index of nodes
	pkeys        map[dbBlockKey][]byte          // blocks of P_Key tables
	sections     []fabric.Section               // what is kept as text
	kept         [][]string                     // of the present section
	texts        int                            // bytes of it
	notKept      int                            // lines that are not kept
	textColumns  map[string][]string            // by section of dbSections: columns that are kept as text
}

// skipTo skips the rest of a section.
func (d *dbReader) skipTo(end, section string) {
	for string(d.text) != end {
		if !d.next() {
			d.cutShort(section)
			return
		}
	}
}

func (d *dbReader) cutShort(section string) {
	if d.err == nil {
		d.fail("END_%s: the file is cut short", section)
	}
}

func newDBReader(l *lines) *dbReader {
	return &dbReader{csvLines: &csvLines{lines: l}, ids: map[mad.GUID]int{}, agents: map[dbAgent]map[mad.AttributeID]uint{},
		registers: map[dbRegisterKey]dbRegisterAt{}, supplies: map[int]int{}, announced: map[int][]byte{}, hasRegisters: map[int]bool{}, pkeys: map[dbBlockKey][]byte{}, textColumns: map[string][]string{}, seen: map[dbKey]bool{}, lacks: map[string]int{}}
}

// section reads a section.
func (d *dbReader) section(s *dbSection) {
	end := "END_" + s.name
	asText := s.row == nil // whatever it looks like
	switch more := d.next(); {
	case more && asText && (string(d.text) == end || !d.setHeader(',')):
		d.header, d.err = nil, nil
		d.skipTo(end, s.name)
		return
	case !more, string(d.text) == end, !asText && !d.setHeader(','):
		d.cutShort(s.name)
		return
	}
	keys := false
	d.rows, d.columns, d.plain = 0, make(map[string]int, len(d.header)), make(map[string]int, len(d.header))
	for i, name := range d.header {
		name = strings.TrimSpace(name)
		if _, twice := d.columns[name]; !twice {
			d.columns[name] = i
			d.plain[plainColumn(name)] = i
		}
		keys = keys || isKeyColumn(name)
	}
	for _, name := range s.columns {
		if _, ok := d.columns[name]; !ok {
			if _, states := d.columns["NodeDesc"]; states && s.name == "NODES" && name == "NumPorts" {
				d.err = fmt.Errorf("%s: a data base of OpenSM (opensm-smdb.dump), which lacks the numbers of ports of nodes; name opensm-subnet.lst, or the directory with both", d.at.file)
				return
			}
			d.fail("column %s in section %s: %q", name, s.name, d.shown())
			return
		}
	}
	d.blocks = nil
	for i := range dbAttributes {
		if a := &dbAttributes[i]; a.section == s.name {
			d.blocks = append(d.blocks, d.blockOf(a))
		}
	}
	text := d.textOf(s)
	defer func() { d.keyed = false; d.keep(s, text) }()
	var registers []*dbRegister
	for i := range dbRegisters() {
		if r := &dbRegisters()[i]; r.section == s.name {
			registers = append(registers, r)
		}
	}
	for d.next() {
		switch {
		case string(d.text) == end:
			return
		case len(bytes.TrimSpace(d.text)) == 0:
			continue
		}
		if d.rows++; d.rows > maxTotalPorts && !asText {
			d.fail("at most %d lines in section %s", maxTotalPorts, s.name)
			return
		}
		d.keyed = keys
		if split := d.split(); asText && (!split || len(d.fields) > len(d.header)) {
			d.err = nil
			d.notKept++
			continue
		} else if !split {
			return
		}
		d.keyed = keys && len(d.fields) != len(d.header) // a key may stand in another column
		if len(d.fields) > len(d.header) {
			d.fail("%d fields, as many as section %s has columns, not %d: %q", len(d.header), s.name, len(d.fields), d.shown())
			return
		}
		if s.row != nil {
			s.row(d)
		}
		for _, r := range registers {
			d.register(r)
		}
		if d.err != nil {
			return
		}
		d.keepLine(text)
	}
	d.cutShort(s.name)
}

// cell returns the field of a column; empty: there is no such column.
func (d *dbReader) cell(column string) []byte {
	i, ok := d.columns[column]
	if !ok {
		return nil
	}
	return d.field(i)
}

// dbAbsent is the least of the numbers that stand for a missing value: counters that a device does
// not have are 0xfffffffffffffffe.
const dbAbsent = 1<<64 - 2

// dbUnsupported stands in a decimal column for a counter that the device does not have.
const dbUnsupported = "-1"

// dbNumber returns the number of a cell, in decimal or with 0x. It is unknown where the cell is
// empty, N/A or -1, and not ok where it is something else.
func dbNumber(cell []byte) (v uint64, known, ok bool) {
	switch string(cell) {
	case "", "N/A", "NA", dbUnsupported:
		return 0, false, true
	}
	if v, rest, ok := hex(cell); ok && len(rest) == 0 {
		return v, v < dbAbsent, true
	}
	for _, c := range cell {
		digit := uint64(c - '0')
		if digit > 9 || v > (1<<64-1-digit)/10 {
			return 0, false, false
		}
		v = 10*v + digit
	}
	return v, v < dbAbsent, true
}

// number returns the number in a column; 0 where it is unknown, which is an error if must is set.
func (d *dbReader) number(column string, limit uint64, must bool) uint64 {
	v, known, ok := dbNumber(d.cell(column))
	if d.err == nil && (!ok || v > limit && known || must && !known) {
		d.fail("a number up to %d in column %s, not %q", limit, column, fabric.Clip(string(d.cell(column))))
	}
	if !known {
		return 0
	}
	return v
}

func (d *dbReader) guid(column string) mad.GUID {
	return mad.GUID(d.number(column, dbAbsent-1, true))
}

// node takes a line of NODES.
func (d *dbReader) node() {
	s := fabric.NodeSpec{Name: string(d.cell("NodeDesc"))}
	i := &s.Info
	i.NodeGUID, i.NodeType = d.guid("NodeGUID"), mad.NodeType(d.number("NodeType", 255, true))
	i.NumPorts, i.LocalPortNum = uint8(d.number("NumPorts", maxPorts, true)), uint8(d.number("LocalPortNum", 255, false))
	i.BaseVersion, i.ClassVersion = uint8(d.number("BaseVersion", 255, false)), uint8(d.number("ClassVersion", 255, false))
	i.SystemImageGUID, i.PortGUID = mad.GUID(d.number("SystemImageGUID", dbAbsent-1, false)), mad.GUID(d.number("PortGUID", dbAbsent-1, false))
	i.VendorID, i.DeviceID = uint32(d.number("VendorID", 1<<24-1, false)), uint16(d.number("DeviceID", 1<<16-1, false))
	i.Revision, i.PartitionCap = uint32(d.number("revision", 1<<32-1, false)), uint16(d.number("PartitionCap", 1<<16-1, false))
	if d.err != nil {
		return
	}
	if _, twice := d.ids[i.NodeGUID]; twice {
		d.fail("one node with GUID %s", i.NodeGUID)
		return
	}
	d.total += int(i.NumPorts) + 1
	if want := tooManyPorts(d.total, d.bytes); want != "" || len(d.nodes) >= maxNodes {
		if want == "" {
			want = fmt.Sprintf("at most %d nodes", maxNodes)
		}
		d.fail("%s", want)
		return
	}
	d.ids[i.NodeGUID] = len(d.nodes)
	d.nodes = append(d.nodes, s)
}

// nodeOf returns the index of the node whose GUID a column has.
func (d *dbReader) nodeOf(column string) int {
	guid := d.guid(column)
	i, ok := d.ids[guid]
	if d.err == nil && !ok {
		d.fail("the GUID of a node of section NODES, above, in column %s, not %s", column, guid)
	}
	return i
}

// dbKey identifies an attribute of a port, or of a node (port 0), of which a file has one line.
type dbKey struct {
	node, num int
	attr      mad.AttributeID
}

// dbLabels stands for the labels of ports, which no attribute has, in a dbKey.
const dbLabels mad.AttributeID = 0

// place returns the node and the port that columns name. It fails if the node does not have the
// port, or if the section has another line for it.
func (d *dbReader) place(node, port string, attr mad.AttributeID) (i, num int) {
	i, num = d.nodeOf(node), int(d.number(port, maxPorts, true))
	if d.err != nil {
		return 0, 0
	}
	n := &d.nodes[i].Info
	if num > int(n.NumPorts) || num == 0 && n.NodeType != mad.NodeTypeSwitch || d.seen[dbKey{i, num, attr}] {
		d.fail("a port that node %s has, and one line for it, not port %d", n.NodeGUID, num)
	}
	d.seen[dbKey{i, num, attr}] = true
	return i, num
}

// link takes a line of LINKS.
func (d *dbReader) link() {
	l := dbLink{line: int32(d.at.line)}
	for i, end := range []string{"1", "2"} {
		l.nodes[i], l.nums[i] = int32(d.nodeOf("NodeGuid"+end)), uint8(d.number("PortNum"+end, maxPorts, true))
	}
	d.links = append(d.links, l)
}

type dbLink struct {
	line  int32
	nodes [2]int32
	nums  [2]uint8
}

// port takes a line of PORTS.
func (d *dbReader) port() {
	p := dbPort{guid: mad.GUID(d.number("PortGuid", dbAbsent-1, false))}
	p.node, p.num = d.place("NodeGuid", "PortNum", mad.AttrPortInfo.ID)
	if data := d.attribute(0); data != nil {
		p.fdr10 = dbSpeeds(d, data)
		p.info = new(mad.PortInfo)
		p.info.Decode(data)
	}
	d.ports = append(d.ports, p)
}

type dbPort struct {
	node, num int
	guid      mad.GUID
	fdr10     bool
	info      *mad.PortInfo // nil: unknown
}

// label takes a line of PORT_HIERARCHY_INFO.
func (d *dbReader) label() {
	l := dbLabel{text: string(d.cell("Label"))}
	if l.node, l.num = d.place("NodeGUID", "PortNum", dbLabels); isLabel(l.text) && l.text != "N/A" {
		d.labels = append(d.labels, l)
	}
}

type dbLabel struct {
	node, num int
	text      string
}

// switchInfo takes a line of SWITCHES.
func (d *dbReader) switchInfo() {
	i := d.nodeOf("NodeGUID")
	if data := d.attribute(0); data != nil {
		d.nodes[i].Switch = new(mad.SwitchInfo)
		d.nodes[i].Switch.Decode(data)
	}
}

// counters takes a line of PM_INFO.
func (d *dbReader) counters() {
	i, num := d.place("NodeGUID", "PortNumber", mad.AttrPortCounters.ID)
	agent := dbAgent{i, 0}
	if d.nodes[i].Info.NodeType != mad.NodeTypeSwitch {
		agent.num = num
	}
	for k := range d.blocks {
		attr := d.blocks[k].attr
		data := d.attribute(k)
		if data == nil {
			continue
		}
		attr.Field("port_select").SetUint(data, uint64(num))
		sets := d.blocks[k].known
		if d.agents[agent] == nil {
			d.agents[agent] = map[mad.AttributeID]uint{}
		}
		d.agents[agent][attr.ID] |= sets
		d.counts = append(d.counts, dbCounts{agent, sets, fabric.Answer{Node: int32(i), Port: int16(num), Class: attr.Class, ID: attr.ID, Data: slices.Clone(data[:attr.Size])}})
	}
}

// dbAgent is an agent of performance management: of a switch (port 0), or of a port of an adapter.
type dbAgent struct{ node, num int }

// dbCounts is an attribute with the counters of a port, and which of the attribute's sets it has,
// bit by bit.
type dbCounts struct {
	agent  dbAgent
	sets   uint
	answer fabric.Answer
}

// counterAnswers returns the counters of ports, and for each agent the ClassPortInfo that announces the
// sets of counters which its ports have. A port that lacks a set which others of the
// agent have is left without the attribute, whose 0 would be an answer.
func (d *dbReader) counterAnswers() (list []fabric.Answer) {
	for _, c := range d.counts {
		if c.sets != d.agents[c.agent][c.answer.ID] {
			d.lacks["has no "+mad.Lookup(c.answer.Class, c.answer.ID).Name+" of a port: it lacks counters that others of the node have"]++
			continue
		}
		list = append(list, c.answer)
	}
	for at, attrs := range d.agents {
		info := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1}
		for i := range dbAttributes {
			for k, set := range dbAttributes[i].sets {
				if attrs[dbAttributes[i].attr.ID]>>k&1 != 0 {
					info.CapabilityMask |= uint16(set.caps)
					info.CapabilityMask2 |= uint32(set.caps2)
				}
			}
		}
		data := make([]byte, mad.AttrPerfClassPortInfo.Size)
		info.Encode(data)
		list = append(list, fabric.Answer{Node: int32(at.node), Port: int16(at.num), Class: mad.ClassPerf, ID: mad.AttrPerfClassPortInfo.ID, Data: data})
	}
	return list
}

// runInfo takes the line of RUN_INFO, which has the time of the run.
func (d *dbReader) runInfo() {
	d.setBegan(string(d.cell("Date")))
}

// build returns the fabric that was read.
func (d *dbReader) build() (*fabric.Fabric, error) {
	b := fabric.NewBuilder()
	for i := range d.nodes {
		b.AddNode(d.nodes[i])
	}
	for i := range d.ports {
		p := &d.ports[i]
		if p.info != nil {
			b.SetPort(p.node, p.num, p.info)
			b.SetFDR10(p.node, p.num, p.fdr10)
		}
		if p.guid != 0 && (p.num == 0 || d.nodes[p.node].Info.NodeType != mad.NodeTypeSwitch) {
			b.SetPortGUID(p.node, p.num, p.guid)
		}
	}
	for _, l := range d.labels {
		b.SetLabel(l.node, l.num, l.text)
	}
	for i := range d.links {
		l := &d.links[i]
		if err := b.Link(int(l.nodes[0]), int(l.nums[0]), int(l.nodes[1]), int(l.nums[1])); err != nil {
			return nil, fmt.Errorf("%s: expected ports that are free: %w", pos{d.at.file, int(l.line)}, err)
		}
	}
	for _, a := range d.counterAnswers() {
		b.AddAnswer(a)
	}
	b.SetCountersRead(d.began)
	d.addRegisters(b)
	for _, s := range d.sections {
		b.AddSection(s)
	}
	d.addLacks(b)
	for _, text := range d.cutShorts {
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemCut, Text: text})
	}
	if d.noLinks != "" {
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemNoLinks, Text: d.noLinks})
	}
	if d.endless {
		b.SetEndUnknown()
	}
	return b.Build(), nil
}

// addLacks reports what the file lacks, and which sections were not read.
func (d *dbReader) addLacks(b *fabric.Builder) {
	left := func(format string, args ...any) {
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: d.at.file + ": " + fmt.Sprintf(format, args...)})
	}
	var names []string
	for _, s := range d.sections {
		if _, declared := d.textColumns[s.Name]; !declared && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		left("%s kept as text: %s", plural.Count(len(names), "section is", "sections are"), listOf(names))
	}
	for name, columns := range d.textColumns {
		if len(columns) == 0 {
			continue
		}
		left("%s of section %s kept as text: %s", plural.Count(len(columns), "column", "columns"), name, listOf(columns))
	}
	if d.notKept > 0 {
		left("%s of sections not kept: they take more than %d MB", plural.Count(d.notKept, "line", "lines"), maxText>>20)
	}
	for what, n := range d.lacks {
		text := fmt.Sprintf("%s %s", d.at.file, what)
		if n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: text})
	}
}

// dbAttribute is an attribute whose fields are columns of a section.
type dbAttribute struct {
	section string
	attr    *mad.Attribute
	columns string  // column=field, for all fields that must be known; field alone where they are spelt alike
	maybe   string  // likewise, for columns that older files, or some nodes, do not have
	sets    []dbSet // of counters that only some agents have
	// single: a device may lack single counters of columns, which it sends as 0 and ibdiagnet
	// writes as -1, by the OptionMask of PortSamplesControl.
	single bool
}

// dbSet is counters that an agent has or lacks as a whole, and the capability by which it announces
// them.
type dbSet struct {
	columns string
	caps    mad.PerfCapabilityMask
	caps2   mad.PerfCapabilityMask2
}

// dbAttributes are all attributes that are read. The columns are named as in real files: PORTS
// and SWITCHES as readers of ibdiagnet's data base declare them, PM_INFO as
// they use them. Speeds are in dbSpeeds.
var dbAttributes = []dbAttribute{
	{section: "PORTS", attr: mad.AttrPortInfo,
		columns: "GIDPrfx=gid_prefix MSMLID=master_sm_lid LID=lid CapMsk=capability_mask M_KeyLeasePeriod=m_key_lease_period DiagCode=diag_code " +
			"LinkWidthActv=link_width_active LinkWidthSup=link_width_supported LinkWidthEn=link_width_enabled LocalPortNum=local_port_num LMC=lmc " +
			"MKeyProtBits=m_key_protect_bits LinkDownDefState=link_down_default_state PortPhyState=port_physical_state PortState=port_state " +
			"VLArbHighCap=vl_arbitration_high_cap VLHighLimit=vl_high_limit VLArbLowCap=vl_arbitration_low_cap VLCap=vl_cap MSMSL=master_sm_sl " +
			"NMTU=neighbor_mtu MTUCap=mtu_cap OpVLs=operational_vls HoQLife=hoq_life VLStallCnt=vl_stall_count " +
			"FilterRawOutb=filter_raw_outbound FilterRawInb=filter_raw_inbound PartEnfOutb=partition_enforcement_outbound PartEnfInb=partition_enforcement_inbound " +
			"PKeyViolations=p_key_violations MKeyViolations=m_key_violations QKeyViolations=q_key_violations SubnTmo=subnet_time_out GUIDCap=guid_cap " +
			"OverrunErrs=overrun_errors LocalPhyError=local_phy_errors RespTimeValue=resp_time_value LinkSpeedActv= LinkSpeedSup= LinkSpeedEn=",
		maybe: "InitType=init_type InitTypeReply=init_type_reply MulticastPKeyTrapSuppressionEnabled=multicast_p_key_trap_suppression_enabled ClientReregister=client_reregister " +
			"MaxCreditHint=max_credit_hint LinkRoundTripLatency=link_round_trip_latency CapMsk2=capability_mask2"},
	{section: "SWITCHES", attr: mad.AttrSwitchInfo,
		columns: "LinearFDBCap=linear_fdb_cap RandomFDBCap=random_fdb_cap MCastFDBCap=multicast_fdb_cap LinearFDBTop=linear_fdb_top DefPort=default_port " +
			"DefMCastPriPort=default_multicast_primary_port DefMCastNotPriPort=default_multicast_not_primary_port LifeTimeValue=life_time_value PortStateChange=port_state_change " +
			"LidsPerPort=lids_per_port PartEnfCap=partition_enforcement_cap InbEnfCap=inbound_enforcement_cap OutbEnfCap=outbound_enforcement_cap " +
			"FilterRawInbCap=filter_raw_packet_inbound_cap FilterRawOutbCap=filter_raw_packet_outbound_cap ENP0=enhanced_port0",
		maybe: "OptimizedSLVLMapping=optimized_sl_to_vl_mapping_programming MCastFDBTop=multicast_fdb_top"},
	{section: "PM_INFO", attr: mad.AttrPortCounters,
		columns: "SymbolErrorCounter LinkErrorRecoveryCounter LinkDownedCounter PortRcvErrors PortRcvRemotePhysicalErrors PortRcvSwitchRelayErrors PortXmitDiscards " +
			"PortXmitConstraintErrors PortRcvConstraintErrors LocalLinkIntegrityErrors ExcessiveBufferOverrunErrors VL15Dropped " +
			"PortXmitData PortRcvData PortXmitPkts PortRcvPkts",
		sets: []dbSet{
			{columns: "PortXmitWait", caps: mad.PerfCapabilityMaskPortCountersXmitWaitSupported},
			{columns: "QP1Dropped", caps: mad.PerfCapabilityMaskIsQP1DroppedSupported},
		}},
	{section: "PM_INFO", attr: mad.AttrPortCountersExtended,
		columns: "PortXmitDataExtended=port_xmit_data PortRcvDataExtended=port_rcv_data PortXmitPktsExtended=port_xmit_pkts PortRcvPktsExtended=port_rcv_pkts",
		sets: []dbSet{
			{caps: mad.PerfCapabilityMaskIsExtendedWidthSupportedNoIETF},
			{columns: "PortUniCastXmitPkts=port_unicast_xmit_pkts PortUniCastRcvPkts=port_unicast_rcv_pkts PortMultiCastXmitPkts=port_multicast_xmit_pkts PortMultiCastRcvPkts=port_multicast_rcv_pkts",
				caps: mad.PerfCapabilityMaskIsExtendedWidthSupported},
			{columns: "SymbolErrorCounterExt=symbol_error_counter LinkErrorRecoveryCounterExt=link_error_recovery_counter LinkDownedCounterExt=link_downed_counter PortRcvErrorsExt=port_rcv_errors " +
				"PortRcvRemotePhysicalErrorsExt=port_rcv_remote_physical_errors PortRcvSwitchRelayErrorsExt=port_rcv_switch_relay_errors PortXmitDiscardsExt=port_xmit_discards " +
				"PortXmitConstraintErrorsExt=port_xmit_constraint_errors PortRcvConstraintErrorsExt=port_rcv_constraint_errors LocalLinkIntegrityErrorsExt=local_link_integrity_errors " +
				"ExcessiveBufferOverrunErrorsExt=excessive_buffer_overrun_errors VL15DroppedExt=vl15_dropped",
				caps2: mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported},
			{columns: "PortXmitWaitExt=port_xmit_wait", caps: mad.PerfCapabilityMaskPortCountersXmitWaitSupported},
			{columns: "QP1DroppedExt=qp1_dropped", caps: mad.PerfCapabilityMaskIsQP1DroppedSupported},
		}},
	{section: "PM_INFO", attr: mad.AttrPortRcvErrorDetails, single: true,
		columns: "PortLocalPhysicalErrors PortMalformedPacketErrors PortBufferOverrunErrors PortDLIDMappingErrors PortVLMappingErrors PortLoopingErrors"},
	{section: "PM_INFO", attr: mad.AttrPortXmitDiscardDetails, single: true,
		columns: "PortInactiveDiscards PortNeighborMTUDiscards PortSwLifetimeLimitDiscards PortSwHOQLifetimeLimitDiscards"},
}

// dbBlock is an attribute in a section of a file.
type dbBlock struct {
	*dbAttribute
	fields []dbField
	whole  bool // the section has all columns that must be known
	data   []byte
	known  uint // the sets that the present line has, bit by bit
}

type dbField struct {
	column string
	field  *mad.Field // nil: dbSpeeds sets it
	must   bool
	set    int // of the attribute; -1: none
}

// blockOf finds the columns of an attribute. Missing columns are added to what the file
// lacks.
func (d *dbReader) blockOf(a *dbAttribute) dbBlock {
	b := dbBlock{dbAttribute: a, whole: true, data: make([]byte, a.attr.Size)}
	lists := []string{a.columns, a.maybe}
	for _, set := range a.sets {
		lists = append(lists, set.columns)
	}
	var missing []string
	for i, list := range lists {
		for word := range strings.FieldsSeq(list) {
			column, field, apart := strings.Cut(word, "=")
			if !apart {
				field = mad.SnakeName(column)
			}
			if _, ok := d.columns[column]; ok || i > 1 {
				b.fields = append(b.fields, dbField{column, a.attr.Field(field), i == 0, i - 2})
			} else if i == 0 {
				missing = append(missing, column)
			}
		}
	}
	if len(missing) > 0 {
		b.whole = false
		d.lacks["has no "+a.attr.Name+": section "+a.section+" has no column "+some(missing)]++
	}
	return b
}

// attribute returns block i of the present line, valid until the next line; nil where the file
// does not have all of it.
func (d *dbReader) attribute(i int) []byte {
	b := &d.blocks[i]
	if !b.whole || d.err != nil {
		return nil
	}
	clear(b.data)
	b.known = 1<<len(b.sets) - 1
	lacking, single, any := "", "", false // columns
	for _, f := range b.fields {
		cell := d.cell(f.column)
		v, known, ok := dbNumber(cell)
		switch {
		case !ok, known && f.field != nil && v > f.field.Max():
			d.fail("a number that %s of %s can have in column %s, not %q", mad.SnakeName(f.column), b.attr.Name, f.column, fabric.Clip(string(cell)))
			return nil
		case known && f.field != nil:
			f.field.SetUint(b.data, v)
			any = true
		case known:
		case f.set >= 0:
			b.known &^= 1 << f.set
		case f.must && b.single && string(cell) == dbUnsupported:
			single = cmp.Or(single, f.column)
		case f.must:
			lacking = cmp.Or(lacking, f.column)
		}
	}
	switch {
	case lacking == "" && (single == "" || any):
		if single != "" {
			d.lacks["has -1 as "+single+", which the device does not count: 0 in "+b.attr.Name]++
		}
		for _, f := range b.fields { // without one of its counters, a set is unknown
			if f.set >= 0 && b.known>>f.set&1 == 0 {
				f.field.SetUint(b.data, 0)
			}
		}
		return b.data
	case lacking != "":
		d.lacks["does not know "+lacking+", so has no "+b.attr.Name+" of that port or node"]++
	}
	return nil
}

// dbSpeeds puts the speeds of a port in its PortInfo. A mask of ibdiagnet has four
// bytes, from the lowest: LinkSpeed, LinkSpeedExt, Mellanox' own (FDR10, EDR20),
// LinkSpeedExt2 (ibutils2 ibdm/Fabric.h, IBLinkSpeed). fdr10 reports whether FDR10 is active.
func dbSpeeds(d *dbReader, data []byte) (fdr10 bool) {
	for _, c := range []struct{ column, suffix string }{{"LinkSpeedActv", "active"}, {"LinkSpeedSup", "supported"}, {"LinkSpeedEn", "enabled"}} {
		v, _, _ := dbNumber(d.cell(c.column))
		if v >= 1<<32 {
			d.fail("four bytes of speeds in column %s, not %q", c.column, fabric.Clip(string(d.cell(c.column))))
			return false
		}
		if c.suffix == "active" && v>>16&1 != 0 {
			fdr10, v = true, v|uint64(mad.LinkSpeedQDR)
		}
		for _, part := range []struct {
			name   string
			speeds uint64
		}{{"link_speed_" + c.suffix, v & 0xff}, {"link_speed_ext_" + c.suffix, v >> 8 & 0xff}, {"link_speed_ext_" + c.suffix + "2", v >> 24}} {
			f := mad.AttrPortInfo.Field(part.name)
			if part.speeds > f.Max() {
				d.fail("speeds that PortInfo has in column %s, not %q", c.column, fabric.Clip(string(d.cell(c.column))))
				return false
			}
			f.SetUint(data, part.speeds)
		}
	}
	return fdr10
}
