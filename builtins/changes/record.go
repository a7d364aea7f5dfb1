// Package changes is what scripts say of changes that are planned: plan(), and the
// value plan.
//
//	record.go   runs code with its writes recorded; recording.go, a whole session
//	plan.go     the value plan, and plan(); effect.go, the effect of links that go down
//	check.go    checks a certificate
//	static.go   where adaptive routing is on: refused, or disabled
//	apply.go    plan.apply(); host.go, what it shares with fabsh change apply
//	routes.go   the writes of routes.apply(); choose.go, which tables a plan leads to
package changes

import (
	"context"
	"errors"
	"io"
	"slices"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/device"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Record runs fn with its writes recorded instead of sent, and makes a plan of them.
// from is the origin of the plan, and static requests static routing.
func Record(c *lang.Call, from string, static bool, fn func() error) (*change.Plan, error) {
	rec, stop, err := Start(c, static)
	if err != nil {
		return nil, err
	}
	err = fn()
	stop()
	if err != nil {
		return nil, err
	}
	return Finish(c, rec, from)
}

// Start has the writes of the session recorded instead of sent, until stop is called.
func Start(c *lang.Call, static bool) (rec *change.Recorder, stop func(), err error) {
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

// Finish makes a plan of the recorded writes. It sweeps the fabric again: the plan is
// bound to that.
func Finish(c *lang.Call, rec *change.Recorder, from string) (*change.Plan, error) {
	before := env(c).Fabric()
	p, err := bind(c, rec.Sets(), from)
	if err == nil {
		p.Target, p.Choice, p.Static = rec.Target, rec.Choice, rec.Static
	}
	if err == nil && before != nil && before.Scope() == "" && before.From() != nil { // else it is a part, or another view
		err = refused(c, p.Settled(before))
	}
	return p, err
}

// bind makes a plan of Sets on the fabric that a sweep finds.
func bind(c *lang.Call, sets []change.Set, from string) (*change.Plan, error) {
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
	return p, refused(c, err)
}

// refused returns err, as a refusal with its exit status if it is one.
func refused(c *lang.Call, err error) error {
	var r *change.RefusalError
	if errors.As(err, &r) {
		return c.Refuse("%s", lang.OneLine(r.Reason))
	}
	return err
}

// Judge finds an order for p on the fabric as it was just swept, and keeps what it
// finds in p.Report, and the proof in p.Certificate.
func Judge(c *lang.Call, p *change.Plan) error {
	live, err := tables(c, p, env(c).Fabric())
	if err != nil {
		return err
	}
	t, err := provable(c, live)
	if err == nil {
		err = judgeAdaptive(c, p, t)
	}
	if err != nil {
		return err
	}
	t.Simple = p.Choice != nil && p.Choice.Unproven
	t.AcceptCreditLoops = env(c).AcceptCreditLoops
	if env(c).Levels == "" { // else only those of the file are in use
		t.Target = p.Target
	}
	return c.Block(func(ctx context.Context) error {
		return p.Certify(ctx, t)
	})
}

// provable are the tables in force, live, as an order of writes is proven for.
func provable(c *lang.Call, live *routes.Routes) (*change.Tables, error) {
	local, err := topology.LocalPort(c)
	if err != nil {
		return nil, err
	}
	last := slices.DeleteFunc([]mad.LID{local.SMLID, local.LID}, func(lid mad.LID) bool { return lid == 0 })
	t := &change.Tables{Live: live, Last: last}
	levels := change.Levels{Client: env(c).SA, File: env(c).Levels}
	levels.Open = func(path string) (io.ReadCloser, error) {
		return c.Runtime().Files.OpenNamed(c.Fiber().Context, path)
	}
	levels.InForce(t, env(c).Engine)
	return t, nil
}

// tables returns the current forwarding tables, which are read only if p changes some.
func tables(c *lang.Call, p *change.Plan, f *fabric.Fabric) (*routes.Routes, error) {
	if !p.NeedsTables(f) && p.Certificate == nil {
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			return nil, err
		}
		return routes.New(g, 0), nil
	}
	var live *routes.Routes
	var failed []device.SwitchError
	err := c.Block(func(ctx context.Context) (err error) {
		live, failed, err = device.ReadRoutes(ctx, env(c).Engine, f)
		return err
	})
	if err == nil && len(failed) > 0 {
		topology.CountUnanswered(c, failed[0].Err)
		err = lang.Errorf("forwarding table of %s: cannot be read, so no order is proven: %w", failed[0].Switch.Label(), failed[0].Err)
	}
	return live, err
}

func env(c *lang.Call) *topology.Env { return topology.EnvOf(c.Runtime()) }
