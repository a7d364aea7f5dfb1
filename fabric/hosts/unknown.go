package hosts

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// addUnknown makes hosts unknown that were not judged: audits did not run or checks that concern
// hosts were not done, nothing judges hosts, or something of or at the host did not answer.
func (p *places) addUnknown(r *audit.Report) {
	for i := range r.Failures {
		f := &r.Failures[i]
		p.everywhere(fmt.Sprintf("audit %s did not run: %s", f.Audit, f.Why()))
	}
	for _, u := range r.Unjudged {
		failed := slices.ContainsFunc(r.Failures, func(f audit.Failure) bool { return f.Audit == u.Audit })
		if !failed && !u.Answers && concernsHosts(u.Check) {
			p.everywhere(fmt.Sprintf("%s not judged: %s", u.Check, u.Lacked))
		}
	}
	if len(r.Failures) == 0 && !slices.ContainsFunc(r.Judged, judgesHosts) {
		p.everywhere("no audit of the run judges hosts")
	}
	for m := range r.Coverage.Misses() {
		text := fmt.Sprintf("%s of %s: no answer", m.Attribute, m.Audit)
		if m.Subject.Kind == audit.KindFabric {
			p.everywhere(text)
			continue
		}
		for _, n := range p.near(m.Subject) {
			p.all.host(n.host).add(Reason{State: Unknown, Text: text + " from " + m.Subject.Name()})
		}
	}
	for _, s := range r.Silent {
		for _, n := range p.near(s) {
			p.all.host(n.host).add(Reason{State: Unknown, Text: s.Name() + ": acknowledged as not answering"})
		}
	}
}

// addDoubts makes hosts doubtful of which two adapters in different, or unknown, systems have one
// name: findings of one could be those of another host.
func (p *places) addDoubts(name string, nodes []*fabric.Node) {
	first := map[string]*fabric.Node{}
	for _, n := range nodes {
		m := first[n.Name()]
		if m == nil {
			first[n.Name()] = n
		} else if system := n.Info().SystemImageGUID; system == 0 || system != m.Info().SystemImageGUID {
			p.all.host(name).doubt = fmt.Sprintf("%s and %s have the same name: %s", m.GUID(), n.GUID(), n.Name())
		}
	}
}

// everywhere makes all hosts unknown.
func (p *places) everywhere(text string) {
	for _, names := range p.own {
		for _, name := range names {
			p.all.host(name).add(Reason{State: Unknown, Text: text})
		}
	}
}
