package remedies

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
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

// Input is the input of a run of remedies.
type Input struct {
	Fabric   *fabric.Fabric
	Findings []audit.Finding
	// State is the past, and Of the time of the findings.
	State *remedy.State
	Of    time.Time
	// Judged are the checks that were done.
	Judged []string
	// ManagerEngine is the routing engine of the subnet manager that the command line states.
	ManagerEngine string
}

// Decide runs the remedies, and decides on their actions. It makes no plan.
func (set *Selection) Decide(ctx context.Context, in *script.Interpreter, input *Input) (*Outcome, error) {
	actions, err := set.run(ctx, in, input)
	if err != nil {
		return nil, err
	}
	c, err := newCase(ctx, in.Runtime, input)
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
	env := topology.EnvOf(in.Runtime)
	ctx = AllowActions(topology.Forbid(ctx, in.Runtime, "a remedy returns actions, and changes nothing itself"), in.Runtime)
	findings := audits.WrapFindings(input.Findings)
	findings.Freeze()
	past := pastOf(input, in.Runtime.Clock.Now())
	for _, r := range set.List {
		in.Runtime.Progress("remedy " + r.Name)
		list, err := r.run(ctx, in, starlark.Tuple{env.ValueOf(input.Fabric), findings}, past)
		if err != nil {
			return nil, err
		}
		actions = append(actions, list...)
	}
	if len(actions) > remedy.MaxActions {
		return nil, tooManyActions("the remedies", len(actions))
	}
	return actions, nil
}

// tooManyActions returns the error of more actions than a run may have.
func tooManyActions(who string, n int) error {
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
	return fmt.Errorf("%s: %s", r.Name, strings.TrimPrefix(ee.Msg, "fail: "))
}

// actions reads the result of the script.
func (r *Remedy) actions(v starlark.Value, f *fabric.Fabric) (list []remedy.Action, err error) {
	values, ok := v.(*starlark.List)
	if !ok {
		return nil, fmt.Errorf("%s: remedy() returned %s; want a list of actions", r.script, v.Type())
	}
	if values.Len() > remedy.MaxActions {
		return nil, tooManyActions(r.script+": remedy()", values.Len())
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

// Remedy is a script that defines remedy(fabric, findings, *, ...), with its options.
type Remedy struct {
	script.Recipient // its name, entry and options

	script string
	past   bool // it takes past
}

// Selection is the remedies of a run.
type Selection struct {
	List []*Remedy
	// Help is their help, set if the words request it; then they must not run.
	Help string
}

// pastOption is a parameter that the command fills.
const pastOption = "past"

// OptionsOf returns the flags among options that a command line may give.
func OptionsOf(options []string) []string {
	return slices.DeleteFunc(slices.Clone(options), func(flag string) bool { return flag == script.FlagName(pastOption) })
}

// Load loads the remedies that words of a command line name, .star files or shipped ones, and
// passes each option among the words to all that accept it. Without names it loads all that
// are shipped. flags are the flags of the command that runs them, for suggestions about
// misspelled ones.
func Load(ctx context.Context, in *script.Interpreter, words, flags []string) (*Selection, error) {
	names := Named(words)
	if len(names) == 0 {
		names = script.Remedies.Names()
	}
	set := new(Selection)
	var recipients []*script.Recipient
	for _, name := range names {
		r, err := loadOne(ctx, in, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(set.List, func(b *Remedy) bool { return b.Name == r.Name }) {
			r.Name = r.script // two files of one name
		}
		set.List, recipients = append(set.List, r), append(recipients, &r.Recipient)
	}
	var err error
	if set.Help, err = script.Remedies.Distribute(recipients, words, names, flags); err != nil {
		return nil, err
	}
	for _, r := range set.List {
		script.Arguments{Keywords: r.Keywords}.Allow(in.Runtime.Files)
	}
	return set, nil
}

// Named returns the remedies that words name.
func Named(words []string) (names []string) {
	shipped := script.Remedies.Names()
	for _, w := range words {
		if !strings.HasPrefix(w, "-") && (strings.HasSuffix(w, ".star") || slices.Contains(shipped, w)) && !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	return names
}

// Names returns the names of the remedies, separated by blanks.
func (set *Selection) Names() string {
	var names []string
	for _, r := range set.List {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

// loadOne runs the top level of a remedy.
func loadOne(ctx context.Context, in *script.Interpreter, name string) (*Remedy, error) {
	file, err := script.Remedies.Locate(name)
	if err != nil {
		return nil, err
	}
	r := &Remedy{Recipient: script.Recipient{Name: strings.TrimSuffix(path.Base(file), ".star")}, script: file}
	return r, in.RunOne(ctx, file, notExit, func(s *script.Script) (err error) {
		fn := s.Function(script.RemedyEntry)
		if fn == nil {
			return fmt.Errorf("%s: not a remedy; it does not define remedy(fabric, findings, ...)", file)
		}
		e := script.NewEntry(r.Name, fn, s.Doc)
		if !e.Fabric || len(e.Words) != 1 || e.Words[0].Name != "findings" || e.Rest != "" {
			return fmt.Errorf("%s: invalid parameters of remedy(); want fabric, findings, and options after a *: def remedy(fabric, findings, *, runs = 3)", file)
		}
		e.Words = nil
		e.Options = slices.DeleteFunc(e.Options, func(p script.Param) bool {
			r.past = r.past || p.Name == pastOption
			return p.Name == pastOption
		})
		r.Entry = e
		return nil
	})
}

// notExit returns err of a remedy's code: exit() must not end the others.
func notExit(err error) error {
	return lang.NotExit(err, "not supported in a remedy; it returns actions")
}
