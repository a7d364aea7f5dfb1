package format

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindCables is fabsh's own list of cables.
const KindCables FormatName = "cables"

var cables = fileFormat{
	kind:     KindCables,
	about:    "a plan of cables (columns a, a_port, b, b_port)",
	file:     "fabsh's own plan of cables, as CSV: `a,a_port,b,b_port`",
	sniff:    sniffColumns("a", "a_port", "b", "b_port"),
	load:     planLoader(KindCables, readTextTable),
	plan:     readTextTable,
	write:    writeCables,
	dumpHelp: `"cables", a plan as CSV`,
}

// KindNDT is a network definition table of UFM.
const KindNDT FormatName = "ndt"

var ndt = fileFormat{
	kind:  KindNDT,
	about: "a plan of cables of UFM (NDT)",
	file:  "plan of cables of UFM's NDT plug-in, as CSV, with the minimal, the brief or the full header",
	sniff: sniffColumns("startdevice", "startport", "enddevice", "endport"),
	load:  planLoader(KindNDT, readTextTable),
	plan:  readTextTable,
}

// KindPlan is a plan of cables as a table of any layout.
const KindPlan FormatName = "plan"

var planTables = fileFormat{
	kind:     KindPlan,
	about:    "a table of a plan of cables",
	file:     "plan of cables as a table, CSV or xlsx: P2P sheets of NVIDIA's Cable Validation Tool, old and new, A/Z sheets, NetBox, Nautobot, Cornelis, Cray's SHCD, or any whose header names two ends with a port each",
	sniff:    sniffTable,
	load:     planLoader(KindPlan, readTextTable),
	plan:     readTextTable,
	write:    writePlanText,
	dumpHelp: `"plan", an A/Z sheet as CSV`,
}

// sniffColumns takes the header of a table with these columns, in lower case.
func sniffColumns(names ...string) func(l *headLine) bool {
	clean := func(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "#"), "fields:") }
	return func(l *headLine) bool {
		_, _, ok := columnsOf(bytesWithoutMark(l.text), len(names), clean, names...)
		return ok
	}
}

// sniffTable takes a header with two ends.
func sniffTable(l *headLine) bool {
	_, h := splitHeader(bytesWithoutMark(l.text), nil)
	return h != nil
}

// bytesWithoutMark removes a byte order mark.
func bytesWithoutMark(text []byte) []byte {
	return []byte(strings.TrimPrefix(string(text), byteOrderMark))
}

// PlanOptions state what a plan of cables does not.
type PlanOptions struct {
	Map      PlanMap           // names of columns; nil: they are recognised
	Adapters map[string]string // adapters by number or interface: "1" is mlx5_0; nil: mlx5_(n-1)
}

// planBook is a plan of cables while its files are read.
type planBook struct {
	*topology
	PlanOptions
	name   string     // of the plan, for messages
	kind   FormatName // of the file that is being read
	file   string     // that is being read
	strict bool       // a row that cannot be used is an error, because a program wrote the plan
	many   bool       // files: sources name them
	merged bool       // the workbook that is being read has merged cells
	bytes  int64      // read so far

	rows     []planRow
	devices  map[string]*planDevice       // by name, in lower case unless strict
	profiles map[string]map[string]string // adapters by profile and interface
	halls    map[string]string            // by rack
	adapters map[string]string            // of a table hca_mapping
	plan     fabric.Plan
	uses     map[[2]int]*planRow // by node and port
	unread   int
	open     int            // rows without a far end
	out      int            // rows of cables that are not Active
	other    int            // rows of other networks and objects
	netBox   [2]int         // cables that the pages count, and that are there
	guessed  bool           // numbers of adapters were read as mlx5_(n-1)
	loaded   *fabric.Fabric // a topology in another format, which is the only file; nil: a plan
	first    []string       // the first row with text that is not a header
	saw      string         // the row that is most like a header
	sawKnown int
}

// planRow is a cable as a plan has it.
type planRow struct {
	at            pos
	source        string
	ends          [2]planEnd
	label, length string
	rate          rate
}

