package builtins

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
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// Audit is a script that defines audit(fabric, *, ...), with its options.
type Audit struct {
	Name string
	// Doc is what the script says of itself.
	Doc string

	script    string
	byName    bool     // somebody asked for it by name
	own       []string // the parameters that the command fills, of ownOptions
	events    bool     // it finds what has happened, not what is
	entry     *entry
	fn        *starlark.Function
	datagrams *starlark.Function // how many it will send; nil: it does not say
	given     map[string]starlark.Value
	kwargs    []starlark.Tuple
}

// Audits are those that a command line names.
type Audits struct {
	List []*Audit
	// Deep: they read whole tables too, where they can.
	Deep bool
	// Help is what they say of themselves. It is set if the words ask for it;
	// then they must not be run.
	Help string
	// Job is what a run of them is called where nobody gives it a name: after those
	// that were named, or "standard".
	Job string
}

// Parameters that the command fills: they are no options of an audit.
const (
	baselineOption = "baseline" // the fabric of --baseline; None where there is none
	deepOption     = "deep"     // --deep: read whole tables too
	pastOption     = "past"     // what runs of the job before have seen
	railsOption    = "rails"    // of --each-port: the subnets that were audited before, as Rails
	runOption      = "run"      // what is known of the run when all other audits are done
)

var ownOptions = []string{baselineOption, deepOption, pastOption, railsOption, runOption}

// ShippedAudits are those of @std//audit/, by name.
func ShippedAudits() []ShippedDoc { return shipped(auditFolder) }

// AuditPath is the script of an audit.
func AuditPath(name string) (string, error) { return shippedPath(auditFolder, "audit", name) }

// OptionsOfAudit are the flags of an audit, but for those that the command fills.
func OptionsOfAudit(p Program) []string {
	return slices.DeleteFunc(slices.Clone(p.Options), func(flag string) bool {
		return slices.ContainsFunc(ownOptions, func(name string) bool { return flagName(name) == flag })
	})
}

// LoadAudits loads the audits that words name, .star files or shipped ones,
// and gives each option among the words to all that have it. Without names they
// are the standard set, and with deep those too that read nothing but whole
// tables. flags are those of the command that runs them, for who misspells one.
func (s *Session) LoadAudits(ctx context.Context, words, flags []string, deep bool) (*Audits, error) {
	all, err := s.loadAudits(ctx, words, flags, deep)
	if err != nil {
		return nil, err
	}
	for _, a := range all.List {
		s.allow(nil, a.kwargs)
	}
	return all, nil
}

