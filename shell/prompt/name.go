package prompt

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"fabsh/builtins/lang"
	"fabsh/shell/session"
)

// promptText returns the prompt: the fabric, the number of nodes and the age of its
// picture, and whether it may be changed. It takes at most a third of the width; the
// title of the terminal has all of it.
func (r *repl) promptText() string {
	if f := r.Env.Fabric(); f != r.fabric {
		r.fabric, r.since = f, time.Now()
	}
	nodes, old := "", ""
	if r.fabric != nil {
		nodes = fmt.Sprintf(" %dn", len(r.fabric.Nodes()))
		if d := time.Since(r.since); r.Engine != nil && d >= time.Minute {
			old = " " + age(d)
		}
	}
	end := " " + r.rights() + "> "
	room := width(r.Session)/3 - len(end)
	name := shortName(lang.OneLine(r.Name))
	for _, part := range []*string{&old, &nodes} { // the name is the most important
		if room-len(nodes)-len(old) < min(minName, len([]rune(name))) {
			*part = ""
		}
	}
	if room -= len(nodes) + len(old); room < minName && room < len([]rune(name)) {
		return strings.TrimLeft(end, " ")
	}
	if short := session.Truncate(name, room); short != name && room > 1 {
		name = session.Truncate(name, room-1) + "…"
	}
	return name + nodes + old + end
}

// minName is the length from which the beginning of a name says something, in runes.
const minName = 4

func width(s *session.Session) int {
	if columns := s.Console.Width(); columns > 0 {
		return columns
	}
	return 80
}

// rights returns whether the fabric may be changed.
func (r *repl) rights() string {
	if r.Engine != nil && r.Engine.Write() {
		return "rw"
	}
	return "ro"
}

// shortName returns the kind of a fabric, and its name without options: "sim fattree".
func shortName(name string) string {
	kind, rest, ok := strings.Cut(name, ":")
	if !ok {
		return name
	}
	rest, _, _ = strings.Cut(rest, ",")
	switch kind {
	case "umad":
		return rest
	case "sim":
		if rest, _, _ = strings.Cut(rest, ":"); strings.Contains(rest, "=") { // an option alone
			return kind
		}
		rest = path.Base(rest)
	}
	return kind + " " + rest
}

// age formats a time in one unit: "12s", "3m", "5h", "2d".
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Sequences of xterm (invisible-island.net/xterm/ctlseqs): OSC 2 sets the title of the
// window; CSI 22 ; 2 t and 23 ; 2 t save and restore it, where the terminal can.
const (
	titleSave    = "\x1b[22;2t"
	titleRestore = "\x1b[23;2t"
	titleSet     = "\x1b]2;%s\a"
)

// maxTitle is the maximum length of a title, in runes.
const maxTitle = 150

// title is the title of a terminal. The zero value is that of a terminal without one.
type title struct {
	out  io.Writer // nil: no title
	last string
}

// openTitle returns the title of the terminal out, which is saved.
func openTitle(out io.Writer) *title {
	switch os.Getenv("TERM") {
	case "", "dumb", "linux":
		return new(title)
	}
	io.WriteString(out, titleSave)
	return &title{out: out}
}

// set sets the title to text, without control characters, which could end the sequence.
func (t *title) set(text string) {
	if text = session.Truncate(lang.OneLine(text), maxTitle); t.out != nil && text != t.last {
		fmt.Fprintf(t.out, titleSet, text)
		t.last = text
	}
}

// restore restores the title of before.
func (t *title) restore() {
	if t.out != nil {
		io.WriteString(t.out, titleRestore)
	}
}

// titleText returns the title of the terminal: the whole name of the fabric.
func (r *repl) titleText() string {
	text := "fabsh " + r.Name + " " + r.rights()
	if r.fabric != nil {
		text += fmt.Sprintf(", %d nodes", len(r.fabric.Nodes()))
	}
	return text
}