// planEnd is an end of it.
type planEnd struct {
	device  *planDevice
	facts   planFacts // of the node: an adapter of a host has its own
	text    string    // the port, as written
	column  string    // of the port, for messages
	adapter bool      // a number is the number of an adapter, if the device is a host
	name    planPortName
	cause   string // why the port is unknown
}

// planFacts are what a plan states of a device, or of one adapter of a host, as written.
type planFacts struct{ model, firmware, serial, role, rail string }

// fill sets the facts that are not set yet.
func (f *planFacts) fill(other planFacts) {
	set(&f.model, other.model)
	set(&f.firmware, other.firmware)
	set(&f.serial, other.serial)
	set(&f.role, other.role)
	set(&f.rail, other.rail)
}

// planDevice is a device of a plan: a switch, or a host with its adapters.
type planDevice struct {
	name, profile    string
	facts            planFacts
	kind             string // as written, which is the role if there is no other
	place            fabric.Place
	isSwitch, isHost bool
}

func newPlanBook(name string, o PlanOptions) *planBook {
	return &planBook{
		topology: newTopology(), PlanOptions: o, name: name, devices: map[string]*planDevice{}, profiles: map[string]map[string]string{},
		halls: map[string]string{}, adapters: map[string]string{}, uses: map[[2]int]*planRow{},
	}
}

// maxPlanName is how long the name of a device may be, in bytes: NodeDescription has 64,
// and planners add what they like.
const maxPlanName = 255

// Limits of a plan.
const (
	maxPlanRows   = 1 << 20
	maxPlanUnread = 1000 // rows that are named
)

// device returns the device of that name.
func (b *planBook) device(name string) *planDevice {
	key := name
	if !b.strict {
		key = strings.ToLower(name)
	}
	d := b.devices[key]
	if d == nil {
		d = &planDevice{name: name}
		b.devices[key] = d
	}
	return d
}

// fail reports that a row cannot be used: it is an error of a plan that a program wrote, else one of the
// rows that the plan lists.
func (b *planBook) fail(at pos, source, format string, args ...any) error {
	cause := fmt.Sprintf(format, args...)
	if b.strict {
		return fmt.Errorf("%s: expected %s", at, cause)
	}
	if b.unread++; b.unread <= maxPlanUnread {
		b.plan.Unread = append(b.plan.Unread, source+": expected "+cause)
	}
	return nil
}

// failBetween is fail for a row that names two devices, of which "" is unknown.
func (b *planBook) failBetween(devices [2]string, at pos, source, format string, args ...any) error {
	if b.unread < maxPlanUnread {
		b.plan.UnreadBetween = append(b.plan.UnreadBetween, devices)
	}
	return b.fail(at, source, format, args...)
}

// devices returns the names of the devices of a cable.
func (r *planRow) devices() [2]string { return [2]string{r.ends[0].device.name, r.ends[1].device.name} }

// add adds a cable.
func (b *planBook) add(r planRow) error {
	if len(b.rows) >= maxPlanRows {
		return fmt.Errorf("%s: expected at most %d cables", r.at, maxPlanRows)
	}
	for i := range r.ends {
		e := &r.ends[i]
		switch e.name.form {
		case portCage, portChip:
			e.device.isSwitch = true
		case portHCA, portRail, portNIC:
			e.device.isHost = true
		}
	}
	b.rows = append(b.rows, r)
	return nil
}

// fabric makes a Fabric of all that has been read.
func (b *planBook) fabric() (*fabric.Fabric, error) {
	// A number in a column of hosts is that of an adapter, unless the device is a switch.
	for i := range b.rows {
		for j := range b.rows[i].ends {
			if e := &b.rows[i].ends[j]; !e.adapter && e.name.form == portNumber && b.rows[i].ends[1-j].adapter {
				e.device.isSwitch = e.device.isSwitch || !e.device.isHost
			}
		}
	}
	for i := range b.rows {
		if err := b.connectRow(&b.rows[i]); err != nil {
			return nil, err
		}
	}
	if len(b.nodes) == 0 {
		return nil, b.empty()
	}
	b.types()
	b.guids()
	b.notes()
	b.topology.plan = &b.plan
	return b.topology.fabric(b.name)
}

