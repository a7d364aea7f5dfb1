package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/format"
	"fabsh/fabric/remedy"
)

// Program is what a session's changes need of the program that it runs in.
type Program struct {
	State      string // the directory of journals; "": none
	User       string // the user who makes changes
	StartGuard apply.StartGuard
}

// HostOf returns the host of the session's changes. The session has a live fabric.
func HostOf(r *lang.Runtime) *apply.Host {
	e, p := topology.EnvOf(r), lang.StateOf[Program](r)
	h := &apply.Host{Engine: e.Engine, SA: e.SA, Sweep: e.SweepOptions(), Clock: r.Clock, Log: io.Discard, State: p.State, User: p.User, OverrideSM: e.OverrideSM, StartGuard: p.StartGuard}
	if !r.Quiet {
		h.Log = r.Stderr
	}
	return h
}

// Sweep discovers the fabric again for a change, unless none may be made.
func Sweep(ctx context.Context, r *lang.Runtime, h *apply.Host) (*fabric.Fabric, error) {
	if err := h.MayWrite(); err != nil {
		return nil, err
	}
	return topology.SweepQuietly(ctx, r)
}

// Make applies the change of a plan to the current fabric.
func Make(ctx context.Context, r *lang.Runtime, p *change.Plan, o apply.ChangeOptions) (apply.Outcome, error) {
	h := HostOf(r)
	f, err := Sweep(ctx, r, h)
	if err != nil {
		return apply.Unresolved, err
	}
	if !h.Engine.Traits().Simulated { // then nothing is kept
		// The journal of the previous change may be the only record of ports that a remedy isolated.
		switch err := remedy.Record(h.State); {
		case errors.Is(err, format.ErrLockHeld):
			return apply.Unresolved, fmt.Errorf("change: fabsh remedy works on this subnet: %w", err)
		case err != nil:
			r.Warn("the log of remedies is not up to date: %v", err)
		}
		if err := remedy.CheckPlan(h.State, p, r.Clock.Now()); err != nil {
			return apply.Unresolved, fmt.Errorf("change apply: %w", err)
		}
	}
	o.Summary = lang.OneLine(cmp.Or(p.From, "a plan"))
	outcome, err := h.Make(ctx, f, p, &o)
	if stale := new(apply.StaleError); errors.As(err, &stale) { // names in a plan file are not trusted
		err = errors.New(lang.OneLine(err.Error()))
	}
	return outcome, err
}
