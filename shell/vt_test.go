package shell

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// vt is as much of a terminal (ECMA-48) as readline's output needs: what is on
// the screen after so many bytes.
type vt struct {
	columns  int
	rows     [][]rune
	row, col int
	rest     string // the beginning of a sequence whose end is yet to come
}

var (
	escape     = regexp.MustCompile(`^\x1b\[(\??)(\d*)[\d;]*([A-Za-z])`)
	title      = regexp.MustCompile(`^\x1b\]2;[^\a]*\a`)
	halfEscape = regexp.MustCompile(`^\x1b(\[\??[\d;]*|\][^\a]*)?$`)
)

// write takes text as it is read of a terminal, in parts that end anywhere.
func (v *vt) write(text string) {
	text, v.rest = v.rest+text, ""
	for text != "" {
		if halfEscape.MatchString(text) || !utf8.FullRuneInString(text) {
			v.rest = text
			return
		}
		if m := title.FindString(text); m != "" {
			text = text[len(m):]
			continue
		}
		if m := escape.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			n, _ := strconv.Atoi(m[2])
			v.control(m[3], max(1, n), n)
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			v.col = 0
		case '\n':
			v.row++
		case '\b':
			v.col = max(0, min(v.col, v.columns-1)-1)
		case '\a':
		default:
			if v.col == v.columns {
				v.col = 0
				v.row++
			}
			v.at()[v.col] = r
			v.col++
		}
	}
}

func (v *vt) control(final string, n, arg int) {
	switch final {
	case "A":
		v.row = max(0, v.row-n)
	case "C":
		v.col = min(v.columns-1, v.col+n)
	case "J":
		v.clear(v.col)
		v.rows = v.rows[:min(len(v.rows), v.row+1)]
	case "K":
		if from := v.col; arg == 2 {
			v.clear(0)
		} else {
			v.clear(from)
		}
	}
}

func (v *vt) clear(from int) {
	row := v.at()
	for i := min(from, v.columns-1); i < len(row); i++ {
		row[i] = ' '
	}
}

func (v *vt) at() []rune {
	for len(v.rows) <= v.row {
		v.rows = append(v.rows, []rune(strings.Repeat(" ", v.columns)))
	}
	return v.rows[v.row]
}

// screen is the text of the rows, with ▮ where the cursor is.
func (v *vt) screen() string {
	var b strings.Builder
	v.at()
	for i, row := range v.rows {
		line := string(row)
		if i == v.row {
			col := min(v.col, v.columns-1)
			line = string(row[:col]) + "▮" + string(row[col:])
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func TestVT(t *testing.T) {
	const text = "abcdef\b\x1b[Axy\r\nzz\x1b[2Kw\x1b[?2004h"
	for i := range len(text) + 1 { // read in two parts
		v := &vt{columns: 4}
		v.write(text[:i])
		v.write(text[i:])
		if got, want := v.screen(), "axyd\n  w▮\n"; got != want {
			t.Errorf("after %d bytes: got %q, want %q", i, got, want)
		}
	}
}
