package audits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric/audit"
)

// Audit is a script that defines audit(fabric, *, ...), with its options.
type Audit struct {
	script.Recipient // its name, entry and options

	script    string
	byName    bool     // the command line names it
	own       []string // the parameters that the command fills, of ownOptions
	manager   bool     // it needs LIDs or the subnet administrator
	events    bool     // its findings are past events, not current states
	together  bool     // it is shipped, and may run at the same time as others
	checks    []check
	datagrams *starlark.Function // returns how many it will send; nil: unknown
	count     int                // what it has returned
}

// check is a check of an audit, and the information that it needs.
type check struct {
	name  string
	needs []*audit.Need
}

// Checks returns the names of the checks that the audit declares in its global needs.
func (a *Audit) Checks() []string {
	names := make([]string, len(a.checks))
	for i := range a.checks {
		names[i] = a.checks[i].name
	}
	return names
}

// checksOf reads the global needs of an audit: a dict of checks to the names of the information
// that they need, separated by blanks.
func checksOf(v starlark.Value) (list []check, err error) {
	if v == nil {
		return nil, nil
	}
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, fmt.Errorf("needs: got %s, want a dict of checks to what they need", v.Type())
	}
	for _, kv := range d.Items() {
		name, ok1 := starlark.AsString(kv[0])
		words, ok2 := starlark.AsString(kv[1])
		if !ok1 || !ok2 || !audit.CheckName().MatchString(name) {
			return nil, fmt.Errorf("needs: invalid entry %s: %s; want a check and the names of what it needs", kv[0], kv[1])
		}
		c := check{name: name}
		for word := range strings.FieldsSeq(words) {
			n, err := audit.NeedByName(word)
			if err != nil {
				return nil, fmt.Errorf("needs: %s: %w", name, err)
			}
			c.needs = append(c.needs, n)
		}
		list = append(list, c)
	}
	return list, nil
}

// Selection is the audits of a run.
type Selection struct {
	List []*Audit
	// Deep reports that they read whole tables too, if they can.
	Deep bool
	// Help is their help, set if the words request it; then they must not run.
	Help string
	// Job is the default name of the job: the names of the audits, or "standard".
	Job string

	loaded collector // what the top levels of the audits have reported
}

// newCollector returns the collector of a run.
func (set *Selection) newCollector() *collector {
	c := &collector{metrics: new(measurements)}
	c.join(&set.loaded)
	return c
}

// ComparesWithPast reports whether one of the checks needs observations of earlier runs.
func (set *Selection) ComparesWithPast(covers func(check string) bool) bool {
	return slices.ContainsFunc(set.List, func(a *Audit) bool {
		return slices.ContainsFunc(a.checks, func(c check) bool {
			return covers(c.name) && slices.ContainsFunc(c.needs, func(n *audit.Need) bool { return n.Name == audit.Past })
		})
	})
}

// Parameters that the command fills, which are not options of an audit.
const (
	baselineOption = "baseline" // the fabric of --baseline, or None
	deepOption     = "deep"     // --deep: read whole tables too
	pastOption     = "past"     // observations of earlier runs of the job
	railsOption    = "rails"    // of --each-port: the subnets that were audited before, as Rails
	runOption      = "run"      // the run after all other audits
	trustedOption  = "trusted"  // whether requests to the subnet administrator have its SM_Key
)

// ownOptions are all parameters that the command fills.
var ownOptions = []string{baselineOption, deepOption, pastOption, railsOption, runOption, trustedOption}

// AuditOptions returns the flags of an audit, except the flags that the command fills.
func AuditOptions(p script.Program) []string {
	return slices.DeleteFunc(slices.Clone(p.Options), func(flag string) bool {
		return slices.ContainsFunc(ownOptions, func(name string) bool { return script.FlagName(name) == flag })
	})
}

// LoadAudits loads the audits that words of a command line name, .star files or shipped ones, and
// passes each option among the words to all audits that accept it. Without names it loads the
// standard set, with deep also the audits that read only whole tables. flags are the flags
// of the command that runs them, for suggestions about misspelled ones.
func LoadAudits(ctx context.Context, in *script.Interpreter, words, flags []string, deep bool) (*Selection, error) {
	set, err := LoadAuditsInScript(ctx, in, words, flags, deep)
	if err != nil {
		return nil, err
	}
	for _, a := range set.List {
		script.Arguments{Keywords: a.Keywords}.Allow(in.Runtime.Files)
	}
	return set, nil
}

