package shell

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"

	"fabsh/builtins/lang"
)

// Color never says what the text does not say too: it marks errors, states that
// are not as they should be, and dims GUIDs, which are long and seldom read.

// colorMode is the value of --color.
type colorMode string

const (
	colorAuto   colorMode = "auto"
	colorAlways colorMode = "always"
	colorNever  colorMode = "never"
)

func (m *colorMode) Set(text string) error {
	switch mode := colorMode(text); mode {
	case colorAuto, colorAlways, colorNever:
		*m = mode
		return nil
	}
	return errors.New("want auto, always or never")
}

func (m *colorMode) String() string { return string(*m) }
func (m *colorMode) Type() string   { return "when" }

// on reports whether a stream has color. auto: a terminal has, unless NO_COLOR
// (no-color.org) or TERM says otherwise.
func (m colorMode) on(isTTY bool) bool {
	if m != colorAuto {
		return m == colorAlways
	}
	return isTTY && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// setColor says which streams have color. Formats for programs have none.
func (c *console) setColor(mode colorMode, format lang.Format) {
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
	// wrongWords are cells that are seldom as they should be.
	wrongWords = map[string]string{
		"down": sgrYellow, "initialize": sgrYellow, "armed": sgrYellow, "polling": sgrYellow, "disabled": sgrYellow, "sleep": sgrYellow,
		"port_configuration_training": sgrYellow, "link_error_recovery": sgrYellow, "phy_test": sgrYellow,
		"warning": sgrYellow, "error": sgrRed, "critical": sgrRed, "not ok": sgrRed,
	}
)

// colorText colors what is shown. The text is harmless: it has no sequence of its
// own.
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
	return b.String() + text[last:]
}

// isCell: text[i:j] stands alone between the columns of a table, or is the value
// of a line.
func isCell(text string, i, j int) bool {
	before, after := text[:i], text[j:]
	return (before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, "  ")) &&
		(after == "" || after[0] == '\n' || strings.HasPrefix(after, "  "))
}

// colorMessage colors the word that begins each warning.
func colorMessage(text string) string {
	const word = "warning:"
	if rest, ok := strings.CutPrefix(text, word); ok {
		text = sgrYellow + word + sgrReset + rest
	}
	return strings.ReplaceAll(text, "\n"+word, "\n"+sgrYellow+word+sgrReset)
}

// complain writes an error to stderr, its first line in color.
func (c *console) complain(text string) {
	w := consoleWriter{c, true}
	if !c.colorErr {
		w.Write([]byte(text + "\n"))
		return
	}
	first, rest, _ := strings.Cut(lang.Harmless(text)+"\n", "\n")
	w.write([]byte(sgrRed + first + sgrReset + "\n" + rest))
}
