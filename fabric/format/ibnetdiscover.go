package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindIbnetdiscover is the topology that ibnetdiscover prints.
const KindIbnetdiscover FormatName = "ibnetdiscover"

var ibnetdiscover = fileFormat{
	kind:  KindIbnetdiscover,
	about: "a topology of ibnetdiscover or a net file of ibsim",
	file:  "topology of `ibnetdiscover`, with `-f`, `-g`, `-m`; net file of `ibsim`",
	beginnings: []string{
		"vendid=", "devid=", "sysimgguid=", "switchguid", "caguid", "hcaguid", "rtguid",
		"width", "speed", "extspeed", "module", "include", "do ",
		"Switch\t", "Ca\t", "Hca\t", "Rt\t", "Ca ", "Hca ", "Rt ",
		"Chassis ", "Non-Chassis Nodes", "@",
	},
	sniff:    func(l *headLine) bool { return isPortLine(string(l.text)) },
	load:     loadIbnetdiscover,
	write:    writeIbnetdiscover,
	dumpHelp: `"ibnetdiscover", which ibsim reads too`,
}

// loadIbnetdiscover reads what ibnetdiscover prints, and net files of ibsim,
// which share its records. Where a word has two meanings, the node id decides: ids of
// ibnetdiscover are S-, H- or R- and 16 digits.
func loadIbnetdiscover(r io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	n := recordReader{
		topology: newTopology(), open: open, guids: newGUIDBases(),
		// ibsim's (ibsim/sim.h, DEFAULT_LINKWIDTH, DEFAULT_LINKSPEED)
		rate: rate{widths: mad.LinkWidth4x, speeds: 1},
	}
	if err := n.read(r, name); err != nil {
		return nil, err
	}
	if len(n.nodes) == 0 && n.unknown != nil {
		return nil, n.unknown
	}
	if n.damaged.n > maxDamaged && n.damaged.n > n.at.line/100 {
		return nil, n.damage
	}
	if n.dump && n.settings != (pos{}) { // ibsim's files may have settings that apply to no record
		n.problems = append(n.problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: no record of a node below this line; the file may be cut short", n.settings)})
	}
	n.addRouters(name)
	if n.dump {
		n.derive()
	}
	n.problems = append(n.problems, n.capture.problems()...)
	return n.fabric(name)
}

// recordReader reads records: a line that begins with the type of the node, and
// its port lines, which begin with [ or @.
type recordReader struct {
	*topology
	open     Opener
	at       pos
	text     string // the line at it
	bytes    int64  // read so far
	depth    int    // of files that include one another
	included int    // files
	inRecord bool   // port lines belong to the last of nodes
	stray    bool   // the present line was skipped: a prompt, or a message of the tool
	settings pos    // the last setting that has no record below it yet

	// The values of the settings above a record.
	vendor   uint32
	device   uint16
	image    *mad.GUID
	guids    map[mad.NodeType]*guidBase
	portGUID *mad.GUID
	guidSet  bool // the line above has the GUID
	module   string
	rate     rate

	grouped bool // by chassis: ibnetdiscover -g

	damaged strayLines // port lines of a dump that are left out
	damage  error      // of the first
	unset   strayLines // records of a dump without a line of the vendor, the device or the GUID
	speeds  unknownTexts

	dump    bool // of ibnetdiscover, by the id of the first node
	capture capture
	unknown error // of the first line that is skipped if this is a dump
	routers []routerLine
}

// damagedLine is the error of a line of a dump that is damaged. The other end of the link may show
// what it had.
type damagedLine struct{ error }

// maxDamaged is how many lines of a small dump may be damaged; a larger one may have one of 100.
const maxDamaged = 16

// damagedPort is expected for a port line that is damaged.
func (r *recordReader) damagedPort(format string, args ...any) error {
	return &damagedLine{r.expected(format, args...)}
}

// expected returns an error that names the line.
func (r *recordReader) expected(format string, args ...any) error {
	return expected(r.at, r.text, false, format, args)
}

// maxInclude is how many files may be open inside one another; ibsim opens as
// many as it has memory for.
const maxInclude = 16

// Limits of all files that are included: a few files that each include many others
// are many files.
const (
	maxIncluded     = 1024
	maxIncludeBytes = 64 << 20 // with the file that includes them
)

// read parses one file.
func (r *recordReader) read(file io.Reader, name string) error {
	if r.depth++; r.depth > maxInclude {
		return r.expected("at most %d files that include one another: does %s include itself?", maxInclude, name)
	}
	outer := r.at
	defer func() { r.depth, r.at = r.depth-1, outer }()
	end := lastByte{Reader: file}
	in := bufio.NewScanner(&end)
	in.Buffer(nil, maxLine)
	r.at = pos{name, 0}
	for in.Scan() {
		r.at.line++
		if r.bytes += int64(len(in.Bytes())) + 1; r.depth > 1 && r.bytes > maxIncludeBytes {
			return r.expected("at most %d MB of files that others include", maxIncludeBytes>>20)
		}
		r.text = in.Text()
		if err := r.line(r.text); err != nil {
			return err
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		r.at.line++
		return r.expected("a line of at most %d bytes", maxLine)
	}
	if in.Err() != nil {
		return fmt.Errorf("%s: after line %d: %w", name, r.at.line, in.Err())
	}
	if end.last != '\n' && !r.stray && r.at.line > 0 && strings.TrimSpace(r.text) != "" && !endsWithSpeed(r.text) {
		r.endsWithin(r.at)
	}
	r.inRecord = false
	return nil
}

// endsWithSpeed reports whether a line ends with the width and the speed of a link, behind which lines
// of ports have nothing.
func endsWithSpeed(line string) bool {
	word := line[strings.LastIndexByte(line, ' ')+1:]
	_, speed, isRate := strings.Cut(strings.ToLower(word), "x")
	return isRate && slices.Contains(speedWords, speed)
}

// lastByte reads, and keeps the last byte.
type lastByte struct {
	io.Reader
	last byte
}

func (l *lastByte) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.last = b[n-1]
	}
	return n, err
}

