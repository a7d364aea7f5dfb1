package builtins

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
	"fabsh/fabric/page"
	"fabsh/fabric/routing"
)

// PageOptions say what a page tells beside what audits found.
type PageOptions struct {
	FailOn   audit.Severity // from which on a finding counts for the verdict
	Deep     bool           // forwarding tables of a live fabric are read
	Baseline *fabric.Fabric // that the fabric is compared with; nil: with none
	Commands []string       // that make the page again
}

// Page is the page of a report, with what the forwarding tables are worth. status is the
// exit status that these make; failed is why they are not known, though they were read.
func (s *Session) Page(ctx context.Context, r *audit.Report, o PageOptions) (p *page.Page, status int, failed error) {
	live := s.env.Engine != nil && !s.env.Engine.Traits().Simulated
	p = &page.Page{Report: r, FailOn: o.FailOn, Version: s.version, Commands: o.Commands, Dated: live}
	f := r.Model
	if p.Baseline = o.Baseline; p.Baseline != nil && f != nil {
		var err error
		if p.Diff, err = diff.Compare(ctx, p.Baseline, f); err != nil {
			p.NoDiff = s.Explain(err)
		}
	}
	switch {
	case f == nil:
		p.NoRoutes = "there is no fabric"
		return p, lang.StatusClean, nil
	case live && !o.Deep:
		p.NoRoutes = "the forwarding tables of a live fabric are read with --deep"
		return p, lang.StatusClean, nil
	case s.env.Engine == nil && !f.HasLFTs():
		p.NoRoutes = "the file has no forwarding tables; fabsh snapshot writes them too"
		return p, lang.StatusClean, nil
	}
	routes, err := s.LiveRoutes(ctx, f)
	if err == nil {
		if p.Verdict, err = routes.Verify(ctx, routing.VerifyOptions{}); err == nil {
			p.Balance, err = routes.Balance(ctx, 0)
		}
	}
	if err == nil {
		p.Shift, err = routes.Congestion(ctx, routing.CongestionOptions{Pattern: routing.Shift, Samples: page.MaxShifts, Each: func(k, flows int) {
			p.Shifts = append(p.Shifts, page.Shift{Distance: k, Flows: flows})
		}})
	}
	switch {
	case err != nil:
		p.Verdict, p.Balance, p.Shift = nil, nil, nil
		p.NoRoutes = s.Explain(err)
		return p, lang.StatusFabric, err
	case p.Verdict.Wrong():
		return p, lang.StatusFindings, nil
	}
	return p, lang.StatusClean, nil
}

// Acks are those of a subnet below a folder of states. Lines that cannot be read are
// warned of.
func (s *Session) Acks(dir string, subnet fabric.Subnet) audit.Acks {
	if dir == "" {
		return nil
	}
	acks, bad := audit.ReadAcks(AckFile(dir, subnet), s.Clock.Now())
	for _, err := range bad {
		s.WarnOnce("%v", err)
	}
	return acks
}

// AckFile is where the acks of a subnet are, below a folder of states.
func AckFile(dir string, subnet fabric.Subnet) string {
	return filepath.Join(subnet.Folder(dir), "acks")
}

// reportBuiltin is report().
var reportBuiltin = lang.Builtin{
	Name:    "report",
	Returns: "string",
	Group:   lang.GroupOutput,
	Params: []lang.Param{
		{Name: "*audits", Kind: lang.KindAny, Doc: "names of shipped audits; none: the standard set"},
		{Name: "deep", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "read whole tables too, and of a live fabric those of forwarding"},
		{Name: "baseline", Kind: topology.KindFabric, Default: "None", Keyword: true, Doc: "a fabric of before, of load_fabric(): what it has too is not told, and the page says what changed since"},
		{Name: "fail_on", Kind: lang.KindText, Default: `"warning"`, Keyword: true, Doc: "from which severity on a finding counts for the verdict"},
		{Name: "**options", Kind: lang.KindAny, Doc: "options of audits: over=\"10s\""},
	},
	Doc: `Audits the fabric, and makes a page of HTML of what was found.
The page is what "fabsh report html" writes: findings, topology, heat maps, routing. It needs no network and no script; fs.write puts it into a file below --out. The fabric is swept anew. What was not answered is told on the page, and counts for no exit status.`,
	Example: `
> page = report("links", "topology")
> "Nothing wrong was found" in page
True
> sim.unlink("leaf-1/5")
> "There are findings" in report("links")
True
`,
	Run: lang.Do(runReport),
}

