package format

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

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
	d := &dbReader{csvLines: &csvLines{lines: newLines(r, name)}, ids: map[mad.GUID]int{}, seen: map[dbKey]bool{}, lacks: map[string]int{}}
	seen := map[string]bool{}
	for d.next() {
		if !isSection(d.text, "START_") {
			continue
		}
		section := string(d.text[len("START_"):])
		i := slices.IndexFunc(dbSections, func(s dbSection) bool { return s.name == section })
		if i < 0 {
			if d.unread++; d.unread <= maxUnread && !slices.Contains(d.unreadNames, section) {
				d.unreadNames = append(d.unreadNames, section)
			}
			d.skip(section)
			continue
		}
		seen[section] = true
		d.section(&dbSections[i])
	}
	if d.err != nil {
		return nil, d.err
	}
	if len(d.nodes) == 0 {
		return nil, fmt.Errorf("%s: no section NODES with a line for each node", name)
	}
	for _, s := range dbSections {
		if !seen[s.name] {
			d.lacks["has no section "+s.name]++
		}
	}
	return d.build()
}

// dbSection is a section that is read.
type dbSection struct {
	name    string
	columns []string // that must be there
	row     func(d *dbReader)
}

// dbSections are all sections that are read. NODES is the first in the file.
var dbSections = []dbSection{
	{"NODES", []string{"NodeGUID", "NodeType", "NumPorts"}, (*dbReader).node},
	{"PORTS", []string{"NodeGuid", "PortNum"}, (*dbReader).port},
	{"SWITCHES", []string{"NodeGUID"}, (*dbReader).switchInfo},
	{"LINKS", []string{"NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"}, (*dbReader).link},
	{"PM_INFO", []string{"NodeGUID", "PortNumber"}, (*dbReader).counters},
}

// maxUnread is how many sections that are not read a note names.
const maxUnread = 100

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
	answers []fabric.Answer // of indices of nodes
	seen    map[dbKey]bool
	lacks   map[string]int // what the file lacks, and of how many nodes or ports

	unread      int      // sections that are not read, and
	unreadNames []string // their names
}

// skip skips a section.
func (d *dbReader) skip(section string) {
	end := "END_" + section
	for d.next() {
		if string(d.text) == end {
			return
		}
	}
	d.cutShort(section)
}

func (d *dbReader) cutShort(section string) {
	if d.err == nil {
		d.fail("END_%s: the file is cut short", section)
	}
}

