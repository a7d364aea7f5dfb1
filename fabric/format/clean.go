package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Dumps are kept as terminals, mail programs and loggers leave them. A cleaner undoes what is
// unambiguous: colors and other control sequences, backspaces and carriage returns of terminals,
// line ends of one carriage return, and the same prefix on all lines (quoting, date and time, line
// numbers). It keeps the number of lines, so that messages name lines of the file.

// cleaner reads a text without these.
type cleaner struct {
	in    *bufio.Reader
	name  string
	note  func(kind fabric.ProblemKind, text string)
	ends  byte // of lines
	strip func(line []byte) ([]byte, bool)
	what  string // that strip removes

	line             int
	begun            bool // the line that is being read began in an earlier part
	ready            []byte
	memory           []byte
	control, foreign strayLines // lines with control characters; lines without the prefix
	zeros            strayLines // lines with zero bytes
	err              error
}

// cleaned returns in without what terminals, mail programs and loggers added. note receives a
// sentence about each kind. Files that are not text are returned unchanged.
func cleaned(r io.Reader, name string, note func(kind fabric.ProblemKind, text string)) io.Reader {
	in := bufio.NewReaderSize(r, lineBuffer)
	head, _ := in.Peek(sniffSize) // the next read meets an error again
	if f := recognise(head); f == nil && bytes.IndexByte(head, 0) >= 0 || f == &snapshot || f == &ibnetdiscoverCache {
		return in
	}
	c := &cleaner{in: in, name: name, note: note, ends: '\n'}
	if bytes.Count(head, []byte("\r")) > 1 && bytes.IndexByte(head, '\n') < 0 {
		c.ends = '\r'
		note(fabric.ProblemLeftOut, fmt.Sprintf("%s: lines end with a carriage return, which is read as a line feed", name))
	}
	c.strip, c.what = commonPrefix(head, c.ends)
	if c.what != "" {
		note(fabric.ProblemLeftOut, fmt.Sprintf("%s: %s removed from the beginning of each line", name, c.what))
	}
	return c
}

// Read returns the text.
func (c *cleaner) Read(b []byte) (int, error) {
	for len(c.ready) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.next()
	}
	n := copy(b, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// next reads a line, or a part of a long one, which is left unchanged.
func (c *cleaner) next() {
	text, err := c.in.ReadSlice(c.ends)
	begun := c.begun
	if c.begun = errors.Is(err, bufio.ErrBufferFull); c.begun {
		err = nil
	}
	if !begun && len(text) > 0 {
		c.line++
	}
	c.ready, c.err = text, err
	if begun || c.begun || len(text) == 0 {
		c.finish()
		return
	}
	if c.ends == '\r' && text[len(text)-1] == '\r' {
		text[len(text)-1] = '\n'
	}
	if bytes.IndexByte(text, 0) >= 0 {
		c.zeros.add(pos{c.name, c.line}, "")
	}
	if hasControl(text) {
		plain, moved := withoutControl(c.memory[:0], text)
		if moved != "" {
			c.ready, c.err = nil, fmt.Errorf("%s:%d: expected the output of a tool, but this is a capture of a terminal with movements of the cursor (%s); save the output itself: COMMAND > FILE", c.name, c.line, moved)
			return
		}
		c.control.add(pos{c.name, c.line}, "")
		c.memory, c.ready = plain, plain
	}
	if c.strip != nil && len(bytes.TrimSpace(c.ready)) > 0 {
		if rest, ok := c.strip(c.ready); ok {
			c.ready = rest
		} else {
			c.foreign.add(pos{c.name, c.line}, string(c.ready))
		}
	}
	c.finish()
}

// finish makes the notes at the end of the file.
func (c *cleaner) finish() {
	if !errors.Is(c.err, io.EOF) {
		return
	}
	if c.control.n > 0 {
		c.note(fabric.ProblemLeftOut, fmt.Sprintf("%s: control characters of a terminal removed from %s", c.control.first, plural.Count(c.control.n, "line", "lines")))
	}
	if c.zeros.n > 0 {
		c.note(fabric.ProblemCut, fmt.Sprintf("%s: %s zero bytes, which a crash leaves in files; what was there is missing", c.zeros.first, plural.Count(c.zeros.n, "line has", "lines have")))
	}
	if c.foreign.n > 0 {
		c.note(fabric.ProblemLeftOut, fmt.Sprintf("%s: %s without %s: %s", c.foreign.first, plural.Count(c.foreign.n, "line is", "lines are"), c.what, c.foreign.text))
	}
}

// hasControl reports whether a line has an escape, a backspace, or a carriage return before its
// end and after its beginning.
func hasControl(line []byte) bool {
	return bytes.IndexByte(line, 0x1b) >= 0 || bytes.IndexByte(line, '\b') >= 0 || bytes.IndexByte(line, '\a') >= 0 ||
		bytes.IndexByte(bytes.Trim(line, "\r\n"), '\r') >= 0
}

// withoutControl appends what a terminal shows of a line to b. moved is the first control sequence
// that moves the cursor: then the line is unknown.
func withoutControl(b, line []byte) (plain []byte, moved string) {
	text := bytes.TrimRight(line, "\r\n")
	end := line[len(text):]
	at := 0 // the cursor
	first := len(b)
	for len(text) > 0 {
		c := text[0]
		switch c {
		case 0x1b:
			size, ok := escapeSize(text)
			if !ok {
				return b, fmt.Sprintf("%q", text[:size])
			}
			text = text[size:]
			continue
		case '\b':
			at = max(0, at-1)
		case '\r':
			at = 0
		case '\a':
		default:
			if first+at < len(b) {
				b[first+at] = c
			} else {
				b = append(b, c)
			}
			at++
		}
		text = text[1:]
	}
	if first+at < len(b) && bytes.Count(line, []byte("\b")) > 0 && bytes.IndexByte(bytes.Trim(line, "\r\n"), '\r') < 0 {
		b = b[:first+at] // what was erased
	}
	return append(b, end...), ""
}

// escapeSize returns the length of the control sequence at the beginning of s (ECMA-48); ok is
// false if it moves the cursor.
func escapeSize(s []byte) (size int, ok bool) {
	if len(s) < 2 {
		return len(s), true
	}
	switch s[1] {
	case '[':
		i := 2
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 {
			i++
		}
		if i == len(s) {
			return i, true
		}
		return i + 1, bytes.IndexByte([]byte("mhlKJnrq"), s[i]) >= 0
	case ']': // a title; BEL or ESC \ ends it
		if i := bytes.IndexByte(s, '\a'); i >= 0 {
			return i + 1, true
		}
		if i := bytes.Index(s[2:], []byte("\x1b\\")); i >= 0 {
			return i + 4, true
		}
		return len(s), true
	case '(', ')':
		return min(3, len(s)), true
	}
	return 2, true
}

// stamp matches a date and time at the beginning of a line, in the forms of loggers, and the host
// and program of syslog.
var stamp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)(?: |$)`)
})

var syslogSource = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\w.-]+ [\w./-]+(?:\[\d+\])?: `)
})

