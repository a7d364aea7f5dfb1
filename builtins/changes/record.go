// Package changes is what scripts say of changes that are planned: plan(), and the
// value plan.
//
//	record.go   runs code with its writes recorded
//	plan.go     the value plan, and plan()
package changes

import (
	"context"
	"errors"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/sa"
)

// Record runs fn with its writes recorded instead of sent, and makes a plan of them.
// from is what the plan says that it was made from.
func Record(c *lang.Call, from string, fn func() error) (*plan.Plan, error) {
	rec, stop, err := Start(c)
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
func Start(c *lang.Call) (rec *plan.Recorder, stop func(), err error) {
	e, err := topology.EngineOf(c)
	switch {
	case err != nil:
		return nil, nil, err
	case e.Overlay() != nil:
		return nil, nil, lang.Errorf("a plan is being made already: there is no plan in a plan")
	case !c.Fiber().Alone():
		return nil, nil, lang.Errorf("no plan can be made inside parallel(), for what others do there would be recorded too: call parallel() in the plan's function")
	}
	rec = plan.NewRecorder()
	e.SetOverlay(rec)
	return rec, func() { e.SetOverlay(nil) }, nil
}

// Finish makes a plan of what was recorded. It looks at the fabric again: that is what
// the plan is bound to.
func Finish(c *lang.Call, rec *plan.Recorder, from string) (*plan.Plan, error) {
	env := topology.EnvOf(c.Runtime())
	before := env.Fabric()
	now, err := topology.Sweep(c.Thread)
	if err != nil {
		return nil, err
	}
	if !now.Complete() {
		return nil, lang.Errorf("no plan is made, for the sweep is incomplete: %s", now.Missing())
	}
	var sm *sa.SM
	err = c.Block(func(ctx context.Context) (err error) {
		sm, err = env.SA.FindSM(ctx, now.Fabric)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, err := plan.New(from, rec.Sets(), now.Fabric, sm)
	if err == nil && before != nil {
		err = p.Settled(before)
	}
	var refused *plan.RefusalError
	if errors.As(err, &refused) {
		return nil, c.Refuse("%s", refused.Reason)
	}
	return p, err
}
