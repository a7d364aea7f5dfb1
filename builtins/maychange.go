package builtins

import (
	"context"
	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
	"time"
)

// guardFor is how long a look for a subnet manager counts.
const guardFor = 10 * time.Second

// guard is what the last look for a subnet manager found.
type guard struct {
	sm    *sa.SM
	until time.Time
}

// mayChange: the script may Set attr. A subnet manager expects what it has set
// to stay, so where one is at work it takes --override-sm.
func mayChange(c *call, attr *mad.Attribute) (*engine.Engine, error) {
	e, err := engineOf(c)
	if err != nil {
		return nil, err
	}
	s, f := envOf(c.runtime()), c.fiber()
	simulated := e.Traits().Simulated
	switch {
	case len(f.loads) > 0:
		return nil, c.refuse("refused, for %s is being loaded, and a module cannot change the fabric while it is; do it in a function that the script calls", f.loads[len(f.loads)-1])
	case s.Write && e.Write():
	case simulated:
		return nil, c.refuse("refused, for this session is read-only: leave --read-only out to change the simulated fabric")
	default:
		return nil, c.refuse("refused, for it would change the fabric, which takes --write")
	}
	if simulated || s.OverrideSM || !attr.SMOwned {
		return e, nil
	}
	guarded, clock := StateOf[guard](c.runtime()), c.runtime().Clock
	if now := clock.Now(); now.After(guarded.until) {
		var view *fabric.Fabric
		if s.fabric != nil {
			view = s.fabric.f
		}
		var sm *sa.SM
		err := c.wait(func(ctx context.Context) (err error) {
			sm, err = sa.FindSM(ctx, e, view)
			return err
		})
		if err != nil {
			return nil, err
		}
		*guarded = guard{sm: sm, until: clock.Now().Add(guardFor)}
	}
	if guarded.sm != nil {
		return nil, c.refuse("refused, for %v sets %s and expects it to stay; OpenSM neither sees nor repairs a foreign change, for it compares with what it remembers; --override-sm makes the change all the same", guarded.sm, attr.Name)
	}
	return e, nil
}
