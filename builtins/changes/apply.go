package changes

import (
	"context"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/change/apply"
)

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
		case lang.StateOf[Program](c.Runtime()).StartGuard == nil:
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
