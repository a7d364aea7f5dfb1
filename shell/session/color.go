package session

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"fabsh/builtins/lang"
)

// Color never carries information that the text does not have: it marks errors and
// faulty states, and dims GUIDs, which are long and seldom read.

// ColorMode is the value of --color.
type ColorMode string

const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// ColorModes returns all modes.
func ColorModes() []string {
	return []string{string(ColorAuto), string(ColorAlways), string(ColorNever)}
}

func (m *ColorMode) Set(text string) error {
	switch mode := ColorMode(text); mode {
	case ColorAuto, ColorAlways, ColorNever:
		*m = mode
		return nil
	}
	return errors.New("want auto, always or never")
}

func (m *ColorMode) String() string { return string(*m) }
func (m *ColorMode) Type() string   { return "when" }

// on reports whether a stream has color. auto: if it is a terminal, unless NO_COLOR
// (no-color.org) or TERM disables it.
func (m ColorMode) on(isTTY bool) bool {
	if m != ColorAuto {
		return m == ColorAlways
	}
	return isTTY && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// SetColor decides which streams have color. Formats for programs have none.
func (c *Console) SetColor(mode ColorMode, format lang.Format) {
	c.colorOut = format == lang.FormatText && mode.on(c.stdoutTTY)
	c.colorErr = mode.on(c.stderrTTY)
}

// SGR sequences (ECMA-48).
const (
	sgrRed    = "\x1b[31m"
	sgrYellow = "\x1b[33m"
	sgrDim    = "\x1b[2m"
	sgrReset  = "\x1b[0m"
)

var (
	// colored are GUIDs; errors in a row or a cell; and words that may be a cell.
	colored = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b0x[0-9a-f]{16}\b|\berror: .*|\berror\(.*|\bunknown\(\d+\)|[a-z_]+(?: ok)?`)
	})
	// wrongWords are cells that are seldom correct.
	wrongWords = map[string]string{
		"down": sgrYellow, "initialize": sgrYellow, "armed": sgrYellow, "polling": sgrYellow, "disabled": sgrYellow, "sleep": sgrYellow,
		"port_configuration_training": sgrYellow, "link_error_recovery": sgrYellow, "phy_test": sgrYellow,
		"warning": sgrYellow, "error": sgrRed, "critical": sgrRed, "not ok": sgrRed,
	}
)

// Blocks reports whether cells of pictures may be half blocks in color, which the
// locale's character set must contain.
func (c *Console) Blocks() bool { return c.colorOut && isUTF8() }

// isUTF8 reports whether the locale's characters are in UTF-8 (POSIX, environment
// variables).
func isUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// cellColors are the shades of cells from low to high, as 24-bit colors (viridis, which
// color-blind users can distinguish), and the nearest of the 256 of xterm; then that of
// unknown cells.
var cellColors = [...]struct {
	rgb   string
	xterm string
}{
	{"68;1;84", "53"}, {"70;50;127", "60"}, {"54;92;141", "24"}, {"39;127;142", "30"},
	{"31;161;135", "36"}, {"74;194;109", "71"}, {"160;218;57", "149"}, {"253;231;37", "226"},
	{"128;128;128", "244"},
}

// colorCells replaces runes of lang.Cells by half blocks in color.
func colorCells(text string) string {
	if !strings.ContainsFunc(text, isCells) {
		return text
	}
	trueColor := os.Getenv("COLORTERM") == "truecolor" || os.Getenv("COLORTERM") == "24bit" || strings.HasSuffix(os.Getenv("TERM"), "-direct")
	color := func(layer, shade int) string {
		switch {
		case shade >= len(cellColors):
			return ""
		case trueColor:
			return fmt.Sprintf("\x1b[%d8;2;%sm", layer, cellColors[shade].rgb)
		}
		return fmt.Sprintf("\x1b[%d8;5;%sm", layer, cellColors[shade].xterm)
	}
	var b strings.Builder
	last := [2]int{-1, -1} // the colors in force
	for _, r := range text {
		upper, lower, ok := lang.CellsOf(r)
		if !ok {
			if last != [2]int{-1, -1} {
				b.WriteString(sgrReset)
				last = [2]int{-1, -1}
			}
			b.WriteRune(r)
			continue
		}
		block, front, back := '▀', upper, lower
		if upper == lang.ShadeNone {
			block, front, back = '▄', lower, upper
		}
		if front == lang.ShadeNone {
			block = ' '
		}
		if last != [2]int{front, back} {
			if last != [2]int{-1, -1} {
				b.WriteString(sgrReset)
			}
			b.WriteString(color(3, front) + color(4, back))
			last = [2]int{front, back}
		}
		b.WriteRune(block)
	}
	if last != [2]int{-1, -1} {
		b.WriteString(sgrReset)
	}
	return b.String()
}

func isCells(r rune) bool {
	_, _, ok := lang.CellsOf(r)
	return ok
}

// colorText colors output. The text has no control sequences of its own.
func colorText(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range colored().FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		color := wrongWords[word]
		switch {
		case color != "" && !isCell(text, at[0], at[1]):
			continue
		case strings.HasPrefix(word, "0x"):
			color = sgrDim
		case strings.HasPrefix(word, "error:"), strings.HasPrefix(word, "error("):
			color = sgrRed
		case strings.HasPrefix(word, "unknown("):
			color = sgrYellow
		case color == "":
			continue
		}
		b.WriteString(text[last:at[0]] + color + word + sgrReset)
		last = at[1]
	}
	return colorCells(b.String() + text[last:])
}

// isCell reports whether text[i:j] is a whole cell of a table, or the value of a line.
func isCell(text string, i, j int) bool {
	before, after := text[:i], text[j:]
	return (before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, "  ")) &&
		(after == "" || after[0] == '\n' || strings.HasPrefix(after, "  "))
}

// colorMessage colors the first word of each warning.
func colorMessage(text string) string {
	const word = "warning:"
	if rest, ok := strings.CutPrefix(text, word); ok {
		text = sgrYellow + word + sgrReset + rest
	}
	return strings.ReplaceAll(text, "\n"+word, "\n"+sgrYellow+word+sgrReset)
}

// Complain writes an error to stderr, its first line in color.
func (c *Console) Complain(text string) {
	w := consoleWriter{c, true}
	if !c.colorErr {
		w.Write([]byte(text + "\n"))
		return
	}
	first, rest, _ := strings.Cut(lang.Harmless(text)+"\n", "\n")
	w.write([]byte(sgrRed + c.wrapMessage(first) + sgrReset + "\n" + c.wrapMessage(rest)))
}
