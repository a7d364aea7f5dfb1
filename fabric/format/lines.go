package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lines reads a file of tables line by line. Dumps of big fabrics have more
// than a gigabyte: a line is only lent, and nothing of the file is kept.
type lines struct {
	in   *bufio.Reader
	at   pos
	text []byte // of the line, without its end and the spaces there; until the next
	cut  bool   // the file ends within the line
	err  error
}

func newLines(r io.Reader, name string) *lines {
	return &lines{in: bufio.NewReaderSize(r, 4*maxLine), at: pos{name, 0}}
}

// next goes on to the next line. It is false at the end, and after an error.
func (l *lines) next() bool {
	if l.err != nil {
		return false
	}
	text, err := l.in.ReadSlice('\n')
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

// expected is an error at the line.
func (l *lines) expected(format string, args ...any) error {
	return fmt.Errorf("%s: expected %s", l.at, fmt.Sprintf(format, args...))
}

// fail ends the reading with an error at the line.
func (l *lines) fail(format string, args ...any) { l.err = l.expected(format, args...) }

// shown is the line for messages.
func (l *lines) shown() string { return clip(string(l.text)) }

// field cuts off the first word of s, which spaces and tabs end.
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

// hexDigits reads the hexadecimal number that s begins with, without 0x. It
// is not ok where there is none, or one of more than 64 bits.
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

// hex is hexDigits after 0x.
func hex(s []byte) (v uint64, rest []byte, ok bool) {
	if len(s) < 2 || s[0] != '0' || s[1] != 'x' {
		return 0, s, false
	}
	return hexDigits(s[2:])
}

// decimal reads the number that s begins with. It is not ok where there is
// none, or one above a billion.
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

// hexValue is the value of a digit; 255: none.
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
