// Package format reads and writes descriptions of a fabric in files.
// FORMATS.md documents each format.
//
// Each format is one literal, a fileFormat, which stands in the format's own
// file, beside its reader and writer. To add a format, write that file and add
// the literal to formats, below; then run make generate, which brings the table
// of FORMATS.md up to date.
//
// Load reads a topology in any format, which it recognizes by content (Recognise); Dump writes
// one by name. Tables and lists have readers that return rows one by one (LFTs, MFTs, SL2VLs,
// GUIDLines, ...), so that the memory does not grow with the file; their rows name nodes by a
// NodeRef. Files may be packed, be in UTF-16, or be captures of a terminal session.
// All readers treat a file as untrusted: its size and what it claims are limited.
//
// Files are written completely or not at all (WriteFile), and AcquireLock excludes other
// processes.
package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
)

// FormatName is the name of a format.
type FormatName string

// FormatUnknown is the kind of a file that no format recognises.
const FormatUnknown FormatName = ""

// formats are all formats, in the order in which they are tried on a line:
// first all their beginnings, then all their sniff functions (see
// recognise). The order matters where two formats would accept one line:
//
//   - nodeList is above ibnetdiscover: "Ca\t : 0x" and "Ca\t".
//   - ibdiagnetFAR is above opensmMFTs, which takes any line that begins with Switch 0x.
//   - ibroute is above opensmLFTs: "Unicast lids [0x" and "Unicast lids [".
//   - opensmSL2VL and pathSL are above the rest of the tables and lists: they
//     take any line below one that names a node, pathSL lines with a number.
//   - ibdmSL2VL is above nodeNameMap: both take a quote in the second word.
//   - opensmMFTs is above ibdmTopo, which takes any indented line with an arrow.
//   - perfQuery is above what takes comments.
//   - topoConfig and planTables are above guidList, and below cables and ndt, whose headers
//     planTables takes too.
//   - guidList is below all of these: it takes any line with a number.
//
// Help, messages and FORMATS.md name formats in this order too.
var formats = []*fileFormat{
	&nodeList,
	&portsReport,
	&linkInfo,
	&ibnetdiscover,
	&opensmSubnet,
	&ibnetdiscoverCache,
	&ibdiagnetDB,
	&cables,
	&ndt,
	&topoConfig,
	&planTables,
	&planJSON,
	&planXML,
	&slurmTopology,
	&queryErrors,
	&perfQuery,
	&saDump,

	&ibdiagnetFAR,
	&ibroute,
	&opensmLFTs,
	&opensmFDBs,
	&opensmHops,
	&opensmSL2VL,
	&smpquerySL2VL,
	&pathSL,
	&ibdmSL2VL,
	&opensmMFTs,
	&ibrouteMFTs,

	&ibdmTopo,
	&guid2LID,
	&nodeNameMap,
	&guidList,
	&ibdmIBNL,
	&snapshot,
}

// fileFormat describes a format. Unsupported functions are nil.
type fileFormat struct {
	kind  FormatName
	about string // description in "expected a topology, but this is ..."
	file  string // description in FORMATS.md

	// beginnings are beginnings of lines that decide alone, whatever stands
	// above them. Spaces before them do not count.
	beginnings []string
	// sniff reports whether the line is one of this format, where no line
	// above it has decided.
	sniff func(l *headLine) bool

	// Readers, by what the format holds. open opens the files that a topology
	// includes; it may be nil.
	load    func(r io.Reader, name string, open Opener) (*fabric.Fabric, error)
	plan    func(b *planBook, r io.Reader) error // adds a file to a plan of cables
	system  func(r io.Reader, name string) (*ibnl, error)
	lfts    rowReader[*LFT]
	fars    rowReader[*FAR]
	hops    rowReader[*HopRow]
	mfts    rowReader[*MFT]
	sl2vls  rowReader[*SL2VL]
	pathSLs rowReader[*PathSL]
	guids   rowReader[GUIDLine]
	// answers returns what nodes of a fabric answered, by a file of a directory or archive. It is not
	// read where the fabric has the same. beside: it is read beside a topology, and loads alone only without one.
	answers func(r io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error)
	same    func(f *fabric.Fabric) bool
	beside  bool

	// Writers, by what they need to know.
	write       func(w io.Writer, f *fabric.Fabric) error
	writeFiles  func(f *fabric.Fabric, create func(name string) (io.WriteCloser, error)) error
	writeTables func(w io.Writer, f *fabric.Fabric, t *Tables) error
	writeMFTs   func(w io.Writer, f *fabric.Fabric, table func(sw *fabric.Node) []MFTEntry) error

	// dumpHelp is the help of the kind as an argument of dump(). It may
	// also cover a related kind, whose own is "".
	dumpHelp string
}

