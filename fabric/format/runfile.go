package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// runFiles returns the files of a run of ibdiagnet, ibdiagnet2.SUFFIX, that have what its data base has, in
// records. They have no topology, so they are read as files of a directory or archive alone, by their
// names.
var runFiles = sync.OnceValue(func() map[string]*fileFormat {
	return map[string]*fileFormat{
		"cables":       {about: "modules (ibdiagnet2.cables)", answers: readModuleFile},
		"pm":           {about: "counters (ibdiagnet2.pm)", answers: readCounterFile, same: hasAnswers(mad.AttrPortCounters, 0)},
		"nodes_info":   {about: "firmware (ibdiagnet2.nodes_info)", answers: readNodesInfo, same: hasAnswers(mad.AttrAccessRegister, mad.RegisterNamed("MGIR").Register)},
		"sm":           {about: "subnet managers (ibdiagnet2.sm)", answers: readManagers, same: hasAnswers(mad.AttrSMInfo, 0)},
		"net_dump_ext": {about: "bit error rates (ibdiagnet2.net_dump_ext)", answers: readErrorRates, same: hasAnswers(mad.AttrAccessRegister, mad.RegisterNamed("PPCNT").Register)},
	}
})

// managerDump is the data base of OpenSM, which has sections as that of ibdiagnet.
var managerDump = fileFormat{about: "a data base of OpenSM (opensm-smdb.dump)", answers: readManagerDump, same: hasAnswers(mad.AttrSMInfo, 0)}

// hasAnswers returns a function that reports whether a fabric has answers to an attribute, or a register.
func hasAnswers(attr *mad.Attribute, register uint16) func(f *fabric.Fabric) bool {
	return func(f *fabric.Fabric) bool {
		return slices.ContainsFunc(f.Answers(), func(a fabric.Answer) bool {
			return a.Class == attr.Class && a.ID == attr.ID && (register == 0 || a.Modifier == uint32(register))
		})
	}
}

// runReader makes answers of records, as the reader of the data base does of its lines.
type runReader struct {
	*dbReader
	strangers int  // records of nodes that the fabric does not have
	made      bool // ibdiagnet wrote the file, and closes it with a line
	closed    bool
	zeros     strayLines // lines with zero bytes
}

// next reads the next line. A last line without its end is not read: a number may lack digits.
func (d *runReader) next() bool {
	if !d.dbReader.next() || d.cut {
		return false
	}
	if bytes.IndexByte(d.text, 0) >= 0 {
		d.zeros.add(d.at, "")
	}
	d.made = d.made || bytes.HasPrefix(d.text, []byte("# File created at"))
	d.closed = d.closed || bytes.HasPrefix(d.text, []byte("# File closed at"))
	return true
}

// newRunReader returns a reader for records of the nodes of f, which they name by the GUID of the
// node, or of a port of an adapter.
func newRunReader(in io.Reader, name string, f *fabric.Fabric) *runReader {
	d := &runReader{dbReader: newDBReader(newLines(in, name))}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		d.nodes = append(d.nodes, fabric.NodeSpec{Info: *n.Info()})
		d.ids[n.GUID()] = i
		for p := range n.Ports() {
			if p.GUID() != 0 && !n.IsSwitch() {
				d.ids[p.GUID()] = i
			}
		}
	}
	return d
}

// maxRecordFields is the largest number of lines of a record that are read.
const maxRecordFields = 256

// set sets a column of the record; of two values the first counts.
func (d *runReader) set(column string, value []byte) {
	if _, twice := d.plain[plainColumn(column)]; !twice && len(d.fields) < maxRecordFields {
		d.plain[plainColumn(column)] = len(d.fields)
		d.fields = append(d.fields, bytes.Clone(value))
	}
}

// records reads records: a rule, a line that begins with Port= or Node Name=, a rule, and lines of a name,
// sep and a value. It calls end after each.
func (d *runReader) records(sep string, end func()) {
	flush := func() {
		if guid, known, ok := dbNumber(d.like("NodeGUID")); len(d.fields) > 0 && d.err == nil {
			if _, here := d.ids[mad.GUID(guid)]; !known || !ok || !here {
				d.strangers++
			} else {
				end()
			}
		}
		d.fields, d.plain = nil, map[string]int{}
	}
	for flush(); d.next(); {
		first, _, _ := bytes.Cut(d.text, []byte("="))
		switch column, value, ok := bytes.Cut(d.text, []byte(sep)); {
		case string(first) == "Port":
			flush()
			num, _, _ := bytes.Cut(d.text[len("Port="):], []byte(" "))
			d.set("PortNum", num)
			_, guid, _ := bytes.Cut(d.text, []byte(" GUID="))
			guid, _, _ = bytes.Cut(guid, []byte(" "))
			d.set("NodeGUID", guid)
		case string(first) == "Node Name":
			flush()
			d.set("Name", nil)
		case bytes.HasPrefix(d.text, []byte(timestamp)):
			_, text, _ := bytes.Cut(d.text, []byte(": "))
			d.setBegan(string(text))
		case !ok, len(d.fields) == 0, bytes.HasPrefix(d.text, []byte("#")):
		case string(column) == "GUID":
			d.set("NodeGUID", value)
		default:
			d.set(string(column), value)
		}
	}
	flush()
}