// empty is the error of a plan without a cable.
func (b *planBook) empty() error {
	switch {
	case len(b.plan.Unread) > 0:
		return fmt.Errorf("%s: no row could be used; %s", b.name, b.plan.Unread[0])
	case b.other > 0 && len(b.rows) == 0 || b.other == len(b.rows) && b.other > 0:
		return fmt.Errorf("%s: no cables of InfiniBand; %s of another network or kind of cable", b.name, plural.Count(b.other, "row is", "rows are"))
	case b.Map != nil && len(b.first) > 0 && len(b.rows) == 0:
		return fmt.Errorf("%s: no header has the columns of the mapping: %s; the first row has %s", b.name, b.Map.missing(b.first), someQuoted(b.first))
	case b.saw != "" && len(b.rows) == 0:
		return fmt.Errorf("%s: no header names a device and a port of two ends; name the columns, as in --map '%s'", b.name, b.saw)
	}
	return fmt.Errorf("%s: no cables below the line with the names of the columns", b.name)
}

// connectRow adds the nodes and the link of a cable.
func (b *planBook) connectRow(r *planRow) error {
	var name [2]string
	var node, num [2]int
	for i := range r.ends {
		var cause string
		e := &r.ends[i]
		if name[i], num[i], cause = b.resolve(e); cause == "" && (num[i] < 1 || num[i] > maxPorts) && e.name.form != portUnknown {
			cause = fmt.Sprintf("the number is not from 1 to %d", maxPorts)
		}
		switch cause = cmp.Or(e.cause, cause); {
		case cause == causeEthernet && !b.strict:
			b.other++
			return nil
		case cause != "" || e.name.form == portUnknown:
			if b.strict || cause == "" {
				cause = ""
			} else {
				cause = "; " + cause
			}
			return b.failBetween(r.devices(), r.at, r.source, "a port from 1 to %d in column %s, not %q%s", maxPorts, fabric.Clip(e.column), fabric.Clip(e.text), cause)
		}
	}
	for i := range r.ends {
		var err error
		if node[i], err = b.node(r.at, name[i], r.ends[i].device); err != nil {
			return err
		}
		b.nodes[node[i]].facts.fill(r.ends[i].facts)
	}
	if node[0] == node[1] && num[0] == num[1] {
		return b.failBetween(r.devices(), r.at, r.source, "two ends, not port %d of %s twice", num[0], fabric.Clip(b.nodes[node[0]].id))
	}
	if !b.strict {
		for i := range r.ends {
			first := b.uses[[2]int{node[i], num[i]}]
			if first == nil || first.same(r) {
				continue
			}
			j := 0
			if k := b.uses[[2]int{node[i], num[i]}]; k.ends[1].device == r.ends[i].device && k.ends[1].text == r.ends[i].text {
				j = 1
			}
			b.plan.Conflicts = append(b.plan.Conflicts, fabric.PlanConflict{
				Node: r.ends[i].device.name, Port: r.ends[i].text, First: first.use(1 - j), Second: r.use(1 - i),
			})
			return nil
		}
		for i := range r.ends {
			b.uses[[2]int{node[i], num[i]}] = r
		}
	}
	for i := range r.ends { // only the ports of cables that are used count
		n := &b.nodes[node[i]]
		if more := num[i] - int(n.info.NumPorts); more > 0 {
			if err := b.countPorts(r.at, more, b.bytes); err != nil {
				return err
			}
			n.info.NumPorts = uint8(num[i])
		}
	}
	if err := b.link(r.at, node[0], num[0], node[1], num[1], r.rate); err != nil {
		return err
	}
	for i := range r.ends {
		lines := b.nodes[node[i]].lines
		p := &lines[slices.IndexFunc(lines, func(p portLine) bool { return p.num == num[i] })]
		if e := &r.ends[i]; e.name.form != portNumber && isLabel(e.text) {
			p.label = e.text
		}
		p.cable = fabric.PlanCable{Label: r.label, Length: r.length, Source: r.source}
	}
	return nil
}

