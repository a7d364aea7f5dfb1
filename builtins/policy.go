package builtins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/scripts"
)

// Policy is a routing policy, and what is to be done with the tables it gives.
type Policy struct {
	Name string   // a script that defines route(fabric, ...), or the name of a shipped one
	Args []string // its options

	Verify       bool
	Diff         bool // with the tables that the switches have
	FailEachLink bool
	Adaptive     bool   // the switches are known to route adaptively
	Out          string // file for OpenSM; with Verify only written if the verdict is ok
}

// RouteFlags are those of the command that runs policies; none has an option
// of such a name.
var RouteFlags = []string{"--verify", "--diff", "--fail-each-link", "--adaptive", "--out", "--list", "--watch", "--reload"}

// PolicyDoc is a shipped policy, and its docstring's first line.
type PolicyDoc struct{ Name, Doc string }

const policyFolder = "routing"

// ShippedPolicies are those of @std//routing/, by name.
func ShippedPolicies() []PolicyDoc {
	var list []PolicyDoc
	entries, _ := fs.ReadDir(scripts.FS, policyFolder)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".star")
		if !ok {
			continue
		}
		src, _ := fs.ReadFile(scripts.FS, path.Join(policyFolder, e.Name()))
		doc := ""
		if file, err := lang.Dialect.Parse(e.Name(), src, 0); err == nil && len(file.Stmts) > 0 {
			if x, ok := file.Stmts[0].(*syntax.ExprStmt); ok {
				if text, ok := x.X.(*syntax.Literal); ok {
					doc, _, _ = strings.Cut(fmt.Sprint(text.Value), "\n")
				}
			}
		}
		list = append(list, PolicyDoc{name, doc})
	}
	return list
}

