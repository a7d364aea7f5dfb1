package audit

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Need is information that checks need and a fabric may lack: files have less than a sweep.
type Need struct {
	Name string // in scripts: "state"
	Doc  string // in reports: "states of ports"
	// count returns how many items of the fabric have it, and how many there are.
	count func(f *fabric.Fabric) (have, of int)
	what  [2]string // items, in the singular and plural
	// attribute reports whether it is answers to requests of the audit.
	attribute bool
}

var (
	ofLinks    = [2]string{"end of a link", "ends of links"}
	ofPorts    = [2]string{"switch port without a link", "switch ports without a link"}
	ofSwitches = [2]string{"switch", "switches"}
	ofNodes    = [2]string{"node", "nodes"}
)

// Past is the name of the need of checks that compare with observations of earlier runs.
const Past = "past"

// Needs are all of them.
var Needs = []Need{
	// Of nodes.
	{"guids", "GUIDs", nodes(func(n *fabric.Node) bool { return !assigned(n.Fabric(), fabric.ProblemAssignedGUIDs) }), ofNodes, false},
	{"lids", "LIDs", nodes(func(n *fabric.Node) bool { return !assigned(n.Fabric(), fabric.ProblemAssignedLIDs) }), ofNodes, false},
	{"names", "names of nodes", all(func(n *fabric.Node) bool { return n.Name() != "" }), ofNodes, false},
	{"model", "vendors and devices", all(func(n *fabric.Node) bool { return n.Info().DeviceID != 0 }), ofNodes, false},
	{"revision", "revisions of devices", all(func(n *fabric.Node) bool { return n.Info().Revision != 0 }), ofNodes, false},
	{"system", "SystemImageGUIDs", all(func(n *fabric.Node) bool { return n.Info().SystemImageGUID != 0 }), ofNodes, false},
	{"state", "states of ports", linked(func(p *fabric.Port) bool { return p.State() != 0 }), ofLinks, false},
	{"rate", "widths and speeds in use", linked(func(p *fabric.Port) bool { return p.Width() != "" && p.Speed() != "" }), ofLinks, false},
	{"supported", "supported and enabled widths and speeds", linked(func(p *fabric.Port) bool { return p.Info().LinkWidthSupported != 0 && p.Info().LinkSpeedSupported != 0 }), ofLinks, false},
	{"portinfo", "PortInfo beyond states and rates", linked(func(p *fabric.Port) bool { return p.Info().MTUCap != 0 }), ofLinks, false},
	{"unlinked", "PortInfo of ports without a link", unlinked, ofPorts, false},
	{"switchinfo", "SwitchInfo", switches, ofSwitches, false},
	{"counters", "counters of two reads", nil, [2]string{}, false},  // the run knows whether there are two
	{Past, "observations of earlier runs", nil, [2]string{}, false}, // a first run begins them, and reports nothing
}

func assigned(f *fabric.Fabric, k fabric.ProblemKind) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == k })
}

// nodes counts the nodes that have something.
func nodes(has func(n *fabric.Node) bool) func(f *fabric.Fabric) (have, of int) {
	return func(f *fabric.Fabric) (have, of int) {
		for i := range f.Nodes() {
			if has(&f.Nodes()[i]) {
				have++
			}
		}
		return have, len(f.Nodes())
	}
}

// all is for what a node may lack by itself: if a node of a file has it, the file has it.
func all(has func(n *fabric.Node) bool) func(f *fabric.Fabric) (have, of int) {
	return func(f *fabric.Fabric) (have, of int) {
		of = len(f.Nodes())
		for i := range f.Nodes() {
			if n := &f.Nodes()[i]; n.Route() != nil || has(n) {
				return of, of
			}
		}
		return 0, of
	}
}

// linked counts the ends of links that have something. PortInfo that a sweep read is complete,
// whatever is 0 in it.
func linked(has func(p *fabric.Port) bool) func(f *fabric.Fabric) (have, of int) {
	return func(f *fabric.Fabric) (have, of int) {
		for i := range f.Ports() {
			p := &f.Ports()[i]
			if p.Peer() == nil {
				continue
			}
			if of++; p.Info() != nil && (p.Node().Route() != nil || has(p)) {
				have++
			}
		}
		return have, of
	}
}

func unlinked(f *fabric.Fabric) (have, of int) {
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Peer() != nil || p.Num() == 0 || !p.Node().IsSwitch() {
			continue
		}
		if of++; p.Info() != nil && (p.Node().Route() != nil || p.PhysicalState() != 0) {
			have++
		}
	}
	return have, of
}

func switches(f *fabric.Fabric) (have, of int) {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if !n.IsSwitch() {
			continue
		}
		if of++; n.SwitchInfo() != nil && (n.Route() != nil || n.SwitchInfo().LinearFDBCap != 0) {
			have++
		}
	}
	return have, of
}

// NeedByName returns the need of that name, or an error that lists all. A name that begins with
// an upper-case letter is that of an attribute, which the audit requests.
func NeedByName(name string) (*Need, error) {
	if name != "" && 'A' <= name[0] && name[0] <= 'Z' {
		return &Need{Name: name, Doc: name, attribute: true}, nil
	}
	i := slices.IndexFunc(Needs, func(n Need) bool { return n.Name == name })
	if i < 0 {
		var names []string
		for _, n := range Needs {
			names = append(names, n.Name)
		}
		return nil, fmt.Errorf("unknown need %q%s; supported: %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
	}
	return &Needs[i], nil
}

// Unjudged is a check that was not done, or not for all of the fabric.
type Unjudged struct {
	Audit, Check string
	Needs        string // what it needs, in words
	Lacked       string // what of that the run did not have
	// Answers reports that it needs answers to requests: the coverage has the subjects whose
	// answers are missing. Without, the check is done for no subject.
	Answers bool
}

// UnjudgedChecks are checks that were not done for the same reason.
type UnjudgedChecks struct {
	Lacked string
	Checks []string
}

// UnjudgedChecks returns the checks that were not done, by what the run lacked. Those of audits
// that did not run are left out: Failures has these audits.
func (r *Report) UnjudgedChecks() (list []UnjudgedChecks) {
	for _, u := range r.Unjudged {
		if slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Audit == u.Audit }) {
			continue
		}
		i := slices.IndexFunc(list, func(same UnjudgedChecks) bool { return same.Lacked == u.Lacked })
		if i < 0 {
			i, list = len(list), append(list, UnjudgedChecks{Lacked: u.Lacked})
		}
		if !slices.Contains(list[i].Checks, u.Check) {
			list[i].Checks = append(list[i].Checks, u.Check)
		}
	}
	return list
}

// IsAttribute reports whether n is answers to requests of an audit.
func (n *Need) IsAttribute() bool { return n.attribute }

// Lack returns what a run of an audit lacks of n, in words; "" if it lacks nothing. An attribute
// that nothing supports is lacking, one that some do not support is not.
func (n *Need) Lack(f *fabric.Fabric, audit string, c *Coverage) string {
	if n.attribute {
		return c.lack(audit, n.Name)
	}
	if n.count == nil {
		return ""
	}
	have, of := n.count(f)
	switch {
	case have == of:
		return ""
	case have == 0:
		return "not read: " + n.Doc
	}
	return fmt.Sprintf("%s: not read of %d of %s", n.Doc, of-have, plural.Count(of, n.what[0], n.what[1]))
}
