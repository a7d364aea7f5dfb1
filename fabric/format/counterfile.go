package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Kinds of outputs of tools that show counters.
const (
	KindQueryErrors FormatName = "ibqueryerrors"
	KindPerfQuery   FormatName = "perfquery"
)

var queryErrors = fileFormat{
	kind:       KindQueryErrors,
	about:      "error counters of ports (ibqueryerrors)",
	file:       "error counters of `ibqueryerrors`, of the ports that it lists; alone, or for the topology in the same directory or archive",
	beginnings: []string{"Errors for 0x", `Errors for "`},
	load:       loadQueryErrors,
	answers:    readQueryErrors,
	beside:     true,
}

var perfQuery = fileFormat{
	kind:       KindPerfQuery,
	about:      "counters of ports (perfquery), which are read with the topology in the same directory or archive",
	file:       "counters of `perfquery`, for the topology in the same directory or archive",
	beginnings: []string{"# Port counters: ", "# Port extended counters: ", "# PortRcvErrorDetails counters: ", "# PortXmitDiscardDetails counters: "},
	answers:    readPerfQuery,
}

// oldCounters are names of counters of infiniband-diags before 1.5, and names that differ from those of the
// specification, with the columns of PM_INFO.
var oldCounters = map[string]string{
	"SymbolErrors": "SymbolErrorCounter", "LinkRecovers": "LinkErrorRecoveryCounter", "LinkDowned": "LinkDownedCounter",
	"RcvErrors": "PortRcvErrors", "RcvRemotePhysErrors": "PortRcvRemotePhysicalErrors", "RcvSwRelayErrors": "PortRcvSwitchRelayErrors",
	"XmtDiscards": "PortXmitDiscards", "XmtConstraintErrors": "PortXmitConstraintErrors", "RcvConstraintErrors": "PortRcvConstraintErrors",
	"LinkIntegrityErrors": "LocalLinkIntegrityErrors", "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors",
	"XmtData": "PortXmitData", "RcvData": "PortRcvData", "XmtPkts": "PortXmitPkts", "RcvPkts": "PortRcvPkts", "XmtWait": "PortXmitWait",
	"PortMalformedPktErrors": "PortMalformedPacketErrors", "PortUnicastXmitPkts": "PortUniCastXmitPkts", "PortUnicastRcvPkts": "PortUniCastRcvPkts",
	"PortMulticastXmitPkts": "PortMultiCastXmitPkts", "PortMulticastRcvPkts": "PortMultiCastRcvPkts",
}

// errorRow is a port of ibqueryerrors: `   GUID 0x2c90300a port 1: [LinkDownedCounter == 3] [PortXmitWait == 17]`.
type errorRow struct {
	guid   mad.GUID
	num    int
	counts []errorCount
}

type errorCount struct {
	column string // of PM_INFO
	value  uint64
}

// errorList is what ibqueryerrors prints.
type errorList struct {
	rows    []errorRow
	names   map[mad.GUID]string
	sums    map[mad.GUID]bool // nodes with a line for all ports: switches
	columns map[string]bool   // that occur
	stray   int               // lines of the tool that are not of a port, such as messages
	whole   bool              // the summary is there
	file    string
}

// maxCounts is how many counters a line may have.
const maxCounts = 64