// line parses one line. The file that was named may have lines that ibnetdiscover did not print,
// unless it was written by hand, as files of ibsim are, whose ids differ.
func (r *recordReader) line(s string) error {
	s = strings.TrimLeft(strings.TrimRight(s, " \t\r"), "\r")
	r.stray = false
	switch {
	case s == "":
		r.inRecord = false
		return nil
	case s[0] == '#':
		if rest, ok := strings.CutPrefix(s, "# Initiated from node "); ok {
			r.from = rest
		}
		return nil
	case r.depth == 1 && !isRecordLine(s):
		err := r.setting(s)
		if err == nil {
			r.inRecord = false
			return nil
		}
		if len(r.nodes) > 0 && !r.dump || isCutShort(s) {
			return err
		}
		if r.unknown == nil {
			r.unknown = err
		}
		r.stray = true
		return r.capture.stray(r.at, s, err)
	}
	if err := r.capture.begin(); err != nil {
		return err
	}
	if s[0] == '[' || s[0] == '@' {
		err := r.port(s)
		if damaged, ok := errors.AsType[*damagedLine](err); ok && r.dump {
			if r.damaged.n == 0 {
				r.damage = damaged.error
			}
			r.damaged.add(r.at, s)
			return nil
		}
		return err
	}
	r.inRecord = false
	for _, k := range recordTypes {
		if rest, ok := cutType(s, k.word); ok {
			r.settings = pos{}
			return r.node(k.t, rest)
		}
	}
	r.settings = r.at
	return r.setting(s)
}

// isRecordLine reports whether s begins as lines of records and settings do. Where tabs were
// lost, the number of ports follows the type of a node at once.
func isRecordLine(s string) bool {
	if isPortLine(s) || s[0] == '@' {
		return true
	}
	for _, k := range recordTypes {
		if _, ok := cutType(s, k.word); ok {
			return true
		}
	}
	i := strings.IndexAny(s, "=+ \t\"")
	return i > 0 && slices.Contains(settings, s[:i])
}

// isPortLine reports whether s begins with the number of a port in brackets. A prompt may
// have a bracket too.
func isPortLine(s string) bool { return len(s) > 1 && s[0] == '[' && s[1] >= '0' && s[1] <= '9' }

func cutType(s, word string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(s, word)
	return rest, ok && rest != "" && strings.IndexByte(" \t0123456789", rest[0]) >= 0
}

// settings are the words that settings begin with.
var settings = []string{
	"vendid", "devid", "sysimgguid", "switchguid", "caguid", "caguids", "hcaguid", "hcaguids", "rtguid", "rtguids", "???guid",
	"width", "speed", "extspeed", "module", "include",
}

// isCutShort reports whether s is the beginning of a record or setting: the end of a file
// that is cut short, not a prompt.
func isCutShort(s string) bool {
	for _, k := range recordTypes {
		if strings.HasPrefix(k.word, s) {
			return true
		}
	}
	return s == "[" || slices.ContainsFunc(settings, func(w string) bool { return strings.HasPrefix(w, s) })
}

var recordTypes = []struct {
	word string
	t    mad.NodeType
}{
	{"Switch", mad.NodeTypeSwitch}, {"Hca", mad.NodeTypeCA}, {"Ca", mad.NodeTypeCA}, {"Rt", mad.NodeTypeRouter}, {"???", 0},
}

