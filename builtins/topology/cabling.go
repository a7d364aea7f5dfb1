package topology

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/cabling"
)

// CablingType is the type of the result of cabling().
var CablingType = &lang.ResultType{
	Name: "cabling",
	Doc:  "The differences between a plan of cables and a fabric, and the actions that repair them.",
	Members: []lang.ResultMember{
		{Name: "same", Type: "bool", Doc: "whether everything that was compared is as planned"},
		{Name: "complete", Type: "bool", Doc: "whether everything that the plan names was read"},
		{Name: "actions", Type: "list of cabling_action", Doc: "the least number of actions that make the fabric the plan, by rack"},
		{Name: "conflicts", Type: "list of plan_conflict", Doc: "the ends that the plan uses more than once"},
		{Name: "plan_errors", Type: "list of string", Doc: "rows of the plan that could not be used, and ports that devices do not have"},
		{Name: "devices", Type: "list of cabling_device", Doc: "what the plan states of devices besides cables, and the fabric has otherwise"},
		{Name: "names", Type: "list of cabling_name", Doc: "the devices of the plan that have other names in the fabric, or were not found"},
		{Name: "not_planned", Type: "list of string", Doc: "the devices of the fabric that the plan does not have"},
		{Name: "unread", Type: "list of string", Doc: "what was not read, and is not judged"},
		{Name: "not_compared", Type: "list of string", Doc: "what the plan states and the fabric does not"},
		{Name: "planned", Type: "int", Doc: "number of cables of the plan"},
		{Name: "right", Type: "int", Doc: "number of cables that are as planned"},
		{Name: "unjudged", Type: "int", Doc: "number of cables that are not judged: their devices were not found, or not read"},
	},
}

// CablingActionType is the type of an action.
var CablingActionType = &lang.ResultType{
	Name:      "cabling_action",
	Doc:       "One thing to do at two ends of cables.",
	Important: []string{"id", "verb", "plug", "to", "found", "planned"},
	Members:   actionMembers(),
}

func actionMembers() (list []lang.ResultMember) {
	for _, c := range cabling.Columns {
		m := lang.ResultMember{Name: c.Name, Type: "string", Doc: c.Doc, Words: c.Words}
		switch c.Of(new(cabling.Action)).(type) {
		case int:
			m.Type = "int"
		case string:
			if c.Words == nil && c.Name != "id" && c.Name != "chain" {
				m.Doc += "; None if unknown"
			}
		}
		list = append(list, m)
	}
	return list
}

// CablingNameType is the type of a name.
var CablingNameType = &lang.ResultType{
	Name: "cabling_name",
	Doc:  "A device of a plan that has another name in the fabric, or was not found.",
	Members: []lang.ResultMember{
		{Name: "planned", Type: "string", Doc: "its name in the plan"},
		{Name: "found", Type: "string", Doc: "its name in the fabric; None: not found"},
		{Name: "by", Type: "string", Doc: `how it was identified: "spelling", "name" (the plan has another GUID), "serial" (number) or "cables"; None: not found`},
		{Name: "candidates", Type: "list of string", Doc: "devices with the same or similar names"},
		{Name: "cables", Type: "int", Doc: "number of its cables in the plan"},
	},
}

// CablingDeviceType is the type of a difference of a device.
var CablingDeviceType = &lang.ResultType{
	Name:      "cabling_device",
	Doc:       "What a plan states of a device besides its cables, and the fabric has otherwise.",
	Important: []string{"device", "field", "planned", "found"},
	Members: []lang.ResultMember{
		{Name: "device", Type: "string", Doc: "its name in the plan"},
		{Name: "node", Type: "string", Doc: "its name in the fabric; None: not found"},
		{Name: "guid", Type: "string", Doc: "its node GUID in the fabric; None: not found"},
		{Name: "field", Type: "string", Doc: "what differs", Words: []string{"model", "firmware", "serial", "role", "rail", "manager"}},
		{Name: "planned", Type: "string", Doc: "what the plan has"},
		{Name: "found", Type: "string", Doc: "what the fabric has"},
	},
}

