package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// PlaceType is the type of node.place.
var PlaceType = &lang.ResultType{
	Name: "place",
	Doc:  "Where a device is, as the plan of the fabric writes it.",
	Members: []lang.ResultMember{
		{Name: "hall", Doc: "hall of the data centre; None if not stated"},
		{Name: "row", Doc: "row in the hall; None if not stated"},
		{Name: "rack", Doc: "rack; None if not stated"},
		{Name: "unit", Doc: `unit in the rack: "41"; None if not stated`},
	},
}

// placeOf returns the value of a place; None if nothing is stated.
func placeOf(p fabric.Place) starlark.Value {
	if p == (fabric.Place{}) {
		return starlark.None
	}
	return lang.NewResult(PlaceType, lang.TextOrNone(p.Hall), lang.TextOrNone(p.Row), lang.TextOrNone(p.Rack), lang.TextOrNone(p.Unit))
}

// CablePlanType is the type of fabric.plan.
var CablePlanType = &lang.ResultType{
	Name: "cable_plan",
	Doc:  "What a plan of cables states besides nodes and links. Places of nodes are node.place, labels of cables link.label.",
	Members: []lang.ResultMember{
		{Name: "conflicts", Type: "list of plan_conflict", Doc: "the ends that the plan uses more than once"},
		{Name: "unread", Type: "list of string", Doc: "the rows that could not be used: sheet, row, column and cause"},
		{Name: "models", Type: "dict", Doc: "model by name of the node, as the plan writes it"},
		{Name: "firmware", Type: "dict", Doc: "firmware by name of the node"},
		{Name: "serials", Type: "dict", Doc: "serial number by name of the node"},
		{Name: "roles", Type: "dict", Doc: `role by name of the node: "host", "storage"`},
		{Name: "rails", Type: "dict", Doc: "rail by name of the node"},
		{Name: "managers", Type: "list of string", Doc: "the nodes that should run the subnet manager"},
		{Name: "partitions", Type: "list of string", Doc: "the partitions that should exist"},
		{Name: "partial", Doc: `the part of a fabric that the plan describes: "hosts and switches, no ports"; None if it has all cables`},
	},
}

// PlanConflictType is the type of an element of the conflicts of a plan.
var PlanConflictType = &lang.ResultType{
	Name:      "plan_conflict",
	Doc:       "An end that a plan of cables uses more than once.",
	Important: []string{"node", "port", "first", "first_far", "second", "second_far"},
	Members: []lang.ResultMember{
		{Name: "node", Type: "string", Doc: "name of the node"},
		{Name: "port", Type: "string", Doc: "its port, as the plan writes it"},
		{Name: "first", Type: "string", Doc: `where it is used first: "sheet CL row 7"; this cable is in links`},
		{Name: "first_far", Type: "string", Doc: "the other end there"},
		{Name: "second", Type: "string", Doc: "where it is used again; this cable is not in links"},
		{Name: "second_far", Type: "string", Doc: "the other end there"},
	},
}

// planOf returns the value of the plan of f; None if f was not read from one.
func planOf(f *fabric.Fabric) starlark.Value {
	p := f.Plan()
	if p == nil {
		return starlark.None
	}
	text := func(s string) starlark.Value { return starlark.String(s) }
	byNode := func(list []string) starlark.Value {
		d := new(starlark.Dict)
		for id, s := range list {
			if s != "" {
				d.SetKey(starlark.String(f.Nodes()[id].Name()), starlark.String(s))
			}
		}
		return d
	}
	v := lang.NewResult(CablePlanType, wrapConflicts(p.Conflicts), lang.List(p.Unread, text), byNode(p.Models), byNode(p.Firmware), byNode(p.Serials), byNode(p.Roles), byNode(p.Rails),
		lang.List(p.Managers, text), lang.List(p.Partitions, text), lang.TextOrNone(p.Partial))
	v.Freeze()
	return v
}