// Load reads a topology in any of the formats known, recognized by its
// content, which may be packed, or an archive with a topology, and tables for it. name is for
// messages. open opens the files that this one includes; nil: it may include none.
func Load(r io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	plain, err := plainBytes(r, name, maxArchive)
	switch {
	case err != nil:
		return nil, err
	case isTar(plain):
		return loadTar(plain, name, open)
	case isZip(plain):
		return loadZip(plain, name, open)
	}
	if _, err := Bounded(r, name, maxTopology); err != nil { // a longer file is refused at once
		return nil, err
	}
	if r, err = Bounded(utf8Text(plain, name), name, maxTopology); err != nil {
		return nil, err
	}
	var problems []fabric.Problem
	r = cleaned(r, name, func(kind fabric.ProblemKind, text string) {
		problems = append(problems, fabric.Problem{Kind: kind, Text: text})
	})
	in, f := sniffFile(r)
	head, _ := in.Peek(sniffSize)
	head = bytes.Clone(head) // the buffer is reused
	if what := notText(head); what != "" && (f == nil || BinaryKind(head) != "") {
		return nil, fmt.Errorf("%s: expected a topology, but this is %s", name, what)
	}
	if f == nil && looksLikeTable(head) {
		f = &planTables // whose header is not recognised
	}
	if f == nil {
		f = &ibnetdiscover // a net file of ibsim, written by hand
	}
	if f.load == nil {
		return nil, fmt.Errorf("%s: expected a topology, but this is %s", name, f.about)
	}
	loaded, err := f.load(in, name, open)
	return withProblems(loaded, problems), explained(err, head)
}

// maxTopology is how long a topology may be, in bytes: a line for each port of
// the largest subnet, and as much again.
const maxTopology = 256 << 20

// sniffFile returns the format of a file, or nil, and the reader from which the file is then
// read.
func sniffFile(r io.Reader) (*bufio.Reader, *fileFormat) {
	in := bufio.NewReaderSize(r, lineBuffer)
	head, _ := in.Peek(sniffSize) // the next read meets an error again
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		in.Discard(len(byteOrderMark))
		head = head[len(byteOrderMark):]
	}
	f := recognise(head)
	if f == nil {
		in = peekUntil(in, func(head []byte) bool {
			f = recogniseCapture(head)
			return f != nil
		})
	}
	return in, f
}

// maxPreamble is the most that may stand before a dump or a table, such as the progress of
// ibnetdiscover -s, in bytes.
const maxPreamble = 16 << 20

// peekUntil calls found with the beginning of a file, and as long as it returns false with a longer one,
// up to maxPreamble. It returns the reader from which the file is then read.
func peekUntil(in *bufio.Reader, found func(head []byte) bool) *bufio.Reader {
	size := sniffSize
	for head, _ := in.Peek(size); !found(head) && len(head) == size && size < maxPreamble; head, _ = in.Peek(size) {
		if size = min(16*size, maxPreamble); in.Size() < size {
			in = bufio.NewReaderSize(in, size)
		}
	}
	return in
}

// Dump writes f in a format that needs no more than the fabric.
func Dump(w io.Writer, f *fabric.Fabric, kind FormatName) error {
	var kinds []string
	for _, k := range formats {
		switch {
		case k.write == nil && k.writeFiles == nil:
			continue
		case k.kind != kind:
		case k.write == nil:
			return fmt.Errorf("format %q consists of several files", kind)
		default:
			return k.write(w, f)
		}
		kinds = append(kinds, string(k.kind))
	}
	return fmt.Errorf("unknown format %q; supported: %s", kind, strings.Join(kinds, ", "))
}

// DumpHelp lists the kinds of Dump.
func DumpHelp() string {
	return dumpHelp(func(f *fileFormat) bool { return f.write != nil || f.writeFiles != nil })
}

// dumpHelp returns the help of the formats for which of is true.
func dumpHelp(of func(*fileFormat) bool) string {
	var help []string
	for _, f := range formats {
		if of(f) && f.dumpHelp != "" {
			help = append(help, f.dumpHelp)
		}
	}
	return strings.Join(help, "; ")
}

// sniffSize is how much of a file Recognise reads, in bytes.
const sniffSize = 1 << 16

// Recognise returns the format of a file by its beginning. It needs no
// more than the first 64 KB. Hop weights look like service levels of paths
// where the weights are below 16: there the use of the file decides.
func Recognise(head []byte) FormatName {
	if f := recognise(head); f != nil {
		return f.kind
	}
	return FormatUnknown
}

