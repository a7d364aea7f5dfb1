package session

import (
	"bytes"
	"strings"
	"testing"

	"fabsh/builtins/lang"
)

// shown writes sequences as <red>...<>.
func shown(text string) string {
	return strings.NewReplacer(sgrRed, "<red>", sgrYellow, "<yellow>", sgrDim, "<dim>", sgrReset, "<>").Replace(text)
}

func TestColor(t *testing.T) {
	for in, want := range map[string]string{
		"0x0002c90300100000":                      "<dim>0x0002c90300100000<>",
		"port  down  polling\n":                   "port  <yellow>down<>  <yellow>polling<>\n",
		"state  active\nstate  initialize":        "state  active\nstate  <yellow>initialize<>",
		"if a link goes down, polling":            "if a link goes down, polling",
		"down":                                    "<yellow>down<>",
		"verdict      not ok\n":                   "verdict      <red>not ok<>\n",
		"verdict      ok\n":                       "verdict      ok\n",
		"LID 999   error: timed out\nnext":        "LID 999   <red>error: timed out<>\nnext",
		"x  error(smp_get: no)":                   "x  <red>error(smp_get: no)<>",
		"state  unknown(9)":                       "state  <yellow>unknown(9)<>",
		"downtown  leaf_down  a down  down.":      "downtown  leaf_down  a down  down.",
		"":                                        "",
		"0x0002c903001000001 0x0002c90300 0xffff": "0x0002c903001000001 0x0002c90300 0xffff",
	} {
		if got := shown(colorText(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := shown(colorMessage("warning: a\nwarning: b\nno warning: c\n")); got != "<yellow>warning:<> a\n<yellow>warning:<> b\nno warning: c\n" {
		t.Errorf("got %q", got)
	}
}

// TestColorMode: who has color.
func TestColorMode(t *testing.T) {
	for _, test := range []struct {
		mode          ColorMode
		tty           bool
		noColor, term string
		format        lang.Format
		want          bool
	}{
		{ColorAuto, true, "", "xterm", lang.FormatText, true},
		{ColorAuto, false, "", "xterm", lang.FormatText, false},
		{ColorAuto, true, "1", "xterm", lang.FormatText, false},
		{ColorAuto, true, "", "dumb", lang.FormatText, false},
		{ColorAlways, false, "1", "dumb", lang.FormatText, true},
		{ColorAlways, true, "", "xterm", lang.FormatJSON, false},
		{ColorNever, true, "", "xterm", lang.FormatText, false},
	} {
		t.Setenv("NO_COLOR", test.noColor)
		t.Setenv("TERM", test.term)
		c := &Console{stdoutTTY: test.tty}
		c.SetColor(test.mode, test.format)
		if c.colorOut != test.want {
			t.Errorf("%+v", test)
		}
	}
	if err := new(ColorMode).Set("yes"); err == nil {
		t.Error("yes is a mode")
	}
}

// TestColorIsHarmless: what a fabric says cannot color, nor hide behind color.
func TestColorIsHarmless(t *testing.T) {
	var out, errs bytes.Buffer
	c := &Console{stdout: &out, stderr: &errs, colorOut: true, colorErr: true}
	c.Out().Write([]byte("evil\x1b[31m  down\n"))
	c.Err().Write([]byte("warning: evil\x1b[31m\n"))
	c.Complain("evil\x1b[31m\nsecond")
	if got := shown(out.String()); got != `evil\x1b[31m  <yellow>down<>`+"\n" {
		t.Errorf("got %q", got)
	}
	if got := shown(errs.String()); got != `<yellow>warning:<> evil\x1b[31m`+"\n"+`<red>evil\x1b[31m<>`+"\nsecond\n" {
		t.Errorf("got %q", got)
	}
}

// TestColorCells: a cell is the mark of its shade on the color of the shade, so that cells differ
// without color too; runs share colors.
func TestColorCells(t *testing.T) {
	text := "a "
	for _, shade := range []int{0, 0, 7, lang.ShadeUnknown, lang.ShadeNone, 1} {
		text += string(lang.Cell(shade))
	}
	text += " b\U000f00aa"
	for _, test := range []struct{ colorTerm, want string }{
		{"truecolor", "a \x1b[97;48;2;68;1;84m..\x1b[0m\x1b[30;48;2;253;231;37m@\x1b[0m\x1b[30;48;2;128;128;128m?\x1b[0m \x1b[97;48;2;70;50;127m:\x1b[0m b\U000f00aa"},
		{"", "a \x1b[97;48;5;53m..\x1b[0m\x1b[30;48;5;226m@\x1b[0m\x1b[30;48;5;244m?\x1b[0m \x1b[97;48;5;60m:\x1b[0m b\U000f00aa"},
	} {
		t.Setenv("COLORTERM", test.colorTerm)
		if got := colorCells(text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.colorTerm, got, test.want)
		}
	}
	marks := map[string]bool{}
	for shade := range lang.ShadeNone + 1 {
		marks[lang.ShadeMark(shade)] = true
	}
	if len(marks) != lang.ShadeNone+1 {
		t.Errorf("shades share marks: %v", marks)
	}
}
