// Package changes has the functions and values of scripts for planned changes: plan(), the
// value plan, and the writes of routes.apply().
//
// A plan is made in three steps: the writes of a function or of a session are recorded
// instead of sent (Made, StartRecording), the fabric is swept again, and an order of the
// writes is found and proven. Choose finds the tables that a plan leads to, Check checks a
// certificate, and Make applies a plan, as plan.apply() and fabsh change apply do.
package changes

import (
	"context"
	"errors"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/fabric/tenant"
)

// Recording is a session whose writes are recorded instead of sent.
type Recording struct {
	runtime *lang.Runtime
	options ProofOptions
	rec     *change.Recorder
	stop    func()
}

// recordPlan runs fn with its writes recorded instead of sent, and makes a plan of them.
// from is the origin of the plan, and static requests static routing.
func recordPlan(c *lang.Call, from string, static bool, fn func() error) (*change.Plan, error) {
	rec, stop, err := startRecorder(c, static)
	if err != nil {
		return nil, err
	}
	err = fn()
	stop()
	if err != nil {
		return nil, err
	}
	return finishPlan(c, rec, from)
}

// StartRecording records all writes of a session from now on. The plan will be proven with options.
func StartRecording(ctx context.Context, r *lang.Runtime, o ProofOptions) (*Recording, error) {
	x := &Recording{runtime: r, options: o}
	err := operate(ctx, r, func(c *lang.Call) (err error) {
		x.rec, x.stop, err = startRecorder(c, false)
		return err
	})
	return x, err
}

// Stop ends the recording without a plan.
func (x *Recording) Stop() { x.stop() }

// Finish makes a plan of the recorded writes, with a report. from is the origin of the
// plan.
func (x *Recording) Finish(ctx context.Context, from string) (made *change.Plan, err error) {
	x.stop()
	err = operate(WithProof(ctx, x.runtime, x.options), x.runtime, func(c *lang.Call) (err error) {
		if made, err = finishPlan(c, x.rec, from); err != nil {
			return err
		}
		return provePlan(c, made)
	})
	return made, err
}

// OfSets makes a plan of Sets on the fabric as a sweep finds it now, with a report. It is an
// error if the fabric has changed since the previous sweep, on which the Sets are based. from
// is the origin of the plan.
func OfSets(ctx context.Context, r *lang.Runtime, sets []certificate.Change, from string) (made *change.Plan, err error) {
	err = operate(ctx, r, func(c *lang.Call) (err error) {
		before := env(c).Fabric()
		if made, err = newPlan(c, sets, from); err != nil {
			return err
		}
		if err := checkSettled(c, made, before); err != nil {
			return err
		}
		return provePlan(c, made)
	})
	return made, err
}

// SetRoutes writes the entries of the forwarding tables in which r differs from live,
// the current tables.
func SetRoutes(ctx context.Context, rt *lang.Runtime, r, live *routes.Routes) error {
	return operate(ctx, rt, func(c *lang.Call) error { return WriteRoutes(c, r, live) })
}

// startRecorder records the writes of the session instead of sending them, until stop is called.
func startRecorder(c *lang.Call, static bool) (rec *change.Recorder, stop func(), err error) {
	e, err := topology.EngineOf(c)
	switch {
	case err != nil:
		return nil, nil, err
	case e.Interceptor() != nil:
		return nil, nil, lang.Errorf("a plan is being made already; plans cannot be nested")
	case !c.Fiber().Alone():
		return nil, nil, lang.Errorf("no plan can be made inside parallel(), because writes of other branches would be recorded too; call parallel() in the plan's function")
	}
	rec = change.NewRecorder()
	rec.Static = static
	e.SetInterceptor(rec)
	return rec, func() { e.SetInterceptor(nil) }, nil
}

// finishPlan makes a plan of the recorded writes. It sweeps the fabric again: the plan is
// bound to the result.
func finishPlan(c *lang.Call, rec *change.Recorder, from string) (*change.Plan, error) {
	before := env(c).Fabric()
	p, err := newPlan(c, rec.Sets(), from)
	if err == nil {
		p.Target, p.Choice, p.Static = rec.Target, rec.Choice, rec.Static
	}
	if err == nil {
		err = checkSettled(c, p, before)
	}
	return p, err
}

// newPlan makes a plan of Sets on the fabric that a sweep finds.
func newPlan(c *lang.Call, sets []certificate.Change, from string) (*change.Plan, error) {
	now, err := topology.Sweep(c.Thread)
	if err != nil {
		return nil, err
	}
	if !now.Complete() {
		return nil, lang.Errorf("no plan is made: incomplete sweep: %s", now.Missing())
	}
	var sm *sa.SM
	err = c.Block(func(ctx context.Context) (err error) {
		sm, err = env(c).SA.FindSM(ctx, now.Fabric)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, err := change.NewPlan(from, sets, now.Fabric, sm)
	return p, asRefusal(c, err)
}

// checkSettled refuses p if the fabric has changed since before, the previous sweep. A previous
// result that is a part of the fabric, or another view of it, is not compared.
func checkSettled(c *lang.Call, p *change.Plan, before *fabric.Fabric) error {
	if before == nil || before.Scope() != "" || before.From() == nil {
		return nil
	}
	return asRefusal(c, p.Settled(before))
}

// asRefusal returns err, as a refusal with its exit status if it is one.
func asRefusal(c *lang.Call, err error) error {
	var r *change.RefusalError
	if errors.As(err, &r) {
		return c.Refuse("%s", lang.OneLine(r.Reason))
	}
	return err
}

func env(c *lang.Call) *topology.Env { return topology.EnvOf(c.Runtime()) }

// ProofOptions are options of the proofs of plans.
type ProofOptions struct {
	// Levels is a file with the service levels of packets; "": they are read from the subnet
	// administrator.
	Levels string
	// AcceptCreditLoops allows plans during which packets may deadlock.
	AcceptCreditLoops bool
	// ManagerEngine is the routing engine of the subnet manager, for predictions; "" or
	// change.AutoEngine: unknown.
	ManagerEngine string
	// Tenants are tenants that a plan must not join; nil: not judged. AllowTenants makes plans that do, with a note.
	Tenants      *tenant.File
	AllowTenants bool
}

// WithProof returns a context for work of a session that makes or checks plans with options.
func WithProof(ctx context.Context, r *lang.Runtime, o ProofOptions) context.Context {
	return lang.WithRun(ctx, r, &o)
}

// proofOptions returns the options that are in force for a call.
func proofOptions(c *lang.Call) ProofOptions {
	if o := lang.RunOf[ProofOptions](c.Fiber()); o != nil {
		return *o
	}
	return ProofOptions{}
}

// operate runs fn as the builtin plan would be.
func operate(ctx context.Context, r *lang.Runtime, fn func(c *lang.Call) error) error {
	t, release := r.Thread(ctx, "command")
	defer release()
	return lang.Operate(t, "", fn)
}