// setting parses a line that applies to the records below it.
func (r *recordReader) setting(s string) error {
	for _, word := range []string{"Chassis ", "Hostname:", "Non-Chassis Nodes"} { // of ibnetdiscover -g
		if strings.HasPrefix(s, word) {
			r.grouped = true
			return nil
		}
	}
	if s == "do" || strings.HasPrefix(s, "do ") || strings.HasPrefix(s, "do\t") || strings.HasPrefix(s, "pdebug") {
		return nil // a command for ibsim's console
	}
	i := strings.IndexAny(s, "=+ \t\"")
	if i < 0 {
		i = len(s)
	}
	key, rest := s[:i], skipBlanks(s[i:])
	switch key {
	case "include":
		return r.include(rest)
	case "module":
		name, _, ok := quoted(rest)
		if !ok || strings.ContainsAny(name, "#@") {
			return r.expected("a name, as in module=\"name\", without # and @: %q", s)
		}
		r.module = name
		return nil
	}
	switch {
	case rest == "" || rest[0] != '=' && rest[0] != '+':
		return r.expected("a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): %q", fabric.Clip(s))
	}
	relative := rest[0] == '+'
	value := strings.TrimSpace(rest[1:])
	switch key {
	case "switchguid":
		return r.guid(mad.NodeTypeSwitch, value, relative)
	case "caguid", "caguids", "hcaguid", "hcaguids":
		return r.guid(mad.NodeTypeCA, value, relative)
	case "rtguid", "rtguids":
		return r.guid(mad.NodeTypeRouter, value, relative)
	case "???guid":
		return r.guid(0, value, relative)
	}
	bits := 0
	switch key {
	case "vendid":
		bits = 24
	case "devid":
		bits = 16
	case "sysimgguid":
		bits = 64
	case "width", "speed", "extspeed":
		bits = 8
	default:
		return r.expected("one of vendid, devid, sysimgguid, switchguid, caguid, rtguid, width, speed, extspeed, module, include, not %q", fabric.Clip(key))
	}
	value, _, _ = strings.Cut(value, "\t") // a comment of ibnetdiscover -g
	v, err := strconv.ParseUint(strings.TrimSpace(value), 0, bits)
	if err != nil {
		return r.expected("%s to be a number of %d bits, not %q", key, bits, fabric.Clip(value))
	}
	switch key {
	case "vendid":
		r.vendor = uint32(v)
	case "devid":
		r.device = uint16(v)
	case "sysimgguid":
		g := mad.GUID(v)
		r.image = &g
	default: // width, speed, extspeed set the port options w=, s=, e= for all ports below
		if !r.rate.option(key[:1] + "=" + strconv.FormatUint(v, 10)) {
			return r.expected("%s to be a mask of those that ports may use, not %d", key, v)
		}
	}
	return nil
}

// guid sets the GUID of the next node of type t, from which the GUIDs of the nodes
// after it count up. The port GUID of a switch may follow in parentheses.
func (r *recordReader) guid(t mad.NodeType, value string, relative bool) error {
	text, rest, _ := strings.Cut(value, "(")
	text, _, _ = strings.Cut(text, "\t")
	v, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	if err != nil {
		return r.expected("a GUID, as in 0x2c90300100000, not %q", fabric.Clip(value))
	}
	g := r.guids[t]
	r.guidSet = true
	if relative {
		g.next = g.base + mad.GUID(v)
	} else {
		*g = guidBase{mad.GUID(v), mad.GUID(v)}
	}
	r.portGUID = nil
	if rest != "" {
		text, _, _ = strings.Cut(rest, ")")
		v, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return r.expected("a port GUID in hexadecimal, not %q", fabric.Clip(text))
		}
		p := mad.GUID(v)
		r.portGUID = &p
	}
	return nil
}

// include parses the file that an include line names.
func (r *recordReader) include(rest string) error {
	name, _, ok := quoted(rest)
	if !ok {
		return r.expected("a file, as in include \"name\": %q", fabric.Clip(rest))
	}
	if r.included++; r.included > maxIncluded {
		return r.expected("at most %d files to be included", maxIncluded)
	}
	if r.open == nil {
		return r.expected("no include: only this file is available: %q", fabric.Clip(name))
	}
	if !path.IsAbs(name) {
		name = path.Join(path.Dir(r.at.file), name)
	}
	f, err := r.open(name)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return fmt.Errorf("%s: include %q: %w", r.at, name, err)
	}
	defer f.Close()
	return r.read(f, name)
}

