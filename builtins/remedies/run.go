// Package run runs remedies, and decides on their actions.
//
//	run.go     a run; the plan of its decisions
//	load.go    which remedies run, with their options
//	effect.go  the predicted effect of links that go down
//
// The values of actions and decisions are in builtins/remedies; the rules that hold for every
// remedy, and the log of decisions, in fabric/remedy.

package remedies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/remedy"
)

// Input is what remedies get.
type Input struct {
	Fabric   *fabric.Fabric
	Findings []audit.Finding
	// State is the past, and Of the time of the findings.
	State *remedy.State
	Of    time.Time
	// Judged are the checks that were done.
	Judged []string
}

// Decide runs the remedies, and decides on their actions. It makes no plan.
func (set *Selection) Decide(ctx context.Context, in *script.Interpreter, input *Input) (*Outcome, error) {
	actions, err := set.run(ctx, in, input)
	if err != nil {
		return nil, err
	}
	c, err := newCase(ctx, in.Runtime, input.Fabric, input.State)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Names: set.Names(), Of: input.Of, Now: in.Runtime.Clock.Now()}
	o.Decisions, err = remedy.Decide(ctx, c, actions)
	return o, err
}

// Plan makes the plan of decisions on a live fabric.
func Plan(ctx context.Context, r *lang.Runtime, o *Outcome) (err error) {
	o.Plan, err = changes.OfSets(ctx, r, remedy.Sets(o.Decisions), remedy.Origin+o.Names)
	return err
}

// run runs the remedies one after the other, and returns all their actions. They may read the
// fabric, and not change it. An error of one ends the run: its actions are unknown.
func (set *Selection) run(ctx context.Context, in *script.Interpreter, input *Input) (actions []remedy.Action, err error) {
	env, running := topology.EnvOf(in.Runtime), lang.StateOf[Running](in.Runtime)
	before, was := env.Forbidden, *running
	env.Forbidden, *running = "a remedy returns actions, and changes nothing itself", true
	defer func() { env.Forbidden, *running = before, was }()
	findings := audits.Wrap(input.Findings)
	findings.Freeze()
	past := pastOf(&Past{Fabric: input.Fabric, State: input.State, Of: input.Of, Judged: input.Judged}, in.Runtime.Clock.Now())
	for _, r := range set.List {
		in.Runtime.Progress("remedy " + r.Name)
		list, err := r.run(ctx, in, starlark.Tuple{env.ValueOf(input.Fabric), findings}, past)
		if err != nil {
			return nil, err
		}
		actions = append(actions, list...)
	}
	if len(actions) > remedy.MaxActions {
		return nil, tooMany("the remedies", len(actions))
	}
	return actions, nil
}

func tooMany(who string, n int) error {
	return fmt.Errorf("%s returned %d actions; the maximum is %d: so many faults have a common cause", who, n, remedy.MaxActions)
}

// run runs one remedy.
func (r *Remedy) run(ctx context.Context, in *script.Interpreter, args starlark.Tuple, past starlark.Value) (actions []remedy.Action, err error) {
	kwargs := r.Keywords[:len(r.Keywords):len(r.Keywords)]
	if r.past {
		kwargs = append(kwargs, starlark.Tuple{starlark.String(pastOption), past})
	}
	err = in.Runtime.Evaluate(ctx, r.script, func(t *starlark.Thread) error {
		v, err := starlark.Call(t, r.Entry.Fn, args, kwargs)
		if err != nil {
			return r.plain(notExit(err))
		}
		actions, err = r.actions(v, args[0].(*topology.Fabric).Fabric)
		return err
	})
	return actions, err
}

// plain returns err without its position, if a shipped remedy has rejected its options.
func (r *Remedy) plain(err error) error {
	var ee *starlark.EvalError
	if !strings.HasPrefix(r.script, "@") || !errors.As(err, &ee) || ee.CallStack.At(0).Name != "fail" {
		return err
	}
	return fmt.Errorf("remedy %s: %s", r.Name, strings.TrimPrefix(ee.Msg, "fail: "))
}

// actions reads the result of the script.
func (r *Remedy) actions(v starlark.Value, f *fabric.Fabric) (list []remedy.Action, err error) {
	values, ok := v.(*starlark.List)
	if !ok {
		return nil, fmt.Errorf("%s: remedy() returned %s; want a list of actions", r.script, v.Type())
	}
	if values.Len() > remedy.MaxActions {
		return nil, tooMany(r.script+": remedy()", values.Len())
	}
	for i := range values.Len() {
		a, ok := actionOf(values.Index(i))
		if !ok {
			return nil, fmt.Errorf("%s: remedy() returned a list with %s at %d; want actions: isolate(), restore(), reset(), ticket()", r.script, values.Index(i).Type(), i)
		}
		a.Remedy = r.Name
		if a.Port != nil { // it may be of another snapshot of the fabric
			name := a.Port.Name()
			if a.Port = remedy.PlaceOf(a.Port).In(f); a.Port == nil {
				return nil, fmt.Errorf("%s: remedy() returned an action on %s, which the fabric does not have; use ports of the parameter fabric", r.script, lang.OneLine(name))
			}
		}
		list = append(list, a)
	}
	return list, nil
}
