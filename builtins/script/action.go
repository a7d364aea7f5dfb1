package script

import (
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
)

// maxEvents bounds the memory of a scenario.
const maxEvents = 1 << 16

// ScenarioGroup is the heading in the overview.
const ScenarioGroup = "Scenarios of a simulated fabric"

// actionParam is the parameter for the function of an action.
var actionParam = lang.Param{Name: "action", Kind: lang.KindAny, Doc: `a function without parameters: lambda: sim.unlink("leaf-1/5")`}

// ScenarioAt is at().
var ScenarioAt = lang.Builtin{
	Name:  "at",
	Group: ScenarioGroup,
	Params: []lang.Param{
		{Name: "time", Kind: lang.KindDuration, Doc: "time since the scenario began"},
		actionParam,
	},
	Doc: `Does an action of a scenario at a time.
A scenario is a script with a function scenario(sim), which calls at() and every(). sim.play() plays it in a session, fabsh sim --scenario on a served fabric. An action may call at() again, for later times.`,
	Example: `
> sim.play("leaf-dies")
> sleep("11s")
> len(discover().switches)
11
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Time   time.Duration
		Action starlark.Value
	}) (starlark.Value, error) {
		return schedule(c, a.Action, event{due: a.Time})
	}),
}

// ScenarioEvery is every().
var ScenarioEvery = lang.Builtin{
	Name:  "every",
	Group: ScenarioGroup,
	Params: []lang.Param{
		{Name: "interval", Kind: lang.KindDuration, Doc: "time between two of its times; at least 1 ms"},
		actionParam,
		{Name: "start", Kind: lang.KindDuration, Default: "None", Keyword: true, Doc: "first time, since the scenario began; None: after one interval"},
		{Name: "until", Kind: lang.KindDuration, Default: "None", Keyword: true, Doc: "last time, since the scenario began; None: as long as the fabric exists"},
	},
	Doc: `Repeats an action of a scenario.
See at().`,
	Example: `
> sim.play("hot-spine")
> sleep("31s")
> [a["at"] for a in sim.actions()]
[10, 20, 30]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Interval     time.Duration
		Action       starlark.Value
		Start, Until *time.Duration
	}) (starlark.Value, error) {
		s, err := scenarioOf(c)
		if err != nil {
			return nil, err
		}
		if a.Interval < time.Millisecond {
			return nil, lang.ParamError("interval", "got %v, want at least 1 ms", a.Interval)
		}
		e := event{due: s.now + a.Interval, every: a.Interval}
		if a.Start != nil {
			e.due = *a.Start
		}
		if a.Until != nil {
			if e.until = *a.Until; e.until < e.due {
				return nil, lang.ParamError("until", "%v is before the first time, %v", e.until, e.due)
			}
		}
		return schedule(c, a.Action, e)
	}),
}

// schedule adds an event to the scenario that makes the call.
func schedule(c *lang.Call, action starlark.Value, e event) (starlark.Value, error) {
	s, err := scenarioOf(c)
	if err != nil {
		return nil, err
	}
	fn, ok := action.(starlark.Callable)
	switch {
	case !ok:
		return nil, lang.ParamError("action", "got %s, want a function: lambda: sim.unlink(...)", action.Type())
	case e.due < 0, e.due <= s.now && s.now > 0:
		return nil, lang.Errorf("%v is in the past: the scenario is at %v", e.due, s.now)
	case len(s.events) >= maxEvents:
		return nil, lang.Errorf("more than %d actions wait", maxEvents)
	}
	e.action = fn
	s.push(&e)
	return starlark.None, nil
}

// ScenarioRandom is random().
var ScenarioRandom = lang.Builtin{
	Name:   "random",
	Group:  ScenarioGroup,
	Params: []lang.Param{{Name: "items", Kind: lang.KindItems, Default: "None", Doc: "items to choose from; None: returns a number"}},
	Doc: `Returns one of several items, or a number from 0 to below 1, at random, in a scenario.
The seed of the fabric (seed=), or that of sim.play(), determines all choices.`,
	Example: `
> sim.play("flap", seed=1)
> sim.play("flap", seed=1)
> sleep("11s")
> ports = [a["args"]["port"] for a in sim.actions()]
> ports[0] == ports[1]
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Items *[]starlark.Value }) (starlark.Value, error) {
		s, err := scenarioOf(c)
		switch {
		case err != nil:
			return nil, err
		case a.Items == nil:
			return starlark.Float(s.random.Float64()), nil
		case len(*a.Items) == 0:
			return nil, lang.ParamError("items", "got no items")
		}
		return (*a.Items)[s.random.IntN(len(*a.Items))], nil
	}),
}

// ScenarioPlay is sim.play().
var ScenarioPlay = lang.Builtin{
	Name: "play",
	Params: []lang.Param{
		{Name: "scenario", Kind: lang.KindText, Doc: `a script with scenario(sim); the name of a shipped one ("flap") or the path of a file`},
		{Name: "seed", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "seed of its random choices; None: that of -F sim:seed="},
	},
	Doc: `Plays a scenario in this session: its actions happen at their times, while the script sleeps or waits.
With --virtual-time, and in tests, they happen when sleep() passes their times. sim.actions() returns what has happened. See at().`,
	Example: `
> sim.play("flap")
> sleep("11s")
> [(a["at"], a["action"]) for a in sim.actions()]
[(10, "unlink")]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Scenario string
		Seed     *int
	}) (starlark.Value, error) {
		s := c.Recv.(*topology.Sim)
		in := Of(c.Runtime())
		path, err := Scenarios.Locate(a.Scenario)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		path, src, err := in.Find(c.Fiber().Context, c.Thread.CallFrame(1).Pos.Filename(), path)
		if err != nil {
			return nil, lang.Errorf("%s: %w", a.Scenario, err)
		}
		seed := ScenarioSeed(s)
		if a.Seed != nil {
			seed = int64(*a.Seed)
		}
		sc, err := LoadScenario(c.Fiber().Context, in, s, path, src, seed, nil)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		sc.start(c)
		return starlark.None, nil
	}),
}

// ScenarioSeed returns the seed of a simulated fabric.
func ScenarioSeed(s *topology.Sim) int64 { return s.Faults.Settings.Load().Seed }

// ScenarioActions is sim.actions().
var ScenarioActions = lang.Builtin{
	Name:    "actions",
	Returns: "list of dict",
	Doc:     `Returns what the scenarios of sim.play() have done, of each the last 10000 actions: at, the seconds since the scenario began, time, action, args, and error if it failed.`,
	Example: `
> sim.play("leaf-dies")
> sleep("11s")
> sim.actions()[-1]["action"]
"kill"
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		out := starlark.NewList(nil)
		for _, s := range lang.StateOf[sessionScenarios](c.Runtime()).list {
			for _, a := range s.Actions() {
				text, err := a.JSON()
				if err != nil {
					return nil, fmt.Errorf("%w", err)
				}
				v, err := lang.DecodeJSON(c.Thread, text)
				if err != nil {
					return nil, err
				}
				out.Append(v)
			}
		}
		return out, nil
	}),
}
