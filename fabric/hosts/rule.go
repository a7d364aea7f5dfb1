package hosts

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/audit"
)

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
const notOfHosts = "audit.* sm.* sa.* key.* mkey.* mc.empty mc.untold mlid.* fw.* device.* fm.* client.* trap.* timers " +
	"name.* sysimage prefix.* node.new node.replaced node.reboot " +
	"topo.names topo.device topo.extra ctr.vl15 ctr.qp1 ctr.absent ctr.cleared ctr.saturated ctr.relay port.sick.peer port.thresholds lft.* qos.*"

// ofSwitches are checks of switches and routes: a host may be ok without them.
const ofSwitches = "ar.* rt.* hbf.* pfrn.* rn.* env.* link.uplinks mft.* cc.*"

// silenceChecks are checks that find what did not answer.
const silenceChecks = "port.unresponsive node.silent"

// healthRules are the rules, in order.
var healthRules = []healthRule{
	{notOfHosts, anywhere, bySeverity{}, OK, "about inventory, names, keys, counters or management"},
	{silenceChecks, anyPort, always(Unknown), OK, "it, or what it is linked to, did not answer"},
	{"node.gone", own, always(Unhealthy), Unknown, "it was there, and no port leads to it now"},
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