// LoadAuditsInScript loads audits like LoadAudits, for a script: options may only name files that
// scripts may read.
func LoadAuditsInScript(ctx context.Context, in *script.Interpreter, words, flags []string, deep bool) (*Selection, error) {
	names, byName := chooseAudits(words, script.Audits.Shipped(), deep)
	set := &Selection{Job: jobName(names, byName, deep), Deep: deep, loaded: collector{metrics: new(measurements)}}
	ctx = lang.WithRun(ctx, in.Runtime, &set.loaded)
	for _, name := range names {
		a, err := loadAudit(ctx, in, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(set.List, func(b *Audit) bool { return b.Name == a.Name }) {
			a.Name = a.script // two files of one name
		}
		a.byName = byName
		set.List = append(set.List, a)
	}
	return set, set.parse(words, names, flags)
}

// chooseAudits returns the audits that words name; without names, the audits of shipped that are
// standard, or with deep all.
func chooseAudits(words []string, shipped []script.Doc, deep bool) (names []string, byName bool) {
	for _, w := range words {
		known := strings.HasSuffix(w, ".star") || slices.ContainsFunc(shipped, func(d script.Doc) bool { return d.Name == w })
		if !strings.HasPrefix(w, "-") && known && !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	if len(names) > 0 {
		return names, true
	}
	for _, d := range shipped {
		if d.InSet(deep) {
			names = append(names, d.Name)
		}
	}
	return names, false
}

// jobName returns the default name of the job of audits.
func jobName(names []string, byName, deep bool) string {
	job := []string{"standard"}
	if byName {
		job = nil
		for _, name := range names {
			job = append(job, strings.TrimSuffix(path.Base(name), ".star"))
		}
	}
	if deep {
		job = append(job, "deep")
	}
	return audit.JobOf(job...)
}

// loadAudit runs the top level of an audit.
func loadAudit(ctx context.Context, in *script.Interpreter, name string) (*Audit, error) {
	file, err := script.Audits.Locate(name)
	if err != nil {
		return nil, err
	}
	a := &Audit{Recipient: script.Recipient{Name: strings.TrimSuffix(path.Base(file), ".star")}, script: file}
	return a, in.RunOne(ctx, file, notExit, func(s *script.Script) (err error) {
		fn := s.Function("audit")
		if fn == nil {
			return fmt.Errorf("%s: not an audit; it does not define audit(fabric, ...)", file)
		}
		a.datagrams = s.Function("datagrams")
		a.manager = s.Globals["manager"] == starlark.True
		a.events = s.Globals["events"] == starlark.True
		a.together = file != name && s.Globals["alone"] != starlark.True
		if a.checks, err = checksOf(s.Globals["needs"]); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		a.Entry = script.NewEntry(a.Name, fn, s.Doc)
		a.Entry.Options = slices.DeleteFunc(a.Entry.Options, func(p script.Param) bool {
			own := slices.Contains(ownOptions, p.Name)
			if own {
				a.own = append(a.own, p.Name)
			}
			return own
		})
		if !a.Entry.Fabric || len(a.Entry.Words) > 0 || a.Entry.Rest != "" {
			return fmt.Errorf("%s: invalid parameters of audit(); want fabric, and options after a *: def audit(fabric, *, threshold=5)", file)
		}
		return nil
	})
}

// notExit returns err of an audit's code: exit() must not end the other audits and the report.
func notExit(err error) error {
	return lang.NotExit(err, "not supported in an audit; its findings set the exit status")
}

// parse passes the options among words to the audits that accept them. names are the loaded
// audits.
func (set *Selection) parse(words, names, flags []string) (err error) {
	recipients := make([]*script.Recipient, len(set.List))
	for i, a := range set.List {
		recipients[i] = &a.Recipient
	}
	set.Help, err = script.Audits.Distribute(recipients, words, names, flags)
	return err
}

// arguments returns the keyword arguments of the audit in a run; own has the values of ownOptions.
func (a *Audit) arguments(own starlark.StringDict) []starlark.Tuple {
	kwargs := slices.Clone(a.Keywords)
	for _, name := range a.own {
		kwargs = append(kwargs, starlark.Tuple{starlark.String(name), own[name]})
	}
	return kwargs
}

// expected returns how many datagrams the audit will send, 0 if unknown. Its datagrams() may
// take deep, and options of the audit.
func (a *Audit) expected(t *starlark.Thread, f starlark.Value, deep bool) (int, error) {
	if a.datagrams == nil {
		return 0, nil
	}
	values := starlark.StringDict{deepOption: starlark.Bool(deep)}
	for _, p := range a.Entry.Options {
		if values[p.Name] = p.Default; a.Given[p.Name] != nil {
			values[p.Name] = a.Given[p.Name]
		}
	}
	var kwargs []starlark.Tuple
	for i := range a.datagrams.NumParams() {
		if name, _ := a.datagrams.Param(i); values[name] != nil {
			kwargs = append(kwargs, starlark.Tuple{starlark.String(name), values[name]})
		}
	}
	v, err := starlark.Call(t, a.datagrams, starlark.Tuple{f}, kwargs)
	if err != nil {
		return 0, notExit(err)
	}
	n, err := lang.ToInt(v)
	if err == nil && n < 0 {
		err = errors.New("negative")
	}
	if err != nil {
		return 0, fmt.Errorf("%s: datagrams(fabric) must return a number: %w", cmp.Or(a.script, a.Name), err)
	}
	return n, nil
}
