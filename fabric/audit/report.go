package audit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Report is the result of one run.
type Report struct {
	Subnet    fabric.Subnet
	Fabric    string   // in one line
	Port      string   // that the run was made from; "": a file
	Rail      string   // the port, where the run is one of several from a host
	Audits    []string // that ran
	Coverage  Coverage
	Findings  []Finding // to be reported
	Acked     []Acked   // acknowledged
	Grown     []Acked   // those of Findings that have outgrown their ack
	Known     int       // how many the baseline has too
	Silent    []Subject // known not to answer, and left out of Coverage
	Failures  []Failure // audits that did not run
	Checks    int       // how many checks the audits have
	Judged    []string  // the checks that were done; an audit that declares none counts as one
	Unjudged  []Unjudged
	Idle      []Idle   // audits that judged nothing
	Notes     []string // other remarks
	Datagrams uint64   // that were sent

	// For programs that want figures: the fabric, or nil; the
	// counters that were read; what audits measured; and when.
	Model        *fabric.Fabric
	Rates        []PortRates
	Metrics      []Metric
	Began, Ended time.Time
}

// Acked is an acknowledged finding with its ack.
type Acked struct {
	Finding
	Ack *Ack
	Now float64 // Ack.CountOf all findings
}

// Failure is an audit that did not run, or not to its end.
type Failure struct {
	Audit   string
	Err     error
	Skipped bool // its input is missing, and it was not requested by name
}

// Why returns the reason in one line.
func (f *Failure) Why() string {
	if f.Skipped {
		return "it needs a live fabric; this is a file"
	}
	line, _, _ := strings.Cut(f.Err.Error(), "\n")
	return strings.TrimPrefix(line, "fail: ") // of the script
}

// ErrCut reports that audits do not run on a part of a fabric: missing nodes could not be
// distinguished from nodes that were not read.
var ErrCut = errors.New("the sweep was cut short; a part of a fabric is not judged")

// ErrUnmanaged is in the error of an audit that needs LIDs or the subnet administrator, which the
// fabric does not have.
var ErrUnmanaged = errors.New("it needs LIDs and the subnet administrator")

// Note adds a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Fail adds that an audit did not run because of err.
func (r *Report) Fail(audit string, err error) {
	r.Failures = append(r.Failures, Failure{Audit: audit, Err: err})
}

// silence are the checks whose subjects are known not to answer.
var silence = map[string]bool{"port.unresponsive": true, "node.silent": true}

// silent returns the subjects of f that are known not to answer, by what acks cover of it.
func (f *Finding) silent(c *cover) (list []Subject) {
	if !c.full && !c.grown {
		if silence[f.Check] {
			list = c.acked
		}
		return list
	}
	all := append([]Finding{*f}, f.Merged...)
	if !slices.ContainsFunc(all, func(g Finding) bool { return silence[g.Check] }) {
		return nil
	}
	for _, g := range all {
		list = append(list, g.Subject)
		for _, m := range g.Members {
			if !g.Subject.Covers(m) {
				list = append(list, m)
			}
		}
	}
	return list
}

