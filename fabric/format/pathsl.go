package format

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindPathSL is service levels of paths.
const KindPathSL FormatName = "path-sl"

var pathSL = fileFormat{
	kind:        KindPathSL,
	about:       "service levels of paths",
	file:        "service levels of paths, for ibdmchk `-c`",
	sniff:       sniffPathSL,
	pathSLs:     readPathSLs,
	writeTables: func(w io.Writer, f *fabric.Fabric, t *Tables) error { return WritePathSLs(w, f, t.SL) },
}

// sniffPathSL takes a number below the line of a node, and a line of node GUID,
// LID and SL.
func sniffPathSL(l *headLine) bool {
	switch {
	case l.class != lineNumber:
		return false
	case l.belowNode:
		return true
	}
	words := bytes.Fields(l.text)
	if len(words) != 3 {
		return false
	}
	lid, rest, ok := decimal(words[1])
	sl, end, isSL := decimal(words[2])
	return ok && isSL && len(rest) == 0 && len(end) == 0 && lid > 0 && sl < 16
}

// PathSL is the service level of the paths from a node to a LID. It is valid
// until the next is read.
type PathSL struct {
	NodeRef // the node or port the paths begin at, and the line
	DLID    mad.LID
	SL      uint8
}

// PathSLs reads the service levels of paths. An error is the last.
func PathSLs(r io.Reader, name string) iter.Seq2[*PathSL, error] {
	return readRows(r, name, maxTables, readPathSLs, func(f *fileFormat) rowReader[*PathSL] { return f.pathSLs })
}

// readPathSLs reads the two dialects that ibdmchk reads: lines of node GUID, LID
// and SL; and blocks that begin with a node, by port GUID, as in
// opensm-sl2vl.dump.
func readPathSLs(r io.Reader, name string) iter.Seq2[*PathSL, error] {
	return func(yield func(*PathSL, error) bool) {
		l := newLines(r, name)
		row := PathSL{NodeRef: NodeRef{File: name}}
		rows := 0
		for l.next() && l.whole() {
			s := skipSpace(l.text)
			switch {
			case len(s) == 0 || s[0] == '#':
				continue
			case len(s) < 2 || s[0] != '0' || s[1] != 'x':
				if !row.parseHeader(s) {
					l.fail("a node, as in Channel Adapter 0x0002c90300001001, base LID 2, \"name\", or 0x, a node GUID, a LID and an SL: %q", l.shown())
				}
				continue
			case bytes.IndexByte(s, ':') > 0:
				if !row.block(s) || row.GUID == 0 {
					l.fail("0x, a LID, a colon and an SL from 0 to 15, below the line that names the source: %q", l.shown())
				}
			default:
				if !row.line(s) {
					l.fail("0x and a node GUID, a LID in decimal and an SL from 0 to 15: %q", l.shown())
				}
			}
			if rows++; l.err == nil {
				row.Line = l.at.line
				if !yield(&row, nil) {
					return
				}
			}
		}
		if l.err == nil && rows == 0 {
			l.fail("service levels of paths, and found none in %d lines", l.at.line)
		}
		if l.err != nil {
			yield(nil, l.err)
		}
	}
}

// line parses `0x0002c90000000099 154 0`.
func (p *PathSL) line(s []byte) bool {
	g, s, ok := hex(s)
	lid, s, isLID := decimal(skipSpace(s))
	p.NodeRef = NodeRef{File: p.File, GUID: mad.GUID(g)}
	return ok && isLID && p.set(lid, s)
}

// block parses `0x009a : 0`.
func (p *PathSL) block(s []byte) bool {
	lid, s, ok := hex(s)
	s, colon := bytes.CutPrefix(skipSpace(s), []byte(":"))
	return ok && colon && p.set(int(min(lid, 1<<16)), s)
}

// set sets the LID, and the SL that s begins with.
func (p *PathSL) set(lid int, s []byte) bool {
	sl, rest, ok := decimal(skipSpace(s))
	p.DLID, p.SL = mad.LID(lid), uint8(sl)
	return ok && len(rest) == 0 && sl < 16 && lid > 0 && lid < unicastLIDCount
}

// WritePathSLs writes service levels of paths in blocks: one for each port of a
// CA or router, with the LIDs of the other such ports. Paths for which sl is
// false are left out.
func WritePathSLs(w io.Writer, f *fabric.Fabric, sl func(src *fabric.Port, dlid mad.LID) (uint8, bool)) error {
	out := bufio.NewWriterSize(w, 1<<16)
	top := f.TopLID()
	var line []byte
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Node().IsSwitch() || p.LID() == 0 {
			continue
		}
		out.WriteString(typeName(p.Node().Type()) + " " + p.GUID().String() + ", base LID " + strconv.Itoa(int(p.LID())) + ", \"" + description(p.Node()) + "\"\n")
		for lid := mad.LID(1); lid <= top; lid++ {
			to := f.PortByLID(lid)
			if to == nil || to == p || to.Node().IsSwitch() {
				continue
			}
			v, ok := sl(p, lid)
			if !ok {
				continue
			}
			line = append(line[:0], "0x"...)
			line = append(appendHex(line, uint64(lid), 4, lowerDigits), " : "...)
			line = append(strconv.AppendUint(line, uint64(v), 10), '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
