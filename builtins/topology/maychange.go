package topology

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// guardFor is how long a look for a subnet manager counts.
const guardFor = 10 * time.Second

// guard is what the last look for a subnet manager found.
type guard struct {
	sm    *sa.SM
	until time.Time
}

// MayChange: the script may Set attr. A subnet manager expects what it has set
// to stay, so where one is at work it takes --override-sm.
func MayChange(c *lang.Call, attr *mad.Attribute) (*engine.Engine, error) {
	e, err := EngineOf(c)
	if err != nil {
		return nil, err
	}
	s, f := EnvOf(c.Runtime()), c.Fiber()
	simulated := e.Traits().Simulated
	switch {
	case len(f.Loads) > 0:
		return nil, c.Refuse("refused, for %s is being loaded, and a module cannot change the fabric while it is; do it in a function that the script calls", f.Loads[len(f.Loads)-1])
	case e.Interceptor() != nil && slices.Contains(plan.PlannedAttributes(), attr):
		return e, nil
	case e.Interceptor() != nil:
		return nil, MayNotPlan(c)
	case s.Write && e.Write():
	case simulated:
		return nil, c.Refuse("refused, for this session is read-only: leave --read-only out to change the simulated fabric")
	default:
		return nil, c.Refuse("refused, for it would change the fabric, which takes --write")
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
		return nil, c.Refuse("refused, for %v sets %s and expects it to stay; OpenSM neither sees nor repairs a foreign change, for it compares with what it remembers; --override-sm makes the change all the same", guarded.sm, attr.Name)
	}
	return e, nil
}

// MayNotPlan refuses what no plan can hold, where one is being made.
func MayNotPlan(c *lang.Call) error {
	if e := EnvOf(c.Runtime()).Engine; e == nil || e.Interceptor() == nil {
		return nil
	}
	return c.Refuse("refused, for a plan is being made, and it holds nothing but what set_*, port_* and smp_set write: forwarding tables, SL2VL, VL arbitration, P_Keys, GUIDs, PortInfo (no keys) and SwitchInfo")
}

// Change is c.Block for what changes the fabric: a plan that is being made knows by
// it which line of the script asks for that.
func Change(c *lang.Call, fn func(context.Context) error) error {
	cause := plan.Cause{Place: c.Fiber().Place}
	for depth := range c.Thread.CallStackDepth() {
		if pos := c.Thread.CallFrame(depth).Pos; pos.Line > 0 {
			cause.Line = fmt.Sprintf("%s:%d", pos.Filename(), pos.Line)
			break
		}
	}
	return c.Block(func(ctx context.Context) error { return fn(plan.WithCause(ctx, cause)) })
}
