package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// Health is the state of a host. Of several reasons, the greatest state counts: what is known to
// be wrong remains so, whatever else was not judged.
type Health uint8

const (
	OK        Health = iota // all that was judged is healthy
	Unknown                 // nothing is known to be wrong, but something was not judged
	Degraded                // jobs may run slower
	Unhealthy               // jobs should not run
	Down                    // it is not in the fabric, and the ports that it was linked to have no link
)

var healthWords = []string{"ok", "unknown", "degraded", "unhealthy", "down"}

// HealthNames are all states, the worst first.
func HealthNames() []Health { return []Health{Down, Unhealthy, Degraded, Unknown, OK} }

func (s Health) String() string { return healthWords[min(int(s), len(healthWords)-1)] }

// Reason is why a host has a state.
type Reason struct {
	State    Health
	ID       string         // of the finding; "": something was not judged
	Check    string         // of the finding
	Severity audit.Severity // of the finding; 0 without
	Text     string         // in one line
	Message  string         // of the finding: Text without the name of its subject
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
	// Unnamed are the adapters whose names identify no host: their findings belong to no host of
	// the report. They are in the order of their names.
	Unnamed []Unnamed
	// Incomplete is what the sweeps could not read, in words: hosts may be missing; "": nothing.
	Incomplete string
	// Judged are the checks that all runs did.
	Judged []string
	Time   time.Time // of the end of the latest run
}

// Unnamed is an adapter whose name identifies no host.
type Unnamed struct {
	GUID mad.GUID
	Name string
	Leaf string // the other end of its first link; "": without a link
	Why  string // in words
}

// unidentified describes an adapter.
func unidentified(n *fabric.Node) Unnamed {
	u := Unnamed{GUID: n.GUID(), Name: n.Name(), Why: cmp.Or(fabric.Unidentified(n.Name()), "it is not that of a host and its adapter")}
	if n.Name() == "" {
		u.Why = "it is empty"
	}
	for p := range n.Ports() {
		if q := p.Peer(); q != nil {
			u.Leaf = q.Name()
			break
		}
	}
	return u
}

// String returns the adapter with its name, GUID and place.
func (u Unnamed) String() string {
	if u.Leaf == "" {
		return fmt.Sprintf("%.80q (%s)", u.Name, u.GUID)
	}
	return fmt.Sprintf("%.80q (%s at %.80q)", u.Name, u.GUID, u.Leaf)
}

// compareUnnamed orders by name, then GUID.
func compareUnnamed(a, b Unnamed) int {
	return cmp.Or(fabric.CompareNames(a.Name, b.Name), cmp.Compare(a.GUID, b.GUID))
}

// JudgeOptions choose the hosts.
type JudgeOptions struct {
	// Names are the hosts to report, including hosts that the fabric does not have; nil: the
	// hosts of the fabric and the baseline.
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
	unnamed := map[mad.GUID]Unnamed{}
	for _, r := range reports {
		j.add(r, unnamed)
	}
	if o.Baseline != nil {
		for name, nodes := range hostsOf(o.Baseline, map[mad.GUID]Unnamed{}) {
			if r := unplugged(nodes, reports); j.hosts[name] == nil && r.State == Down {
				j.absent(name, r)
			} else {
				j.expect(name, absentWord+" in the fabric, but in the baseline")
			}
		}
	}
	for _, name := range o.Names {
		j.expect(name, absentWord+" in the fabric")
	}
	for _, h := range j.hosts {
		for _, why := range o.Missing {
			h.add(Reason{State: Unknown, Text: why})
		}
	}
	out := &HealthReport{Unnamed: slices.SortedFunc(maps.Values(unnamed), compareUnnamed)}
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
	doubt   string              // why findings may be of another host; "": they are not
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
		j.absent(name, Reason{State: Unknown, Text: why})
	}
}

// absent adds a host that is not in the fabric, with the reason.
func (j *judgment) absent(name string, r Reason) {
	h := j.host(name)
	h.absent, h.reasons = true, []Reason{r}
}

// unplugged returns the state Down with the reason if all ports that the adapters of a host were
// linked to in the baseline report that they have no link; else no reason.
func unplugged(nodes []*fabric.Node, reports []*audit.Report) (r Reason) {
	var ports []string
	for _, n := range nodes {
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil {
				continue
			}
			if !hasNoLink(q, reports) {
				return Reason{}
			}
			ports = append(ports, q.Name())
		}
	}
	if ports == nil {
		return Reason{}
	}
	text := absentWord + " in the fabric; no link at " + strings.Join(ports, ", ")
	return Reason{State: Down, Text: text}
}