// Settle selects the findings of found to be reported: not those that acks acknowledge, nor
// those that the baseline has. A finding with members is left out if this holds for each of them.
// A node without answers that is acknowledged no longer counts as missing. baseline has the IDs
// of the findings of the baseline.
func (r *Report) Settle(found []Finding, acks Acks, baseline map[string]bool, now time.Time) {
	x := acks.index(found, now)
	for i := range found {
		f := found[i]
		c, known := x.cover(&f), f.isKnown(baseline)
		switch a := c.ack; {
		case c.grown && !known:
			r.Grown = append(r.Grown, Acked{f, a, x.counts[a]})
		case c.full, c.grown, !known && f.isKnownBut(c.acked, baseline):
			r.Acked = append(r.Acked, Acked{f, a, x.counts[a]})
			r.Silent = append(r.Silent, f.silent(&c)...)
			continue
		case known:
			r.Known++
			continue
		case c.count > 0:
			f.Message += fmt.Sprintf("; %d of %d acknowledged", c.count, len(f.units()))
			r.Silent = append(r.Silent, f.silent(&c)...)
		case a != nil:
			r.Notes = append(r.Notes, "the ack of "+f.ID()+" ended after "+a.Until.Format(day)+": "+a.Reason)
		}
		if n := f.knownUnits(baseline); n > 0 && len(f.Members) > 0 {
			f.Message += fmt.Sprintf("; %d of %d also in the baseline", n, len(f.units()))
		}
		r.Findings = append(r.Findings, f)
	}
	reported := map[string]bool{}
	for i := range r.Findings {
		reported[r.Findings[i].ID()] = true
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; !reported[f.Cause] {
			f.Cause = "" // it is not in the report
		}
	}
	r.Coverage.Excuse(func(s Subject) bool {
		return slices.ContainsFunc(r.Silent, func(known Subject) bool { return known.Covers(s) })
	})
}

// Complete reports whether everything was read, and all checks of all audits were done.
func (r *Report) Complete() bool {
	return r.Answered() && len(r.Failures) == 0 && len(r.Unjudged) == 0
}

// Answered reports whether all requests were answered, or the file has links; and all audits ran
// that could run on this fabric.
func (r *Report) Answered() bool {
	failed := slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Skipped })
	return !failed && r.Coverage.Complete() && (r.Model == nil || !r.Model.LinksUnknown())
}

// Worst returns the severity of the worst finding; 0 without one.
func (r *Report) Worst() (worst Severity) {
	for i := range r.Findings {
		worst = max(worst, r.Findings[i].Severity)
	}
	return worst
}

// Counts returns how many findings there are, by severity, the worst first; "": none.
func (r *Report) Counts() string {
	var parts []string
	for s := Critical; s >= Info; s-- {
		n := 0
		for i := range r.Findings {
			if r.Findings[i].Severity == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, s.Count(n))
		}
	}
	return strings.Join(parts, ", ")
}

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

// Manager is the name of the need of checks of LIDs, paths, and what the subnet manager sets.
const Manager = "manager"

// needs are all needs.
var needs = []Need{
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
	{Manager, "a subnet manager", nodes(func(n *fabric.Node) bool { return n.Fabric().Unmanaged() == "" }), ofNodes, false},
	{"links", "links", nodes(func(n *fabric.Node) bool { return !n.Fabric().LinksUnknown() }), ofNodes, false},
	{"unlinked", "PortInfo of ports without a link", unlinked, ofPorts, false},
	{"switchinfo", "SwitchInfo", switches, ofSwitches, false},
	{"counters", "counters of two reads", nil, [2]string{}, false},  // the run knows whether there are two
	{Past, "observations of earlier runs", nil, [2]string{}, false}, // a first run begins them, and reports nothing
}

// assigned reports whether f has a problem of kind k: fabsh assigned what its file lacked.
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