// node parses the first line of a record after its type: ` 36 "S-..." # "name" enhanced port 0 lid 3 lmc 0`.
func (r *recordReader) node(t mad.NodeType, s string) error {
	ports, rest := number(skipBlanks(s))
	id, rest, ok := quoted(rest)
	if ports < 1 || ports > 254 || !ok || id == "" {
		return r.expected("the number of ports, 1 to 254, and a node id, as in Switch 36 \"S-0002c90300100000\": %q", fabric.Clip(s))
	}
	if strings.ContainsAny(id, "#@") {
		return r.expected("a node id without # and @, not %q", id)
	}
	if err := r.countPorts(r.at, ports, r.bytes); err != nil {
		return err
	}
	own := isGUIDID(id)
	if len(r.nodes) == 0 {
		r.dump = own
	}
	if !own && r.unknown != nil {
		return r.unknown
	}
	id = r.qualify(id)
	if k, ok := r.ids[id]; ok {
		return r.expected("a node id of its own, but %q is that of the record at %s", id, r.nodes[k].at)
	}
	n := node{at: r.at, id: id, name: id}
	g := r.guids[t]
	if own && !r.guidSet { // a dump whose line with the GUID is missing
		guid, _, _ := hexDigits([]byte(id[2:18]))
		g.next = mad.GUID(guid)
		r.unset.add(r.at, id)
	} else if r.dump && (r.vendor == 0 || r.device == 0) {
		r.unset.add(r.at, id)
	}
	if system := g.next; r.portGUID != nil && system != *r.portGUID && r.ofSystem(id) {
		g.next = *r.portGUID
		if r.image == nil {
			r.image = &system
		}
	}
	n.info = mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: t, NumPorts: uint8(ports), NodeGUID: g.next,
		VendorID: r.vendor, DeviceID: r.device, PartitionCap: 1,
	}
	switch {
	case r.image != nil:
		n.info.SystemImageGUID = *r.image
	case !own:
		n.info.SystemImageGUID = g.next
	}
	if t == mad.NodeTypeSwitch {
		n.info.PortGUID = g.next
		if r.portGUID != nil {
			n.info.PortGUID = *r.portGUID
		}
		g.next++
	} else {
		g.next += mad.GUID(ports) + 1
	}
	r.vendor, r.image, r.portGUID, r.guidSet = 0, nil, nil, false
	if own {
		r.device = 0
	}
	_, comment, _ := strings.Cut(rest, "#")
	if err := n.comment(r, strings.TrimSpace(comment), own); err != nil {
		return err
	}
	r.add(n)
	r.inRecord = true
	return nil
}

// ofSystem reports whether the first GUID of the line above is the GUID of the system, and the one
// in parentheses the GUID of the node: ibdiagnet writes switchguid=0xSYSTEM(NODE), and
// ibnetdiscover switchguid=0xNODE(PORT). The node id, which has the GUID of the node, shows which.
func (r *recordReader) ofSystem(id string) bool {
	if !isGUIDID(id) {
		return false
	}
	guid, _, ok := hexDigits([]byte(id[2:18]))
	return ok && mad.GUID(guid) == *r.portGUID
}

// comment parses what follows # in the first line of a record: the name, with
// or without quotes around it, which may contain quotes itself, and LID and LMC
// of a switch. own: the node id has the form that ibnetdiscover writes.
func (n *node) comment(r *recordReader, s string, own bool) error {
	name, rest := s, ""
	i := strings.LastIndexByte(s, '"')
	if i == 0 && !own {
		return r.expected("a name in quotes: %q", fabric.Clip(s))
	}
	if strings.HasPrefix(s, `"`) && i > 0 {
		name, rest = s[1:i], s[i+1:]
	} else {
		if i == 0 {
			r.unquoted.add(r.at, s)
			s = s[1:]
			name = s
		}
		for _, word := range []string{" enhanced port ", " base port ", " lid ", " lmc "} {
			if i := strings.Index(" "+s, word); i >= 0 {
				name, rest = strings.TrimSpace(s[:max(i-1, 0)]), s[max(i-1, 0):]
				break
			}
		}
	}
	if own && s != "" || name != "" {
		n.name = name
	}
	if n.info.NodeType != mad.NodeTypeSwitch {
		return nil
	}
	for w := range strings.FieldsSeq(rest) {
		if w == "enhanced" || w == "base" {
			n.port0, n.enhanced = true, w == "enhanced"
		}
	}
	return r.address(rest, &n.lid, &n.lmc)
}

// address parses "lid 3 lmc 0". The LID is unknown where its number is missing, or above
// the LIDs of ports: 65535 stands for none.
func (r *recordReader) address(text string, lid *mad.LID, lmc *uint8) error {
	var few [8]string
	words := slices.AppendSeq(few[:0], strings.FieldsSeq(text))
	for i := 0; i < len(words); i++ {
		key, value := words[i], ""
		switch {
		case key != "lid" && key != "lmc":
			continue
		case i+1 < len(words):
			value = words[i+1]
		}
		switch {
		case key == "lid" && value == "lmc":
			r.noLID(r.at)
		case key == "lid" && len(value) == 5 && value > "49151" && value <= "65535" && strings.Trim(value, "0123456789") == "":
			r.noLID(r.at)
			i++
		case !setAddress(key, value, lid, lmc):
			return r.expected("lid to be 0 to %d and lmc 0 to 7: %q", mad.MaxUnicastLID, fabric.Clip(text))
		default:
			i++
		}
	}
	return nil
}