// hasNoLink reports whether a port of a switch was read by a run and has no link.
func hasNoLink(p *fabric.Port, reports []*audit.Report) bool {
	for _, r := range reports {
		if r.Model == nil {
			continue
		}
		if nodes := r.Model.NodeByGUID(p.Node().GUID()); len(nodes) == 1 && nodes[0].IsSwitch() {
			q := nodes[0].Port(p.Num())
			return q != nil && q.Info() != nil && q.Peer() == nil && q.PhysicalState() != mad.PortPhysicalStateLinkUp
		}
	}
	return false
}

// add adds the hosts and findings of a report.
func (j *judgment) add(r *audit.Report, unnamed map[mad.GUID]Unnamed) {
	if r.Model == nil {
		return
	}
	p := newHostIndex(r.Model, j, unnamed)
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
			out.Reasons = addReason(out.Reasons, r)
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

// addReason adds a reason that is not OK to a list, once.
func addReason(list []Reason, r Reason) []Reason {
	if r.State == OK || slices.Contains(list, r) {
		return list
	}
	return append(list, r)
}

// location is where a finding is, as seen from a host.
type location uint8

const (
	own      location = 1 << iota // one of its adapters, or a port of it
	link                          // the link of one of its ports
	allFar                        // what all its links lead to: ports of switches, or switches
	someFar                       // what some of its links lead to
	away                          // all else
	anyPort  = own | link | allFar | someFar
	anywhere = anyPort | away
)

// hostIndex finds the hosts of a fabric at nodes and ports.
type hostIndex struct {
	f      *fabric.Fabric
	all    *judgment
	own    map[mad.GUID][]string  // hosts by adapter
	behind map[mad.GUID][]farPort // ports of hosts by switch
}

// farPort is a port of a host behind a port of a switch.
type farPort struct {
	num  int // of the switch
	host string
	port string // of the host, unlike all others
}

// newHostIndex adds the hosts of f to j, and the adapters that do not name a host to unnamed.
func newHostIndex(f *fabric.Fabric, j *judgment, unnamed map[mad.GUID]Unnamed) *hostIndex {
	j.reports++
	p := &hostIndex{f: f, all: j, own: map[mad.GUID][]string{}, behind: map[mad.GUID][]farPort{}}
	for name, nodes := range hostsOf(f, unnamed) {
		h := j.host(name)
		p.addDoubts(name, nodes)
		for _, n := range nodes {
			p.own[n.GUID()] = append(p.own[n.GUID()], name)
			for port := range n.Ports() {
				if q := port.Peer(); q != nil {
					h.ports++
					p.behind[q.Node().GUID()] = append(p.behind[q.Node().GUID()], farPort{q.Num(), name, fmt.Sprintf("%d/%d", j.reports, port.ID())})
				}
			}
		}
	}
	return p
}

// hostsOf returns the adapters of f by host. It adds adapters whose names identify no host to unnamed.
func hostsOf(f *fabric.Fabric, unnamed map[mad.GUID]Unnamed) map[string][]*fabric.Node {
	hosts := map[string][]*fabric.Node{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.Type() != mad.NodeTypeCA || n.Kind() == fabric.KindAggregation {
			continue
		}
		if name, ok := fabric.HostName(n.Name()); ok {
			hosts[name] = append(hosts[name], n)
		} else {
			unnamed[n.GUID()] = unidentified(n)
		}
	}
	return hosts
}

// affectedHost is a host that a subject concerns.
type affectedHost struct {
	host string
	at   location
	port string // at far ends: the port of the host
}

// affected returns the hosts that a subject concerns.
func (p *hostIndex) affected(s audit.Subject) (list []affectedHost) {
	for _, e := range s.Ends {
		for _, name := range p.own[e.Node] {
			at := own
			if s.Kind == audit.KindLink {
				at = link
			}
			list = append(list, affectedHost{host: name, at: at})
		}
		if s.Kind == audit.KindLink {
			continue // of a host's link, the host is an end
		}
		for _, b := range p.behind[e.Node] {
			if e.Num == audit.NoPort || e.Num == 0 || e.Num == b.num {
				list = append(list, affectedHost{b.host, someFar, b.port})
			}
		}
	}
	return list
}

// addFinding adds a finding to the hosts that it concerns.
func (p *hostIndex) addFinding(f *audit.Finding) {
	for _, s := range append([]audit.Subject{f.Subject}, f.Members...) {
		p.addAt(f, s)
	}
	for i := range f.Merged {
		m := f.Merged[i] // one fault: reported under the ID that absorbed it
		for _, s := range append([]audit.Subject{m.Subject}, m.Members...) {
			p.addAt(f, s)
		}
	}
}

// addAt adds a finding to the hosts that one of its subjects concerns.
func (p *hostIndex) addAt(f *audit.Finding, s audit.Subject) {
	reason := Reason{ID: f.ID(), Check: f.Check, Severity: f.Severity, Text: f.Subject.Name() + ": " + f.Message, Message: f.Message}
	list := p.affected(s)
	if s.Kind == audit.KindNode && len(list) == 0 && len(p.f.NodeByGUID(s.Ends[0].Node)) == 0 { // a node that is not in the fabric
		if name, ok := fabric.HostName(s.Ends[0].Name); ok {
			list = append(list, affectedHost{host: name, at: own})
		}
	}
	for _, n := range list {
		h := p.all.host(n.host)
		rule := ruleFor(f.Check, n.at)
		reason.State = rule.states[f.Severity-audit.Info]
		if rule.partial != OK && !p.f.Complete() {
			reason.State = rule.partial
		}
		if n.at == someFar && rule == farRule(false) {
			if reason.State != OK { // decided when the faults at all its ports are known
				h.far[n.port] = append(h.far[n.port], reason)
			}
			continue
		}
		h.add(reason)
	}
}

// add adds a reason, once.
func (h *host) add(r Reason) { h.reasons = addReason(h.reasons, r) }

// addUnknown makes hosts unknown that were not judged: audits did not run or checks that concern
// hosts were not done, nothing judges hosts, or something of or at the host did not answer. Checks
// of an audit that nothing supports, such as one of registers with --deep, count only if it was
// requested by name.
func (p *hostIndex) addUnknown(r *audit.Report) {
	for i := range r.Failures {
		f := &r.Failures[i]
		p.addToAll(fmt.Sprintf("audit %s did not run: %s", f.Audit, f.Why()))
	}
	for _, u := range r.Unjudged {
		failed := slices.ContainsFunc(r.Failures, func(f audit.Failure) bool { return f.Audit == u.Audit })
		optional := slices.ContainsFunc(r.Idle, func(x audit.Idle) bool { return x.Audit == u.Audit && !x.Named })
		if !failed && !optional && !u.Answers && concernsHosts(u.Check) {
			p.addToAll(fmt.Sprintf("%s not judged: %s", u.Check, u.Lacked))
		}
	}
	if len(r.Failures) == 0 && !slices.ContainsFunc(r.Judged, judgesHosts) {
		p.addToAll("no audit of the run judges hosts")
	}
	for m := range r.Coverage.Misses() {
		text := fmt.Sprintf("%s of %s: no answer", m.Attribute, m.Audit)
		if m.Subject.Kind == audit.KindFabric {
			p.addToAll(text)
			continue
		}
		for _, n := range p.affected(m.Subject) {
			p.all.host(n.host).add(Reason{State: Unknown, Text: text + " from " + m.Subject.Name()})
		}
	}
	for _, s := range r.Silent {
		for _, n := range p.affected(s) {
			p.all.host(n.host).add(Reason{State: Unknown, Text: s.Name() + ": acknowledged as not answering"})
		}
	}
}

// addDoubts makes hosts doubtful of which two adapters in different, or unknown, systems have one
// name: findings of one could be of another host.
func (p *hostIndex) addDoubts(name string, nodes []*fabric.Node) {
	first := map[string]*fabric.Node{}
	for _, n := range nodes {
		m := first[n.Name()]
		if m == nil {
			first[n.Name()] = n
		} else if system := n.Info().SystemImageGUID; system == 0 || system != m.Info().SystemImageGUID {
			p.all.host(name).doubt = fmt.Sprintf("%s and %s have the same name: %s", place(m), place(n), n.Name())
		}
	}
}

// place returns the GUID of an adapter, and what it is linked to.
func place(n *fabric.Node) string {
	if u := unidentified(n); u.Leaf != "" {
		return fmt.Sprintf("%s at %.80q", u.GUID, u.Leaf)
	}
	return n.GUID().String()
}

// addToAll makes all hosts unknown.
func (p *hostIndex) addToAll(text string) {
	for _, names := range p.own {
		for _, name := range names {
			p.all.host(name).add(Reason{State: Unknown, Text: text})
		}
	}
}

// healthRule states what a finding makes of a host. The first rule for the check and the location
// of a finding counts.
type healthRule struct {
	Checks string // separated by blanks; * at the end is any text
	place  location
	states bySeverity
	// partial is the state after an incomplete sweep, which does not show that something is
	// missing; OK: states applies.
	partial Health
	Doc     string // the finding, in words
}

type bySeverity [audit.Critical]Health // info, warning, error, critical

func always(s Health) bySeverity { return bySeverity{s, s, s, s} }

// notOfHosts are checks that say nothing about the traffic of a host.
const notOfHosts = "audit.* sm.* sa.* key.* mkey.* mc.empty mc.untold mlid.* fw.* device.* fm.* client.* trap.* timers lid.moved " +
	"name.* sysimage prefix.* node.new node.replaced node.reboot " +
	"conf.* topo.names topo.device topo.extra ctr.vl15 ctr.qp1 ctr.absent ctr.cleared ctr.saturated ctr.relay port.sick.peer port.thresholds lft.* qos.*"

// ofSwitches are checks of switches, routes and multicast groups: a host may be ok without them, as
// without the SM_Key, which members of groups need.
const ofSwitches = "ar.* rt.* hbf.* pfrn.* rn.* env.* link.uplinks mft.* cc.* mc.broadcast mc.gateway mc.missing"

// silenceChecks are checks that find what did not answer.
const silenceChecks = "port.unresponsive node.silent"

// healthRules are the rules, in order.
var healthRules = []healthRule{
	{notOfHosts, anywhere, bySeverity{}, OK, "about inventory, names, keys, counters or management"},
	{silenceChecks, anyPort, always(Unknown), OK, "it, or what it is linked to, did not answer"},
	{"node.gone", own, always(Down), Unknown, "it was there, and no port leads to it now"},
	{"*", own, bySeverity{OK, Degraded, Unhealthy, Unhealthy}, OK, "at one of its adapters or their ports"},
	{"*", link, bySeverity{OK, Degraded, Unhealthy, Unhealthy}, OK, "at the link of one of its ports"},
	{"*", allFar, bySeverity{OK, OK, Unhealthy, Unhealthy}, OK, "at the other ends of all its links: ports of switches, or the switches"},
	{"*", someFar, bySeverity{OK, OK, Degraded, Degraded}, OK, "at the other ends of some of its links"},
	{"*", anywhere, bySeverity{}, OK, "elsewhere: other switches, links between switches, the fabric"},
}

// ruleFor returns the rule for a check at a location.
func ruleFor(check string, at location) *healthRule {
	i := slices.IndexFunc(healthRules, func(r healthRule) bool { return r.place&at != 0 && matches(r.Checks, check) })
	return &healthRules[i] // the last rule is for all
}

// farRule returns the rule for faults of other ends.
func farRule(all bool) *healthRule {
	if all {
		return ruleFor("", allFar)
	}
	return ruleFor("", someFar)
}

// concernsHosts reports whether a host is unknown without a check.
func concernsHosts(check string) bool {
	return !matches(notOfHosts, check) && !matches(ofSwitches, check)
}

// judgesHosts reports whether a host may be ok because of a check.
func judgesHosts(check string) bool { return concernsHosts(check) && !matches(silenceChecks, check) }

// matches reports whether a check is one of patterns.
func matches(patterns, check string) bool {
	for p := range strings.FieldsSeq(patterns) {
		if prefix, open := strings.CutSuffix(p, "*"); p == check || open && strings.HasPrefix(check, prefix) {
			return true
		}
	}
	return false
}

// docWidth is the width of the first column of Doc, in bytes.
const docWidth = 50

// HealthDoc returns the rules as text, for help.
func HealthDoc() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-*s  %s\n", docWidth, "finding", "the host is")
	for _, r := range healthRules {
		for i, line := range r.lines() {
			state := ""
			if i == 0 {
				state = r.outcome()
			}
			fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("  %-*s  %s", docWidth, line, state), " "))
		}
	}
	b.WriteString("\nA host is ok without the checks of the first rule, and without those of switches and routes:\n" + ofSwitches)
	return b.String()
}

// lines describes findings of the rule, in lines of at most docWidth bytes.
func (r *healthRule) lines() (lines []string) {
	text := r.Doc
	if r.Checks != "*" {
		text += ": " + r.Checks
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > docWidth {
			lines, line = append(lines, line), "  "
		} else if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// outcome describes the states of the rule.
func (r *healthRule) outcome() string {
	var parts []string
	for s := Unhealthy; s > OK; s-- {
		if lowest := slices.Index(r.states[:], s); lowest >= 0 {
			name, highest := audit.Severities[lowest], len(r.states)-1
			for r.states[highest] != s {
				highest--
			}
			switch {
			case lowest == 0 && highest == len(r.states)-1:
				parts = append(parts, s.String())
			case lowest == highest:
				parts = append(parts, s.String()+": "+name)
			default:
				parts = append(parts, s.String()+": "+name+", "+audit.Severities[highest])
			}
		}
	}
	if r.partial != OK {
		parts = append(parts, r.partial.String()+": incomplete sweep")
	}
	if parts == nil {
		return "not affected"
	}
	return strings.Join(parts, "; ")
}