// parseQueryErrors parses an output (infiniband-diags ibqueryerrors.c, print_results).
func parseQueryErrors(in io.Reader, name string) (*errorList, error) {
	l := newLines(in, name)
	list := &errorList{names: map[mad.GUID]string{}, sums: map[mad.GUID]bool{}, columns: map[string]bool{}, file: name}
	title := ""
	for l.next() {
		line := strings.TrimSpace(string(l.text))
		if text, ok := strings.CutPrefix(line, "Errors for "); ok {
			if i := strings.IndexByte(text, '"'); i >= 0 {
				title = strings.TrimSuffix(text[i+1:], `"`)
			}
			continue
		}
		rest, ok := strings.CutPrefix(line, "GUID 0x")
		switch {
		case ok:
		case strings.HasPrefix(line, "## Summary"):
			list.whole = true
			continue
		case line == "", strings.HasPrefix(line, "##"), strings.HasPrefix(line, "Link info"), strings.Contains(line, "==>"):
			continue
		default:
			list.stray++
			continue
		}
		row := errorRow{}
		v, tail, ok := hexDigits([]byte(rest))
		row.guid = mad.GUID(v)
		text, isPort := strings.CutPrefix(string(tail), " port ")
		port, counts, colon := strings.Cut(text, ":")
		if !ok || !isPort || !colon {
			return nil, l.expected(`a port as in GUID 0x0002c90300001030 port 1: [LinkDownedCounter == 3]: %q`, l.shown())
		}
		if list.names[row.guid] = title; port == "ALL" {
			list.sums[row.guid] = true
			continue
		}
		var err error
		if row.num, err = strconv.Atoi(port); err != nil || row.num < 0 || row.num > maxPorts || len(list.rows) >= maxTotalPorts {
			return nil, l.expected("a port from 0 to %d, and at most %d of them: %q", maxPorts, maxTotalPorts, l.shown())
		}
		for word := range strings.SplitSeq(counts, "[") {
			counter, value, ok := strings.Cut(word, " == ")
			if !ok {
				continue
			}
			counter = cmp.Or(oldCounters[counter], counter)
			value, _, closed := strings.Cut(value, "]")
			value, _, _ = strings.Cut(value, " ") // data with its unit: 12 (0.012KB)
			v, known, ok := dbNumber([]byte(value))
			if !ok || !known || !closed || len(row.counts) == maxCounts {
				return nil, l.expected("a counter as in [LinkDownedCounter == 3], not %q: %q", fabric.Clip(word), l.shown())
			}
			row.counts = append(row.counts, errorCount{counter, v})
			list.columns[counter] = true
		}
		list.rows = append(list.rows, row)
	}
	if l.err == nil && l.cut && len(list.rows) > 0 && !list.whole {
		l.fail("the end of the last line: the file is cut short")
	}
	return list, l.err
}

// readQueryErrors makes the counters of an output. What it leaves out of a port is at or below the
// thresholds of its run: 0 here.
func readQueryErrors(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	list, err := parseQueryErrors(in, name)
	if err != nil {
		return fabric.Reading{}, err
	}
	return list.reading(f)
}

func (list *errorList) reading(f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(strings.NewReader(""), list.file, f)
	rows := newCounterRows(d)
	wide := false // some are beyond PortCounters, so the agents have PortCountersExtended
	base := map[string]uint64{}
	for i := range d.blocks[0].fields {
		x := &d.blocks[0].fields[i]
		base[x.column] = x.field.Max()
	}
	for _, row := range list.rows {
		for _, c := range row.counts {
			wide = wide || base[c.column] > 0 && c.value > base[c.column]
		}
	}
	extended := func(column string) string {
		for _, name := range []string{column + "Ext", column + "Extended"} {
			if _, ok := d.columns[name]; ok {
				return name
			}
		}
		return ""
	}
	zero := func(row [][]byte, block int, also map[string]bool) {
		for _, x := range d.blocks[block].fields {
			if x.must || also[x.column] {
				row[d.columns[x.column]] = []byte("0")
			}
		}
	}
	also, unknown := map[string]bool{}, map[string]bool{}
	for _, column := range []string{"PortXmitWait", "QP1Dropped"} {
		also[column] = list.columns[column]
		also[column+"Ext"] = list.columns[column] && wide
	}
	for column := range base {
		if name := extended(column); name != "" && strings.HasSuffix(name, "Ext") && column != "PortXmitWait" && column != "QP1Dropped" {
			also[name] = true
		}
	}
	for _, row := range list.rows {
		if _, here := d.ids[row.guid]; !here {
			d.strangers++
			continue
		}
		cells := rows.begin([]byte(row.guid.String()), []byte(strconv.Itoa(row.num)))
		zero(cells, 0, also)
		if wide {
			zero(cells, 1, also)
		}
		for block := 2; block < len(d.blocks); block++ {
			if slices.ContainsFunc(d.blocks[block].fields, func(x dbField) bool { return list.columns[x.column] }) {
				zero(cells, block, nil)
			}
		}
		for _, c := range row.counts {
			at, ok := d.columns[c.column]
			if !ok {
				unknown[c.column] = true
				continue
			}
			value := c.value
			if most, ok := base[c.column]; ok {
				value = min(value, most)
			}
			cells[at] = []byte(strconv.FormatUint(value, 10))
			if name := extended(c.column); wide && name != "" {
				cells[d.columns[name]] = []byte(strconv.FormatUint(c.value, 10))
			}
		}
		rows.add(cells)
	}
	clear(d.lacks) // of details, which no port has to have
	r, err := d.reading(d.counterAnswers())
	note := func(format string, args ...any) {
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: list.file + ": " + fmt.Sprintf(format, args...)})
	}
	note("ibqueryerrors lists %s; the counters that it does not list, and data, are 0 of these, and unknown of others", plural.Count(len(list.rows), "port", "ports"))
	if len(unknown) > 0 {
		note("counters that are not read: %s", fabric.Clip(strings.Join(sortedKeys(unknown), ", ")))
	}
	if list.stray > 0 {
		note("%s left out, such as messages of the tool", plural.Count(list.stray, "line was", "lines were"))
	}
	if !list.whole {
		note("it has no summary: it may be cut short")
	}
	return r, err
}