// timestamp begins the line of the preamble with the time of the run.
const timestamp = "# Running timestamp"

// reading returns the answers, and a problem that counts what was left out.
func (d *runReader) reading(answers []fabric.Answer) (fabric.Reading, error) {
	r := fabric.Reading{Answers: answers, CountersRead: d.began}
	if d.zeros.n > 0 {
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: %s zero bytes, which a crash leaves in files; what was there is missing", d.zeros.first, plural.Count(d.zeros.n, "line has", "lines have"))})
	}
	if d.cut || d.made && !d.closed {
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemCut, Text: d.at.file + ": the file is cut short: its last lines are missing"})
	}
	if d.strangers > 0 {
		text := "1 record was left out: the topology does not have its node or port"
		if d.strangers > 1 {
			text = fmt.Sprintf("%d records were left out: the topology does not have their nodes or ports", d.strangers)
		}
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: d.at.file + ": " + text})
	}
	for _, what := range sortedKeys(d.lacks) {
		text := fmt.Sprintf("%s %s", d.at.file, what)
		if n := d.lacks[what]; n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: text})
	}
	return r, d.err
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// registerOf returns the register that a section is made of.
func registerOf(section string) *dbRegister {
	all := dbRegisters()
	return &all[slices.IndexFunc(all, func(r dbRegister) bool { return r.section == section })]
}

// readModuleFile reads what ibdiagnet --get_cable_info reads of modules: the names are those of CABLE_INFO
// with blanks.
func readModuleFile(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	r := registerOf("CABLE_INFO")
	d.records(": ", func() { d.register(r) })
	return d.reading(slices.Concat(d.answers, d.generalInfos()))
}

// readNodesInfo reads hardware and firmware: the names are those of NODES_INFO, but a version or a date is
// one value.
func readNodesInfo(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	r := registerOf("NODES_INFO")
	split := func(column, sep, prefix string, parts ...string) {
		for i, text := range strings.SplitN(string(d.like(column)), sep, len(parts)) {
			d.set(parts[i], []byte(prefix+text))
		}
	}
	d.records("=", func() {
		for _, s := range []string{"FWInfo", "FWInfo_Extended", "SWInfo"} {
			split(s+"_Version", ".", "", s+"_Major", s+"_Minor", s+"_SubMinor")
		}
		split("FWInfo_Date", ".", "0x", "FWInfo_Month", "FWInfo_Day", "FWInfo_Year") // BCD
		if at, ok := d.plain[plainColumn("FWInfo_Hour")]; ok {
			d.fields[at] = []byte("0x" + strings.ReplaceAll(string(d.fields[at]), ":", ""))
		}
		d.register(r)
	})
	return d.reading(slices.Concat(d.answers, d.generalInfos()))
}

// readErrorRates reads the bit error rates of ports: a table with a line of names, whose columns are separated
// by " : ", and lines of ports. Links and states are those of the topology.
func readErrorRates(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	var columns []string
	var answers []fabric.Answer
	seen := map[[2]int]bool{}
	port := mad.RegisterNamed("PPCNT")
	for d.next() {
		cells := strings.Split(string(d.text), " : ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case bytes.HasPrefix(d.text, []byte(timestamp)):
			_, text, _ := bytes.Cut(d.text, []byte(": "))
			d.setBegan(string(text))
			continue
		case cells[0] == "Ty":
			columns = cells
			continue
		case cells[0] != "SW" && cells[0] != "CA" && cells[0] != "RTR":
			continue
		}
		if columns == nil || len(cells) < len(columns) { // a description may have more
			return fabric.Reading{}, d.expected("%d columns as in the line that begins with Ty: %q", len(columns), d.shown())
		}
		cell := func(column string) []byte {
			if i := slices.Index(columns, column); i >= 0 {
				return []byte(cells[i])
			}
			return nil
		}
		guid, known, ok := dbNumber(cell("GUID"))
		num, knownPort, okPort := dbNumber(cell("#IB"))
		if !known || !ok || !knownPort || !okPort {
			return fabric.Reading{}, d.expected("GUID and number of a port in the columns GUID and #IB: %q", d.shown())
		}
		data := selectStatistics()
		rates := 0
		for i, column := range []string{"Raw BER", "Effective BER", "Symbol BER"} {
			text := cellText(cell(column))
			if len(text) == 0 {
				continue
			}
			coef, magnitude, ok := errorRate(string(text))
			if !ok {
				return fabric.Reading{}, d.expected("a bit error rate as in 3e-09, not %q: %q", fabric.Clip(string(text)), d.shown())
			}
			statistics().Field(bitErrorRates[i]+"_coef").SetUint(data, coef)
			statistics().Field(bitErrorRates[i]+"_magnitude").SetUint(data, magnitude)
			rates++
		}
		if rates == 0 { // no register of the port was read
			continue
		}
		setText(statistics().Field("phy_symbol_errors"), data, 0, cell("Symbol Err"))
		i, here := d.ids[mad.GUID(guid)]
		at := [2]int{i, int(min(num, maxPorts+1))}
		if !here || num > uint64(d.nodes[i].Info.NumPorts) || seen[at] {
			d.strangers++
			continue
		}
		seen[at] = true
		setStatisticsPort(data, int(num))
		d.hasRegisters[i] = true
		answers = append(answers, fabric.Answer{Node: int32(i), Port: int16(num), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(port.Register), Data: data})
	}
	return d.reading(slices.Concat(answers, d.generalInfos()))
}

