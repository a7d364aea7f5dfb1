package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// tourCommand is the prompt on the fabric of the tour, which package tour watches.
func tourCommand(p *session.Program, newRoot func(*session.Program) *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "tour [STEP]",
		Short: "Learn fabsh in ten minutes, at its prompt, on a simulated fabric with a fault",
		Long: `Learn fabsh in ten minutes: eight steps, typed at the prompt, on a simulated fabric
with a fault. A step is done when a statement gets the result that it asks for, in any
form. hint helps, skip continues, back goes back, again repeats, and quit leaves; the
next fabsh tour continues there, or at STEP.`,
		Example: `  fabsh tour
  fabsh tour 1    # from the beginning`,
		Args: atMost(1),
		RunE: func(c *cobra.Command, words []string) error {
			from := 0
			if len(words) > 0 {
				var err error
				if from, err = strconv.Atoi(words[0]); err != nil || from < 1 {
					return fmt.Errorf("%q: want the number of a step, from 1", words[0])
				}
			}
			status, err := Tour(p, newRoot, from)
			if err != nil {
				return err
			}
			return session.Exit(status)
		},
	}
}

// Tour runs the prompt on the fabric of the tour. newRoot returns the root command of a
// program. Its clock is virtual: no user waits.
func Tour(p *session.Program, newRoot func(*session.Program) *cobra.Command, from int) (status int, err error) {
	switch {
	case p.Settings.Given("fabric"):
		return 0, errors.New("-F: not supported: the tour has its own fabric")
	case p.Settings.ReadOnly || p.Settings.PlanFile != "":
		return 0, errors.New("--read-only, --plan: not supported: one step changes the simulated fabric; leave them out")
	case !p.AtTerminal():
		return 0, errors.New("needs a terminal")
	}
	if err := p.Settings.Check(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "fabsh-tour-")
	if err != nil {
		return 0, &session.HostError{Err: err}
	}
	defer os.RemoveAll(dir)
	settings := *p.Settings
	settings.VirtualTime = true
	settings.State = dir // separate from acknowledgements and journals of real fabrics
	p = p.With(settings)
	c, err := session.Connect(context.Background(), p.Settings, nil, tour.Fabric)
	if err != nil {
		return 0, err
	}
	c.Name = tour.Name
	s, err := session.New(p, session.Base{Connection: c})
	if err != nil {
		return 0, err
	}
	defer func() { status = session.Worse(status, p.Fail(s.Close())) }()
	s.Runner.Statement = p.Settings.Deadline.Value
	var t *tour.Tour
	status = prompt.Run(p, s, prompt.Options{Commands: AtPrompt(p, newRoot), Tour: func(at tour.Prompt) (*tour.Tour, error) {
		t, err = tour.Open(at, p.Console.Out(), p.Console.Width, session.StateFile("tour"), from)
		return t, err
	}})
	if t != nil {
		t.Left()
	}
	return status, nil
}

// Offer offers at a terminal to open a simulated fabric, and returns it; otherwise the
// error is absent, or ErrTour.
func Offer(p *session.Program, absent error) (spec string, err error) {
	if !p.StdinIsTerminal() || !p.Console.ErrIsTerminal() {
		return "", absent
	}
	fmt.Fprintf(p.Console.Err(), "%v\nNew here? fabsh tour shows fabsh in ten minutes.\nOpen a simulated fabric (-F sim) now, or take the tour? [Y/n/tour] ", absent)
	var answer string
	if _, err := fmt.Fscanln(p.Stdin, &answer); err == io.EOF {
		return "", absent
	}
	switch strings.ToLower(answer) {
	case "", "y", "yes":
		return "sim", nil
	case "t", "tour":
		return "", ErrTour
	}
	return "", absent
}

// ErrTour reports that the user chose the tour.
var ErrTour = errors.New("the tour is wanted")
