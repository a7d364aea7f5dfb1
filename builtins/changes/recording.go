package changes

import (
	"context"

	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/routing/routes"
)

// Recording is a session whose writes are recorded instead of sent.
type Recording struct {
	runtime *lang.Runtime
	rec     *change.Recorder
	stop    func()
}

// StartRecording records all writes of a session from now on.
func StartRecording(ctx context.Context, r *lang.Runtime) (*Recording, error) {
	x := &Recording{runtime: r}
	err := operate(ctx, r, func(c *lang.Call) (err error) {
		x.rec, x.stop, err = Start(c, false)
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
	err = operate(ctx, x.runtime, func(c *lang.Call) (err error) {
		if made, err = Finish(c, x.rec, from); err != nil {
			return err
		}
		return Judge(c, made)
	})
	return made, err
}

// SetRoutes writes the entries of the forwarding tables in which r differs from live,
// the current tables.
func SetRoutes(ctx context.Context, rt *lang.Runtime, r, live *routes.Routes) error {
	return operate(ctx, rt, func(c *lang.Call) error { return WriteRoutes(c, r, live) })
}

// operate runs fn as the builtin plan would be.
func operate(ctx context.Context, r *lang.Runtime, fn func(c *lang.Call) error) error {
	t, release := r.Thread(ctx, "command")
	defer release()
	return lang.Operate(t, "plan", fn)
}

// OfSets makes a plan of Sets on the fabric as a sweep finds it now, with a report. It is an
// error if the fabric has changed since the previous sweep, by which the Sets were decided. from
// is the origin of the plan.
func OfSets(ctx context.Context, r *lang.Runtime, sets []change.Set, from string) (made *change.Plan, err error) {
	err = operate(ctx, r, func(c *lang.Call) (err error) {
		before := env(c).Fabric()
		if made, err = bind(c, sets, from); err != nil {
			return err
		}
		if before != nil && before.Scope() == "" && before.From() != nil {
			if err := refused(c, made.Settled(before)); err != nil {
				return err
			}
		}
		return Judge(c, made)
	})
	return made, err
}