// CompareCabling is cabling().
var CompareCabling = lang.Builtin{
	Name:    "cabling",
	Returns: "cabling",
	Group:   GroupFabric,
	Params: []lang.Param{
		{Name: "plan", Kind: lang.KindAny, Doc: "the plan: a file, as load_fabric reads it, or a fabric"},
		{Name: "fabric", Kind: KindFabric, Default: "None", Doc: "the fabric (default: the session's)"},
	},
	Doc: `Compares a plan of cables with a fabric: the differences, and the least number of actions that repair them.
Devices are matched by GUID, by name in different spellings, and by their cables. It needs no subnet manager and sends no requests besides those of discover().`,
	Example: `
> f = discover()
> sim.unlink("leaf-1/3")
> cabling(f, discover()).actions[0].verb
"connect"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Plan   starlark.Value
		Fabric *Fabric
	}) (starlark.Value, error) {
		plan, ok := a.Plan.(*Fabric)
		if path, isText := starlark.AsString(a.Plan); isText {
			var err error
			if plan, err = OpenFabric(c, path); err != nil {
				return nil, err
			}
		} else if !ok {
			return nil, lang.ParamError("plan", "%w", lang.WantType(a.Plan, "a file or a fabric"))
		}
		live := a.Fabric
		if live == nil {
			var err error
			if live, err = CurrentFabric(c.Thread); err != nil {
				return nil, err
			}
		}
		return WrapCabling(cabling.Compare(plan.Fabric, live.Fabric)), nil
	}),
}

// Cabling is the value `cabling`, with its own text.
type Cabling struct {
	*lang.Result
	report *cabling.Report
}

// WrapCabling returns the Starlark value of r.
func WrapCabling(r *cabling.Report) *Cabling {
	names := lang.List(r.Names, func(n cabling.Name) starlark.Value {
		return lang.NewResult(CablingNameType, starlark.String(n.Planned), lang.TextOrNone(n.Found), lang.TextOrNone(n.By), lang.Texts(n.Candidates), starlark.MakeInt(n.Cables))
	})
	devices := lang.List(r.Devices, func(d cabling.Difference) starlark.Value {
		return lang.NewResult(CablingDeviceType, starlark.String(d.Device), lang.TextOrNone(d.Node), lang.OrNone(d.GUID != 0, GUIDValue(d.GUID)), starlark.String(d.Field), starlark.String(d.Planned), starlark.String(d.Found))
	})
	return &Cabling{lang.NewResult(CablingType, starlark.Bool(r.Same()), starlark.Bool(r.Complete()), lang.List(r.Actions, wrapAction), wrapConflicts(r.Conflicts),
		lang.Texts(r.PlanFault), devices, names, lang.Texts(r.Strangers), lang.Texts(r.Unread), lang.Texts(r.NotCompared), starlark.MakeInt(r.Planned), starlark.MakeInt(r.Right), starlark.MakeInt(r.Unjudged)), r}
}

func wrapAction(x *cabling.Action) starlark.Value {
	var values []starlark.Value
	for _, c := range cabling.Columns {
		switch v := c.Of(x).(type) {
		case int:
			values = append(values, starlark.MakeInt(v))
		case string:
			values = append(values, lang.TextOrNone(v))
		}
	}
	return lang.NewResult(CablingActionType, values...)
}

// wrapConflicts returns the conflicts of a plan.
func wrapConflicts(list []fabric.PlanConflict) *starlark.List {
	text := func(s string) starlark.Value { return starlark.String(s) }
	far := func(u fabric.PlanUse) starlark.Value { return text(u.FarNode + "/" + u.FarPort) }
	return lang.List(list, func(c fabric.PlanConflict) starlark.Value {
		return lang.NewResult(PlanConflictType, text(c.Node), text(c.Port), text(c.First.Source), far(c.First), text(c.Second.Source), far(c.Second))
	})
}

// Display returns the text for people: a line of numbers, notes, and the actions by rack.
func (v *Cabling) Display() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(lang.OneLine(fmt.Sprintf(format, args...)) + "\n") }
	line("%s", v.report.Summary())
	for _, note := range v.report.Notes() {
		line("%s", note)
	}
	racks := v.report.Racks()
	named := slices.ContainsFunc(racks, func(r cabling.Rack) bool { return r.Name != "" })
	for _, rack := range racks {
		b.WriteString("\n")
		if name := rack.Name; named {
			if name == "" {
				name = "no rack stated"
			}
			line("%s", name)
		}
		for _, x := range rack.Actions {
			step := ""
			if x.Steps > 1 {
				step = fmt.Sprintf("step %d of %d: ", x.Step, x.Steps)
			}
			line("%s  %s%s", x.ID, step, x.Text())
			detail := func(name, text string) {
				if text != "" {
					b.WriteString("          " + lang.OneLine(name+" "+text) + "\n")
				}
			}
			detail("first:", x.First)
			detail(string(x.Kind)+":", x.Found)
			if x.Verb != cabling.Connect {
				detail("planned:", x.Planned)
			}
			detail("check:", x.Check)
			detail("cable:", strings.Trim(x.Label+"; "+x.Source, "; "))
		}
	}
	return b.String()
}
