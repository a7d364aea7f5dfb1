// Package health makes states of hosts of the findings of audits, for schedulers: a host is ok,
// degraded, unhealthy or unknown, with reasons.
//
//	health.go      Judge: hosts with states and reasons
//	rule.go        Rules: which finding makes which host what; their documentation
//	place.go       where a finding is, as seen from a host
//	unknown.go     what was not judged
//	name.go        names of hosts that others may have: shells, Slurm, Kubernetes
//	format.go      Formats: the outputs for other programs
//	slurm.go       commands for Slurm, and its list of drained nodes
//	npd.go         node-problem-detector; nvsentinel.go, NVSentinel
//
// It reads nothing from the fabric.

package hosts

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// Health is the state of a host. Of several reasons, the greatest state counts: what is known to
// be wrong remains so, whatever else was not judged.
type Health uint8

const (
	OK        Health = iota // all that was judged is healthy
	Unknown                 // nothing is known to be wrong, but something was not judged
	Degraded                // jobs may run slower
	Unhealthy               // jobs should not run
)

var states = []string{"ok", "unknown", "degraded", "unhealthy"}

// HealthNames are all states, the worst first.
func HealthNames() []Health { return []Health{Unhealthy, Degraded, Unknown, OK} }

func (s Health) String() string { return states[min(int(s), len(states)-1)] }

// Reason is why a host has a state.
type Reason struct {
	State    Health
	ID       string         // of the finding; "": something was not judged
	Check    string         // of the finding
	Severity audit.Severity // of the finding; 0 without
	Text     string         // in one line
}

// HostHealth is a host with its state.
type HostHealth struct {
	Name    string
	State   Health
	Reasons []Reason // the worst first
	Absent  bool     // it is not in the fabric
}

// HealthReport has the hosts of runs of audits, by name.
type HealthReport struct {
	Hosts []HostHealth
	// Unnamed are the names of adapters that do not name a host: their findings belong to no
	// host of the report.
	Unnamed []string
	// Incomplete is what the sweeps could not read, in words: hosts may be missing; "": nothing.
	Incomplete string
	// Judged are the checks that all runs did.
	Judged []string
	Time   time.Time // of the end of the latest run
}

// JudgeOptions choose the hosts.
type JudgeOptions struct {
	// Names are the hosts to report, also those that the fabric does not have; nil: those of the
	// fabric and the baseline.
	Names []string
	// Baseline is a fabric whose hosts are expected; may be nil.
	Baseline *fabric.Fabric
	// Missing are reasons why runs that belong to the reports are missing, such as of a rail: all
	// hosts are unknown.
	Missing []string
}

// Judge makes states of hosts of the reports of one run, or of one run for each rail. Findings that
// are acknowledged, or that the baseline has too, count no more than in the reports.
func Judge(reports []*audit.Report, o JudgeOptions) *HealthReport {
	j := &judgment{hosts: map[string]*host{}}
	unnamed := map[string]bool{}
	for _, r := range reports {
		j.add(r, unnamed)
	}
	if o.Baseline != nil {
		for name := range hostsOf(o.Baseline, map[string]bool{}) {
			j.expect(name, "in the baseline, but not in the fabric")
		}
	}
	for _, name := range o.Names {
		j.expect(name, "not in the fabric")
	}
	for _, h := range j.hosts {
		for _, why := range o.Missing {
			h.add(Reason{State: Unknown, Text: why})
		}
	}
	out := &HealthReport{Unnamed: slices.SortedFunc(maps.Keys(unnamed), fabric.CompareNames)}
	for i, r := range reports {
		if i == 0 {
			out.Judged = r.Judged
		}
		out.Judged = slices.DeleteFunc(slices.Clone(out.Judged), func(check string) bool { return !slices.Contains(r.Judged, check) })
		if r.Model != nil && !r.Model.Complete() {
			out.Incomplete = cmp.Or(out.Incomplete, r.Model.Missing())
		}
		if r.Ended.After(out.Time) {
			out.Time = r.Ended
		}
	}
	wanted := map[string]bool{}
	for _, name := range o.Names {
		wanted[name] = true
	}
	for name, h := range j.hosts {
		if o.Names == nil || wanted[name] {
			out.Hosts = append(out.Hosts, h.settle(name))
		}
	}
	slices.SortFunc(out.Hosts, func(a, b HostHealth) int { return fabric.CompareNames(a.Name, b.Name) })
	return out
}

// Has reports whether a host has the state.
func (r *HealthReport) Has(s Health) bool {
	return slices.ContainsFunc(r.Hosts, func(h HostHealth) bool { return h.State == s })
}

// Host returns the host of that name, or nil.
func (r *HealthReport) Host(name string) *HostHealth {
	if i := slices.IndexFunc(r.Hosts, func(h HostHealth) bool { return h.Name == name }); i >= 0 {
		return &r.Hosts[i]
	}
	return nil
}

// judgment is what Judge knows of hosts.
type judgment struct {
	hosts   map[string]*host
	reports int // that were added
}

// host collects the reasons of a host.
type host struct {
	reasons []Reason
	ports   int                 // with a link, in all reports
	far     map[string][]Reason // by such a port: faults of its other end
	absent  bool                // it is not in the fabric
	doubt   string              // why findings may be those of another host; "": they are not
}

func (j *judgment) host(name string) *host {
	h := j.hosts[name]
	if h == nil {
		h = &host{far: map[string][]Reason{}}
		j.hosts[name] = h
	}
	return h
}

// expect adds a host that is not in the fabric.
func (j *judgment) expect(name, why string) {
	if j.hosts[name] == nil {
		h := j.host(name)
		h.absent, h.reasons = true, []Reason{{State: Unknown, Text: why}}
	}
}

// add adds the hosts and findings of a report.
func (j *judgment) add(r *audit.Report, unnamed map[string]bool) {
	if r.Model == nil {
		return
	}
	p := newPlaces(r.Model, j, unnamed)
	for i := range r.Findings {
		p.addFinding(&r.Findings[i])
	}
	p.addUnknown(r)
}

// settle returns the host with its state.
func (h *host) settle(name string) HostHealth {
	out := HostHealth{Name: name, Reasons: h.reasons, Absent: h.absent}
	all := len(h.far) >= h.ports
	for _, port := range slices.Sorted(maps.Keys(h.far)) {
		for _, r := range h.far[port] {
			r.State = farRule(all).states[r.Severity-audit.Info]
			out.add(r)
		}
	}
	if h.doubt != "" {
		return HostHealth{Name: name, State: Unknown, Reasons: []Reason{{State: Unknown, Text: h.doubt}}}
	}
	slices.SortStableFunc(out.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(b.Severity, a.Severity), strings.Compare(a.ID, b.ID))
	})
	for _, r := range out.Reasons {
		out.State = max(out.State, r.State)
	}
	return out
}

// add adds a reason, once.
func (h *HostHealth) add(r Reason) {
	if r.State != OK && !slices.Contains(h.Reasons, r) {
		h.Reasons = append(h.Reasons, r)
	}
}