// policyPath is the script of a policy.
func policyPath(name string) (string, error) {
	if strings.HasSuffix(name, ".star") || strings.ContainsAny(name, "/@") {
		return name, nil
	}
	var names []string
	for _, p := range ShippedPolicies() {
		if p.Name == name {
			return "@std//" + policyFolder + "/" + name + ".star", nil
		}
		names = append(names, p.Name)
	}
	return "", fmt.Errorf("no routing policy %q%s: use a .star file, or one of %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
}

// Route runs a policy on the session's fabric and shows what comes of it. Where
// there are findings the error is an ExitError.
func (s *Session) Route(ctx context.Context, p Policy) error {
	return s.withPolicy(ctx, p, func(t *starlark.Thread, policy *policy) error {
		f, err := topology.CurrentFabric(t)
		if err != nil {
			return err
		}
		var live *routing.Routes
		if p.Diff { // first: if it cannot be had, nothing is computed in vain
			if live, err = liveRoutes(t, f); err != nil {
				return err
			}
		}
		routes, err := policy.compute(t, f)
		if err != nil {
			return err
		}
		return s.judge(ctx, t, routes, live, p)
	})
}

// policy is a policy ready to run.
type policy struct {
	script string
	fn     *starlark.Function
	args   starlark.Tuple
	kwargs []starlark.Tuple
}

// withPolicy runs do with the policy that p names, unless p asks for its help.
func (s *Session) withPolicy(ctx context.Context, p Policy, do func(t *starlark.Thread, policy *policy) error) error {
	script, err := policyPath(p.Name)
	if err != nil {
		return err
	}
	src, err := s.readScript(script)
	if err != nil {
		return err
	}
	t, release := s.mainThread(ctx, script)
	defer release()
	return finish(ctx, script, func() error {
		fn, err := s.policyFunction(t, script, src)
		if err != nil {
			return err
		}
		args, kwargs, done, err := s.policyArgs(path.Base(script), fn, p.Args)
		if err != nil || done {
			return err
		}
		return do(t, &policy{script, fn, args, kwargs})
	})
}

// compute are the tables for a fabric.
func (p *policy) compute(t *starlark.Thread, f starlark.Value) (*routing.Routes, error) {
	v, err := starlark.Call(t, p.fn, append(starlark.Tuple{f}, p.args...), p.kwargs)
	if err != nil {
		return nil, err
	}
	routes, ok := v.(*routing.Routes)
	if !ok {
		return nil, fmt.Errorf("%s: route() returned %s, want routes", p.script, v.Type())
	}
	routes.R.Engine = strings.TrimSuffix(path.Base(p.script), ".star")
	routes.Notes = append(fabricNotes(f.(*topology.Fabric).F), routes.Notes...)
	return routes, nil
}

// fabricNotes are what the fabric's file left open and tables depend on.
func fabricNotes(f *fabric.Fabric) []string {
	var notes []string
	for _, p := range f.Problems() {
		if p.Kind == fabric.ProblemAssignedLIDs {
			notes = append(notes, p.Text)
		}
	}
	return notes
}

// policyFunction runs the script's top level and returns its route().
func (s *Session) policyFunction(t *starlark.Thread, script, src string) (*starlark.Function, error) {
	s.sources[script] = src
	if err := lang.PlainText(script, 1, src); err != nil {
		return nil, err
	}
	_, prog, err := starlark.SourceProgramOptions(&lang.Dialect, script, src, s.predeclared.Has)
	if err != nil {
		return nil, err
	}
	globals, err := prog.Init(t, s.predeclared)
	if err != nil {
		return nil, err
	}
	fn, ok := globals["route"].(*starlark.Function)
	if !ok {
		return nil, fmt.Errorf("%s is no routing policy: it defines no route(fabric, ...)", script)
	}
	return fn, nil
}

// policyArgs reads the policy's options. Files that they name may be read
// wherever they lie. done: it was --help.
func (s *Session) policyArgs(name string, fn *starlark.Function, words []string) (args starlark.Tuple, kwargs []starlark.Tuple, done bool, err error) {
	e := newEntry(name, fn)
	e.own = RouteFlags
	if !e.fabric {
		return nil, nil, false, fmt.Errorf("%s: the first parameter of route() must be fabric", name)
	}
	args, kwargs, help, err := e.parse(words)
	if err != nil {
		return nil, nil, false, fmt.Errorf("%s: %w\nusage: %s", name, err, e.usage())
	}
	if help {
		return nil, nil, true, s.Emit(lang.Stdout, e.Help())
	}
	for _, v := range args {
		s.Files.Allow(v)
	}
	for _, kv := range kwargs {
		s.Files.Allow(kv[1])
	}
	return args, kwargs, false, nil
}

func liveRoutes(t *starlark.Thread, f starlark.Value) (*routing.Routes, error) {
	v, err := starlark.Call(t, &lang.Function{Builtin: &routing.GetRoutes}, starlark.Tuple{f}, nil)
	if err != nil {
		return nil, err
	}
	return v.(*routing.Routes), nil
}

// judge does with tables what p asks for, and shows the outcome.
func (s *Session) judge(ctx context.Context, t *starlark.Thread, v, live *routing.Routes, p Policy) error {
	r := &policyReport{routes: v}
	clean, ok := true, true
	if p.Verify {
		x, err := starlark.Call(t, &lang.Function{Builtin: &routing.VerifyMethod, Recv: v}, nil, knownAdaptive(p.Adaptive))
		if err != nil {
			return err
		}
		r.verdict = x.(*lang.Result)
		ok = r.verdict.Get("ok") == starlark.True
		clean = ok
	}
	if live != nil {
		r.diff = routing.DiffOf(v, v.R.Diff(live.R))
	}
	if p.FailEachLink {
		x, err := starlark.Call(t, &lang.Function{Builtin: &routing.FailuresMethod, Recv: v}, nil, nil)
		if err != nil {
			return err
		}
		r.failures = x.(*starlark.List)
		for f := range r.failures.Elements() {
			clean = clean && f.(*lang.Result).Get("cuts") != starlark.True
		}
	}
	if p.Out != "" && ok {
		if err := s.writeTables(ctx, v, p.Out); err != nil {
			return err
		}
	}
	if err := lang.ShowValue(t, r); err != nil {
		return err
	}
	switch {
	case p.Out != "" && ok:
		lang.FiberOf(t).Print("use with opensm -R file,no_fallback -U " + p.Out + "\n")
		if v.R.SL.Any() {
			lang.FiberOf(t).Warn("%s tells no service levels, and paths have some: OpenSM would give out others", p.Out)
		}
	case p.Out != "":
		lang.FiberOf(t).Warn("%s is not written, for the verdict is not ok", p.Out)
	}
	if !clean {
		return &lang.ExitError{Code: lang.StatusFindings}
	}
	return nil
}

// writeTables writes the file that OpenSM reads, whole or not at all.
func (s *Session) writeTables(ctx context.Context, v *routing.Routes, path string) error {
	err := format.WriteFile(s.Files.Abs(path), func(w io.Writer) error { return v.Write(ctx, w, format.KindLFTs) })
	if err != nil {
		return fmt.Errorf("--out: %w", lang.Tidy(lang.Rename(err, path)))
	}
	return nil
}

// Tables are files of tables to be judged. SL and SL2VL may be empty; without
// LFTs the switches are asked.
type Tables struct {
	LFTs, SL, SL2VL string
	FailEachLink    bool
	Adaptive        bool // the switches are known to route adaptively
}

// knownAdaptive is what verify is told of adaptive routing.
func knownAdaptive(known bool) []starlark.Tuple {
	if !known {
		return nil
	}
	return []starlark.Tuple{{starlark.String("adaptive"), starlark.True}}
}

// Verify judges tables from files, or those that the switches have. Where there
// are findings the error is an ExitError.
func (s *Session) Verify(ctx context.Context, o Tables) error {
	t, release := s.mainThread(ctx, "verify")
	defer release()
	return finish(ctx, "verify", func() error {
		for _, path := range []string{o.LFTs, o.SL, o.SL2VL} {
			s.Files.Allow(starlark.String(path))
		}
		x, err := topology.CurrentFabric(t)
		if err != nil {
			return err
		}
		f := x.(*topology.Fabric)
		var v *routing.Routes
		if o.LFTs == "" {
			if o.SL != "" || o.SL2VL != "" {
				return errors.New("verify: --sl and --slvl belong to tables of a file: give --lfts FILE")
			}
			v, err = liveRoutes(t, f)
		} else {
			v, err = routing.RoutesFile(f, s.Files, o.LFTs, o.SL, o.SL2VL)
		}
		if err != nil {
			return err
		}
		v.Notes = append(fabricNotes(f.F), v.Notes...)
		if o.FailEachLink {
			return s.judge(ctx, t, v, nil, Policy{Verify: true, FailEachLink: true, Adaptive: o.Adaptive})
		}
		verdict, err := starlark.Call(t, &lang.Function{Builtin: &routing.VerifyMethod, Recv: v}, nil, knownAdaptive(o.Adaptive))
		if err != nil {
			return err
		}
		if err := lang.ShowValue(t, verdict); err != nil {
			return err
		}
		if verdict.(*lang.Result).Get("ok") != starlark.True {
			return &lang.ExitError{Code: lang.StatusFindings}
		}
		return nil
	})
}

// policyReport is what fabsh route shows.
type policyReport struct {
	routes   *routing.Routes
	verdict  *lang.Result // nil: not asked for, as are the others
	diff     *lang.Result
	failures *starlark.List
}

var _ lang.Factual = (*policyReport)(nil)

func (r *policyReport) String() string        { return r.routes.String() }
func (r *policyReport) Type() string          { return "policy_report" }
func (r *policyReport) Freeze()               {}
func (r *policyReport) Truth() starlark.Bool  { return true }
func (r *policyReport) Hash() (uint32, error) { return 0, lang.Unhashable(r) }
func (r *policyReport) Schema() string        { return "policy_report/1" }

func (r *policyReport) Facts() []lang.Fact {
	out := []lang.Fact{
		{Name: "policy", Value: starlark.String(r.routes.R.Engine)},
		{Name: "switches", Value: starlark.MakeInt(r.routes.Len())},
		{Name: "entries", Value: starlark.MakeInt(r.routes.R.Entries())},
	}
	if r.verdict == nil {
		out = append(out, lang.Fact{Name: "notes", Value: lang.Texts(r.routes.AllNotes())})
	} else {
		for _, f := range r.verdict.Facts() {
			if f.Name != "policy" {
				out = append(out, f)
			}
		}
	}
	if r.diff != nil {
		out = append(out, lang.Fact{Name: "diff", Value: r.diff})
	}
	if r.failures != nil {
		out = append(out, lang.Fact{Name: "failures", Value: r.failures})
	}
	return out
}

func (r *policyReport) Display() string {
	var parts []string
	if r.verdict == nil {
		parts = append(parts, r.routes.Display())
	} else {
		parts = append(parts, r.verdict.Display())
	}
	if r.diff != nil {
		parts = append(parts, "against the live tables:\n"+r.diff.Display())
	}
	if r.failures != nil {
		text := "no link between switches\n"
		if r.failures.Len() > 0 {
			text = lang.RenderText(r.failures)
		}
		parts = append(parts, "if a link fails:\n"+text)
	}
	return strings.Join(parts, "\n")
}
