package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"fabsh/fabric"
)

// lines reads a file line by line. Dumps of big fabrics have more than a
// gigabyte, so no more than one line of the file is kept.
type lines struct {
	in    *bufio.Reader
	at    pos
	bytes int64  // read so far
	text  []byte // the line without trailing spaces; valid until the next call of next
	raw   []byte // the line with them
	cut   bool   // the file ends without the end of this line
	keyed bool   // the lines have keys, in a column: messages do not quote them
	err   error
}

const (
	maxLine    = 1 << 16     // bytes; ibsim takes 255
	lineBuffer = 4 * maxLine // bytes
)

// pos is a line of a file.
type pos struct {
	file string
	line int
}

func (p pos) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

func newLines(r io.Reader, name string) *lines {
	return &lines{in: bufio.NewReaderSize(r, lineBuffer), at: pos{name, 0}}
}

// next reads the next line. It is false at the end, and after an error.
func (l *lines) next() bool {
	if l.err != nil {
		return false
	}
	text, err := l.in.ReadSlice('\n')
	l.bytes += int64(len(text))
	if err == nil || len(text) > 0 {
		l.at.line++
	}
	switch {
	case len(text) > maxLine:
		l.err = l.expected("a line of at most %d bytes", maxLine)
	case err == nil:
	case errors.Is(err, io.EOF):
		l.cut = l.cut || len(text) > 0
	default:
		l.err = fmt.Errorf("%s: after line %d: %w", l.at.file, l.at.line, err)
	}
	l.raw, l.text = text, bytes.TrimRight(text, " \t\r\n")
	return l.err == nil && (err == nil || len(text) > 0)
}

// whole reports whether the line has its end, and fails otherwise, unless it is blank or a comment:
// a number at its end may lack digits.
func (l *lines) whole() bool {
	if s := skipSpace(l.text); l.cut && len(s) > 0 && s[0] != '#' && l.err == nil {
		l.fail("the end of the line: the file is cut short, or its last line needs a line feed: %q", l.shown())
	}
	return l.err == nil
}

// expected returns an error that names the line.
func (l *lines) expected(format string, args ...any) error {
	return expected(l.at, string(l.text), l.keyed, format, args)
}

// expected returns an error that names a line. Parts of a line that may hold a key, or is known to
// have one (keyed), are not shown.
func expected(at pos, line string, keyed bool, format string, args []any) error {
	if keyed || fabric.HoldsKey(line) {
		args = slices.Clone(args)
		for i, arg := range args {
			if s, ok := arg.(string); ok && strings.ContainsAny(s, "0123456789") && strings.Contains(line, strings.TrimSuffix(s, "...")) {
				args[i] = fabric.HiddenLine
			}
		}
	}
	return fmt.Errorf("%s: expected %s", at, fmt.Sprintf(format, args...))
}

// fail makes next false, with an error that names the line.
func (l *lines) fail(format string, args ...any) { l.err = l.expected(format, args...) }

// shown returns the line, shortened for messages.
func (l *lines) shown() string {
	if l.keyed {
		return fabric.HiddenLine
	}
	return fabric.Clip(string(l.text))
}

// field returns the first word of s and what follows it. Words are separated
// by spaces and tabs.
func field(s []byte) (word, rest []byte) {
	s = skipSpace(s)
	i := 0
	for i < len(s) && s[i] != ' ' && s[i] != '\t' {
		i++
	}
	return s[:i], s[i:]
}

func skipSpace(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// hexDigits parses the hexadecimal number, without 0x, at the beginning of s.
// It is not ok if the number is missing, or has more than 64 bits.
func hexDigits(s []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(s) {
		d := hexValue[s[i]]
		if d > 15 {
			break
		}
		if v>>60 != 0 {
			return 0, s, false
		}
		v = v<<4 | uint64(d)
		i++
	}
	return v, s[i:], i > 0
}

// hex parses 0x and a hexadecimal number at the beginning of s.
func hex(s []byte) (v uint64, rest []byte, ok bool) {
	if len(s) < 2 || s[0] != '0' || s[1] != 'x' {
		return 0, s, false
	}
	return hexDigits(s[2:])
}

// decimal parses the decimal number at the beginning of s. It is not ok if the number is
// missing, or above a billion.
func decimal(s []byte) (v int, rest []byte, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if v = v*10 + int(s[i]-'0'); v > 1e9 {
			return 0, s, false
		}
		i++
	}
	return v, s[i:], i > 0
}

