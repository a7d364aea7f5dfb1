package audits

import (
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// NotJudged is not_judged(), which reports a check that was not done.
var NotJudged = lang.Builtin{
	Name:  "not_judged",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "check", Kind: lang.KindText, Doc: `the check: "cc.uniform"`},
		{Name: "lacked", Kind: lang.KindText, Doc: "what was missing, in words"},
	},
	Doc: `Reports a check that could not be done, so that its silence is not taken for health.
The report of fabsh audit lists it, and is not complete. For information that a file may lack, an audit declares instead what its checks need, in a global dict needs.`,
	Example: `
> not_judged("site.power", "the nodes did not answer")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Check, Lacked string }) (starlark.Value, error) {
		if !audit.CheckName().MatchString(a.Check) {
			return nil, lang.ParamError("check", `invalid check %q; want words in lower case, separated by dots: "link.width"`, a.Check)
		}
		x := collectorOf(c.Runtime())
		u := audit.Unjudged{Audit: x.audit, Check: a.Check, Needs: "answers", Lacked: a.Lacked}
		if !slices.Contains(x.skipped, u) {
			x.skipped = append(x.skipped, u)
		}
		return starlark.None, nil
	}),
}

// takeUnjudged returns the checks that scripts have named since the last TakeUnjudged.
func takeUnjudged(r *lang.Runtime) []audit.Unjudged {
	c := collectorOf(r)
	list := c.skipped
	c.skipped = nil
	return list
}

// forgetUnjudged drops those of an audit, which runs again.
func forgetUnjudged(r *lang.Runtime, name string) {
	c := collectorOf(r)
	c.skipped = slices.DeleteFunc(c.skipped, func(u audit.Unjudged) bool { return u.Audit == name })
}

// Detail is detail(): requests for details of findings.
var Detail = lang.Builtin{
	Name:  "detail",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "fn", Kind: lang.KindFunction, Doc: "the function to call"},
		{Name: "*args", Kind: lang.KindAny, Doc: "its arguments"},
		{Name: "**kwargs", Kind: lang.KindAny, Doc: "its keyword arguments"},
	},
	Doc: `Calls a function as catch() does, for requests that only add detail to findings.
In an audit, missing answers to such requests are a note of the report: they do not change the coverage or the exit status.`,
	Example: `
> type(detail(reg_get, "PDDR", "leaf-1", page_select="link_down"))
"error"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		FN     starlark.Callable
		Args   starlark.Tuple
		Kwargs []starlark.Tuple
	}) (starlark.Value, error) {
		o := lang.StateOf[topology.Observer](c.Runtime())
		o.Detail++
		defer func() { o.Detail-- }()
		return lang.CallCatching(c, a.FN, a.Args, a.Kwargs)
	}),
}
