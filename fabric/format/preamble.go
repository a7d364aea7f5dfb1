package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Capture is a file of tables that may be a saved terminal session: a banner or a prompt before
// the first table, and a prompt after the last one, are skipped, and Note receives a sentence
// about each.
type Capture struct {
	io.Reader
	Note func(text string)
}

// preamble is the lines before the first table of a file.
type preamble struct {
	size, lines int // of the preamble; lines also counts comments and blank lines
	strayLines
	format *fileFormat // of the table; nil: there is no such preamble
}

// findPreamble returns what stands before the first table in the first lines of a file. is
// reports whether a format has such tables.
func findPreamble(head []byte, name string, is func(*fileFormat) bool) (p preamble) {
	for len(head) > 0 {
		if f := beginning(head, is); f != nil {
			p.format = f
			return p
		}
		end := bytes.IndexByte(head, '\n') + 1
		line := bytes.TrimSpace(head[:end])
		if end == 0 || isRow(line) {
			return preamble{}
		}
		if p.lines++; len(line) > 0 && line[0] != '#' {
			p.add(pos{name, p.lines}, string(line))
		}
		p.size += end
		head = head[end:]
	}
	return preamble{}
}

// beginning returns the format whose tables begin with the first line of text; nil: none.
func beginning(text []byte, is func(*fileFormat) bool) *fileFormat {
	const most = 8 // lines that are read
	var l headLine
	for raw := range bytes.Lines(text) {
		if l.set(raw); l.class == lineBlank {
			return nil
		}
		for _, f := range formats {
			if is(f) && f.takes(&l) {
				return f
			}
		}
		begins := l.class == lineNode || bytes.HasPrefix(l.text, fileVersion) || l.num > 1 && (l.class == lineComment || l.belowVersion)
		if !begins || l.num == most || !l.undecided() {
			return nil
		}
	}
	return nil
}

// rowParts are parts of lines of tables, whatever stands before them: a file that begins with
// such a line, but not with that of a table, has lost its beginning.
var rowParts = []string{"Unicast lids", " lids dumped", "dump_ucast_routes", "portguid 0x", "UNREACHABLE", "Definition:", "ports: in ", "mlids dumped"}

func isRow(line []byte) bool {
	return len(line) > 0 && (line[0] >= '0' && line[0] <= '9' || containsAny(string(line), rowParts) || containsAny(string(line), recordParts))
}

// skipPreamble skips the lines before the first table, and reports them to note. In what it
// returns, blank lines stand for them, so that numbers of lines are those of the file.
func skipPreamble(in *bufio.Reader, name string, note func(string), is func(*fileFormat) bool) (io.Reader, *fileFormat) {
	head, _ := in.Peek(sniffSize) // the next read meets an error again
	p := findPreamble(head, name, is)
	if p.n == 0 || p.format == nil {
		return in, nil
	}
	note(fmt.Sprintf("%s: skipped %s before the table, such as a banner or a prompt: %s", p.first, plural.Count(p.n, "line", "lines"), fabric.Clip(p.text)))
	in.Discard(p.size)
	return io.MultiReader(strings.NewReader(strings.Repeat("\n", p.lines)), in), p.format
}
