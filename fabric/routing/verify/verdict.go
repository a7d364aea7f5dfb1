package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Verdict is the result of Verify: whether packets arrive, and whether they may
// deadlock.
type Verdict struct {
	Engine       string // what made the tables; "": unknown
	Adaptive     Adaptive
	Reason       string // why Adaptive is mixed or unknown
	Judged       string // what was judged: "static forwarding tables, SL 0"
	Endpoints    string // between which ports
	Terminals    int    // as many
	Counts       EndpointCounts
	Pairs        int64          // of an endpoint and a LID of another
	Unreachable  int64          // pairs that must reach each other, and do not
	Excused      int64          // unreachable pairs that need not reach each other
	Loops        int64          // pairs whose packets loop for ever
	SwitchPairs  int64          // of an endpoint and a LID of a switch, which is not an endpoint
	ToSwitches   int64          // of these, pairs whose packets arrive: management packets
	LeftOut      []string       // ports that have no LID, or share one, and so are not judged
	Acyclic      bool           // no credit loop exists
	Lanes        int            // virtual lanes that paths may take, from VL 0
	Cycle        []CycleChannel // a credit loop, if there is one
	Channels     int            // that paths take, once for each virtual lane
	Dependencies int            // edges of the channel dependency graph
	MaxHops      int            // links of the longest path that arrives, those of CAs included
	Hops         []int64        // number of pairs, by the links of the path
	// Detours are numbers of pairs, by the links in excess of a shortest path.
	Detours []int64
	// Disjoint describes how far apart the paths to the LIDs of one port are; nil: no
	// endpoint has several.
	Disjoint *Disjointness
	Broken   []BrokenPair // examples of pairs that do not reach each other
	// Violations are pairs whose paths break a rule of Options.Via, and
	// Violating examples.
	Violations int64
	Violating  []Violation
	Notes      []string
}

// OK reports whether all packets that must arrive do, and none can deadlock. Where
// switches route adaptively that is unknown, and so not OK; where ports were left out,
// or there is no pair at all, it is not OK either. Packets to switches do not count:
// the tables of most engines have gaps there where links are missing.
func (v *Verdict) OK() bool {
	return v.Pairs > 0 && len(v.LeftOut) == 0 && v.Unreachable == 0 && v.Loops == 0 && v.Violations == 0 && v.Acyclic && v.Adaptive != AdaptiveUnknown
}

// UnreachableSwitches is the number of pairs of an endpoint and a LID of a switch whose packets do
// not arrive.
func (v *Verdict) UnreachableSwitches() int64 { return v.SwitchPairs - v.ToSwitches }

// Wrong reports whether packets that must arrive do not, or a rule is broken, or packets
// may deadlock: what is not OK may also be unknown.
func (v *Verdict) Wrong() bool {
	return v.Unreachable > 0 || v.Loops > 0 || v.Violations > 0 || !v.Acyclic
}

// EndpointCounts are the endpoints by what their nodes are, and by class.
type EndpointCounts struct {
	CAs, Routers, Switches int
	Classes                map[graph.Class]int
}

// CycleChannel is a channel of a credit loop: packets on the link out of Port, on
// virtual lane VL, may wait for the next channel of the loop. LID is a destination
// of such packets.
type CycleChannel struct {
	Port *fabric.Port
	VL   uint8
	LID  mad.LID
}

// BrokenPair is an unreachable pair.
type BrokenPair struct {
	From *fabric.Port
	LID  mad.LID
	Why  string // where the path ends, and why

	terminal int32
}

// FormatCycle is a credit loop as text, a line for each link.
func FormatCycle(cycle []CycleChannel) string {
	var b strings.Builder
	for _, w := range cycle {
		fmt.Fprintf(&b, "%s -> %s, VL %d, to LID %d\n", w.Port.Name(), w.Port.Peer().Name(), w.VL, w.LID)
	}
	return b.String()
}