// section reads a section.
func (d *dbReader) section(s *dbSection) {
	end := "END_" + s.name
	if !d.next() || string(d.text) == end || !d.setHeader(',') {
		d.cutShort(s.name)
		return
	}
	d.rows, d.columns = 0, make(map[string]int, len(d.header))
	for i, name := range d.header {
		name = strings.TrimSpace(name)
		if _, twice := d.columns[name]; !twice {
			d.columns[name] = i
		}
	}
	for _, name := range s.columns {
		if _, ok := d.columns[name]; !ok {
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
	for d.next() {
		switch {
		case string(d.text) == end:
			return
		case len(bytes.TrimSpace(d.text)) == 0:
			continue
		}
		if d.rows++; d.rows > maxTotalPorts {
			d.fail("at most %d lines in section %s", maxTotalPorts, s.name)
			return
		}
		if !d.split() {
			return
		}
		if len(d.fields) > len(d.header) {
			d.fail("%d fields, as many as section %s has columns, not %d: %q", len(d.header), s.name, len(d.fields), d.shown())
			return
		}
		if s.row(d); d.err != nil {
			return
		}
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

// dbNumber returns the number of a cell, in decimal or with 0x. It is unknown where the cell is
// empty or N/A, and not ok where it is something else.
func dbNumber(cell []byte) (v uint64, known, ok bool) {
	switch string(cell) {
	case "", "N/A", "NA":
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
	for k := range d.blocks {
		attr := d.blocks[k].attr
		data := d.attribute(k)
		if data == nil {
			continue
		}
		attr.Field("port_select").SetUint(data, uint64(num))
		d.answers = append(d.answers, fabric.Answer{Node: int32(i), Port: int16(num), Class: attr.Class, ID: attr.ID, Data: slices.Clone(data[:attr.Size])})
	}
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
	for i := range d.links {
		l := &d.links[i]
		if err := b.Link(int(l.nodes[0]), int(l.nums[0]), int(l.nodes[1]), int(l.nums[1])); err != nil {
			return nil, fmt.Errorf("%s: expected ports that are free: %w", pos{d.at.file, int(l.line)}, err)
		}
	}
	for _, a := range d.answers {
		b.AddAnswer(a)
	}
	d.addLacks(b)
	return b.Build(), nil
}

// addLacks reports what the file lacks, and which sections were not read.
func (d *dbReader) addLacks(b *fabric.Builder) {
	if d.unread > 0 {
		slices.Sort(d.unreadNames)
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s: %s not read: %s", d.at.file, plural.Count(d.unread, "section was", "sections were"), strings.Join(d.unreadNames, ", "))})
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
	columns string // column=field, for all fields that must be known; field alone where they are spelt alike
	maybe   string // likewise, for columns that older files, or some nodes, do not have
}

// dbAttributes are all attributes that are read. The columns are named as in real files: PORTS
// and SWITCHES as readers of ibdiagnet's data base declare them, PM_INFO as
// they use them. Speeds are in dbSpeeds.
var dbAttributes = []dbAttribute{
	{"PORTS", mad.AttrPortInfo,
		"GIDPrfx=gid_prefix MSMLID=master_sm_lid LID=lid CapMsk=capability_mask M_KeyLeasePeriod=m_key_lease_period DiagCode=diag_code " +
			"LinkWidthActv=link_width_active LinkWidthSup=link_width_supported LinkWidthEn=link_width_enabled LocalPortNum=local_port_num LMC=lmc " +
			"MKeyProtBits=m_key_protect_bits LinkDownDefState=link_down_default_state PortPhyState=port_physical_state PortState=port_state " +
			"VLArbHighCap=vl_arbitration_high_cap VLHighLimit=vl_high_limit VLArbLowCap=vl_arbitration_low_cap VLCap=vl_cap MSMSL=master_sm_sl " +
			"NMTU=neighbor_mtu MTUCap=mtu_cap OpVLs=operational_vls HoQLife=hoq_life VLStallCnt=vl_stall_count " +
			"FilterRawOutb=filter_raw_outbound FilterRawInb=filter_raw_inbound PartEnfOutb=partition_enforcement_outbound PartEnfInb=partition_enforcement_inbound " +
			"PKeyViolations=p_key_violations MKeyViolations=m_key_violations QKeyViolations=q_key_violations SubnTmo=subnet_time_out GUIDCap=guid_cap " +
			"OverrunErrs=overrun_errors LocalPhyError=local_phy_errors RespTimeValue=resp_time_value LinkSpeedActv= LinkSpeedSup= LinkSpeedEn=",
		"InitType=init_type InitTypeReply=init_type_reply MulticastPKeyTrapSuppressionEnabled=multicast_p_key_trap_suppression_enabled ClientReregister=client_reregister " +
			"MaxCreditHint=max_credit_hint LinkRoundTripLatency=link_round_trip_latency CapMsk2=capability_mask2"},
	{"SWITCHES", mad.AttrSwitchInfo,
		"LinearFDBCap=linear_fdb_cap RandomFDBCap=random_fdb_cap MCastFDBCap=multicast_fdb_cap LinearFDBTop=linear_fdb_top DefPort=default_port " +
			"DefMCastPriPort=default_multicast_primary_port DefMCastNotPriPort=default_multicast_not_primary_port LifeTimeValue=life_time_value PortStateChange=port_state_change " +
			"LidsPerPort=lids_per_port PartEnfCap=partition_enforcement_cap InbEnfCap=inbound_enforcement_cap OutbEnfCap=outbound_enforcement_cap " +
			"FilterRawInbCap=filter_raw_packet_inbound_cap FilterRawOutbCap=filter_raw_packet_outbound_cap ENP0=enhanced_port0",
		"OptimizedSLVLMapping=optimized_sl_to_vl_mapping_programming MCastFDBTop=multicast_fdb_top"},
	{"PM_INFO", mad.AttrPortCounters,
		"SymbolErrorCounter LinkErrorRecoveryCounter LinkDownedCounter PortRcvErrors PortRcvRemotePhysicalErrors PortRcvSwitchRelayErrors PortXmitDiscards " +
			"PortXmitConstraintErrors PortRcvConstraintErrors LocalLinkIntegrityErrors ExcessiveBufferOverrunErrors VL15Dropped " +
			"PortXmitData PortRcvData PortXmitPkts PortRcvPkts PortXmitWait",
		"QP1Dropped"},
	{"PM_INFO", mad.AttrPortCountersExtended,
		"PortXmitDataExtended=port_xmit_data PortRcvDataExtended=port_rcv_data PortXmitPktsExtended=port_xmit_pkts PortRcvPktsExtended=port_rcv_pkts " +
			"PortUniCastXmitPkts=port_unicast_xmit_pkts PortUniCastRcvPkts=port_unicast_rcv_pkts PortMultiCastXmitPkts=port_multicast_xmit_pkts PortMultiCastRcvPkts=port_multicast_rcv_pkts " +
			"SymbolErrorCounterExt=symbol_error_counter LinkErrorRecoveryCounterExt=link_error_recovery_counter LinkDownedCounterExt=link_downed_counter PortRcvErrorsExt=port_rcv_errors " +
			"PortRcvRemotePhysicalErrorsExt=port_rcv_remote_physical_errors PortRcvSwitchRelayErrorsExt=port_rcv_switch_relay_errors PortXmitDiscardsExt=port_xmit_discards " +
			"PortXmitConstraintErrorsExt=port_xmit_constraint_errors PortRcvConstraintErrorsExt=port_rcv_constraint_errors LocalLinkIntegrityErrorsExt=local_link_integrity_errors " +
			"ExcessiveBufferOverrunErrorsExt=excessive_buffer_overrun_errors VL15DroppedExt=vl15_dropped PortXmitWaitExt=port_xmit_wait QP1DroppedExt=qp1_dropped", ""},
	{"PM_INFO", mad.AttrPortRcvErrorDetails,
		"PortLocalPhysicalErrors PortMalformedPacketErrors PortBufferOverrunErrors PortDLIDMappingErrors PortVLMappingErrors PortLoopingErrors", ""},
	{"PM_INFO", mad.AttrPortXmitDiscardDetails,
		"PortInactiveDiscards PortNeighborMTUDiscards PortSwLifetimeLimitDiscards PortSwHOQLifetimeLimitDiscards", ""},
}

// dbBlock is an attribute in a section of a file.
type dbBlock struct {
	attr   *mad.Attribute
	fields []dbField
	whole  bool // the section has all columns that must be known
	data   []byte
}

type dbField struct {
	column string
	field  *mad.Field // nil: dbSpeeds sets it
	must   bool
}

// blockOf finds the columns of an attribute. Missing columns are added to what the file
// lacks.
func (d *dbReader) blockOf(a *dbAttribute) dbBlock {
	b := dbBlock{attr: a.attr, whole: true, data: make([]byte, a.attr.Size)}
	var missing []string
	for i, list := range []string{a.columns, a.maybe} {
		for word := range strings.FieldsSeq(list) {
			column, field, apart := strings.Cut(word, "=")
			if !apart {
				field = mad.SnakeName(column)
			}
			if _, ok := d.columns[column]; ok {
				b.fields = append(b.fields, dbField{column, a.attr.Field(field), i == 0})
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
	for _, f := range b.fields {
		v, known, ok := dbNumber(d.cell(f.column))
		switch {
		case !ok, known && f.field != nil && v > f.field.Max():
			d.fail("a number that %s of %s can have in column %s, not %q", mad.SnakeName(f.column), b.attr.Name, f.column, fabric.Clip(string(d.cell(f.column))))
			return nil
		case known && f.field != nil:
			f.field.SetUint(b.data, v)
		case !known && f.must:
			d.lacks["does not know "+f.column+", so has no "+b.attr.Name+" of that port or node"]++
			return nil
		}
	}
	return b.data
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