// same reports whether two rows are one cable, which a plan may list from both ends.
func (r *planRow) same(s *planRow) bool {
	is := func(a, b *planEnd) bool { return a.device == b.device && strings.EqualFold(a.text, b.text) }
	return is(&r.ends[0], &s.ends[0]) && is(&r.ends[1], &s.ends[1]) || is(&r.ends[0], &s.ends[1]) && is(&r.ends[1], &s.ends[0])
}

// use is the row as a use of the end other than far.
func (r *planRow) use(far int) fabric.PlanUse {
	return fabric.PlanUse{Source: r.source, FarNode: r.ends[far].device.name, FarPort: r.ends[far].text}
}

// node returns the node of that name, which is added if it is new.
func (b *planBook) node(at pos, name string, d *planDevice) (int, error) {
	n := node{at: at, id: name, device: d}
	if v, rest, isHex := hex([]byte(name)); isHex && len(rest) == 0 && v != 0 {
		n.info.NodeGUID = mad.GUID(v)
		n.id = n.info.NodeGUID.String()
	} else {
		n.name = n.id
	}
	if i, known := b.ids[n.id]; known {
		return i, nil
	}
	if err := b.countPorts(at, 0, b.bytes); err != nil {
		return 0, err
	}
	return b.topology.add(n), nil
}

// resolve returns the name of the node and the number of the port that an end names, or why they are
// unknown.
func (b *planBook) resolve(e *planEnd) (name string, num int, cause string) {
	d := e.device
	adapter := func(key, byDefault string) (string, int, string) {
		word := cmp.Or(b.Adapters[key], b.adapters[key], byDefault)
		if word == "" {
			return "", 0, fmt.Sprintf("the adapter with the interface %s is unknown; name it in the server profile or with --hca-map FILE", key)
		}
		return d.name + " " + word, 1, ""
	}
	switch p := &e.name; {
	case p.form == portHCA:
		return d.name + p.suffix, p.num, ""
	case p.form == portNIC:
		return adapter(p.suffix, b.profiles[d.profile][strings.ToLower(p.suffix)])
	case p.form == portRail, p.form == portNumber && e.adapter && !d.isSwitch && !endsInHCA(d.name) && bareNumber(e.text):
		if p.num < 1 || p.num > maxAdapters {
			return "", 0, fmt.Sprintf("the number of an adapter is not from 1 to %d; if the device is a switch, state its type", maxAdapters)
		}
		b.guessed = b.guessed || b.Adapters == nil && len(b.adapters) == 0
		return adapter(strconv.Itoa(p.num), fmt.Sprintf("mlx5_%d", p.num-1))
	case p.form == portCage && endsInHCA(d.name):
		return "", 0, "an adapter has no cages"
	}
	num, cause = e.name.number(d.facts.model)
	return d.name + e.name.suffix, num, cause
}

// maxAdapters is how many adapters a host may have: more are a sign that the device is a switch.
const maxAdapters = 16

func bareNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// endsInHCA reports whether the name of a device names an adapter too.
func endsInHCA(name string) bool {
	words := strings.Fields(strings.ToLower(name))
	return len(words) > 1 && isHCA(words[len(words)-1])
}

// types gives each node the type that the plan states or that its cables suggest:
// a CA has one or two ports, unless its name says what it is.
func (b *planBook) types() {
	for i := range b.nodes {
		n := &b.nodes[i]
		n.info.BaseVersion, n.info.ClassVersion, n.info.PartitionCap = 1, 1, 1
		name := strings.ToLower(n.name)
		switch d := n.device; {
		case endsInHCA(name):
			n.info.NodeType = mad.NodeTypeCA
		case strings.HasPrefix(name, "mf0;"), scans(name[strings.LastIndexByte(name, '/')+1:], "u%d", new(int)): // a switch of NVIDIA; a chip of one
			n.info.NodeType = mad.NodeTypeSwitch
		case d.isSwitch && !d.isHost:
			n.info.NodeType = mad.NodeTypeSwitch
		case d.isHost, n.info.NumPorts <= 2:
			n.info.NodeType = mad.NodeTypeCA
		default:
			n.info.NodeType = mad.NodeTypeSwitch
		}
	}
}

