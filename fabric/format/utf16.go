package format

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

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
