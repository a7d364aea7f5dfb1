package format

import "bytes"

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

// recognise is the first format that takes one of the first lines, line by
// line; nil where none does.
func recognise(head []byte) *fileFormat {
	var l headLine
	head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	for raw := range bytes.Lines(head[:min(len(head), sniffSize)]) {
		l.set(raw)
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
			if f.sniff != nil && f.sniff(&l) {
				return f
			}
		}
		if !l.undecided() {
			break
		}
	}
	return recogniseCapture(head)
}

// recogniseCapture is the first format of dumps that tools print to a terminal that takes
// one of the first lines, whatever stands above: a banner, a prompt.
func recogniseCapture(head []byte) *fileFormat {
	var l headLine
	for raw := range bytes.Lines(head[:min(len(head), sniffSize)]) {
		l.set(raw)
		for _, f := range []*fileFormat{&nodeList, &portsReport, &linkInfo} {
			if f.takes(&l) {
				return f
			}
		}
	}
	return nil
}

// takes reports whether a line is one of the format, whatever stands above it.
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
	text  []byte // without
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

// beginsFile is the sniff function of formats that have magic as the first
// bytes of the file.
func beginsFile(magic string) func(*headLine) bool {
	return func(l *headLine) bool { return l.num == 1 && bytes.HasPrefix(l.raw, []byte(magic)) }
}
