package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	bufferSize = 1 << 16
	maxSpace   = 1 << 16 // bytes of white space together
	maxNumber  = 40      // bytes
	maxSkipped = 32      // brackets in brackets of an unknown member
)

// reader reads the tokens of JSON (RFC 8259).
type reader struct {
	limits   Limits
	in       io.Reader // nil: all is in buf
	failed   error     // of in
	line     int
	buf      []byte
	pos, end int // what is not read yet of buf
	scratch  []byte
}

// peek returns the next byte; 0 at the end.
func (r *reader) peek() (byte, error) {
	if r.pos == r.end {
		if err := r.fill(); err != nil {
			return 0, err
		}
		if r.pos == r.end {
			return 0, nil
		}
	}
	return r.buf[r.pos], nil
}

// fill reads more bytes into an empty buffer. At the end it stays empty.
func (r *reader) fill() error {
	for range 100 {
		if r.in == nil {
			return nil
		}
		n, err := r.in.Read(r.buf)
		r.pos, r.end = 0, n
		switch {
		case err == io.EOF:
			r.in = nil
		case err != nil:
			r.failed = err
			return err
		}
		if n > 0 || r.in == nil {
			return nil
		}
	}
	r.failed = io.ErrNoProgress
	return r.failed
}

// next skips white space and returns the next byte, which it does not take.
func (r *reader) next() (byte, error) {
	for space := 0; ; space++ {
		c, err := r.peek()
		switch {
		case err != nil:
			return 0, err
		case c == '\n':
			r.line++
		case c == ' ' || c == '\t' || c == '\r':
		case c == 0 && r.pos == r.end:
			return 0, io.ErrUnexpectedEOF
		default:
			return c, nil
		}
		if r.pos++; space >= maxSpace {
			return 0, fmt.Errorf("more than %d bytes of white space", maxSpace)
		}
	}
}

// ends returns an error unless nothing is left.
func (r *reader) ends() error {
	switch c, err := r.next(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("unexpected %q after the end", c)
	}
}

// open takes an opening bracket.
func (r *reader) open(bracket byte) error {
	c, err := r.next()
	if err != nil {
		return err
	}
	if c != bracket {
		return r.unexpected(string(bracket))
	}
	r.pos++
	return nil
}

// more reports whether another element follows the first n of a list or object, and takes
// the comma before it, or the closing bracket.
func (r *reader) more(bracket byte, n int) (bool, error) {
	c, err := r.next()
	switch {
	case err != nil:
		return false, err
	case c == bracket:
		r.pos++
		return false, nil
	case n == 0:
		return true, nil
	case c != ',':
		return false, r.unexpected("a comma or " + string(bracket))
	}
	r.pos++
	return true, nil
}

func (r *reader) colon() error {
	c, err := r.next()
	if err != nil {
		return err
	}
	if c != ':' {
		return r.unexpected(":")
	}
	r.pos++
	return nil
}

// unexpected returns the error for another token than is wanted.
func (r *reader) unexpected(want string) error {
	c, err := r.next()
	if err != nil {
		return err
	}
	got := fmt.Sprintf("%q", c)
	switch {
	case c == '"':
		text, err := r.text()
		if err != nil {
			return err
		}
		got = fmt.Sprintf("%.40q", text)
	case isWord(c):
		word, err := r.word()
		if err != nil {
			return err
		}
		got = string(word)
	case c > ' ' && c < 0x7f:
		got = string(c)
	}
	return fmt.Errorf("got %s, want %s", got, want)
}

// isWord reports whether c belongs to a number or to true, false or null.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// word takes a number, true, false or null. It is valid until the next call.
func (r *reader) word() ([]byte, error) {
	for i := r.pos; i < r.end && i-r.pos <= maxNumber; i++ { // usually it is in the buffer
		if !isWord(r.buf[i]) {
			word := r.buf[r.pos:i]
			r.pos = i
			return word, nil
		}
	}
	r.scratch = r.scratch[:0]
	for {
		c, err := r.peek()
		if err != nil {
			return nil, err
		}
		if !isWord(c) {
			return r.scratch, nil
		}
		if len(r.scratch) == maxNumber {
			return nil, fmt.Errorf("got %s..., want at most %d characters", r.scratch, maxNumber)
		}
		r.scratch = append(r.scratch, c)
		r.pos++
	}
}

// null takes null if it is next and permitted.
func (r *reader) null(permitted bool) (bool, error) {
	c, err := r.next()
	if err != nil || c != 'n' || !permitted {
		return false, err
	}
	word, err := r.word()
	if err == nil && string(word) != "null" {
		err = fmt.Errorf("got %s, want a value or null", word)
	}
	return err == nil, err
}

func (r *reader) bool() (bool, error) {
	c, err := r.next()
	if err != nil {
		return false, err
	}
	if !isWord(c) {
		return false, r.unexpected("true or false")
	}
	word, err := r.word()
	if err == nil && string(word) != "true" && string(word) != "false" {
		err = fmt.Errorf("got %s, want true or false", word)
	}
	return string(word) == "true", err
}

// number takes a whole number up to limit.
func (r *reader) number(limit uint64) (uint64, error) {
	c, err := r.next()
	if err != nil {
		return 0, err
	}
	want := func() string { return "a whole number up to " + strconv.FormatUint(limit, 10) }
	if !isWord(c) {
		return 0, r.unexpected(want())
	}
	word, err := r.word()
	if err != nil {
		return 0, err
	}
	n, ok := uint64(0), len(word) == 1 || word[0] != '0'
	for _, c := range word {
		digit := uint64(c - '0')
		if ok = ok && digit <= 9 && n <= (1<<64-1-digit)/10; !ok {
			break
		}
		n = 10*n + digit
	}
	if !ok || n > limit {
		return 0, fmt.Errorf("got %s, want %s", word, want())
	}
	return n, nil
}