// all counts all nodes if one has something that single nodes may lack: then the file has it.
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
// an upper-case letter names an attribute, which the audit requests.
func NeedByName(name string) (*Need, error) {
	if name != "" && 'A' <= name[0] && name[0] <= 'Z' {
		return &Need{Name: name, Doc: name, attribute: true}, nil
	}
	i := slices.IndexFunc(needs, func(n Need) bool { return n.Name == name })
	if i < 0 {
		var names []string
		for _, n := range needs {
			names = append(names, n.Name)
		}
		return nil, fmt.Errorf("unknown need %q%s; supported: %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
	}
	return &needs[i], nil
}

// Unjudged is a check that was not done, or not for all of the fabric.
type Unjudged struct {
	Audit, Check string
	Needs        string // what it needs, in words
	Lacked       string // what the run lacked of these needs
	// Answers reports that it needs answers to requests: the coverage has the subjects whose
	// answers are missing. Without, the check is done for no subject.
	Answers bool
}

// Idle is an audit that ran and judged nothing.
type Idle struct {
	Audit  string
	Named  bool   // it was requested by name
	Lacked string // what the run lacked of what it needs
}

// SetIdle sets Idle if an audit judged nothing: each of its checks is in Unjudged, and it had no
// answer. some reports that it had a part of what a check needs, or found something.
func (r *Report) SetIdle(audit string, checks int, named, some bool) {
	var lacks []string
	left := map[string]bool{}
	for _, u := range r.Unjudged {
		if u.Audit == audit {
			left[u.Check] = true
			if !slices.Contains(lacks, u.Lacked) {
				lacks = append(lacks, u.Lacked)
			}
		}
	}
	if !some && len(left) > 0 && len(left) >= checks && r.Coverage.answered(audit) == 0 {
		r.Idle = append(r.Idle, Idle{Audit: audit, Named: named, Lacked: strings.Join(lacks, "; ")})
	}
}

// UnjudgedChecks are the checks that were not done for one reason.
type UnjudgedChecks struct {
	Lacked string
	Checks []string
}

// UnjudgedChecks returns the checks that were not done, by what the run lacked. Checks of audits
// that did not run, or judged nothing, are left out: Failures and Idle have these audits.
func (r *Report) UnjudgedChecks() (list []UnjudgedChecks) {
	for _, u := range r.Unjudged {
		if slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Audit == u.Audit }) || slices.ContainsFunc(r.Idle, func(x Idle) bool { return x.Audit == u.Audit }) {
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
// that nothing supports is lacking, one that some do not support is not. some reports that the run
// has a part of n.
func (n *Need) Lack(f *fabric.Fabric, audit string, c *Coverage) (lack string, some bool) {
	if n.attribute {
		return c.lack(audit, n.Name), c.answered(audit) > 0
	}
	if n.count == nil {
		return "", false
	}
	have, of := n.count(f)
	switch {
	case n.Name == Manager:
		return f.Unmanaged(), false
	case n.ofLinks() && f.LinksUnknown():
		return "not read: links", false
	case have == of:
		return "", false
	case have == 0:
		return "not read: " + n.Doc, false
	}
	return fmt.Sprintf("%s: not read of %d of %s", n.Doc, of-have, plural.Count(of, n.what[0], n.what[1])), true
}

// ofLinks reports whether n is information about ports with or without a link.
func (n *Need) ofLinks() bool { return n.what == ofLinks || n.what == ofPorts }

// Metric is a value that a script gives a name, for Prometheus.
type Metric struct {
	Name, Help string
	Labels     []string // names and values, by turns
	Value      float64
}

// IsCounter reports whether the value never falls, except when counting restarts. By the naming
// rules of Prometheus such names, and no others, end with _total.
func (m *Metric) IsCounter() bool { return strings.HasSuffix(m.Name, "_total") }

// Names that all versions of Prometheus accept (prometheus.io/docs/concepts/data_model).
var (
	metricName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`) })
	labelName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`) })
)

// maxMetricName is how long a name may be, in bytes.
const maxMetricName = 256

// CheckMetricName returns nil if name is valid for a metric.
func CheckMetricName(name string) error {
	if len(name) > maxMetricName || !metricName().MatchString(name) {
		return fmt.Errorf("invalid metric name %.80q; use letters, digits and _, a digit not first: \"site_links_down\"", name)
	}
	return nil
}

// CheckLabelName returns nil if name is valid for a label.
func CheckLabelName(name string) error {
	if len(name) > maxMetricName || !labelName().MatchString(name) || strings.HasPrefix(name, "__") {
		return fmt.Errorf("invalid label name %.80q; use letters, digits and _, neither a digit nor __ first", name)
	}
	return nil
}
