package tour

import (
	_ "embed"
	"fmt"
	"strings"
)

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

var intro, steps, outro = mustParse(stepsText)

// Answers returns a valid statement for each step.
func Answers() (list []string) {
	for _, s := range steps {
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

func mustParse(text string) (intro string, steps []step, outro string) {
	intro, steps, outro, err := parse(text)
	if err != nil {
		panic(err) // a test parses the text
	}
	return intro, steps, outro
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
