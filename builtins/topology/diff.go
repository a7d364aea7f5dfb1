package topology

import (
	"reflect"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/diff"
)

// DiffType is the type of what fabric.diff() returns.
var DiffType = &lang.ResultType{
	Name: "fabric_diff",
	Doc:  "The differences between two snapshots of a fabric.",
	Members: []lang.ResultMember{
		{Name: "same", Doc: "whether everything that was compared is equal"},
		{Name: "complete", Doc: "whether both sides got answers to all their requests"},
		{Name: "changes", Doc: "the differences: a list of change, each effect after its cause"},
		{Name: "not_compared", Doc: "what one side does not contain at all, such as the settings of ports in a file of ibnetdiscover: strings"},
		{Name: "unread", Doc: "what one side requested without an answer, which does not count as a change: strings"},
	},
}

// ChangeType is the type of one difference.
var ChangeType = &lang.ResultType{
	Name: "change",
	Doc:  "One difference between two snapshots of a fabric.",
	Members: []lang.ResultMember{
		{Name: "kind", Type: "string", Doc: `kind of difference: "node.gone", "node.new", "node.replaced" (another GUID at the same cables), "node.name", "link.gone", "link.new", "link.moved" (one end of a cable), "link.swapped" (ends exchanged), "link.width", "link.speed", "routes", "table.lft" and other tables, or "node.", "switch." or "port." and a field of NodeInfo, SwitchInfo or PortInfo: "port.neighbor_mtu"`},
		{Name: "subject", Doc: `the node "leaf-3", the port "leaf-3/7", the link "leaf-3/7 - spine-1/2", by the names of the newer side; odd names are quoted`},
		{Name: "before", Doc: "the old value, a string; None: it did not exist"},
		{Name: "after", Doc: "the new value, a string; None: it no longer exists"},
		{Name: "effect", Doc: `the effects, counted, or the remedy: "12 pairs rerouted, max load +1", "swap the cables at leaf-3/7 and leaf-3/9"; None without either`},
		{Name: "cause", Doc: "the subject of the change that caused this one; None: this change is a cause"},
		{Name: "guid", Type: "string", Doc: "node GUID of the subject, or of the first end of a link; None if it has none"},
		{Name: "port", Doc: "port number on that node; None if the subject has none"},
	},
}

// KindFabric is the kind of a parameter that takes a fabric.
var KindFabric = &lang.Kind{Type: reflect.TypeFor[*Fabric](), Convert: func(v starlark.Value) (any, error) {
	if _, ok := v.(*Fabric); !ok {
		return nil, lang.WantType(v, "fabric")
	}
	return v, nil
}}

// diffMethod is fabric.diff().
var diffMethod = lang.Builtin{
	Name:   "diff",
	Params: []lang.Param{{Name: "other", Kind: KindFabric, Doc: "the newer fabric"}},
	Doc: `Compares the fabric with a newer snapshot of it: nodes, cables, settings, and the tables in both.
Nodes are matched by GUID, then by the place of their cables; if a file has no GUIDs, by name. What one side could not read is in unread and does not count as a change. No requests are sent.`,
	Example: `
> old = discover()
> sim.unlink("leaf-1/3")
> old.diff(discover())
node.gone  node-0003 HCA-1  (ca, 1 port)  1 link
  link.gone  leaf-1/3 - node-0003 HCA-1/1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Other *Fabric }) (starlark.Value, error) {
		r, err := diff.Compare(c.Fiber().Context, c.Recv.(*Fabric).Fabric, a.Other.Fabric)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return WrapDiff(r), nil
	}),
}

// Diff is the value `fabric_diff`, with its own text.
type Diff struct {
	*lang.Result
	report *diff.Report
}

// WrapDiff returns the Starlark value of r.
func WrapDiff(r *diff.Report) *Diff {
	return &Diff{lang.NewResult(DiffType, starlark.Bool(r.Same()), starlark.Bool(r.Complete()), wrapChanges(r), lang.Texts(r.NotCompared), lang.Texts(r.Unread)), r}
}

// Display returns the text for people.
func (d *Diff) Display() string { return diffText(d.report) }

// wrapChanges returns the changes of r as a list, each effect after its cause.
func wrapChanges(r *diff.Report) *starlark.List {
	var out []starlark.Value
	var add func(list []*diff.Change, cause starlark.Value)
	add = func(list []*diff.Change, cause starlark.Value) {
		for _, x := range list {
			out = append(out, lang.NewResult(ChangeType, starlark.String(x.Kind), starlark.String(x.Subject), lang.TextOrNone(x.Before), lang.TextOrNone(x.After), lang.TextOrNone(x.Effect), cause, lang.OrNone(x.GUID != 0, GUIDValue(x.GUID)), lang.OrNone(x.Port != diff.NoPort, starlark.MakeInt(x.Port))))
			add(x.Effects, starlark.String(x.Subject))
		}
	}
	add(r.Changes, starlark.None)
	return starlark.NewList(out)
}