// loadQueryErrors makes a fabric of the nodes that an output names, without links. The first port of a
// switch, and each of an adapter, has a LID by which its counters are found.
func loadQueryErrors(in io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	list, err := parseQueryErrors(in, name)
	switch {
	case err != nil:
		return nil, err
	case len(list.names) == 0:
		return nil, fmt.Errorf("%s: no line has a port", name)
	}
	last, ports := map[mad.GUID]int{}, map[mad.GUID]int{}
	for _, row := range list.rows {
		last[row.guid] = max(last[row.guid], row.num)
		ports[row.guid]++
		list.sums[row.guid] = list.sums[row.guid] || row.num == 0 || last[row.guid] > maxAdapterPorts
	}
	b := fabric.NewBuilder()
	total, lid := 0, mad.LID(0)
	var guids []mad.GUID
	for guid := range list.names {
		guids = append(guids, guid)
	}
	slices.Sort(guids)
	for i, guid := range guids {
		info := mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeCA, NumPorts: uint8(max(last[guid], 1)), NodeGUID: guid, PartitionCap: 1}
		if list.sums[guid] {
			info.NodeType, info.PortGUID = mad.NodeTypeSwitch, guid
		}
		if total += int(info.NumPorts) + 1; total > maxTotalPorts || len(guids) > maxNodes {
			return nil, fmt.Errorf("%s: expected at most %d nodes and %d ports", name, maxNodes, maxTotalPorts)
		}
		b.AddNode(fabric.NodeSpec{Name: list.names[guid], Info: info})
		for num := 0; num <= int(info.NumPorts); num++ {
			if list.sums[guid] == (num == 0) && lid < mad.MaxUnicastLID {
				lid++
				b.SetPort(i, num, &mad.PortInfo{LID: lid})
			}
		}
	}
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemNoLinks, Text: name + " is a list of ports with errors: it has no links"})
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: name + " is a list of ports with errors: LIDs are assigned, and what has no port above 2 is taken for an adapter; read it with a topology in one directory"})
	f := b.Build()
	r, err := list.reading(f)
	if err != nil {
		return nil, err
	}
	return f.With(r), nil
}

// maxAdapterPorts is the number of ports beyond which a node of unknown type is taken for a switch.
const maxAdapterPorts = 2