// guids assigns a unique GUID to each node without one.
func (b *planBook) guids() {
	taken := map[mad.GUID]bool{}
	for i := range b.nodes {
		taken[b.nodes[i].info.NodeGUID] = true
	}
	bases := newGUIDBases()
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.info.NodeGUID == 0 {
			base := bases[n.info.NodeType]
			for taken[base.next] {
				base.next += maxPorts + 1
			}
			n.info.NodeGUID = base.next
			taken[n.info.NodeGUID] = true
		}
		n.info.SystemImageGUID = n.info.NodeGUID
		if n.info.NodeType == mad.NodeTypeSwitch {
			n.info.PortGUID = n.info.NodeGUID
		}
	}
}

// notes adds what the plan states of nodes, and problems that name what the fabric has and the plan
// lacks, and vice versa.
func (b *planBook) notes() {
	problem := func(kind fabric.ProblemKind, format string, args ...any) {
		b.problems = append(b.problems, fabric.Problem{Kind: kind, Text: b.name + fmt.Sprintf(format, args...)})
	}
	p := &b.plan
	for _, list := range []struct {
		of  *[]string
		get func(f *planFacts) string
	}{
		{&p.Models, func(f *planFacts) string { return f.model }}, {&p.Firmware, func(f *planFacts) string { return f.firmware }}, {&p.Serials, func(f *planFacts) string { return f.serial }},
		{&p.Roles, func(f *planFacts) string { return f.role }}, {&p.Rails, func(f *planFacts) string { return f.rail }},
	} {
		texts, any := make([]string, len(b.nodes)), false
		for i := range b.nodes {
			facts, d := b.nodes[i].facts, b.nodes[i].device
			facts.fill(d.facts)
			set(&facts.role, d.kind)
			texts[i] = list.get(&facts)
			any = any || texts[i] != ""
		}
		if any {
			*list.of = texts
		}
	}
	places, any := make([]fabric.Place, len(b.nodes)), false
	for i := range b.nodes {
		places[i] = b.nodes[i].device.place
		places[i].Hall = cmp.Or(places[i].Hall, b.halls[places[i].Rack])
		any = any || places[i] != fabric.Place{}
	}
	if any {
		p.Places = places
	}
	models := "models of nodes are unknown, and "
	if p.Models != nil {
		models = ""
	}
	problem(fabric.ProblemPlan, " has cables only; %stypes and numbers of ports are guessed", models)
	if slices.ContainsFunc(b.nodes, func(n node) bool { return n.name != "" }) {
		problem(fabric.ProblemAssignedGUIDs, " has names instead of GUIDs, which were assigned in its order")
	}
	if b.guessed {
		problem(fabric.ProblemPlan, " has numbers of adapters; n is read as mlx5_(n-1); --hca-map FILE names others")
	}
	for _, left := range []struct {
		lines int
		why   string
	}{{b.open, "without another end"}, {b.out, "whose state is not Active"}, {b.other, "of another network or kind of cable"}} {
		if left.lines > 0 {
			problem(fabric.ProblemLeftOut, ": %s %s", plural.Count(left.lines, "line", "lines"), left.why)
		}
	}
	if n := b.netBox; n[0] > n[1] {
		problem(fabric.ProblemCut, " has %d of %d cables; add the other pages (next)", n[1], n[0])
	}
	if b.plan.Partial != "" {
		problem(fabric.ProblemNoLinks, " has %s", b.plan.Partial)
	}
	if b.unread > 0 {
		problem(fabric.ProblemInvalid, ": %s could not be used: %s%s", plural.Count(b.unread, "row", "rows"), p.Unread[0], moreOf(b.unread))
	}
	if n := len(p.Conflicts); n > 0 {
		c := &p.Conflicts[0]
		problem(fabric.ProblemInvalid, ": %s more than once: port %s of %s in %s and %s%s", plural.Count(n, "end is used", "ends are used"),
			fabric.Clip(c.Port), fabric.Clip(c.Node), c.First.Source, c.Second.Source, moreOf(n))
	}
}

