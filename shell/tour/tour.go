// Package tour is a tour of fabsh: a few steps to be typed at its prompt, on a
// simulated fabric with a fault.
//
//	tour.go   Tour: where somebody stands, and what is said to them
//	step.go   the steps, which are a text: steps.txt
//	check.go  whether what was typed gets what a step asks for
//	state.go  where the tour was left
//
// It knows no terminal: the prompt asks it.
package tour

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"

	"fabsh/fabric/audit"
	"fabsh/fabric/routing/routes"
)

// Fabric is what -F says of the tour's fabric, and Name what the prompt calls it: the
// fault is to be found.
const (
	Fabric = "sim:errors=leaf-2/6@20/s,traffic=1GB/s"
	Name   = "tour"
)

// Prompt is what the tour needs of the prompt.
type Prompt interface {
	// Globals are the names that there are.
	Globals() starlark.StringDict
	// Run runs a statement, and shows nothing of it.
	Run(statement string) error
	// Tables are the forwarding tables as they are now.
	Tables() (*routes.Routes, error)
}

// Seen is a statement that was run, and what it made.
type Seen struct {
	Text   string
	Values []starlark.Value // of its expressions, and those that it assigned
	Failed bool
	Report *audit.Report // that audits made; nil: none ran
	Named  string        // the report that ran: "iblinkinfo"; "": none did
}

// Tour is where somebody stands in the tour.
type Tour struct {
	prompt Prompt
	out    io.Writer
	width  func() int // of the terminal
	path   string     // of the state; "": nothing is kept
	at     int        // the step, from 0; len(steps): it is over
	tries  int        // that did not get it
	hints  int        // that were given
	saved  bool       // that the state cannot be kept has been said, or it can
}

// Open begins the tour, or takes it up where the file at path says it was left; from
// is the step to begin at instead, from 1; 0: none.
func Open(p Prompt, out io.Writer, width func() int, path string, from int) (*Tour, error) {
	t := &Tour{prompt: p, out: out, width: width, path: path}
	if from > len(steps) {
		return nil, fmt.Errorf("tour: step %d: there are %d", from, len(steps))
	}
	at, err := load(path)
	switch {
	case from > 0:
		at = from - 1
	case err != nil:
		t.say(fmt.Sprintf("%v: the tour begins anew.", err))
	case at == len(steps):
		t.say("You have been through the tour; here it is again.")
		at = 0
	case at > 0:
		t.say(fmt.Sprintf("The tour goes on at step %d; back goes back.", at+1))
	}
	t.at = at
	if at == 0 {
		t.say(intro)
	}
	for _, s := range steps[:at] {
		t.keep(s)
	}
	t.ask()
	return t, nil
}

// say writes paragraphs, no line of them wider than the terminal, or than is good to
// read. What is indented stays as it is.
func (t *Tour) say(words string) {
	width := min(t.width(), readable) - 1
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.SplitSeq(strings.TrimSpace(words), "\n") {
		if !strings.HasPrefix(line, " ") && width > 0 {
			line = text.WrapSoft(line, width)
		}
		for part := range strings.SplitSeq(line, "\n") {
			b.WriteString(strings.TrimRight(part, " ") + "\n")
		}
	}
	io.WriteString(t.out, b.String())
}

// readable is how wide lines of text are at most.
const readable = 90

// ask says what the step at hand wants.
func (t *Tour) ask() {
	t.tries, t.hints = 0, 0
	if t.at == len(steps) {
		t.say(outro)
	} else {
		s := steps[t.at]
		t.say(fmt.Sprintf("%d/%d  %s\n%s", t.at+1, len(steps), s.title, strings.TrimSpace(s.asks)))
	}
	t.save()
}

// save keeps where the tour is. That it cannot is said once.
func (t *Tour) save() {
	if err := save(t.path, t.at); err != nil && !t.saved {
		t.saved = true
		t.say(fmt.Sprintf("Where you are is not kept: %v", err))
	}
}

// Words are what the tour itself understands.
var Words = []string{"again", "back", "hint", "next", "skip"}

// Word does what one of Words asks for; false: text is none of them.
func (t *Tour) Word(text string) bool {
	over := t.at == len(steps)
	switch strings.TrimSpace(text) {
	case "again", "tour":
		t.ask()
	case "back":
		t.at = max(0, t.at-1)
		t.ask()
	case "hint":
		if !over {
			t.hint()
		}
	case "next", "skip":
		if over {
			t.ask()
			break
		}
		t.say("One way: " + steps[t.at].answer)
		t.advance()
	default:
		return false
	}
	return true
}

// hint says more each time.
func (t *Tour) hint() {
	if s := steps[t.at]; t.hints == 0 && s.hint != "" {
		t.say("Hint: " + s.hint)
	} else {
		t.say("Type: " + s.answer)
	}
	t.hints++
}

// advance goes on to the next step.
func (t *Tour) advance() {
	t.keep(steps[t.at])
	t.at++
	t.ask()
}

// keep has the names that later steps speak of, where nothing has made them.
func (t *Tour) keep(s step) {
	if s.name == "" || t.prompt.Globals()[s.name] != nil && t.prompt.Globals()[s.name].Type() == s.kind {
		return
	}
	if err := t.prompt.Run(s.keep); err == nil {
		t.say("(Done for you: " + s.keep + ")")
	}
}

// See looks at what was typed, and goes on to the next step where that did what this
// one asks for.
func (t *Tour) See(seen Seen) {
	if t.at == len(steps) || seen.Text == "" {
		return
	}
	s := steps[t.at]
	err := s.check(t, seen)
	var part *partError
	switch {
	case err == nil:
		t.say(s.done)
		t.advance()
	case errors.As(err, &part):
		t.say(part.Error())
	default:
		t.tries++
		switch {
		case t.tries < 3:
			t.hint()
		case t.tries == 3: // who goes on looks around, and can ask for hints
			t.say("Not yet. The words hint, skip, back, again and quit are there too.")
		}
	}
}

// Left is said at the end of the program.
func (t *Tour) Left() {
	if t.at < len(steps) && t.path != "" && !t.saved {
		t.say(fmt.Sprintf("fabsh tour goes on here, at step %d of %d.", t.at+1, len(steps)))
	}
}
