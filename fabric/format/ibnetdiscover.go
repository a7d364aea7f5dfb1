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
// which have the same records. Where the same words mean different things in
// the two, the node id decides: those of ibnetdiscover are S-, H- or R- and 16
// digits.
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
	n.addRouters(name)
	n.problems = append(n.problems, n.capture.problems()...)
	return n.fabric(name)
}

// recordReader reads records: a line that begins with the type of the node, and
// its port lines, which begin with [ or @.
type recordReader struct {
	*topology
	open     Opener
	at       pos
	bytes    int64 // read so far
	depth    int   // of files that include one another
	included int   // files
	inRecord bool  // port lines belong to the last of nodes

	// The values of the settings above a record.
	vendor   uint32
	device   uint16
	image    *mad.GUID
	guids    map[mad.NodeType]*guidBase
	portGUID *mad.GUID
	module   string
	rate     rate

	grouped bool // by chassis: ibnetdiscover -g

	dump    bool // of ibnetdiscover, by the id of the first node
	capture capture
	unknown error // of the first line that is skipped if this is a dump
	routers []routerLine
}

// expected is an error that names the line.
func (r *recordReader) expected(format string, args ...any) error {
	return fmt.Errorf("%s: expected %s", r.at, fmt.Sprintf(format, args...))
}

// maxInclude is how many files may be open inside one another; ibsim opens as
// many as it has memory for.
const maxInclude = 16

// Limits of all files that are included: a few, each with many of the next, are
// many.
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
	in := bufio.NewScanner(file)
	in.Buffer(nil, maxLine)
	r.at = pos{name, 0}
	for in.Scan() {
		r.at.line++
		if r.bytes += int64(len(in.Bytes())) + 1; r.depth > 1 && r.bytes > maxIncludeBytes {
			return r.expected("at most %d MB of files that others include", maxIncludeBytes>>20)
		}
		if err := r.line(in.Text()); err != nil {
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
	r.inRecord = false
	return nil
}

// line parses one line. Of the file that was named, it may be one that ibnetdiscover did
// not print, unless the file was written by hand: those of ibsim have ids of their own.
func (r *recordReader) line(s string) error {
	s = strings.TrimLeft(strings.TrimRight(s, " \t\r"), "\r")
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
		return r.capture.stray(r.at, s, err)
	}
	if err := r.capture.begin(); err != nil {
		return err
	}
	if s[0] == '[' || s[0] == '@' {
		return r.port(s)
	}
	r.inRecord = false
	for _, k := range recordTypes {
		if rest, ok := cutType(s, k.word); ok {
			return r.node(k.t, rest)
		}
	}
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
	case (rest == "" || rest[0] != '=' && rest[0] != '+') && strings.Count(s, ",") > 1: // no record of a node, and no setting, has several
		return r.expected("the names of the columns of a plan of cables, a,a_port,b,b_port or StartDevice,StartPort,EndDevice,EndPort, above its lines: %q", fabric.Clip(s))
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

// guid sets the GUID of the next node of type t, from which those of the nodes
// after it count up. The port GUID of a switch may follow in parentheses.
func (r *recordReader) guid(t mad.NodeType, value string, relative bool) error {
	text, rest, _ := strings.Cut(value, "(")
	text, _, _ = strings.Cut(text, "\t")
	v, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	if err != nil {
		return r.expected("a GUID, as in 0x2c90300100000, not %q", fabric.Clip(value))
	}
	g := r.guids[t]
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
