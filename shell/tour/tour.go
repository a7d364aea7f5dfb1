// Package tour is a tour of fabsh: a few steps to be typed at its prompt, on a simulated
// fabric with a fault. The steps are a text, steps.txt. The package does not use the
// terminal: the prompt calls it.
package tour

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/jsonfile"
	"fabsh/fabric/routing/routes"
)

// Fabric is the specification of the tour's fabric, and Name its name in the prompt,
// which does not reveal the fault.
const (
	Fabric = "sim:errors=leaf-2/6@20/s,traffic=1GB/s"
	Name   = "tour"
)

// Prompt is what the tour needs of the prompt.
type Prompt interface {
	// Globals returns the defined names.
	Globals() starlark.StringDict
	// Run runs a statement, and shows no value.
	Run(statement string) error
	// Tables returns the current forwarding tables.
	Tables() (*routes.Routes, error)
}

// Seen is a statement that was run, and its results.
type Seen struct {
	Text   string
	Values []starlark.Value // the values of its expressions, and of its assignments
	Failed bool
	Report *audit.Report // from audits; nil: none ran
	Named  string        // the report that ran: "iblinkinfo"; "": none
}

// Tour is the state of a user in the tour.
type Tour struct {
	prompt  Prompt
	out     io.Writer
	width   func() int // of the terminal
	path    string     // of the state; "": not kept
	at      int        // the step, from 0; the number of steps: complete
	tries   int        // lines since it began that did not complete it
	hints   int        // hints that were given
	offered bool       // it has said what helps
	unsaved bool       // a failure to keep the state was reported
}

// Open starts the tour, or continues at the step in the file at path; from is the step
// to start at instead, from 1; 0: none.
func Open(p Prompt, out io.Writer, width func() int, path string, from int) (*Tour, error) {
	t := &Tour{prompt: p, out: out, width: width, path: path}
	if from > len(script().steps) {
		return nil, fmt.Errorf("tour: step %d: unknown; the tour has %d", from, len(script().steps))
	}
	at, err := load(path)
	switch {
	case from > 0:
		at = from - 1
	case err != nil:
		t.say(fmt.Sprintf("%v: the tour starts from the beginning.", err))
	case at == len(script().steps):
		t.say("You have completed the tour; here it is again.")
		at = 0
	case at > 0:
		t.say(fmt.Sprintf("The tour continues at step %d; back goes back.", at+1))
	}
	t.at = at
	if at == 0 {
		t.say(script().intro)
	}
	for _, s := range script().steps[:at] {
		t.keep(s)
	}
	t.ask()
	return t, nil
}

// say writes paragraphs, with lines no wider than the terminal and than is comfortable
// to read.
func (t *Tour) say(words string) {
	text := "\n" + strings.TrimSpace(words) + "\n"
	if width := min(t.width(), readable) - 1; width > 0 {
		text = lang.Prose(text, width)
	}
	io.WriteString(t.out, text)
}

// readable is the maximum width of lines of text.
const readable = 90

// ask prints the current step.
func (t *Tour) ask() {
	t.tries, t.hints, t.offered = 0, 0, false
	if t.at == len(script().steps) {
		t.say(script().outro)
	} else {
		s := script().steps[t.at]
		t.say(fmt.Sprintf("%d/%d  %s\n%s", t.at+1, len(script().steps), s.title, strings.TrimSpace(s.asks)))
	}
	t.save()
}

// save keeps the current step. A failure is reported once.
func (t *Tour) save() {
	if err := save(t.path, t.at); err != nil && !t.unsaved {
		t.unsaved = true
		t.say(fmt.Sprintf("Your position in the tour is not kept: %v", err))
	}
}

// Words are the words that the tour itself handles.
var Words = []string{"again", "back", "hint", "next", "skip"}

// Word does what one of Words requests; false: text is not one of them.
func (t *Tour) Word(text string) bool {
	over := t.at == len(script().steps)
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
		t.say("One solution: " + script().steps[t.at].answer)
		t.advance()
	default:
		return false
	}
	return true
}

// hint gives more help each time.
func (t *Tour) hint() {
	if s := script().steps[t.at]; t.hints == 0 && s.hint != "" {
		t.say("Hint: " + s.hint)
	} else {
		t.say("Type: " + s.answer)
	}
	t.hints++
}

// advance goes to the next step.
func (t *Tour) advance() {
	t.keep(script().steps[t.at])
	t.at++
	t.ask()
}

// keep defines the names that later steps use, if no statement has defined them.
func (t *Tour) keep(s step) {
	if s.name == "" || t.prompt.Globals()[s.name] != nil && t.prompt.Globals()[s.name].Type() == s.kind {
		return
	}
	if err := t.prompt.Run(s.keep); err == nil {
		t.say("(Done for you: " + s.keep + ")")
	}
}