// port parses a port line: `[1](guid) "H-..."[2](guid) w=2 # lid 3 lmc 0 "name" lid 4 4xHDR`.
func (r *recordReader) port(s string) error {
	if !r.inRecord {
		return r.expected("a record (Switch, Ca, Rt) before the port line %q", fabric.Clip(s))
	}
	n := &r.nodes[len(r.nodes)-1]
	p := portLine{at: r.at, rate: r.rate}
	text, alias := strings.CutPrefix(s, "@")
	p.alias = alias
	var ok bool
	if p.num, text, ok = bracketed(text); !ok || p.num < 1 || p.num > int(n.info.NumPorts) {
		return r.damagedPort("a port from 1 to %d in brackets, as in [1]: %q", n.info.NumPorts, fabric.Clip(s))
	}
	for _, q := range n.lines {
		if q.num == p.num {
			return r.expected("one line for port %d, but %s is one too", p.num, q.at)
		}
	}
	p.label, text = panelLabel(text, n.info.NodeType)
	if p.guid, text, ok = parenthesised(text); !ok {
		return r.damagedPort("a port GUID in parentheses, in hexadecimal: %q", fabric.Clip(s))
	}
	if p.far, text, ok = quoted(text); !ok || p.far == "" {
		return r.damagedPort("the id of the node that port %d is connected to, in quotes: %q", p.num, fabric.Clip(s))
	}
	p.farPort = 1
	if alias {
		if strings.ContainsAny(p.far, "#@") {
			return r.expected("an alias without # and @, not %q", p.far)
		}
		p.far = r.module + "@" + p.far
		if _, ok := r.alias[p.far]; ok {
			return r.expected("an alias of its own, but %q is taken", p.far)
		}
		r.alias[p.far] = lineRef{len(r.nodes) - 1, len(n.lines)}
	} else {
		p.far = r.qualify(p.far)
		if strings.HasPrefix(text, "[") {
			if p.farPort, text, ok = bracketed(text); !ok || p.farPort < 1 || p.farPort > 254 {
				return r.damagedPort("the port of %q that port %d is connected to, in brackets: %q", p.far, p.num, fabric.Clip(s))
			}
		}
	}
	if p.farGUID, text, ok = parenthesised(text); !ok {
		return r.damagedPort("a port GUID in parentheses, in hexadecimal: %q", fabric.Clip(s))
	}
	options, comment, _ := strings.Cut(text, "#")
	if err := r.rates(&p, options, strings.TrimSpace(comment), n.info.NodeType != mad.NodeTypeSwitch); err != nil {
		return err
	}
	n.lines = append(n.lines, p)
	if r.grouped && strings.HasPrefix(p.far, "R-") && isGUIDID(p.far) {
		r.routers = append(r.routers, routerLine{lineRef{len(r.nodes) - 1, len(n.lines) - 1}, comment})
	}
	return nil
}

// routerLine is a port line that leads to a router, and its comment.
type routerLine struct {
	lineRef
	comment string
}

// addRouters adds the routers that have no record: ibnetdiscover -g leaves out
// routers in a chassis (rdma-core infiniband-diags/ibnetdiscover.c,
// dump_topology). Port lines that lead to them give their name and LID, and the
// numbers, GUIDs and rates of their connected ports.
func (r *recordReader) addRouters(name string) {
	made := map[string]bool{}
	for _, e := range r.routers {
		p := &r.nodes[e.node].lines[e.line]
		k, ok := r.ids[p.far]
		if ok && !made[p.far] {
			continue
		}
		label, lid := "", mad.LID(0)
		if i, j := strings.IndexByte(e.comment, '"'), strings.LastIndexByte(e.comment, '"'); i < j {
			label = e.comment[i+1 : j]
			if words := strings.Fields(e.comment[j+1:]); len(words) > 1 {
				setAddress(words[0], words[1], &lid, new(uint8))
			}
		}
		if !ok {
			guid, _, _ := hexDigits([]byte(p.far[2:18]))
			made[p.far] = true
			k = r.add(node{at: p.at, id: p.far, name: label, info: mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeRouter, NodeGUID: mad.GUID(guid), PartitionCap: 1}})
			r.problems = append(r.problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s has no record of router %q (%s), which is derived from its links: ibnetdiscover -g leaves out routers in a chassis; make the file without -g", name, label, mad.GUID(guid))})
		}
		router := &r.nodes[k]
		router.info.NumPorts = max(router.info.NumPorts, uint8(p.farPort))
		router.lines = append(router.lines, portLine{at: p.at, num: p.farPort, far: r.nodes[e.node].id, farPort: p.num, guid: p.farGUID, lid: lid, rate: p.rate})
	}
}