// moreOf is the end of a message that names the first of n.
func moreOf(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("; and %d more (fabric.plan)", n-1)
}

// planTable is a table of a plan, which is read row by row.
type planTable interface {
	// next returns the next row, whose cells are valid until the row after it.
	next() (cells []string, ok bool)
	// at returns the position of the row, for messages, and what the plan calls it.
	at() (pos, string)
	// doubt returns why a cell of the row may not hold what its author wrote; "": it does.
	doubt(col int, text string) string
	err() error
}

// read reads a table: a row for each cable, below the row with the names of the columns. Rows above it
// are titles, and blank rows are ignored.
func (b *planBook) read(t planTable) error {
	var h *planHeader
	if b.Map.numbered() {
		h = b.Map.header(nil)
	}
	above := [2]map[string]string{{}, {}}
	for {
		cells, ok := t.next()
		if !ok {
			return t.err()
		}
		if h == nil {
			if h = b.headerOf(cells); h == nil {
				if b.first == nil && strings.Join(cells, "") != "" {
					b.first = slices.Clone(cells)
				}
				if text, known := proposal(cells); known > b.sawKnown || b.saw == "" {
					b.saw, b.sawKnown = text, known
				}
			}
			continue
		}
		blank := true
		for i := range cells {
			blank = blank && cleanCell(cells[i]) == ""
		}
		if blank {
			continue
		}
		row := planCells{t: t, cells: cells, h: h, exact: b.strict}
		var err error
		switch h.kind {
		case tableLinks:
			err = b.cable(&row, above)
		case tableNodes:
			b.describe(&row)
		case tableProfiles:
			b.profile(&row)
		case tableFloor:
			if rack := row.end(0, "rack"); rack != "" {
				b.halls[rack] = row.end(0, "hall")
			}
		case tableAdapters:
			b.adapters[row.end(0, "port")] = row.end(1, "port")
		case tablePartitions:
			b.plan.Partitions = append(b.plan.Partitions, cmp.Or(row.common("partition"), row.common("pkey")))
		}
		if err != nil {
			return err
		}
	}
}

// headerOf returns the header that a row is; nil: it is not one.
func (b *planBook) headerOf(cells []string) *planHeader {
	if b.Map != nil {
		return b.Map.header(cells)
	}
	return headerOf(cells)
}

// planCells is a row of a table.
type planCells struct {
	t     planTable
	cells []string
	h     *planHeader
	exact bool // a program wrote it: only blanks are removed
}

func (r *planCells) cell(col int, ok bool) string {
	switch {
	case !ok || col >= len(r.cells):
		return ""
	case r.exact:
		return strings.TrimSpace(r.cells[col])
	}
	return cleanCell(r.cells[col])
}

func (r *planCells) end(end int, field string) string {
	col, ok := r.h.ends[end][field]
	return r.cell(col, ok)
}

func (r *planCells) common(field string) string {
	col, ok := r.h.common[field]
	return r.cell(col, ok)
}

// column returns the name of a column, or its number if it has none.
func (r *planCells) column(col int) string {
	if col < len(r.h.names) && r.h.names[col] != "" {
		return r.h.names[col]
	}
	return strconv.Itoa(col + 1)
}

// cleanCell removes what spreadsheets and people leave around a text: blanks of all kinds, curly quotes,
// the apostrophe before a formula, and compatibility forms of characters (NFKC).
func cleanCell(text string) string {
	if isPlain(text) {
		return strings.TrimSpace(text)
	}
	if utf8.ValidString(text) {
		text = norm.NFKC.String(text)
	}
	text = strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\u201c\u201d\u201e\u2018\u2019\u200b\ufeff", r)
	})
	if len(text) > 1 && text[0] == '\'' && strings.ContainsRune("=+-@", rune(text[1])) {
		text = text[1:]
	}
	return text
}