// reportArgs are the arguments of report().
type reportArgs struct {
	Audits   starlark.Tuple
	Deep     bool
	Baseline *topology.Fabric
	FailOn   string
	Options  []starlark.Tuple
}

func runReport(c *lang.Call, a *reportArgs) (starlark.Value, error) {
	s := sessionOf(c.Runtime())
	failOn, err := audit.ParseSeverity(a.FailOn)
	switch {
	case err != nil:
		return nil, lang.ParamError("fail_on", "%w", err)
	case !c.Fiber().Alone():
		return nil, lang.Errorf("one run at a time: it cannot be called within parallel()")
	case lang.StateOf[topology.Observer](c.Runtime()).Tell != nil:
		return nil, lang.Errorf("an audit cannot make a report: it is a part of one")
	}
	words, err := a.words()
	if err != nil {
		return nil, err
	}
	o := PageOptions{FailOn: failOn, Deep: a.Deep, Commands: []string{a.call()}}
	defer audits.Apart(c.Runtime())()
	var text bytes.Buffer
	err = c.Block(func(ctx context.Context) error {
		all, err := s.loadAudits(ctx, words, nil, a.Deep)
		if err != nil || all.Help != "" {
			return cmp.Or(err, lang.Errorf("no audit has an option help"))
		}
		run := AuditRun{Audits: all, Job: all.Job, LookOnly: true, NoPast: s.env.Engine != nil && s.env.Engine.Traits().Name == "sim"}
		run.Begin = func(subnet fabric.Subnet) (audit.Acks, error) { return s.Acks(s.state, subnet), nil }
		if a.Baseline != nil {
			run.Baseline, o.Baseline = a.Baseline.Fabric, a.Baseline.Fabric
		}
		found, err := s.RunAudits(ctx, run)
		if err != nil {
			return err
		}
		p, _, failed := s.Page(ctx, found, o)
		if failed != nil && ctx.Err() != nil {
			return failed
		}
		return p.Write(&text)
	})
	return starlark.String(text.String()), err
}

// words are the arguments as words of a command line.
func (a *reportArgs) words() (words []string, err error) {
	for _, v := range a.Audits {
		name, ok := starlark.AsString(v)
		if !ok || strings.HasSuffix(name, ".star") || strings.HasPrefix(name, "-") {
			return nil, lang.ParamError("audits", "got %s, want the name of a shipped audit", lang.Brief(v))
		}
		words = append(words, name)
	}
	for _, kv := range a.Options {
		name := string(kv[0].(starlark.String))
		flag := flagName(name)
		switch v := kv[1].(type) {
		case starlark.Bool:
			if v {
				words = append(words, flag)
			}
		case starlark.String:
			words = append(words, flag+"="+string(v))
		case starlark.Int, starlark.Float:
			words = append(words, flag+"="+v.String())
		default:
			return nil, lang.ParamError(name, "%w", lang.WantType(v, "a string, a number or a bool"))
		}
	}
	return words, nil
}

// call is the call as a script writes it.
func (a *reportArgs) call() string {
	var args []string
	for _, v := range a.Audits {
		args = append(args, v.String())
	}
	if a.Deep {
		args = append(args, "deep=True")
	}
	if a.Baseline != nil {
		args = append(args, "baseline=...")
	}
	args = append(args, "fail_on="+starlark.String(a.FailOn).String())
	for _, kv := range a.Options {
		args = append(args, string(kv[0].(starlark.String))+"="+kv[1].String())
	}
	return "report(" + strings.Join(args, ", ") + ")"
}

func sessionOf(r *lang.Runtime) *Session { return *lang.StateOf[*Session](r) }
