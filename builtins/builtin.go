package builtins

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// PageSettings are the settings of the session for report(). They are the state that pages keep
// with a lang.Runtime.
type PageSettings struct {
	State   string // the directory of states, with the acks
	Version string // of the program
}

// Report is report().
var Report = lang.Builtin{
	Name:    "report",
	Returns: "string",
	Group:   lang.GroupOutput,
	Params: []lang.Param{
		{Name: "*audits", Kind: lang.KindAny, Doc: "names of shipped audits (default: the standard set)"},
		{Name: "deep", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "also read whole tables, and the forwarding tables of a live fabric"},
		{Name: "baseline", Kind: topology.KindFabric, Default: "None", Keyword: true, Doc: "an earlier fabric, from load_fabric(): its findings are not reported, and the page shows what changed since"},
		{Name: "fail_on", Kind: lang.KindText, Default: `"warning"`, Keyword: true, Doc: "lowest severity that counts for the verdict"},
		{Name: "**options", Kind: lang.KindAny, Doc: "options of audits: over=\"10s\""},
	},
	Doc: `Audits the fabric, and returns the findings as an HTML page.
The page is that of "fabsh report html": findings, topology, heat maps, routing. The page needs no network and no JavaScript; fs.write writes it to a file below --out. The fabric is swept again. Requests without an answer are on the page, and do not affect the exit status.`,
	Example: `
> page = report("links", "topology")
> "No problems found" in page
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
	r := c.Runtime()
	settings := lang.StateOf[PageSettings](r)
	failOn, err := audit.ParseSeverity(a.FailOn)
	switch {
	case err != nil:
		return nil, lang.ParamError("fail_on", "%w", err)
	case !c.Fiber().Alone():
		return nil, lang.Errorf("not supported within parallel(): only one run at a time")
	case lang.StateOf[topology.Observer](r).Report != nil:
		return nil, lang.Errorf("not supported within an audit, which is part of a report")
	}
	words, err := a.words()
	if err != nil {
		return nil, err
	}
	o := PageOptions{FailOn: failOn, Deep: a.Deep, Commands: []string{a.call()}}
	defer audits.CollectApart(r)()
	var text bytes.Buffer
	err = c.Block(func(ctx context.Context) error {
		in := script.Of(r)
		all, err := audits.LoadAuditsInScript(ctx, in, words, nil, a.Deep)
		if err != nil || all.Help != "" {
			return cmp.Or(err, lang.Errorf("unsupported option help"))
		}
		env := topology.EnvOf(r)
		options := audits.RunOptions{Job: all.Job, ReadOnly: true, NoPast: env.Engine != nil && env.Engine.Traits().Name == "sim"}
		options.Begin = func(subnet fabric.Subnet) (audit.Acks, error) { return audits.RunAcks(r, settings.State, subnet), nil }
		if a.Baseline != nil {
			options.Baseline, o.Baseline = a.Baseline.Fabric, a.Baseline.Fabric
		}
		found, err := all.Run(ctx, in, options)
		if err != nil {
			return err
		}
		p, _, failed := ReportPage(ctx, r, found, o)
		if failed != nil && ctx.Err() != nil {
			return failed
		}
		return p.Write(&text)
	})
	return starlark.String(text.String()), err
}

// words returns the arguments as words of a command line.
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
		flag := script.FlagName(name)
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

// call returns the call as a script writes it.
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
