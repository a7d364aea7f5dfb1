package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"fabsh/fabric"
)

// lines reads a file line by line. Dumps of big fabrics have more than a
// gigabyte, so no more than one line of the file is kept.
type lines struct {
	in    *bufio.Reader
	at    pos
	bytes int64  // read so far
	text  []byte // the line without trailing spaces; valid until the next call of next
	cut   bool   // the file ends without the end of this line
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
		l.cut = len(text) > 0
	default:
		l.err = fmt.Errorf("%s: after line %d: %w", l.at.file, l.at.line, err)
	}
	l.text = bytes.TrimRight(text, " \t\r\n")
	return l.err == nil && (err == nil || l.cut)
}

// expected is an error that names the line.
func (l *lines) expected(format string, args ...any) error {
	return fmt.Errorf("%s: expected %s", l.at, fmt.Sprintf(format, args...))
}

// fail makes next false, with an error that names the line.
func (l *lines) fail(format string, args ...any) { l.err = l.expected(format, args...) }

// shown is the line, shortened for messages.
func (l *lines) shown() string { return fabric.Clip(string(l.text)) }

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
// It is not ok without one, or with one of more than 64 bits.
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

// decimal parses the decimal number at the beginning of s. It is not ok without
// one, or with one above a billion.
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