// derive adds to a dump the lines of ports, and the nodes, that only lines of the other ends of
// their links name: the dump is cut short or damaged, or links changed while it was made. Lines
// that contradict each other stay.
func (r *recordReader) derive() {
	var ports, nodes strayLines
	made := map[int]bool{}
	for i := 0; i < len(r.nodes); i++ {
		for j := 0; j < len(r.nodes[i].lines); j++ {
			n, p := &r.nodes[i], r.nodes[i].lines[j]
			if p.alias || p.open || !isGUIDID(p.far) || !isGUIDID(n.id) {
				continue
			}
			k, ok := r.ids[p.far]
			if !ok {
				if k, ok = r.deriveNode(&p); !ok {
					continue
				}
				made[k] = true
				nodes.add(p.at, p.far)
			}
			m := &r.nodes[k]
			if more := p.farPort - int(m.info.NumPorts); made[k] && more > 0 && tooManyPorts(r.ports+more, r.bytes) == "" {
				r.ports += more
				m.info.NumPorts = uint8(p.farPort)
			}
			if p.farPort > int(m.info.NumPorts) || slices.ContainsFunc(m.lines, func(q portLine) bool { return q.num == p.farPort }) {
				continue // connect finds what contradicts
			}
			if !made[k] {
				ports.add(p.at, fmt.Sprintf("%s/%d", fabric.Clip(m.name), p.farPort))
			}
			if m.info.NodeType == mad.NodeTypeSwitch && m.lid == 0 {
				m.lid = p.farLID
			}
			m.lines = append(m.lines, portLine{at: p.at, num: p.farPort, far: r.nodes[i].id, farPort: p.num, guid: p.farGUID, farGUID: p.guid, lid: p.farLID, rate: p.rate, implied: true})
		}
	}
	problem := func(kind fabric.ProblemKind, s strayLines, format string, args ...any) {
		if s.n > 0 {
			r.problems = append(r.problems, fabric.Problem{Kind: kind, Text: fmt.Sprintf("%s: ", s.first) + fmt.Sprintf(format, args...)})
		}
	}
	// The other end has what such a line had: the fabric is judged, unlike a part of it. With both
	// lines of a link damaged, the link is lost.
	kind := fabric.ProblemInvalid
	if r.damaged.n > ports.n {
		kind = fabric.ProblemCut
	}
	problem(kind, r.damaged, "%s damaged and left out: %s", plural.Count(r.damaged.n, "port line is", "port lines are"), r.damaged.text)
	if r.unset.n < len(r.nodes)-nodes.n { // all records: they were written so
		problem(fabric.ProblemCut, r.unset, "%s no GUID, vendor or device above it; lines are missing: %s", plural.Count(r.unset.n, "record has", "records have"), r.unset.text)
	}
	problem(fabric.ProblemInvalid, ports, "%s no line and %s derived from the other end: %s; the dump is damaged, or links changed while it was made", plural.Count(ports.n, "port has", "ports have"), wasWere(ports.n), ports.text)
	problem(fabric.ProblemCut, nodes, "%s no record and %s derived from %s: %s; the dump is cut short or damaged", plural.Count(nodes.n, "node has", "nodes have"), wasWere(nodes.n), map[bool]string{true: "its links", false: "their links"}[nodes.n == 1], nodes.text)
	r.problems = append(r.problems, r.speeds.problems()...)
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// deriveNode adds the node at the other end of p, which has no record.
func (r *recordReader) deriveNode(p *portLine) (index int, ok bool) {
	types := map[byte]mad.NodeType{'S': mad.NodeTypeSwitch, 'H': mad.NodeTypeCA, 'R': mad.NodeTypeRouter}
	t, ok := types[p.far[0]]
	guid, _, isHex := hexDigits([]byte(p.far[2:18]))
	if !ok || !isHex || len(r.nodes) >= maxNodes {
		return 0, false
	}
	n := node{at: p.at, id: p.far, name: p.farName, info: mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: t, NodeGUID: mad.GUID(guid), PartitionCap: 1}}
	if t == mad.NodeTypeSwitch {
		n.info.PortGUID, n.lid = n.info.NodeGUID, p.farLID
	}
	return r.add(n), true
}

// rates parses the options of a port line, and its comment: of a port that has
// a LID (hasLID) first its LID and LMC; then name and LID of the other node, and
// width and speed.
func (r *recordReader) rates(p *portLine, options, comment string, hasLID bool) error {
	near, tail := comment, comment
	if i, j := strings.IndexByte(comment, '"'), strings.LastIndexByte(comment, '"'); i >= 0 {
		near, tail = comment[:i], comment[j+1:]
		p.farName = comment[i+1 : max(i+1, j)]
	}
	var few [8]string
	if hasLID && near != tail {
		if err := r.address(near, &p.lid, &p.lmc); err != nil {
			return err
		}
	}
	words := slices.AppendSeq(few[:0], strings.FieldsSeq(tail))
	if len(words) >= 2 && words[0] == "lid" {
		if _, ok := parseRate(words[1]); ok { // the LID of the other end is missing, as in its own line
			words = slices.Insert(words, 1, "")
		}
	}
	switch {
	case len(words) >= 3 && words[0] == "lid":
		active, ok := parseRate(words[2])
		if !ok && !active.inUse {
			return r.damagedPort("width and speed, as in 4xHDR, not %q", fabric.Clip(words[2]))
		}
		if !ok {
			r.speeds.add(r.at, words[2])
		}
		setAddress("lid", words[1], &p.farLID, nil)
		p.rate = active
		words = words[3:]
	case r.dump && strings.Count(comment, `"`)%2 > 0:
		r.unquoted.add(r.at, comment)
		fallthrough
	default:
		words = nil
	}
	for _, w := range slices.AppendSeq(words, strings.FieldsSeq(options)) {
		if strings.Contains(w, "=") && !p.rate.option(w) {
			return r.expected("an option w=, s= or e= with a mask of widths or speeds, not %q", fabric.Clip(w))
		}
	}
	return nil
}

