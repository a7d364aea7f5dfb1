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

// tourCommand is the prompt on the tour's fabric, with package tour looking on.
func tourCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "tour [STEP]",
		Short: "Learn fabsh in ten minutes, at its prompt, on a simulated fabric with a fault",
		Long: `Learn fabsh in ten minutes: eight steps, typed at the prompt, on a simulated fabric
with a fault in it. Each step is done when what was typed gets what is asked for,
in whatever words. hint helps, skip goes on, back goes back, again repeats, and
quit leaves; the next fabsh tour goes on there, or at STEP.`,
		Example: `  fabsh tour
  fabsh tour 1    # from the beginning`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, words []string) error {
			from := 0
			if len(words) > 0 {
				var err error
				if from, err = strconv.Atoi(words[0]); err != nil || from < 1 {
					return fmt.Errorf("tour: %q: want the number of a step, from 1", words[0])
				}
			}
			status, err := Tour(p, c.Root(), from)
			if err != nil {
				return err
			}
			return session.Exit(status)
		},
	}
}

// Tour runs the prompt on the tour's fabric. Its time is virtual: nobody waits.
func Tour(p *session.Program, root *cobra.Command, from int) (status int, err error) {
	switch {
	case p.Settings.Given("command"):
		return 0, errors.New("-c takes no command")
	case p.Settings.Given("fabric"):
		return 0, errors.New("tour: it has a fabric of its own: leave -F out")
	case p.Settings.ReadOnly || p.Settings.PlanFile != "":
		return 0, errors.New("tour: one of its steps makes a change, of a simulated fabric: leave --read-only and --plan out")
	case !p.AtTerminal():
		return 0, errors.New("tour: it is typed, and here is no terminal")
	}
	if err := p.Settings.Check(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "fabsh-tour-")
	if err != nil {
		return 0, &session.HostError{Err: fmt.Errorf("tour: %w", err)}
	}
	defer os.RemoveAll(dir)
	settings := *p.Settings
	settings.VirtualTime = true
	settings.State = dir // acks and journals of real fabrics are none of this one's
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
	defer func() { status = session.Worse(status, p.Console.Fail(s.Close())) }()
	s.Runner.Statement = p.Settings.Deadline.Value
	var t *tour.Tour
	status = prompt.Run(p, s, prompt.Options{Commands: AtPrompt(p, root), Tour: func(at tour.Prompt) (*tour.Tour, error) {
		t, err = tour.Open(at, p.Console.Out(), p.Console.Width, session.StateFile("tour"), from)
		return t, err
	}})
	if t != nil {
		t.Left()
	}
	return status, nil
}

// Offer asks at a terminal whether a simulated fabric will do, and returns it; else the
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

// ErrTour: the tour is to be taken instead.
var ErrTour = errors.New("the tour is wanted")