// See checks a statement, and goes to the next step if the statement completes the
// current one.
func (t *Tour) See(seen Seen) {
	if t.at == len(script().steps) || seen.Text == "" {
		return
	}
	s := script().steps[t.at]
	err := s.check(t, seen)
	var part *partError
	switch {
	case err == nil:
		t.say(s.done)
		t.advance()
	case errors.As(err, &part):
		t.say(part.Error())
	default:
		// Any line may be typed: the tour says once what helps, and judges none.
		if t.tries++; !t.offered && (seen.Failed || t.tries == linesToHint) {
			t.offered = true
			t.say(fmt.Sprintf("Step %d of %d: hint helps, skip goes on.", t.at+1, len(script().steps)))
		}
	}
}

// linesToHint is the number of lines that do not complete a step until the tour says what helps.
const linesToHint = 5

// Left prints where the tour continues, at the end of the program.
func (t *Tour) Left() {
	if t.at < len(script().steps) && t.path != "" && !t.unsaved {
		t.say(fmt.Sprintf("fabsh tour continues here, at step %d of %d.", t.at+1, len(script().steps)))
	}
}

// step is one step of the tour.
type step struct {
	title  string
	asks   string // what to do
	hint   string // after a wrong try
	answer string // a valid statement
	done   string // printed when it is done
	check  func(*Tour, Seen) error

	name, kind string // the global that later steps use, and its type; "": none
	keep       string // the statement that makes it
}

// stepsText is the tour: sections that begin with "= TITLE", those of steps with lines
// "KEY: VALUE", then an empty line and prose. The first is the intro, the last the outro.
//
//go:embed steps.txt
var stepsText string

// script is the tour, parsed at first use.
var script = sync.OnceValue(func() (s parts) {
	var err error
	if s.intro, s.steps, s.outro, err = parse(stepsText); err != nil {
		panic(err) // a test parses the text
	}
	return s
})

// parts are the sections of the tour.
type parts struct {
	intro, outro string
	steps        []step
}

// Answers returns a valid statement for each step.
func Answers() (list []string) {
	for _, s := range script().steps {
		list = append(list, s.answer)
	}
	return list
}

// The port at the fault, by name.
const (
	badSwitch, badPort   = "leaf-2", 6
	peerSwitch, peerPort = "spine-2", 2
	lid                  = 14 // the LID of node-0002, which badSwitch reaches through badPort
)

// checks report whether a step is done, by the word after check: in the text.
func checks() map[string]func(*Tour, Seen) error {
	return map[string]func(*Tour, Seen) error{
		"fabric": hasFabric, "NodeInfo": asksNodeInfo, "table": readsTable, "counters": readsCounters,
		"audit": finds, "verdict": verifies, "plan": applies, "report": reports,
	}
}

// parse reads the text of a tour.
func parse(text string) (intro string, steps []step, outro string, err error) {
	sections := strings.Split("\n"+strings.TrimSpace(text), "\n= ")[1:]
	if len(sections) < 3 {
		return "", nil, "", fmt.Errorf("tour: want an intro, steps and an outro, got %d sections", len(sections))
	}
	for i, section := range sections {
		title, rest, _ := strings.Cut(section, "\n")
		switch i {
		case 0:
			intro = strings.TrimSpace(rest)
			continue
		case len(sections) - 1:
			outro = strings.TrimSpace(rest)
			continue
		}
		head, prose, _ := strings.Cut(rest, "\n\n")
		s := step{title: title, asks: strings.TrimSpace(prose)}
		fields := map[string]*string{"answer": &s.answer, "hint": &s.hint, "done": &s.done, "name": &s.name, "kind": &s.kind, "keep": &s.keep}
		for line := range strings.SplitSeq(head, "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch to := fields[key]; {
			case key == "check":
				s.check = checks()[value]
			case to == nil || value == "":
				return "", nil, "", fmt.Errorf("tour: step %q: unknown line %q", title, line)
			default:
				*to = value
			}
		}
		if s.check == nil || s.asks == "" || s.hint == "" || s.answer == "" || s.done == "" || (s.name == "") != (s.keep == "") {
			return "", nil, "", fmt.Errorf("tour: step %q: incomplete, or an unknown check", title)
		}
		steps = append(steps, s)
	}
	return intro, steps, outro, nil
}

// state is the content of the file.
type state struct {
	Schema string `json:"schema"`
	Step   int    `json:"step"` // from 1; one more than there are steps: the tour is complete
}

const schema = "fabsh.tour/1"

// maxState is longer than any state, in bytes.
const maxState = 4 << 10

// load returns the step, from 0, in the file at path; 0 without a file.
func load(path string) (int, error) {
	if path == "" {
		return 0, nil
	}
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return 0, err
	}
	var s state
	if err := jsonfile.New[state](jsonfile.Limits{Unknown: true}).Unmarshal(data, &s); err != nil {
		return 0, fmt.Errorf("%s: %w; remove it to begin the tour again", path, err)
	}
	if s.Schema != schema || s.Step < 1 || s.Step > len(script().steps)+1 {
		return 0, fmt.Errorf("%s: unknown step or schema; remove it to begin the tour again", path)
	}
	return s.Step - 1, nil
}

// save keeps the step in the file at path.
func save(path string, at int) error {
	if path == "" {
		return errors.New("there is no home directory")
	}
	if err := format.MakeDirectory(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	write := func(w io.Writer) error { return json.NewEncoder(w).Encode(state{schema, at + 1}) }
	return format.WriteOwn(path, 0o644, write)
}