// verdict puts the findings of all workers together.
func (v *verification) verdict(r *routes.Routes) *Verdict {
	s := &Verdict{Engine: r.Engine, Lanes: r.Lanes(), Adaptive: v.o.Adaptive, Reason: v.reason, Terminals: v.All}
	if v.o.Adaptive == AdaptiveOn && v.sets == nil { // the caller knows, the tables do not
		s.Adaptive = AdaptiveUnknown
	}
	graph := NewDependencyGraph(v.g, v.vls)
	for i := range v.workers {
		f := &v.workers[i]
		s.SwitchPairs += f.switchPairs
		s.ToSwitches += f.toSwitches
		if f.graph == nil { // no LID of an endpoint was its
			continue
		}
		graph.Union(f.graph)
		for hops, n := range f.hops {
			s.Hops = grow(s.Hops, hops)
			s.Hops[hops] += n
		}
		for detour, n := range f.detours {
			s.Detours = grow(s.Detours, detour)
			s.Detours[detour] += n
		}
		s.Unreachable += f.unreachable
		s.Excused += f.excused
		s.Loops += f.loops
		s.Broken = append(s.Broken, f.broken...)
	}
	slices.SortFunc(s.Broken, func(a, b BrokenPair) int {
		return cmp.Or(cmp.Compare(a.LID, b.LID), cmp.Compare(a.terminal, b.terminal))
	})
	s.Broken = s.Broken[:min(len(s.Broken), v.o.Examples)]
	s.MaxHops = max(0, len(s.Hops)-1)
	s.Pairs = s.Unreachable + s.Excused
	for _, n := range s.Hops {
		s.Pairs += n
	}
	if v.chosen != nil {
		v.judgeChoices(s, r)
	} else {
		v.judgeCycle(s, r, graph)
	}
	s.Counts = v.countEndpoints()
	s.Endpoints = v.describeEndpoints(s.Counts.Classes)
	s.Notes = slices.Concat(r.ReadNotes, v.g.Notes(), r.Notes)
	switch {
	case r.SL.Any():
		s.Notes = append(s.Notes, "paths have service levels that OpenSM's engine file does not set: with it this is analysis only; "+r.RunInstead())
	case r.ChangesLanes():
		s.Notes = append(s.Notes, "paths change to virtual lanes that OpenSM's engine file does not set: with it this is analysis only; "+r.RunInstead())
	}
	s.LeftOut = v.g.LeftOut()
	switch {
	case v.All == 0:
		s.Notes = append(s.Notes, "no endpoint: nothing was judged")
	case s.Pairs == 0:
		s.Notes = append(s.Notes, "no pair of endpoints: nothing was judged")
	}
	if note := s.Adaptive.note(); note != "" {
		if s.Reason != "" {
			note = "adaptive routing is unknown, and so is the verdict: " + s.Reason
		}
		s.Notes = append(s.Notes, note)
	}
	if s.Adaptive == AdaptiveMixed {
		s.Notes = append(s.Notes, "adaptive routing is mixed: "+s.Reason)
	}
	return s
}

// judgeCycle looks for a credit loop in graph.
func (v *verification) judgeCycle(s *Verdict, r *routes.Routes, graph *DependencyGraph) {
	s.Channels, s.Dependencies = graph.Size()
	cycle := graph.Cycle()
	s.Acyclic = cycle == nil
	for i, at := range cycle {
		c := int(at) / v.vls
		next := cycle[(i+1)%len(cycle)]
		s.Cycle = append(s.Cycle, CycleChannel{Port: v.g.ChannelPort(c), VL: uint8(int(at) % v.vls), LID: v.example(r, c, int(next)/v.vls)})
		if last := &s.Cycle[i]; v.sets != nil {
			last.LID = cmp.Or(last.LID, v.sets.example(r, at, next))
		}
	}
}

// example is the first LID whose packets take channel c and then channel next, in r
// or in the tables of Union.
func (v *verification) example(r *routes.Routes, c, next int) mad.LID {
	a, b := v.g.Channels()[c], v.g.Channels()[next]
	w := NewWalk(v.g)
	for _, t := range []*routes.Routes{r, v.o.Union} {
		if t == nil {
			continue
		}
		first, second := t.Row(int(a.From)), t.Row(int(b.From))
		ports := make([]uint8, len(v.g.Switches()))
		for lid := range v.Wanted {
			if !v.Wanted[lid] || first[lid] != a.Port || second[lid] != b.Port {
				continue
			}
			for s := range ports {
				ports[s] = t.Row(s)[lid]
			}
			w.Begin()
			for _, s := range v.Sources {
				w.From(s, ports, int32(v.g.TerminalByLID(mad.LID(lid))))
			}
			if w.State[a.From] != Unknown {
				return mad.LID(lid)
			}
		}
	}
	return 0
}

// countEndpoints counts those between which packets were followed.
func (v *verification) countEndpoints() EndpointCounts {
	n := EndpointCounts{Classes: map[graph.Class]int{}}
	for i, is := range v.Is {
		if !is {
			continue
		}
		t := &v.g.Terminals()[i]
		switch t.Port.Node().Type() {
		case mad.NodeTypeSwitch:
			n.Switches++
		case mad.NodeTypeRouter:
			n.Routers++
		default:
			n.CAs++
		}
		for c := graph.ClassCN; c <= graph.ClassSwitch; c <<= 1 {
			if t.Class&c != 0 {
				n.Classes[c]++
			}
		}
	}
	return n
}

// describeEndpoints describes between which endpoints packets were followed.
func (v *verification) describeEndpoints(count map[graph.Class]int) string {
	var parts []string
	for c := graph.ClassCN; c <= graph.ClassSwitch; c <<= 1 {
		if count[c] > 0 && c != graph.ClassSM {
			parts = append(parts, fmt.Sprintf("%d %s", count[c], c))
		}
	}
	s := fmt.Sprintf("%d ports", v.All)
	if v.o.Endpoints == 0 {
		s = fmt.Sprintf("all %d ports of CAs and routers", v.All)
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}

// Report is the results about tables. What was not requested is nil.
type Report struct {
	Routes   *routes.Routes
	Verdict  *Verdict
	Diff     *routes.Diff // from the tables that the switches have
	Failures []LinkFailure
}

// Sound reports that nothing speaks against the tables: the verdict is OK, or there
// is no verdict.
func (r *Report) Sound() bool { return r.Verdict == nil || r.Verdict.OK() }

// Clean reports that there is no finding: the tables are sound, and no single link
// cuts the network. A difference is not a finding.
func (r *Report) Clean() bool {
	return r.Sound() && !slices.ContainsFunc(r.Failures, func(f LinkFailure) bool { return f.Cuts })
}