// errorRate returns the coefficient and the magnitude of a rate such as 3e-09, or 1.5e-254, which is 15e-255: no
// error was counted.
func errorRate(text string) (coef, magnitude uint64, ok bool) {
	mantissa, exponent, ok := strings.Cut(strings.ToLower(text), "e-")
	e, err := strconv.ParseUint(exponent, 10, 8)
	if !ok || err != nil {
		return 0, 0, text == "0"
	}
	if whole, tenths, ok := strings.Cut(mantissa, "."); ok && strings.Trim(tenths, "0") != "" {
		mantissa, e = whole+tenths[:1], e+1
	} else {
		mantissa = whole
	}
	coef, err = strconv.ParseUint(mantissa, 10, 8)
	return coef, e, err == nil && coef <= 15 && e <= 255
}

// readManagers reads the list of subnet managers: groups with a line `SM - master`, and lines
// `Port=0 lid=0x00b4 guid=0x... dev=54002 priority:12` for their ports.
func readManagers(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	var answers []fabric.Answer
	state := uint64(0)
	states := map[string]mad.SMState{"master": mad.SMStateMaster, "standby": mad.SMStateStandby, "discovering": mad.SMStateDiscovering, "not active": mad.SMStateNotActive}
	known := false
	for d.next() {
		line := string(bytes.TrimSpace(d.text))
		if word, ok := strings.CutPrefix(line, "SM - "); ok {
			s, ok := states[strings.ToLower(word)]
			state, known = uint64(s), ok
			continue
		}
		if !strings.HasPrefix(line, "Port=") {
			continue
		}
		values := map[string]uint64{}
		for word := range strings.FieldsSeq(line) {
			if i := strings.IndexAny(word, "=:"); i >= 0 {
				if v, ok, valid := dbNumber([]byte(word[i+1:])); ok && valid {
					values[word[:i]] = v
				}
			}
		}
		if _, whole := values["priority"]; !whole || values["guid"] == 0 {
			return fabric.Reading{}, d.expected("a subnet manager as in Port=0 lid=0x00b4 guid=0x0002c90300aa0000 dev=54002 priority:12: %q", d.shown())
		}
		i, here := d.ids[mad.GUID(values["guid"])]
		if !here || !known || values["priority"] > 15 || values["Port"] > uint64(d.nodes[i].Info.NumPorts) {
			d.strangers++
			continue
		}
		a := fabric.Answer{Node: int32(i), Port: int16(values["Port"]), Class: mad.ClassSubn, ID: mad.AttrSMInfo.ID, Data: make([]byte, mad.AttrSMInfo.Size)}
		for field, v := range map[string]uint64{"guid": values["guid"], "sm_state": state, "priority": values["priority"]} {
			mad.AttrSMInfo.Field(field).SetUint(a.Data, v)
		}
		answers = append(answers, a)
	}
	return d.reading(answers)
}