// commonPrefix returns the function that removes the prefix that all lines of head have, and the
// name of the prefix; nil: they have no prefix in common. The last line of head may be incomplete and does not count.
func commonPrefix(head []byte, ends byte) (strip func([]byte) ([]byte, bool), what string) {
	var lines [][]byte
	for len(head) > 0 {
		i := bytes.IndexByte(head, ends)
		if i < 0 {
			break
		}
		if line := head[:i]; len(bytes.TrimSpace(line)) > 0 {
			if hasControl(line) {
				line, _ = withoutControl(nil, line)
			}
			lines = append(lines, line)
		}
		head = head[i+1:]
	}
	if len(lines) < 2 {
		return nil, ""
	}
	all := func(f func([]byte) ([]byte, bool)) bool {
		return !slices.ContainsFunc(lines, func(line []byte) bool { _, ok := f(line); return !ok })
	}
	quoted := func(line []byte) ([]byte, bool) {
		rest, ok := bytes.CutPrefix(line, []byte(">"))
		return bytes.TrimPrefix(rest, []byte(" ")), ok
	}
	stamped := func(line []byte) ([]byte, bool) {
		at := stamp().FindIndex(line)
		if at == nil {
			return line, false
		}
		return line[at[1]:], true
	}
	fromHost := func(line []byte) ([]byte, bool) {
		rest, ok := stamped(line)
		at := syslogSource().FindIndex(rest)
		if !ok || at == nil {
			return line, false
		}
		return rest[at[1]:], true
	}
	switch {
	case all(quoted):
		depth := 1
		for strip = quoted; ; depth++ {
			inner := strip
			deeper := func(line []byte) ([]byte, bool) {
				rest, ok := inner(line)
				if !ok {
					return line, false
				}
				return quoted(rest)
			}
			if depth == 8 || !all(deeper) {
				return strip, "quoting (>)"
			}
			strip = deeper
		}
	case all(fromHost):
		return fromHost, "date, host and program"
	case all(stamped):
		return stamped, "date and time"
	case numbered(lines):
		return cutNumber, "line numbers"
	}
	return nil, ""
}