// loadAudits is LoadAudits for a script: files that options name are read only where
// scripts may read.
func (s *Session) loadAudits(ctx context.Context, words, flags []string, deep bool) (*Audits, error) {
	var names []string
	known := ShippedAudits()
	for _, w := range words {
		shipped := slices.ContainsFunc(known, func(d ShippedDoc) bool { return d.Name == w })
		if !strings.HasPrefix(w, "-") && (shipped || strings.HasSuffix(w, ".star")) && !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	byName := len(names) > 0
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
	for _, d := range known {
		if !byName && (deep || !d.Deep) && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	all := &Audits{Job: audit.JobOf(job...), Deep: deep}
	for _, name := range names {
		a, err := s.loadAudit(ctx, name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all.List, func(b *Audit) bool { return b.Name == a.Name }); i >= 0 {
			a.Name = a.script // two files of one name
		}
		a.byName = byName && slices.Contains(words, name)
		all.List = append(all.List, a)
	}
	if err := all.parse(words, names, flags); err != nil || all.Help != "" {
		return all, err
	}
	for _, a := range all.List {
		if err := a.bind(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// loadAudit runs the top level of an audit.
func (s *Session) loadAudit(ctx context.Context, name string) (a *Audit, err error) {
	script, err := AuditPath(name)
	if err != nil {
		return nil, err
	}
	src, err := s.readScript(ctx, script)
	if err != nil {
		return nil, err
	}
	a = &Audit{Name: strings.TrimSuffix(path.Base(script), ".star"), script: script, given: map[string]starlark.Value{}}
	t, release := s.mainThread(ctx, script)
	defer release()
	err = finish(ctx, script, func() error {
		fn, file, globals, err := s.function(t, script, src, "audit")
		var exit *lang.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("%s: %w", script, notExit(err))
		}
		if err != nil {
			return err
		}
		if fn == nil {
			return fmt.Errorf("%s is no audit: it defines no audit(fabric, ...)", script)
		}
		a.fn = fn
		a.datagrams, _ = globals["datagrams"].(*starlark.Function)
		a.entry = newEntry(a.Name, fn)
		if a.Doc = docstring(file); a.Doc == "" {
			a.Doc = fn.Doc()
		}
		a.entry.doc = a.Doc
		a.events = globals["events"] == starlark.True
		a.entry.options = slices.DeleteFunc(a.entry.options, func(p entryParam) bool {
			own := slices.Contains(ownOptions, p.name)
			if own {
				a.own = append(a.own, p.name)
			}
			return own
		})
		if !a.entry.fabric || len(a.entry.words) > 0 || a.entry.rest != "" {
			return fmt.Errorf("%s: audit() takes fabric, and options behind a *: def audit(fabric, *, threshold=5)", script)
		}
		return nil
	})
	return a, err
}

// parse gives the options among words to the audits that have them. names are
// those that were loaded.
func (all *Audits) parse(words, names, flags []string) error {
	var values []string // of options
	help := false
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w == "-h" || w == "--help":
			help = true
		case !strings.HasPrefix(w, "-") && slices.Contains(names, w):
		case !strings.HasPrefix(w, "-"):
			var shipped []string
			for _, d := range ShippedAudits() {
				shipped = append(shipped, d.Name)
			}
			return fmt.Errorf("audit: no audit %q%s: use a .star file, or one of %s", w, fabric.DidYouMean(w, shipped), strings.Join(shipped, ", "))
		default:
			before := words
			var err error
			if words, err = all.option(w, words, flags); err != nil {
				return err
			}
			values = append(values, before[:len(before)-len(words)]...)
		}
	}
	for _, v := range values {
		if slices.Contains(names, v) {
			return fmt.Errorf("audit: %q is the value of an option, and an audit: write the option as --NAME=%[1]s", v)
		}
	}
	if help {
		var b strings.Builder
		for i, a := range all.List {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(a.entry.Help())
		}
		all.Help = b.String()
	}
	return nil
}

// option gives one option to all that have it.
func (all *Audits) option(w string, words, flags []string) (rest []string, err error) {
	flag, _, _ := strings.Cut(w, "=")
	var known []string
	found := false
	for _, a := range all.List {
		for _, p := range a.entry.options {
			known = append(known, flagName(p.name))
		}
		if p, _ := a.entry.find(flag); p == nil {
			continue
		}
		left, err := a.entry.option(a.given, w, words)
		if err != nil {
			return nil, fmt.Errorf("audit %s: %w", a.Name, err)
		}
		if found && len(left) != len(rest) {
			return nil, fmt.Errorf("audit: one audit takes %s with a value, another without: write %[1]s=VALUE", flag)
		}
		found, rest = true, left
	}
	if !found {
		return nil, fmt.Errorf("audit: no audit that is to run has an option %s%s", flag, fabric.DidYouMean(flag, append(known, flags...)))
	}
	return rest, nil
}

// bind makes the arguments of what was given.
func (a *Audit) bind() error {
	for _, p := range a.entry.options {
		if v, ok := a.given[p.name]; ok {
			a.kwargs = append(a.kwargs, starlark.Tuple{starlark.String(p.name), v})
		} else if p.value == nil {
			return fmt.Errorf("audit %s: missing option %s", a.Name, flagName(p.name))
		}
	}
	return nil
}

// arguments are those of a run; own are the values of ownOptions.
func (a *Audit) arguments(own starlark.StringDict) []starlark.Tuple {
	kwargs := slices.Clone(a.kwargs)
	for _, name := range a.own {
		kwargs = append(kwargs, starlark.Tuple{starlark.String(name), own[name]})
	}
	return kwargs
}

// expected is how many datagrams the audit says that it will send; 0 where it
// does not say. Its datagrams() may take deep, and options of the audit.
func (a *Audit) expected(t *starlark.Thread, f starlark.Value, deep bool) (int, error) {
	if a.datagrams == nil {
		return 0, nil
	}
	values := starlark.StringDict{deepOption: starlark.Bool(deep)}
	for _, p := range a.entry.options {
		if values[p.name] = p.value; a.given[p.name] != nil {
			values[p.name] = a.given[p.name]
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