// text takes a text. It is valid until the next call.
func (r *reader) text() ([]byte, error) {
	c, err := r.next()
	if err != nil {
		return nil, err
	}
	if c != '"' {
		return nil, r.unexpected("a string")
	}
	r.pos++
	// Usually it is in the buffer, without an escape.
	rest := r.buf[r.pos:r.end]
	if n := bytes.IndexByte(rest, '"'); n >= 0 && (r.limits.Text == 0 || n+2 <= r.limits.Text) && isPlain(rest[:n]) {
		r.pos += n + 1
		return rest[:n:n], nil
	}
	return r.longText()
}

// isPlain reports whether b is printable ASCII without a backslash.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// longText is text after the first quote, for any text.
func (r *reader) longText() ([]byte, error) {
	r.scratch = r.scratch[:0]
	for taken := 2; ; taken++ {
		c, err := r.take()
		switch {
		case err != nil:
			return nil, err
		case r.limits.Text > 0 && taken > r.limits.Text:
			return nil, fmt.Errorf("string of more than %d bytes", r.limits.Text)
		case c == '"':
			if !utf8.Valid(r.scratch) {
				return nil, fmt.Errorf("string %.40q: invalid UTF-8", r.scratch)
			}
			return r.scratch, nil
		case c < ' ':
			return nil, fmt.Errorf("control character %#02x in a string", c)
		case c == '\\':
			n, err := r.escape()
			if err != nil {
				return nil, err
			}
			taken += n
		default:
			r.scratch = append(r.scratch, c)
		}
	}
}

// take takes a byte of a text.
func (r *reader) take() (byte, error) {
	c, err := r.peek()
	if err == nil && c == 0 && r.pos == r.end {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		r.pos++
	}
	return c, err
}

// escape appends what follows a backslash to scratch. It returns how many bytes it has taken.
func (r *reader) escape() (int, error) {
	c, err := r.take()
	if err != nil {
		return 0, err
	}
	const short, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range len(short) {
		if c == short[i] {
			r.scratch = append(r.scratch, meant[i])
			return 1, nil
		}
	}
	if c != 'u' {
		return 0, fmt.Errorf("invalid escape %q in a string", `\`+string(c))
	}
	code, err := r.hex()
	taken := 5
	if err == nil && utf16.IsSurrogate(code) {
		first := code
		var slash byte
		if slash, err = r.take(); err == nil && slash == '\\' {
			c, err = r.take()
		}
		code = utf8.RuneError
		if err == nil && slash == '\\' && c == 'u' {
			var second rune
			second, err = r.hex()
			code, taken = utf16.DecodeRune(first, second), 11
		}
		if err == nil && code == utf8.RuneError {
			err = fmt.Errorf("half of a character, \\u%04x, in a string", first)
		}
	}
	if err != nil {
		return 0, err
	}
	r.scratch = utf8.AppendRune(r.scratch, code)
	return taken, nil
}

// hex takes four hexadecimal digits.
func (r *reader) hex() (code rune, err error) {
	for range 4 {
		c, err := r.take()
		if err != nil {
			return 0, err
		}
		digit, err := strconv.ParseUint(string(rune(c)), 16, 4)
		if err != nil {
			return 0, fmt.Errorf("invalid \\u%q in a string", c)
		}
		code = code<<4 | rune(digit)
	}
	return code, nil
}

// skip takes a value of an unknown member, within this many brackets.
func (r *reader) skip(nested int) error {
	c, err := r.next()
	switch {
	case err != nil:
		return err
	case nested > maxSkipped:
		return fmt.Errorf("more than %d nested brackets", maxSkipped)
	case c == '"':
		_, err = r.text()
		return err
	case c != '{' && c != '[':
		if !isWord(c) {
			return r.unexpected("a value")
		}
		word, err := r.word()
		if err == nil && !isValue(word) {
			err = fmt.Errorf("got %s, want a value", word)
		}
		return err
	}
	r.pos++
	bracket := c + 2 // in ASCII
	for n := 0; ; n++ {
		more, err := r.more(bracket, n)
		if err != nil || !more {
			return err
		}
		if bracket == '}' {
			if _, err = r.text(); err == nil {
				err = r.colon()
			}
			if err != nil {
				return err
			}
		}
		if err := r.skip(nested + 1); err != nil {
			return err
		}
	}
}

// isValue reports whether a word is true, false, null or a number.
func isValue(word []byte) bool {
	switch string(word) {
	case "true", "false", "null":
		return true
	}
	digits := func() bool {
		n := 0
		for n < len(word) && word[n] >= '0' && word[n] <= '9' {
			n++
		}
		word = word[n:]
		return n > 0
	}
	word = bytes.TrimPrefix(word, []byte{'-'})
	if len(word) > 1 && word[0] == '0' && word[1] >= '0' && word[1] <= '9' || !digits() {
		return false
	}
	if len(word) > 0 && word[0] == '.' {
		if word = word[1:]; !digits() {
			return false
		}
	}
	if len(word) > 0 && (word[0] == 'e' || word[0] == 'E') {
		if word = word[1:]; len(word) > 0 && (word[0] == '+' || word[0] == '-') {
			word = word[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(word) == 0
}