// cutNumber removes a line number as cat -n writes it.
func cutNumber(line []byte) ([]byte, bool) {
	text := bytes.TrimLeft(line, " ")
	rest := bytes.TrimLeft(text, "0123456789")
	if len(rest) == len(text) || len(rest) == 0 || rest[0] != '\t' {
		return line, false
	}
	return rest[1:], true
}

// numbered reports whether all lines have a rising line number.
func numbered(lines [][]byte) bool {
	last := 0
	for _, line := range lines {
		n, _, ok := decimal(bytes.TrimLeft(line, " "))
		if _, cut := cutNumber(line); !cut || !ok || n <= last || last == 0 && n > 16 {
			return false
		}
		last = n
	}
	return true
}

// damage returns what a text that cannot be read may have suffered, and what avoids it; "": nothing
// is seen. head is its beginning.
func damage(head []byte) string {
	lower := bytes.ToLower(head[:min(len(head), 4096)])
	switch {
	case bytes.Contains(lower, []byte("<html")), bytes.Contains(lower, []byte("<!doctype")), bytes.Contains(head, []byte("&quot;")), bytes.Contains(head, []byte("&gt;")):
		return "it is a page of HTML; save the text of the dump"
	case bytes.Contains(head, []byte("=3D")) || bytes.Count(head, []byte("=\n"))+bytes.Count(head, []byte("=\r\n")) > 1:
		return "it is the source of a mail (quoted-printable); save the attachment"
	case bytes.ContainsAny(head, "“”„‘’"):
		return "it has typographic quotes, as word processors write them; save the output itself: COMMAND > FILE"
	case bytes.Contains(head, []byte("--More--")):
		return "it has the marks of a pager; save the output itself: COMMAND > FILE"
	case bytes.Contains(head, []byte("<<<<<<< ")) || bytes.HasPrefix(head, []byte("diff ")) || bytes.HasPrefix(head, []byte("--- ")):
		return "it has the marks of a patch, or of a merge; save the output itself: COMMAND > FILE"
	case isBase64(head):
		return "it is in base64; decode it with base64 -d"
	}
	if width := wrappedAt(head); width > 0 {
		return fmt.Sprintf("its lines are wrapped at %d columns, as terminals do; save the output itself: COMMAND > FILE", width)
	}
	return ""
}

// isBase64 reports whether the first lines are all base64 of equal lengths.
func isBase64(head []byte) bool {
	lines := bytes.Split(head, []byte("\n"))
	if len(lines) < 3 {
		return false
	}
	for _, line := range lines[:min(len(lines)-2, 8)] {
		line = bytes.TrimRight(line, "\r")
		if len(line) < 60 || len(line) != len(bytes.TrimRight(lines[0], "\r")) || len(bytes.Trim(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")) > 0 {
			return false
		}
	}
	return true
}

// wrappedAt returns the width at which long lines are wrapped; 0: no line is. Then several lines
// have this length, none is longer, and most lines below these begin as no other line does.
func wrappedAt(head []byte) int {
	longest := 0
	var lines [][]byte
	for raw := range bytes.Lines(head) {
		if raw[len(raw)-1] == '\n' {
			lines = append(lines, bytes.TrimRight(raw, "\r\n"))
			longest = max(longest, len(lines[len(lines)-1]))
		}
	}
	const least, most, prefix = 40, 300, 4 // bytes
	if longest < least || longest > most {
		return 0
	}
	begins := func(line []byte) string { return string(line[:min(len(line), prefix)]) }
	others := map[string]bool{}
	var below []string
	for i, line := range lines {
		if i > 0 && len(lines[i-1]) == longest {
			below = append(below, begins(line))
		} else {
			others[begins(line)] = true
		}
	}
	if 2*len(others) > len(lines)-len(below) { // all lines begin differently, as with numbers
		return 0
	}
	strange := len(slices.DeleteFunc(slices.Clone(below), func(s string) bool { return others[s] }))
	if strange < 3 || strange < len(below)/2 {
		return 0
	}
	return longest
}

// explained returns err with the damage that the text at its beginning may show.
func explained(err error, head []byte) error {
	if err == nil {
		return nil
	}
	if why := damage(head); why != "" {
		return fmt.Errorf("%w; %s", err, why)
	}
	return err
}

// withProblems returns f with more problems.
func withProblems(f *fabric.Fabric, more []fabric.Problem) *fabric.Fabric {
	if f == nil || len(more) == 0 {
		return f
	}
	return f.With(fabric.Reading{Problems: more})
}