// recognise returns the first format that takes one of the first lines, line by
// line; nil: none does.
func recognise(head []byte) *fileFormat {
	var l headLine
	head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	if isNetBox(head) {
		return &planJSON
	}
	if f := recogniseLines(&l, head); f != nil {
		return f
	}
	return recogniseCapture(head)
}

// recogniseLines returns the first format that takes a line, as long as the lines leave it to the next.
// Below titles, which no format takes, only the header of a plan is recognised.
func recogniseLines(l *headLine, head []byte) *fileFormat {
	titles := 0
	for raw := range bytes.Lines(head[:min(len(head), sniffSize)]) {
		l.set(raw)
		if titles > 0 {
			if titles++; titles > maxTitles {
				return nil
			}
			if len(l.text) > 0 && sniffTable(l) {
				return &planTables
			}
			continue
		}
		if l.class == lineBlank {
			continue
		}
		for _, f := range formats {
			for _, b := range f.beginnings {
				if len(l.text) >= len(b) && string(l.text[:len(b)]) == b {
					return f
				}
			}
		}
		for _, f := range formats {
			if f.sniff != nil && f.sniff(l) {
				return f
			}
		}
		if !l.undecided() {
			titles = 1
		}
	}
	return nil
}

// maxTitles is how many lines may stand above the header of a plan.
const maxTitles = 64

// recogniseCapture returns the first format, among dumps that tools print to a terminal, that
// takes one of the first lines, whatever stands above: a banner, a prompt.
func recogniseCapture(head []byte) *fileFormat {
	var l headLine
	for raw := range bytes.Lines(head) {
		l.set(raw)
		for _, f := range []*fileFormat{&nodeList, &portsReport, &linkInfo, &queryErrors, &perfQuery, &saDump} {
			if f.takes(&l) {
				return f
			}
		}
	}
	return nil
}

// takes reports whether the format takes a line, whatever stands above it.
func (f *fileFormat) takes(l *headLine) bool {
	for _, b := range f.beginnings {
		if len(l.text) >= len(b) && string(l.text[:len(b)]) == b {
			return true
		}
	}
	return f.sniff != nil && len(l.text) > 0 && f.sniff(l)
}

// headLine is a line at the beginning of a file, and what the lines above showed.
type headLine struct {
	num   int    // from 1
	raw   []byte // with the spaces around it
	text  []byte // without the spaces around it
	class lineClass

	belowNode    bool // a line above names a node: Switch 0x0002c90300001000, base LID 2
	belowVersion bool // a line above has the version of the file, as in dumps of ibdiagnet
	belowWords   bool // a line above has two words, as a system of a .topo file has
}

type lineClass int

const (
	lineOther   lineClass = iota
	lineBlank             // nothing but spaces
	lineComment           // begins with #
	lineNumber            // begins with 0x
	lineNode              // names a node
)

func (l *headLine) set(raw []byte) {
	l.num++
	l.raw, l.text, l.class = raw, bytes.TrimSpace(raw), lineOther
	switch s := l.text; {
	case len(s) == 0:
		l.class = lineBlank
	case s[0] == '#':
		l.class = lineComment
	case s[0] == '0' && len(s) > 2 && s[1] == 'x':
		l.class = lineNumber
	case new(NodeRef).parseHeader(s):
		l.class = lineNode
	}
}

// undecided reports whether a line that no format takes leaves it to the next
// lines to decide.
func (l *headLine) undecided() bool {
	switch {
	case l.class == lineComment:
	case l.class == lineNode:
		l.belowNode = true
	case bytes.HasPrefix(l.text, fileVersion):
		l.belowVersion = true
	case !l.digitFirst() && len(bytes.Fields(l.text)) >= 2:
		l.belowWords = true
	default:
		return false
	}
	return true
}

func (l *headLine) indented() bool { return l.raw[0] == ' ' || l.raw[0] == '\t' }

func (l *headLine) digitFirst() bool { return l.text[0] >= '0' && l.text[0] <= '9' }

// isHexWord reports whether word is 0x and up to digits digits more.
func isHexWord(word []byte, digits int) bool {
	w, ok := bytes.CutPrefix(word, []byte("0x"))
	return ok && len(w) > 0 && len(w) <= digits && w[0] != 'x'
}

// beginsFile returns the sniff function of formats that have magic as the first
// bytes of the file.
func beginsFile(magic string) func(*headLine) bool {
	return func(l *headLine) bool { return l.num == 1 && bytes.HasPrefix(l.raw, []byte(magic)) }
}
