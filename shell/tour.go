package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
	"fabsh/shell/tour"
)

// tourCommand is the prompt on the tour's fabric, with package tour looking on.
func (a *app) tourCommand() *cobra.Command {
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
		RunE: func(_ *cobra.Command, words []string) error {
			from := 0
			if len(words) > 0 {
				var err error
				if from, err = strconv.Atoi(words[0]); err != nil || from < 1 {
					return fmt.Errorf("tour: %q: want the number of a step, from 1", words[0])
				}
			}
			return a.tour(from)
		},
	}
}

// tour runs the prompt on the tour's fabric. Its time is virtual: nobody waits.
func (a *app) tour(from int) error {
	switch {
	case a.flags.Changed("command"):
		return errors.New("-c takes no command")
	case a.flags.Changed("fabric"):
		return errors.New("tour: it has a fabric of its own: leave -F out")
	case a.readOnly || a.planFile != "":
		return errors.New("tour: one of its steps makes a change, of a simulated fabric: leave --read-only and --plan out")
	case !a.isPrompt():
		return errors.New("tour: it is typed, and here is no terminal")
	}
	if err := a.settings.check(); err != nil {
		return err
	}
	a.virtualTime = true
	dir, err := os.MkdirTemp("", "fabsh-tour-")
	if err != nil {
		return &hostError{fmt.Errorf("tour: %w", err)}
	}
	defer os.RemoveAll(dir)
	a.state = dir // acks and journals of real fabrics are none of this one's
	c, err := open(&a.settings, tour.Fabric)
	if err != nil {
		return err
	}
	c.name = tour.Name
	s, err := a.session(c, nil, nil, nil)
	if err != nil {
		return err
	}
	defer s.close()
	s.limit = a.deadline.value
	var t *tour.Tour
	a.status = s.prompt(a.stdin, func(r *repl) (err error) {
		t, err = tour.Open(guided{r}, a.console.Out(), a.console.width, stateFile("tour"), from)
		r.tour = t
		return err
	})
	if t != nil {
		t.Left()
	}
	return nil
}

// offer asks at a terminal whether a simulated fabric will do; else it is absent, or
// errTour.
func (a *app) offer(absent error) error {
	if !isTerminal(a.stdin) || !a.console.stderrTTY {
		return absent
	}
	fmt.Fprintf(a.console.Err(), "%v\nNew here? fabsh tour shows fabsh in ten minutes.\nOpen a simulated fabric (-F sim) now, or take the tour? [Y/n/tour] ", absent)
	var answer string
	if _, err := fmt.Fscanln(a.stdin, &answer); err == io.EOF {
		return absent
	}
	switch strings.ToLower(answer) {
	case "", "y", "yes":
		return nil
	case "t", "tour":
		return errTour
	}
	return absent
}

// errTour: the tour is to be taken instead.
var errTour = errors.New("the tour is wanted")

// guided is a prompt as the tour sees it.
type guided struct{ *repl }

func (g guided) Globals() starlark.StringDict { return g.interp.globals }

func (g guided) Run(statement string) error { return g.quietly(promptFile, statement) }

func (g guided) Tables() (r *routing.Routes, err error) {
	err = g.attempt(func(ctx context.Context) error {
		f, err := g.CurrentFabric(ctx)
		if err == nil {
			r, err = g.LiveRoutes(ctx, f)
		}
		return err
	})
	return r, err
}

// made keeps what a statement makes, for the tour.
func (r *repl) made(v starlark.Value) {
	if r.tour != nil && v != nil {
		r.seen.Values = append(r.seen.Values, v)
	}
}

// guide tells the tour of a statement that was run, unless it was a question, or was
// interrupted.
func (r *repl) guide(err error) {
	var stop *interruption
	if r.tour == nil || r.seen.Text == "" || errors.As(err, &stop) || r.app.interrupts.ended() != nil {
		return
	}
	r.seen.Failed, r.seen.Report = err != nil, r.found
	r.tour.See(r.seen)
}
