package hosts

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// place is where a finding is, as seen from a host.
type place uint8

const (
	own      place = 1 << iota // one of its adapters, or a port of it
	link                       // the link of one of its ports
	allFar                     // what all its links lead to: ports of switches, or switches
	someFar                    // what some of its links lead to
	away                       // all else
	anyPort  = own | link | allFar | someFar
	anywhere = anyPort | away
)

// places finds the hosts of a fabric at nodes and ports.
type places struct {
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

// newPlaces adds the hosts of f to j, and the adapters that do not name a host to unnamed.
func newPlaces(f *fabric.Fabric, j *judgment, unnamed map[string]bool) *places {
	j.reports++
	p := &places{f: f, all: j, own: map[mad.GUID][]string{}, behind: map[mad.GUID][]farPort{}}
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

// hostsOf returns the adapters of f by host. It adds names that do not name a host to unnamed.
func hostsOf(f *fabric.Fabric, unnamed map[string]bool) map[string][]*fabric.Node {
	hosts := map[string][]*fabric.Node{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.Type() != mad.NodeTypeCA || n.Kind() == fabric.KindAggregation {
			continue
		}
		if name, ok := fabric.HostName(n.Name()); ok {
			hosts[name] = append(hosts[name], n)
		} else if n.Name() == "" {
			unnamed[n.GUID().String()] = true
		} else {
			unnamed[n.Name()] = true
		}
	}
	return hosts
}

// near is a host that a subject concerns.
type near struct {
	host string
	at   place
	port string // at far ends: the port of the host
}

// near returns the hosts that a subject concerns.
func (p *places) near(s audit.Subject) (list []near) {
	for _, e := range s.Ends {
		for _, name := range p.own[e.Node] {
			at := own
			if s.Kind == audit.KindLink {
				at = link
			}
			list = append(list, near{host: name, at: at})
		}
		if s.Kind == audit.KindLink {
			continue // of a host's link, the host is an end
		}
		for _, b := range p.behind[e.Node] {
			if e.Num == audit.NoPort || e.Num == 0 || e.Num == b.num {
				list = append(list, near{b.host, someFar, b.port})
			}
		}
	}
	return list
}

// addFinding adds a finding to the hosts that it concerns.
func (p *places) addFinding(f *audit.Finding) {
	for _, s := range append([]audit.Subject{f.Subject}, f.Members...) {
		p.addAt(f, s)
	}
	for i := range f.Merged {
		m := f.Merged[i] // the same fault: reported under the ID that absorbed it
		for _, s := range append([]audit.Subject{m.Subject}, m.Members...) {
			p.addAt(f, s)
		}
	}
}

// addAt adds a finding to the hosts that one of its subjects concerns.
func (p *places) addAt(f *audit.Finding, s audit.Subject) {
	reason := Reason{ID: f.ID(), Check: f.Check, Severity: f.Severity, Text: f.Subject.Name() + ": " + f.Message}
	list := p.near(s)
	if s.Kind == audit.KindNode && len(list) == 0 && len(p.f.NodeByGUID(s.Ends[0].Node)) == 0 { // a node that is not in the fabric
		if name, ok := fabric.HostName(s.Ends[0].Name); ok {
			list = append(list, near{host: name, at: own})
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
func (h *host) add(r Reason) {
	x := HostHealth{Reasons: h.reasons}
	x.add(r)
	h.reasons = x.Reasons
}