// isPlain reports whether a text has nothing that cleanCell changes but blanks around it.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf || text[i] == '\'' {
			return false
		}
	}
	return true
}

// cable takes a row of a table of cables. above has the cells that rows below it inherit.
func (b *planBook) cable(c *planCells, above [2]map[string]string) error {
	at, source := c.t.at()
	r := planRow{at: at, source: source, label: c.common("label"), length: c.common("length")}
	if unit := c.common("lengthunit"); unit != "" && r.length != "" {
		r.length += " " + unit
	}
	var device, port [2]string
	for i := range 2 {
		device[i], port[i] = c.end(i, "device"), c.end(i, "port")
	}
	switch {
	case device[0] == "" && device[1] == "" && port[0] == "" && port[1] == "":
		return nil // a heading, as of a rack
	case device[1] == "" && port[1] == "" && c.doubtful(1) == "":
		b.open++
		return nil
	}
	switch state, protocol := strings.ToLower(c.common("state")), strings.ToLower(c.common("protocol")); {
	case !slices.Contains([]string{"", "active", "activ", "connected", "planned"}, state):
		b.out++
		return nil
	case !slices.Contains([]string{"", "ib", "infiniband"}, protocol):
		b.other++
		return nil
	}
	for i := range 2 {
		if kind := c.end(i, "kind"); strings.HasPrefix(kind, "dcim.") && kind != "dcim.interface" || strings.HasPrefix(kind, "circuits.") {
			b.other++
			return nil
		}
	}
	if width, speed := c.common("width"), strings.ToLower(c.common("speed")); width != "" || speed != "" {
		rated := rate{inUse: true}
		if (width == "" || rated.setWidth(width)) && (speed == "" || rated.setSpeed(speed)) {
			r.rate = rated
		} else if b.kind == KindCables {
			return b.fail(at, source, "a width and a speed as 4x and hdr, or neither: %q", fabric.Clip(c.line()))
		}
	}
	for i := range 2 {
		if doubt := c.doubtful(i); doubt != "" {
			return b.failBetween(device, at, source, "%s", doubt)
		}
		if c.h.inherit {
			for _, field := range []string{"group", "rack", "kind"} {
				if text := c.end(i, field); text != "" {
					above[i][field] = text
				}
			}
		}
		if len(device[i]) == 0 || len(device[i]) > maxPlanName {
			return b.fail(at, source, "a name of 1 to %d bytes, or a GUID, in column %s: %q", maxPlanName, fabric.Clip(c.column(c.h.ends[i]["device"])), fabric.Clip(device[i]))
		}
		kind := strings.ToLower(cmp.Or(c.end(i, "kind"), above[i]["kind"]))
		if board := c.end(i, "board"); board != "" && kind != "fi" {
			device[i] += " " + board
		}
		if kind == "fi" {
			if !endsInHCA(device[i]) {
				device[i] += " hfi1_0"
			}
			port[i] = cmp.Or(port[i], "1")
		}
		d := b.device(device[i])
		d.state(kind)
		d.stay(fabric.Place{Hall: c.end(i, "hall"), Row: c.end(i, "row"), Rack: cmp.Or(c.end(i, "rack"), above[i]["rack"]), Unit: c.end(i, "unit")})
		facts := c.facts(i)
		set(&d.facts.model, facts.model) // which the names of ports depend on
		if isYes(c.end(i, "manager")) {
			b.manager(device[i])
		}
		e := planEnd{device: d, facts: facts, text: port[i], column: c.column(c.h.ends[i]["port"]), adapter: c.h.adapter[i]}
		e.name, e.cause = parsePlanPort(d.name, port[i])
		r.ends[i] = e
	}
	return b.add(r)
}

// line returns the row as a line, for messages.
func (r *planCells) line() string { return strings.Join(r.cells, ",") }

