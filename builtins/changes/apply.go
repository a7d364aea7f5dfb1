package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/format"
	"fabsh/fabric/remedy"
	"fabsh/mad"
)

// HostOf returns the host of the session's changes. The session has a live fabric.
func HostOf(r *lang.Runtime) *apply.Host {
	e := topology.EnvOf(r)
	h := &apply.Host{Engine: e.Engine, SA: e.SA, Sweep: e.SweepOptions(), Clock: r.Clock, Log: io.Discard, State: e.State, User: e.User, OverrideSM: e.OverrideSM, StartGuard: e.StartGuard,
		Manager: func(engine string, sm, local mad.LID) (change.ManagerRouting, error) {
			return ManagerRouting(r, engine, sm, local)
		}}
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
			return apply.Unresolved, fmt.Errorf("fabsh remedy works on this subnet: %w", err)
		case err != nil:
			r.Warn("the log of remedies is not up to date: %v", err)
		}
		if err := remedy.CheckPlan(h.State, p, r.Clock.Now()); err != nil {
			return apply.Unresolved, err
		}
	}
	o.Summary = lang.OneLine(cmp.Or(p.From, "a plan"))
	outcome, err := h.Make(ctx, f, p, &o)
	if stale := new(apply.StaleError); errors.As(err, &stale) { // names in a plan file are not trusted
		err = errors.New(lang.OneLine(err.Error()))
	}
	return outcome, err
}

// applyMethod is plan.apply().
var applyMethod = lang.Builtin{
	Name:    "apply",
	Returns: "bool",
	Params:  []lang.Param{{Name: "confirm", Kind: lang.KindDuration, Default: `"60s"`, Doc: "how long the change may wait for fabsh change confirm"}},
	Doc: `Applies the change like fabsh change apply: with a journal, in rounds that are read back, and with a guard process that can revert it. It returns True when the change is confirmed, and False if it was reverted because it was not confirmed in time. A change that cannot be applied, or that fails and is reverted, is an error.
No other process can reach a fabric that is simulated in this process (-F sim): there a change is confirmed automatically when all checks have passed.`,
	Example: `
> plan(lambda: port_disable(discover().switches[0].ports[5])).apply(confirm="2m")
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Confirm time.Duration }) (starlark.Value, error) {
		e := env(c)
		switch {
		case !e.Write:
			return nil, c.Refuse("%s", e.Refusal(e.Engine != nil && e.Engine.Traits().Simulated))
		case len(c.Fiber().Loads) > 0:
			return nil, c.Refuse("refused: a module cannot change the fabric while it is being loaded (%s)", c.Fiber().Loads[len(c.Fiber().Loads)-1])
		case e.StartGuard == nil:
			return nil, lang.Errorf("changes are not possible here")
		case a.Confirm <= 0:
			return nil, lang.Errorf("confirm must be positive")
		}
		var outcome apply.Outcome
		err := c.Block(func(ctx context.Context) (err error) {
			outcome, err = Make(ctx, c.Runtime(), c.Recv.(*Value).Plan, apply.ChangeOptions{Plan: "the plan", Within: a.Confirm})
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return starlark.Bool(outcome == apply.Confirmed || outcome == apply.Nothing), nil
	}),
}