// hexValue is the value of a hexadecimal digit, by character; 255: not a digit.
var hexValue = func() (t [256]uint8) {
	for i := range t {
		t[i] = 255
	}
	for i := range 10 {
		t['0'+i] = uint8(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = uint8(10+i), uint8(10+i)
	}
	return t
}()

// csvLines reads a file of comma-separated values (RFC 4180) line by line: no field
// continues in the next line. A field may be in quotes; a doubled quote in it is one quote.
type csvLines struct {
	*lines
	comma  byte
	header []string // names of the columns, as the file spells them
	fields [][]byte // of the present line; valid until the next
	memory []byte
}

// byteOrderMark is what some editors and spreadsheets begin a UTF-8 file with.
const byteOrderMark = "\ufeff"

// setHeader takes the present line as the names of the columns. comma separates them, and all
// fields below.
func (c *csvLines) setHeader(comma byte) bool {
	c.comma = comma
	if !c.split() {
		return false
	}
	c.header = make([]string, len(c.fields))
	for i, f := range c.fields {
		c.header[i] = string(f)
	}
	return true
}

// split sets fields to the fields of the present line. It fails where a quote is not closed.
func (c *csvLines) split() bool {
	c.fields, c.memory = c.fields[:0], c.memory[:0]
	ok := splitCSV(c.text, c.comma, func(field []byte, quoted bool) {
		if quoted && bytes.IndexByte(field, '"') >= 0 {
			at := len(c.memory) // what has been cut of it before stays where it was
			for i := 0; i < len(field); i++ {
				c.memory = append(c.memory, field[i])
				if field[i] == '"' {
					i++
				}
			}
			field = c.memory[at:len(c.memory):len(c.memory)]
		}
		c.fields = append(c.fields, field)
	})
	if !ok {
		c.fail("a quote at the end of each field that begins with one, and a comma or nothing after it: %q", c.shown())
	}
	return ok
}

// field returns field i of the present line without the spaces around it; empty where the
// line has fewer.
func (c *csvLines) field(i int) []byte {
	if i < 0 || i >= len(c.fields) {
		return nil
	}
	return bytes.TrimSpace(c.fields[i])
}

// splitCSV cuts a line at its commas, but for those in quotes. Of a field in quotes,
// doubled quotes are kept.
func splitCSV(line []byte, comma byte, field func(text []byte, quoted bool)) bool {
	for {
		text := bytes.TrimLeft(line, " ")
		if len(text) == 0 || text[0] != '"' {
			i := bytes.IndexByte(line, comma)
			if i < 0 {
				field(line, false)
				return true
			}
			field(line[:i], false)
			line = line[i+1:]
			continue
		}
		end := 1
		for end < len(text) && (text[end] != '"' || end+1 < len(text) && text[end+1] == '"') {
			if text[end] == '"' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return false
		}
		field(text[1:end], true)
		rest := bytes.TrimLeft(text[end+1:], " ")
		switch {
		case len(rest) == 0:
			return true
		case rest[0] != comma:
			return false
		}
		line = rest[1:]
	}
}

// columnsOf finds the columns with these names in the header line of a file, which
// commas, semicolons or tabs separate. Case and spaces do not count, nor what clean
// removes from a name. It is not ok where one of the needed names, which are the first, is
// missing, or a name is repeated.
func columnsOf(header []byte, needed int, clean func(string) string, names ...string) (comma byte, at []int, ok bool) {
	for _, comma := range []byte{',', ';', '\t'} {
		at := slices.Repeat([]int{-1}, len(names))
		i, twice := 0, false
		split := splitCSV(header, comma, func(text []byte, _ bool) {
			name := strings.ToLower(strings.TrimSpace(string(text)))
			if j := slices.Index(names, strings.TrimSpace(clean(name))); j >= 0 && names[j] != "" {
				twice = twice || at[j] >= 0
				at[j] = i
			}
			i++
		})
		if split && !twice && !slices.Contains(at[:needed], -1) {
			return comma, at, true
		}
	}
	return 0, nil, false
}

// utf8Text returns a reader of the text of in, which may be UTF-16 with a byte order mark, as
// Windows PowerShell writes what is redirected to a file.
func utf8Text(in *bufio.Reader, name string) io.Reader {
	switch mark, _ := in.Peek(2); string(mark) { // the next read meets an error again
	case "\xff\xfe":
		return &utf16Reader{in: in, name: name, order: binary.LittleEndian}
	case "\xfe\xff":
		return &utf16Reader{in: in, name: name, order: binary.BigEndian}
	}
	return in
}

// utf16Reader converts UTF-16 to UTF-8. The byte order mark stays.
type utf16Reader struct {
	in    *bufio.Reader
	name  string
	order binary.ByteOrder
	text  []byte // converted, and not read yet
	held  rune   // the first half of a surrogate pair; 0: none
	err   error
}

func (r *utf16Reader) Read(b []byte) (int, error) {
	for len(r.text) < utf8.UTFMax && r.err == nil {
		r.fill()
	}
	if len(r.text) == 0 {
		return 0, r.err
	}
	n := copy(b, r.text)
	r.text = r.text[n:]
	return n, nil
}

// fill converts what in has at once.
func (r *utf16Reader) fill() {
	r.text = append(make([]byte, 0, 4096), r.text...)
	for len(r.text) < 4096-2*utf8.UTFMax {
		var unit [2]byte
		if _, err := io.ReadFull(r.in, unit[:]); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%s: invalid UTF-16: an odd number of bytes", r.name)
			}
			if r.err = err; r.held != 0 {
				r.text = utf8.AppendRune(r.text, utf8.RuneError)
			}
			return
		}
		r.put(rune(r.order.Uint16(unit[:])))
		if r.in.Buffered() < 2 {
			return
		}
	}
}

// put appends a unit. Half a surrogate pair becomes U+FFFD.
func (r *utf16Reader) put(unit rune) {
	if held := r.held; held != 0 {
		r.held = 0
		if x := utf16.DecodeRune(held, unit); x != utf8.RuneError {
			r.text = utf8.AppendRune(r.text, x)
			return
		}
		r.text = utf8.AppendRune(r.text, utf8.RuneError)
	}
	switch {
	case unit >= 0xd800 && unit < 0xdc00:
		r.held = unit
	default:
		r.text = utf8.AppendRune(r.text, unit)
	}
}