// qualify puts the module's name before a node id or alias, unless the id names a
// module itself.
func (r *recordReader) qualify(id string) string {
	switch {
	case strings.HasPrefix(id, "@"):
		return r.module + id
	case r.module == "" || strings.ContainsAny(id, "#@"):
		return id
	}
	return r.module + "#" + id
}

// isGUIDID reports whether a node id has the form that ibnetdiscover writes: S-, H- or R- and
// the node GUID in 16 digits.
func isGUIDID(id string) bool {
	if len(id) < 18 || id[1] != '-' || !strings.ContainsRune("SHR?", rune(id[0])) {
		return false
	}
	_, err := strconv.ParseUint(id[2:18], 16, 64)
	return err == nil
}

// setAddress sets LID or LMC; key is "lid" or "lmc". It is false where value is
// invalid.
func setAddress(key, value string, lid *mad.LID, lmc *uint8) bool {
	v, err := strconv.ParseUint(value, 10, 16)
	switch key {
	case "lid":
		if *lid = mad.LID(v); err != nil || *lid > mad.MaxUnicastLID {
			*lid = 0
			return false
		}
		return err == nil && *lid <= mad.MaxUnicastLID
	case "lmc":
		*lmc = uint8(v)
		return err == nil && v < 8
	}
	return true
}

// skipBlanks returns s without leading spaces and tabs.
func skipBlanks(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// number parses the decimal number, of at most 6 digits, at the beginning of s;
// -1 without one.
func number(s string) (int, string) {
	i := 0
	for i < len(s) && i < 6 && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	v, err := strconv.Atoi(s[:i])
	if err != nil {
		return -1, s
	}
	return v, s[i:]
}

// bracketed parses [n], and skips [ext n] after it: the number of the port on
// the outside of a chassis.
func bracketed(s string) (n int, rest string, ok bool) {
	if !strings.HasPrefix(s, "[") {
		return 0, s, false
	}
	n, rest = number(s[1:])
	rest, ok = strings.CutPrefix(rest, "]")
	if strings.HasPrefix(rest, "[ext ") {
		_, rest, ok = strings.Cut(rest, "]")
	}
	return n, rest, ok
}

// panelLabel parses the label of a port in parentheses, as ibdiagnet writes it after the number of
// the port: (1/2/1), or of an adapter before the port GUID. It may be missing: "". A number is one if a
// GUID follows, or the port is a switch's, which has none there.
func panelLabel(s string, t mad.NodeType) (label, rest string) {
	text, after, ok := strings.Cut(strings.TrimPrefix(skipBlanks(s), "("), ")")
	switch {
	case !strings.HasPrefix(skipBlanks(s), "("), !ok, !isLabel(text):
		return "", s
	case strings.Contains(text, "/"), strings.HasPrefix(skipBlanks(after), "("), t == mad.NodeTypeSwitch && len(text) < 16:
		return text, after
	}
	return "", s
}

// parenthesised parses a GUID in parentheses, which may be missing: 0.
func parenthesised(s string) (g mad.GUID, rest string, ok bool) {
	rest = skipBlanks(s)
	if !strings.HasPrefix(rest, "(") {
		return 0, s, true
	}
	text, rest, ok := strings.Cut(rest[1:], ")")
	v, err := strconv.ParseUint(text, 16, 64)
	return mad.GUID(v), rest, ok && err == nil
}

// quoted parses a text in quotes. Only spaces, tabs and = may stand before it.
func quoted(s string) (text, rest string, ok bool) {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t' || s[0] == '=') {
		s = s[1:]
	}
	if len(s) == 0 || s[0] != '"' {
		return "", s, false
	}
	s = s[1:]
	return strings.Cut(s, `"`)
}

// writeIbnetdiscover writes what ibnetdiscover prints (rdma-core
// infiniband-diags/ibnetdiscover.c), byte for byte except for the time in the
// first comment.
func writeIbnetdiscover(w io.Writer, f *fabric.Fabric) error {
	d := recordWriter{Writer: bufio.NewWriter(w), ids: nodeIDs(f)}
	d.begin(f)
	for i := range f.Nodes() {
		d.node(&f.Nodes()[i])
	}
	return d.Flush()
}

// recordWriter writes records. It leaves errors to Flush.
type recordWriter struct {
	*bufio.Writer
	ids   []string  // by node
	group *grouping // nil: nodes are not grouped
}

