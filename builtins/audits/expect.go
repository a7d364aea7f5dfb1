package audits

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// ExpectFindings is expect.findings.
var ExpectFindings = lang.Builtin{
	Name:    "expect.findings",
	Returns: "list of finding",
	Group:   lang.GroupTest,
	Params: []lang.Param{
		{Name: "audit", Kind: lang.KindFunction, Doc: `an audit: load("@std//audit/links.star", links="audit")`},
		{Name: "want", Kind: lang.KindAny, Default: "[]", Doc: `expected findings: texts of check and subject as in a report, "link.width leaf-1/3" (one end of a link is enough); or pairs of check and a node, port, link or the fabric`},
		{Name: "fabric", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the fabric; by default, a sweep reads the current one"},
		{Name: "**options", Kind: lang.KindAny, Doc: "options of the audit, and those that the command passes: deep=True, baseline=F"},
	},
	Doc: `Runs an audit, and fails unless its findings are exactly the expected ones.
The error lists missing and unexpected findings. Findings are not re-read. They are returned, and not reported elsewhere.`,
	Example: `
> down = lambda fabric: [finding("port.down", p, "there is no link") for p in fabric.switches[0].ports if not p.peer]
> expect.findings(down)
> sim.unlink("leaf-1/5")
> expect.findings(down, ["port.down leaf-1/5"])[0].severity
"error"
> print(catch(expect.findings, down, ["link.width leaf-1/3"]).message)
expect.findings: 1 missing, 1 too many
  missing:  link.width leaf-1/3
  too many: port.down leaf-1/5: there is no link
`,
	Run: lang.Do(func(c *lang.Call, a *expectArgs) (starlark.Value, error) {
		want, err := wantedOf(a.Want)
		if err != nil {
			return nil, lang.ParamError("want", "%w", err)
		}
		found, err := a.run(c)
		if err != nil {
			return nil, err
		}
		if text := compareFindings(want, found); text != "" {
			return nil, lang.Errorf("%s", text)
		}
		return Wrap(found), nil
	}),
}

// expectArgs are the arguments of expect.findings.
type expectArgs struct {
	Audit   starlark.Callable
	Want    starlark.Value
	Fabric  starlark.Value
	Options []starlark.Tuple
}

// run returns the findings of the audit. Earlier findings stay unchanged.
func (a *expectArgs) run(c *lang.Call) ([]audit.Finding, error) {
	var err error
	f, ok := a.Fabric.(*topology.Fabric)
	switch {
	case a.Fabric == nil:
		if f, err = topology.Sweep(c.Thread); err != nil {
			return nil, err
		}
	case !ok:
		return nil, lang.ParamError("fabric", "%w", lang.WantType(a.Fabric, "a fabric"))
	}
	defer Apart(c.Runtime())()
	if _, err := starlark.Call(c.Thread, a.Audit, starlark.Tuple{f}, a.Options); err != nil {
		return nil, err
	}
	return collectorOf(c.Runtime()).found.List(), nil
}

// wanted is an expected finding: a check, and the subject, or the subject's name.
type wanted struct {
	check, name string
	subject     *audit.Subject // nil: by name
}

func (w *wanted) String() string { return w.check + " " + w.name }

// matches reports whether f is the expected finding.
func (w *wanted) matches(f *audit.Finding) bool {
	switch {
	case f.Check != w.check:
		return false
	case w.subject != nil:
		return f.Subject.Key() == w.subject.Key() || f.Subject.Kind == audit.KindLink && w.subject.Kind == audit.KindPort && f.Subject.Covers(*w.subject)
	case f.Subject.Name() == w.name:
		return true
	}
	return f.Subject.Kind == audit.KindLink && slices.ContainsFunc(f.Subject.Ends, func(e audit.End) bool { return e.Label() == w.name })
}

// wantedOf reads the argument want.
func wantedOf(v starlark.Value) (list []*wanted, err error) {
	items, ok := v.(starlark.Iterable)
	if v != nil && !ok {
		return nil, lang.WantType(v, "a list")
	}
	if v == nil {
		return nil, nil
	}
	for i, x := range lang.Collect(items) {
		w := new(wanted)
		switch x := x.(type) {
		case starlark.String:
			w.check, w.name, _ = strings.Cut(string(x), " ")
			w.name = strings.TrimSpace(w.name)
		case starlark.Tuple:
			check, ok := starlark.String(""), len(x) == 2
			if ok {
				check, ok = x[0].(starlark.String)
			}
			if !ok {
				return nil, fmt.Errorf("element %d: invalid pair %s; want (check, subject)", i, lang.Brief(x))
			}
			subject, err := SubjectOf(x[1])
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			w.check, w.name, w.subject = string(check), subject.Name(), &subject
		}
		if w.name == "" || !audit.CheckName().MatchString(w.check) {
			return nil, fmt.Errorf("element %d: invalid finding %s; want check and subject: \"link.width leaf-1/3\"", i, lang.Brief(x))
		}
		list = append(list, w)
	}
	return list, nil
}

// maxListed is how many findings of a kind an error lists.
const maxListed = 20

// compareFindings returns how findings differ from the expected ones, "" if they do not.
func compareFindings(want []*wanted, found []audit.Finding) string {
	var missing, more []string
	matched := make([]bool, len(found))
	for _, w := range want {
		i := slices.IndexFunc(found, func(f audit.Finding) bool { return w.matches(&f) })
		if i < 0 {
			missing = append(missing, w.String())
		} else {
			matched[i] = true
		}
	}
	for i := range found {
		if f := &found[i]; !matched[i] {
			more = append(more, fmt.Sprintf("%s %s: %s", f.Check, f.Subject.Name(), f.Message))
		}
	}
	var parts []string
	text := ""
	for _, k := range []struct {
		count, label string
		list         []string
	}{{"missing", "missing: ", missing}, {"too many", "too many:", more}} {
		if len(k.list) == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", len(k.list), k.count))
		for i, line := range k.list {
			if i == maxListed {
				text += fmt.Sprintf("\n  and %d more", len(k.list)-i)
				break
			}
			text += "\n  " + k.label + " " + line
		}
	}
	if text == "" {
		return ""
	}
	return strings.Join(parts, ", ") + text
}