// readManagerDump reads the subnet managers of OpenSM's data base, from section SMS: PortGUID, LID, Priority, State.
// Nodes, links and LIDs are those of the topology.
func readManagerDump(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	ports := map[mad.GUID]*fabric.Port{}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.GUID() != 0 && ports[p.GUID()] == nil {
			ports[p.GUID()] = p
		}
	}
	var answers []fabric.Answer
	var left []string
	section := ""
	var columns []string
	for d.next() {
		cells := strings.Split(string(d.text), ",")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case isSection(d.text, "START_"):
			section, columns = string(d.text[len("START_"):]), nil
			if section != "SMS" && section != "INDEX_TABLE" && len(left) < maxRecordFields {
				left = append(left, section)
			}
		case isSection(d.text, "END_"):
			section = ""
		case section != "SMS" || len(d.text) == 0:
		case columns == nil:
			columns = cells
		default:
			value := func(column string) uint64 {
				i := slices.Index(columns, column)
				if i < 0 || i >= len(cells) {
					return dbAbsent
				}
				v, known, ok := dbNumber([]byte(cells[i]))
				if !known || !ok {
					return dbAbsent
				}
				return v
			}
			guid, priority, state := value("PortGUID"), value("Priority"), value("State")
			p := ports[mad.GUID(guid)]
			if p == nil || priority > 15 || state > uint64(mad.SMStateMaster) {
				d.strangers++
				continue
			}
			a := fabric.Answer{Node: int32(p.Node().ID()), Port: int16(p.Num()), Class: mad.ClassSubn, ID: mad.AttrSMInfo.ID, Data: make([]byte, mad.AttrSMInfo.Size)}
			for field, v := range map[string]uint64{"guid": guid, "sm_state": state, "priority": priority} {
				mad.AttrSMInfo.Field(field).SetUint(a.Data, v)
			}
			answers = append(answers, a)
		}
	}
	switch {
	case d.err != nil:
	case section != "":
		d.fail("END_%s: the file is cut short", section)
	case len(left) > 0:
		slices.Sort(left)
		d.lacks[fmt.Sprintf("is read for subnet managers (SMS); not read: %s, which are in the topology or not used", listOf(left))]++
	}
	return d.reading(answers)
}

// readCounterFile reads the counters of ports: the names are those of PM_INFO, in other spellings.
func readCounterFile(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := newRunReader(in, name, f)
	rows := newCounterRows(d)
	other := map[string]string{"linkdowncounter": "linkdownedcounter", "portxmitdiscard": "portxmitdiscards", "excessivebuffererrors": "excessivebufferoverrunerrors"}
	d.records("=", func() {
		row := rows.begin(d.like("NodeGUID"), d.like("PortNum"))
		for column, at := range d.plain {
			column = cmp.Or(other[column], column)
			to, ok := rows.index[column]
			if !ok {
				to, ok = rows.index[strings.TrimSuffix(column, "ended")] // symbol_error_counter_extended: SymbolErrorCounterExt
			}
			if ok {
				row[to] = d.fields[at]
			}
		}
		rows.add(row)
	})
	return d.reading(d.counterAnswers())
}

// counterRows makes counters of rows with the columns of PM_INFO.
type counterRows struct {
	*runReader
	columns []string
	index   map[string]int // of columns, by plainColumn
}

func newCounterRows(d *runReader) *counterRows {
	r := &counterRows{runReader: d, columns: []string{"NodeGUID", "PortNumber"}, index: map[string]int{}}
	for i := range dbAttributes {
		a := &dbAttributes[i]
		if a.section != "PM_INFO" {
			continue
		}
		lists := []string{a.columns}
		for _, set := range a.sets {
			lists = append(lists, set.columns)
		}
		for word := range strings.FieldsSeq(strings.Join(lists, " ")) {
			column, _, _ := strings.Cut(word, "=")
			r.columns = append(r.columns, column)
		}
	}
	d.columns = map[string]int{}
	for i, column := range r.columns {
		d.columns[column], r.index[plainColumn(column)] = i, i
	}
	for i := range dbAttributes {
		if a := &dbAttributes[i]; a.section == "PM_INFO" {
			d.blocks = append(d.blocks, d.blockOf(a))
		}
	}
	return r
}

// begin returns a row without counters.
func (r *counterRows) begin(guid, num []byte) [][]byte {
	row := make([][]byte, len(r.columns))
	row[0], row[1] = guid, num
	return row
}

// add takes a row. A port that its node does not have, or that has a row, is left out.
func (r *counterRows) add(row [][]byte) {
	guid, _, _ := dbNumber(row[0])
	num, known, ok := dbNumber(row[1])
	i := r.ids[mad.GUID(guid)]
	n := &r.nodes[i].Info
	if !known || !ok || num > uint64(n.NumPorts) || num == 0 && n.NodeType != mad.NodeTypeSwitch || r.seen[dbKey{i, int(num), mad.AttrPortCounters.ID}] {
		r.strangers++
		return
	}
	fields, plain := r.fields, r.plain
	r.fields = row
	r.counters()
	r.fields, r.plain = fields, plain
}

// setBegan sets the time of the run.
func (d *dbReader) setBegan(text string) {
	if t, err := time.Parse("2006-01-02 15:04:05 MST -0700", text); err == nil && t.Unix() > 0 {
		d.began = t
	}
}
