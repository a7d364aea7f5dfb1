package topology

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// guardFor is the time for which the result of a search for a subnet manager is valid.
const guardFor = 10 * time.Second

// guard is the result of the last search for a subnet manager.
type guard struct {
	sm    *sa.SM
	until time.Time
}

// MayChange returns the engine if the script may Set attr. A subnet manager expects that
// no others change what it sets, so while one is active --override-sm is required.
func MayChange(c *lang.Call, attr *mad.Attribute) (*engine.Engine, error) {
	e, err := EngineOf(c)
	if err != nil {
		return nil, err
	}
	s, f := EnvOf(c.Runtime()), c.Fiber()
	simulated := e.Traits().Simulated
	switch {
	case len(f.Loads) > 0:
		return nil, c.Refuse("refused: a module cannot change the fabric while it is being loaded (%s); change it in a function that the script calls", f.Loads[len(f.Loads)-1])
	case s.Forbidden != "":
		return nil, c.Refuse("refused: %s", s.Forbidden)
	case e.Interceptor() != nil && slices.Contains(change.PlannedAttributes(), attr):
		return e, nil
	case e.Interceptor() != nil:
		return nil, MayNotPlan(c)
	case s.Write && e.Write():
	default:
		return nil, c.Refuse("%s", s.Refusal(simulated))
	}
	if simulated || s.OverrideSM || !attr.SMOwned {
		return e, nil
	}
	guarded, clock := lang.StateOf[guard](c.Runtime()), c.Runtime().Clock
	if left := guarded.until.Sub(clock.Now()); left < 0 || left > guardFor { // the clock may have been set back
		var sm *sa.SM
		err := c.Block(func(ctx context.Context) (err error) {
			sm, err = s.SA.FindSM(ctx, s.Fabric())
			return err
		})
		if err != nil {
			return nil, ownPKey(err)
		}
		*guarded = guard{sm: sm, until: clock.Now().Add(guardFor)}
	}
	if guarded.sm != nil {
		return nil, c.Refuse("refused: %v sets %s and expects no other changes; OpenSM neither detects nor repairs them, because it compares with the values that it remembers; --override-sm allows the change", guarded.sm, attr.Name)
	}
	return e, nil
}

// Refusal returns why the session may not change the fabric, which may be simulated, and the
// remedy.
func (e *Env) Refusal(simulated bool) string {
	switch {
	case e.Confined:
		return "refused: this server only reads; make a plan of the change with the tool plan, and let an operator change the fabric"
	case simulated:
		return "refused: this session is read-only; omit --read-only to change the simulated fabric"
	}
	return "refused: it would change the fabric; allow changes with --write"
}

// MayNotPlan refuses an operation that a plan cannot contain, while one is being made.
func MayNotPlan(c *lang.Call) error {
	if !Planning(c) {
		return nil
	}
	return c.Refuse("refused: a plan is being made, and it can contain only what set_*, port_* and smp_set write: forwarding tables, SL2VL, VL arbitration, P_Keys, GUIDs, PortInfo (no keys) and SwitchInfo")
}

// Planning reports whether a plan is being made, so that writes are recorded, not sent.
func Planning(c *lang.Call) bool {
	e := EnvOf(c.Runtime()).Engine
	return e != nil && e.Interceptor() != nil
}

// Change is c.Block for changes of the fabric: it gives a plan that is being made the
// line of the script that requests the change.
func Change(c *lang.Call, fn func(context.Context) error) error {
	cause := change.Cause{Place: c.Fiber().Place}
	for depth := range c.Thread.CallStackDepth() {
		if pos := c.Thread.CallFrame(depth).Pos; pos.Line > 0 {
			cause.Line = fmt.Sprintf("%s:%d", pos.Filename(), pos.Line)
			break
		}
	}
	return c.Block(func(ctx context.Context) error { return fn(change.WithCause(ctx, cause)) })
}
