package prompt

import (
	"context"
	"errors"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/fabric/routing/routes"
	"fabsh/shell/session"
)

// guided is a prompt as the tour sees it.
type guided struct{ *repl }

func (g guided) Globals() starlark.StringDict { return g.interp.globals }

func (g guided) Run(statement string) error { return g.quietly(promptFile, statement) }

func (g guided) Tables() (r *routes.Routes, err error) {
	err = g.Runner.Attempt(func(ctx context.Context) error {
		f, err := audits.ReadFabric(ctx, g.Runtime)
		if err == nil {
			r, err = audits.ReadRoutes(ctx, g.Runtime, f, false)
		}
		return err
	})
	return r, err
}

// made keeps the results of a statement for the tour.
func (r *repl) made(v starlark.Value) {
	if r.tour != nil && v != nil {
		r.seen.Values = append(r.seen.Values, v)
	}
}

// guide passes a statement that was run to the tour, unless it was a question, or was
// interrupted.
func (r *repl) guide(err error) {
	var stop *session.Interruption
	if r.tour == nil || r.seen.Text == "" || errors.As(err, &stop) || r.program.Interrupts.Ended() != nil {
		return
	}
	r.seen.Failed = err != nil
	r.tour.See(r.seen)
}
