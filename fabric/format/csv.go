package format

import (
	"bytes"
	"slices"
	"strings"
)

// csvLines reads a file of comma-separated values (RFC 4180) line by line: no field
// goes on in the next line. What is between the quotes of a field, and quotes in it
// that are doubled, are the field's.
type csvLines struct {
	*lines
	comma  byte
	header []string // names of the columns, as the file spells them
	fields [][]byte // of the present line; valid until the next
	memory []byte
}

// byteOrderMark is what some editors and spreadsheets begin a UTF-8 file with.
const byteOrderMark = "\ufeff"

// setHeader takes the present line for the names of the columns. What separates them
// separates fields from here on.
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

// split makes fields of the present line. It fails where a quote is not closed.
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

// field is field i of the present line without the spaces around it; empty where the
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
// takes off a name. It is not ok where one of the first few, which are needed, is
// missing, or is there twice.
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