// readPerfQuery reads counters of ports by their LIDs: a title with LID, port and capabilities, and lines
// of a name, dots and a number (infiniband-diags perfquery.c, libibmad dump.c).
func readPerfQuery(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	var answers []fabric.Answer
	var current *fabric.Answer
	others := map[string]bool{} // tables that are not read
	for d.next() {
		if text, ok := strings.CutPrefix(string(d.text), "# "); ok {
			current = nil
			what, rest, ok := strings.Cut(text, " counters: ")
			attr := perfTitles[what]
			if !ok {
				continue
			}
			if attr == nil {
				others[fabric.Clip(what)] = true
				continue
			}
			p, caps, caps2, ok := perfTarget(f, rest)
			if !ok {
				d.strangers++
				continue
			}
			if len(answers) >= 2*maxTotalPorts {
				return fabric.Reading{}, d.expected("at most %d tables", maxTotalPorts)
			}
			agent := p
			if p.Node().IsSwitch() {
				agent = p.Node().Port(0)
			}
			info := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, CapabilityMask: caps, CapabilityMask2: caps2}
			if attr == mad.AttrPortCountersExtended && caps&uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported|mad.PerfCapabilityMaskIsExtendedWidthSupportedNoIETF) == 0 {
				info.CapabilityMask |= uint16(mad.PerfCapabilityMaskIsExtendedWidthSupportedNoIETF)
			}
			data := make([]byte, mad.AttrPerfClassPortInfo.Size)
			info.Encode(data)
			answers = append(answers,
				fabric.Answer{Node: int32(p.Node().ID()), Port: int16(agent.Num()), Class: mad.ClassPerf, ID: mad.AttrPerfClassPortInfo.ID, Data: data},
				fabric.Answer{Node: int32(p.Node().ID()), Port: int16(p.Num()), Class: mad.ClassPerf, ID: attr.ID, Data: make([]byte, attr.Size)})
			current = &answers[len(answers)-1]
			attr.Field("port_select").SetUint(current.Data, uint64(p.Num()))
			continue
		}
		column, value, ok := bytes.Cut(d.text, []byte(":"))
		if current == nil || !ok {
			continue
		}
		counter := string(column)
		attr := mad.Lookup(current.Class, current.ID)
		field := attr.Field(mad.SnakeName(cmp.Or(oldCounters[counter], counter)))
		if field == nil {
			field = attr.Field(mad.SnakeName(counter))
		}
		if field == nil || field.Script == "port_select" {
			continue
		}
		v, known, ok := dbNumber(bytes.TrimLeft(value, "."))
		if !ok || !known || v > field.Max() {
			return fabric.Reading{}, d.expected("a number that %s can have: %q", field.Script, d.shown())
		}
		field.SetUint(current.Data, v)
	}
	if d.cut && current != nil && d.err == nil {
		d.fail("the end of the last line: the file is cut short")
	}
	r, err := d.reading(answers)
	if len(others) > 0 {
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s: tables that are not read: %s", name, fabric.Clip(strings.Join(sortedKeys(others), ", ")))})
	}
	return r, err
}

// perfTitles are the attributes by the titles of perfquery.
var perfTitles = map[string]*mad.Attribute{
	"Port": mad.AttrPortCounters, "Port extended": mad.AttrPortCountersExtended,
	"PortRcvErrorDetails": mad.AttrPortRcvErrorDetails, "PortXmitDiscardDetails": mad.AttrPortXmitDiscardDetails,
}

// perfTarget returns the port of a title, `Lid 4 port 1 (CapMask: 0x5A00 CapMask2: 0x0000000)`, and the
// capabilities of its agent.
func perfTarget(f *fabric.Fabric, text string) (p *fabric.Port, caps uint16, caps2 uint32, ok bool) {
	words := strings.Fields(text)
	if len(words) < 4 || words[0] != "Lid" || words[2] != "port" {
		return nil, 0, 0, false // a directed route, or all ports of a node
	}
	lid, okLID := parseDecimal(words[1], int(mad.MaxUnicastLID))
	num, okNum := parseDecimal(words[3], maxPorts)
	if !okLID || !okNum {
		return nil, 0, 0, false
	}
	if p = f.PortByLID(mad.LID(lid)); p == nil {
		return nil, 0, 0, false
	}
	if p = p.Node().Port(num); p == nil {
		return nil, 0, 0, false
	}
	for i := 4; i+1 < len(words); i++ {
		v, known, valid := dbNumber([]byte(strings.Trim(words[i+1], "()")))
		switch strings.Trim(words[i], "()") {
		case "CapMask:":
			caps = uint16(v)
		case "CapMask2:":
			caps2 = uint32(v)
		default:
			continue
		}
		if !known || !valid {
			return nil, 0, 0, false
		}
	}
	return p, caps, caps2, true
}

func parseDecimal(text string, limit int) (int, bool) {
	v, err := strconv.Atoi(text)
	return v, err == nil && v >= 0 && v <= limit
}