// begin writes the first comments.
func (d *recordWriter) begin(f *fabric.Fabric) {
	d.printf("#\n# Topology file: generated by fabsh\n#\n")
	if p := f.From(); p != nil {
		d.printf("# Initiated from node %016x port %016x\n", uint64(p.Node().GUID()), uint64(p.GUID()))
	}
}

func (d *recordWriter) printf(format string, args ...any) { fmt.Fprintf(d.Writer, format, args...) }

func (d *recordWriter) node(n *fabric.Node) {
	i := n.Info()
	d.printf("\nvendid=0x%x\ndevid=0x%x\n", i.VendorID, i.DeviceID)
	if i.SystemImageGUID != 0 {
		d.printf("sysimgguid=0x%x", uint64(i.SystemImageGUID))
		if d.group != nil && d.group.of[n.ID()] != nil {
			d.printf("\t\t# Chassis %d", d.group.of[n.ID()].number)
		}
		d.printf("\n")
	}
	word, guid := typeWords(n.Type())
	d.printf("%s=0x%x", guid, uint64(i.NodeGUID))
	if n.IsSwitch() {
		d.printf("(%x)", uint64(i.PortGUID))
		if d.group != nil {
			d.printf("\t# %s", d.group.slots[n.ID()])
		}
	}
	d.printf("\n%s\t%d \"%s\"\t\t# \"%s\"", word, n.NumPorts(), d.ids[n.ID()], printable(n.Name()))
	if n.IsSwitch() {
		port0 := "base"
		if s := n.SwitchInfo(); s != nil && s.EnhancedPort0 {
			port0 = "enhanced"
		}
		d.printf(" %s port 0 lid %d lmc %d", port0, n.LID(), n.Port(0).LMC())
	}
	d.printf("\n")
	for p := range n.Ports() {
		if p.Peer() != nil {
			d.port(p)
		}
	}
}

func (d *recordWriter) port(p *fabric.Port) {
	n, q := p.Node(), p.Peer()
	m := q.Node()
	d.printf("[%d]", p.Num())
	if n.IsSwitch() {
		d.panelPort(p)
	} else {
		d.printf("(%x) ", uint64(p.GUID()))
	}
	d.printf("\t\"%s\"[%d]", d.ids[m.ID()], q.Num())
	d.panelPort(q)
	if !m.IsSwitch() {
		if !n.IsSwitch() {
			d.printf(" ")
		}
		d.printf("(%x) ", uint64(q.GUID()))
	}
	d.printf("\t\t# ")
	if !n.IsSwitch() {
		d.printf("lid %d lmc %d ", p.LID(), p.LMC())
	}
	width, speed := p.Width(), p.Speed()
	if width == "" {
		width = "??"
	}
	if speed == "" {
		speed = "???"
	}
	d.printf("\"%s\" lid %d %s%s\n", printable(m.Name()), q.LID(), width, strings.ToUpper(speed))
}

// panelPort writes the number of a port outside of its chassis, if it is one and nodes are grouped.
func (d *recordWriter) panelPort(p *fabric.Port) {
	if d.group == nil {
		return
	}
	if num := d.group.slots[p.Node().ID()].panelPort(p.Num()); num > 0 {
		d.printf("[ext %d]", num)
	}
}

// nodeIDs returns the ids by which port lines name nodes. Where several nodes have
// one GUID, the ids of all but the first end with .2, .3, ...; ibnetdiscover
// itself takes such nodes for one.
func nodeIDs(f *fabric.Fabric) []string {
	ids := make([]string, len(f.Nodes()))
	seen := map[string]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		id := nodeID(n.Type(), n.GUID())
		if seen[id]++; seen[id] > 1 {
			id = fmt.Sprintf("%s.%d", id, seen[id])
		}
		ids[i] = id
	}
	return ids
}

// nodeID returns a letter for the node type, a dash, and the node GUID.
func nodeID(t mad.NodeType, guid mad.GUID) string {
	id := []byte("?-")
	switch t {
	case mad.NodeTypeSwitch:
		id[0] = 'S'
	case mad.NodeTypeCA:
		id[0] = 'H'
	case mad.NodeTypeRouter:
		id[0] = 'R'
	}
	return string(appendHex(id, uint64(guid), 16, lowerDigits))
}

// typeWords returns the words of a record of a node of type t: the word before the node
// id, and the word before the GUID.
func typeWords(t mad.NodeType) (word, guid string) {
	switch t {
	case mad.NodeTypeSwitch:
		return "Switch", "switchguid"
	case mad.NodeTypeCA:
		return "Ca", "caguid"
	case mad.NodeTypeRouter:
		return "Rt", "rtguid"
	}
	return "???", "???guid"
}

// printable returns s with a space for each byte that is not printable ASCII
// (rdma-core util/node_name_map.c, clean_nodedesc).
func printable(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = ' '
		}
	}
	return string(b)
}