// doubtful returns why the device or the port of an end may not be what the author wrote.
func (r *planCells) doubtful(end int) string {
	for _, field := range []string{"device", "port"} {
		col, ok := r.h.ends[end][field]
		if !ok {
			continue
		}
		if why := r.t.doubt(col, r.cell(col, true)); why != "" {
			what := "a port"
			if field == "device" {
				what = "a name"
			}
			return fmt.Sprintf("%s in column %s, not %s", what, fabric.Clip(r.column(col)), why)
		}
	}
	return ""
}

// set sets a text that is not set yet.
func set(to *string, text string) { *to = cmp.Or(*to, text) }

// state records the kind of a device as a plan writes it.
func (d *planDevice) state(kind string) {
	set(&d.kind, kind)
	switch kind {
	case "host", "server", "fi", "ca", "hca", "compute", "node":
		d.isHost = true
	case "switch", "sw", "cl", "cs", "leaf", "spine":
		d.isSwitch = true
	}
}

// stay records where a device is.
func (d *planDevice) stay(p fabric.Place) {
	set(&d.place.Hall, p.Hall)
	set(&d.place.Row, p.Row)
	set(&d.place.Rack, p.Rack)
	set(&d.place.Unit, p.Unit)
}

// describe takes a row of a table of devices.
func (b *planBook) describe(c *planCells) {
	name := c.end(0, "device")
	if name == "" || len(name) > maxPlanName || len(b.devices) >= maxNodes {
		return
	}
	d := b.device(name)
	d.state(strings.ToLower(c.end(0, "kind")))
	d.stay(fabric.Place{Hall: c.end(0, "hall"), Row: c.end(0, "row"), Rack: c.end(0, "rack"), Unit: c.end(0, "unit")})
	d.facts.fill(c.facts(0))
	set(&d.profile, c.common("profile"))
	if isYes(c.common("manager")) {
		b.manager(name)
	}
}

// facts returns what a row states of the device at an end.
func (r *planCells) facts(end int) planFacts {
	return planFacts{model: r.end(end, "model"), firmware: r.end(end, "firmware"), serial: r.end(end, "serial"), role: r.end(end, "role"), rail: r.end(end, "rail")}
}

func isYes(text string) bool {
	return slices.Contains([]string{"yes", "y", "x", "true", "1"}, strings.ToLower(text))
}

// manager adds a device that should run the subnet manager.
func (b *planBook) manager(name string) {
	if !slices.Contains(b.plan.Managers, name) && len(b.plan.Managers) < maxPlanUnread {
		b.plan.Managers = append(b.plan.Managers, name)
	}
}

// profile takes a row of a table of server profiles.
func (b *planBook) profile(c *planCells) {
	profile, rdma := c.common("profile"), c.common("rdma")
	if b.profiles[profile] == nil {
		b.profiles[profile] = map[string]string{}
	}
	for _, field := range []string{"nic", "osnic"} {
		if nic := c.common(field); nic != "" && rdma != "" {
			b.profiles[profile][strings.ToLower(nic)] = rdma
		}
	}
}

// writeCables writes the cables of f as a plan, each from the end that comes first,
// with its active width and speed. Nodes are named; a node whose name
// is not unique, or does not fit in a line of text, is identified by its GUID.
func writeCables(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	out.WriteString("a,a_port,b,b_port,width,speed\n")
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || p == q {
			continue
		}
		for _, end := range []*fabric.Port{p, q} {
			out.WriteString(quoteCSV(planName(end.Node())) + "," + strconv.Itoa(end.Num()) + ",")
		}
		out.WriteString(p.Width() + "," + p.Speed() + "\n")
	}
	return out.Flush()
}

// planName returns the name of a node in a plan.
func planName(n *fabric.Node) string {
	name := n.Name()
	plain := utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name
	if !plain || name == "" || name[0] == '#' || strings.HasPrefix(name, "0x") || strings.HasPrefix(name, byteOrderMark) || len(name) > maxPlanName || len(n.Fabric().NodeByName(name)) > 1 {
		return n.GUID().String()
	}
	return name
}

// quoteCSV puts a text in quotes where commas or quotes need it.
func quoteCSV(text string) string {
	if strings.ContainsAny(text, `",`) {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}
