package engines

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Explanation is why packets take their path: the rule by which each switch on it has its port.
type Explanation struct {
	Path  *routes.Path
	Hops  []Reason  // of Path.Hops
	Loads []float64 // by channel: the routes between all CAs and routers, per capacity: of the fastest
}

// Reason is why a switch sends packets out of a port.
type Reason struct {
	routes.Hop
	// Rule is the rule of the engine, as far as it was computed again and gives this port.
	Rule string
	// Next are the ports of switch that the rule chooses from, in its order of preference: on paths
	// of the least distance, as the engine counts it. None: the path ends here, or the rule has none.
	Next    []uint8
	Unknown bool // the engine is not known
	Left    int  // links to the switch of the destination; -1: packets do not arrive
}

// Explain explains the path from LID src to LID dst. Where switches choose among ports, it is the path by
// static ports.
//
// Time: the times of AllHops and CountAllRoutes.
func Explain(ctx context.Context, r *routes.Routes, src, dst mad.LID) (*Explanation, error) {
	p, err := r.Trace(src, dst)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Path: p}
	if len(p.Hops) == 0 {
		return e, nil
	}
	counts, err := verify.CountAllRoutes(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, n := range r.Graph().Capacity().Weigh(counts) {
		e.Loads = append(e.Loads, r.Graph().Capacity().Routes(n))
	}
	x, err := newExplainer(ctx, p, r, e.Loads)
	if err != nil {
		return nil, err
	}
	for i, h := range p.Hops {
		reason := Reason{Hop: h, Left: -1}
		if x.arrives {
			reason.Left = len(p.Hops) - 1 - i
		}
		reason.Rule, reason.Next = x.explain(i)
		reason.Unknown = x.b == nil && h.Switch != x.term.Switch
		if next := x.loopsTo(i); next != "" {
			reason.Rule += "; packets loop: " + next + " is on the path already"
			e.Hops = append(e.Hops, reason)
			break
		}
		e.Hops = append(e.Hops, reason)
	}
	return e, nil
}

// explainer explains the entries for one LID.
type explainer struct {
	p       *routes.Path
	r       *routes.Routes
	g       *graph.Graph
	b       *Basis      // nil: unknown
	h       *graph.Hops // the distances of the rule
	loads   []float64
	arrives bool
	term    *graph.Terminal // of the destination
	dest    int             // the LID's index in dests
	digits  *Digits         // of d-mod-k; nil: another rule, or it cannot be computed again
	next    graph.NextHops
	over    []int // by hop of a path that arrives: the distance from there, along it
}

func newExplainer(ctx context.Context, p *routes.Path, r *routes.Routes, loads []float64) (x *explainer, err error) {
	g := r.Graph()
	to := g.TerminalByLID(p.LID)
	x = &explainer{p: p, r: r, g: g, b: BasisOf(r), loads: loads, term: &g.Terminals()[to]}
	last := p.Hops[len(p.Hops)-1]
	x.arrives = g.Target(int32(last.Switch), last.Out) == graph.ToTerminal(int32(to))
	if x.term.Switch < 0 { // packets go nowhere
		return x, nil
	}
	for i := g.FirstDest(x.term.Switch); i < g.FirstDest(x.term.Switch+1); i++ {
		if g.Dests()[i].LID == p.LID {
			x.dest = int(i)
		}
	}
	if x.b != nil && x.b.Hops != nil && !x.b.Hops.IsOf(g) {
		x.b = nil // of another network
	}
	distances := g
	switch {
	case x.b != nil && x.b.Hops != nil:
		x.h = x.b.Hops
	case x.b != nil && x.b.Engine == dragonfly.Name:
		global, err := globalLinks(g)
		if err != nil {
			return nil, err
		}
		distances = heavier(g, global)
	}
	if x.h == nil {
		if x.h, err = graph.AllHops(ctx, distances); err != nil {
			return nil, err
		}
	}
	if x.b != nil && x.b.Tree != nil && x.b.Tree.numbers(g) {
		x.digits = x.b.Tree.On(g)
	}
	x.over = make([]int, len(p.Hops))
	for i := len(p.Hops) - 2; i >= 0; i-- {
		h := &p.Hops[i]
		x.over[i] = x.over[i+1] + int(distances.Channels()[g.Target(int32(h.Switch), h.Out).Channel()].Weight)
	}
	return x, nil
}

// numbers reports whether t has a number for each LID of g, and the switches of g.
func (t *Tree) numbers(g *graph.Graph) bool {
	if _, same := graph.OlderNumbers(g, t.Graph); !same || len(g.Switches()) != len(t.Graph.Switches()) {
		return false
	}
	return !slices.ContainsFunc(g.Dests(), func(d graph.Dest) bool { return int(d.LID) >= len(t.Number) || t.Number[d.LID] < 0 })
}

// explain is the rule of hop i, and the ports that it chooses from.
func (x *explainer) explain(i int) (rule string, next []uint8) {
	h := &x.p.Hops[i]
	s, home := h.Switch, x.term.Switch
	if s != home && home >= 0 {
		next = slices.Clone(x.next.Find(x.h, s, home))
	}
	switch {
	case s == home && x.arrives && h.Out == 0:
		return "the destination is this switch", nil
	case s == home && x.arrives:
		return "the destination is on this switch", nil
	case i == len(x.p.Hops)-1 && !x.arrives && x.p.Broken != "" && x.p.Broken != "loops":
		return "packets stop: " + x.p.Broken, next
	case !x.g.Target(int32(s), h.Out).IsChannel():
		return "packets stop at this port", next
	case home < 0:
		return "not by a rule: the destination is on no switch", nil
	case s == home:
		return fmt.Sprintf("not by a rule: the destination is at port %d", x.term.Out), nil
	case x.b == nil:
		return x.unknown(i, next), next
	}
	return x.known(i, next) + x.siblings(h), next
}

// loopsTo is the next switch behind hop i, if it is among those up to there; "": it is not.
func (x *explainer) loopsTo(i int) string {
	hops := x.p.Hops
	if i+1 == len(hops) || !slices.ContainsFunc(hops[:i+1], func(h routes.Hop) bool { return h.Switch == hops[i+1].Switch }) {
		return ""
	}
	return x.g.Switches()[hops[i+1].Switch].Label()
}

// unknown is what is known of hop i where the rule is not.
func (x *explainer) unknown(i int, next []uint8) string {
	why := "the rule is unknown, for the origin of the tables is not known"
	switch x.r.Engine {
	case "":
	case routes.FromFile:
		why = "the rule is unknown: the tables were read from a file"
	case routes.FromSwitches:
		why = "the rule is unknown: the tables were read from the switches"
	default:
		why = "the rule is unknown: tables of " + x.r.Engine + " that were changed later"
	}
	if from := x.r.Engine; x.r.IsEdited() && (from == routes.FromFile || from == routes.FromSwitches) {
		why += ", and changed later"
	}
	switch h := &x.p.Hops[i]; {
	case !slices.Contains(next, h.Out):
		return x.excess(i) + "; " + why
	case len(next) == 1:
		return "the only port on a shortest path; " + why
	}
	return fmt.Sprintf("one of %d ports on shortest paths; %s", len(next), why)
}

// excess is how much longer the path from hop i is than the shortest.
func (x *explainer) excess(i int) string {
	if !x.arrives {
		return "not on a shortest path"
	}
	more := x.over[i] - x.h.Distance(x.p.Hops[i].Switch, x.term.Switch)
	if x.g.Weighted() {
		return fmt.Sprintf("a detour: by weights of links, %d longer than the shortest path", more)
	}
	return fmt.Sprintf("a detour: %s longer than the shortest path", plural.Count(more, "link", "links"))
}

// known is the rule of hop i for tables of a known engine. next are the next hops that it allows.
func (x *explainer) known(i int, next []uint8) string {
	h, b := &x.p.Hops[i], x.b
	switch isNext := slices.Contains(next, h.Out); {
	case b.Engine == nue.Name && !isNext && x.arrives:
		return x.excess(i) + "; nue searches for paths that close no credit loop"
	case b.Engine == nue.Name && len(next) == 1:
		return "search of nue: the only port on a shortest path"
	case b.Engine == nue.Name && isNext:
		return fmt.Sprintf("search of nue: one of %d ports on shortest paths", len(next))
	case b.Engine == torus2QoS.Name:
		return x.inDimensions(h)
	case !isNext && x.h.IsUpDown() && x.h.Distance(h.Switch, x.term.Switch) < 0:
		return "added: no path goes up and then down to " + x.g.Switches()[x.term.Switch].Label()
	case !isNext && b.Gaps:
		return fmt.Sprintf("not a next hop of %s (%s): changed when missing paths were added", b.Engine, portList(next))
	case !isNext:
		return fmt.Sprintf("not by the rule of %s, whose next hops are %s", b.Engine, portList(next))
	case len(next) == 1:
		return "the only next hop" + x.direction(h)
	case x.digits != nil:
		return x.byDigits(h, next)
	case b.Tree != nil:
		return fmt.Sprintf("one of %d next hops%s; d-mod-k is not computed again, for LIDs or switches are new", len(next), x.direction(h))
	}
	return x.byPolicy(h, next)
}

// portList are ports, as "ports 5 and 6".
func portList(ports []uint8) string {
	switch len(ports) {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("port %d", ports[0])
	}
	text := "ports "
	for i, p := range ports {
		switch {
		case i == len(ports)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += fmt.Sprint(p)
	}
	return text
}

// direction is " up" or " down", where paths have one.
func (x *explainer) direction(h *routes.Hop) string {
	if !x.h.IsUpDown() {
		return ""
	}
	to := x.g.ChannelTo(x.g.Target(int32(h.Switch), h.Out).Channel())
	for i, n := range x.g.Neighbours(h.Switch) {
		if n.To == to && x.h.GoesUp(x.g.FirstNeighbour(h.Switch)+int32(i)) {
			return " up"
		}
	}
	return " down"
}

// byDigits is the rule of d-mod-k, if it gives the port.
func (x *explainer) byDigits(h *routes.Hop, next []uint8) string {
	s, d, list := h.Switch, x.digits, x.next.List()
	list.Slots = list.Slots[:0]
	d.FindParents(s, list, len(next), x.g.HasPortOrder(s))
	digit, rest := d.split(s, x.dest, len(list.Slots))
	number, divider := d.number[x.dest], d.tree.Divider[s]
	if port := d.pick(s, x.dest, list, digit, rest); port != h.Out {
		return fmt.Sprintf("not port %d, which d-mod-k gives for number %d%s", port, number, x.fewerShared(h, port))
	}
	text := fmt.Sprintf("d-mod-k%s: digit %d of number %d (%d / %d modulo %d)", x.direction(h), digit, number, number, divider, len(list.Slots))
	slot := list.Slots[digit]
	if slot < 0 {
		return text + fmt.Sprintf(", whose parent is missing: the rest, %d, selects another", rest)
	}
	if n := len(list.Groups[slot].Ports); n > 1 {
		text += fmt.Sprintf(", and one of %d parallel links by the rest, %d", n, rest)
	}
	return text
}

// byPolicy is the rule of engines that choose among next hops by policy or load.
func (x *explainer) byPolicy(h *routes.Hop, next []uint8) string {
	s, o := h.Switch, &x.b.options
	policy := o.Policy
	if x.b.Engine == dor.Name {
		policy = First
	}
	which := fmt.Sprintf("one of %d next hops%s", len(next), x.direction(h))
	switch {
	case x.b.Hops == nil && x.b.Engine != dor.Name: // no policy
	case policy == Hash:
		if next[mix(o.Seed, uint64(s), uint64(x.p.LID))%uint64(len(next))] == h.Out {
			return fmt.Sprintf("hash of seed %d, switch and LID: %s", o.Seed, which)
		}
		return which + ", not by the hash of seed, switch and LID"
	case policy == First:
		first := x.first(s)
		switch {
		case !slices.Contains(first, h.Out):
			return which + ", not to the neighbour of the first port, " + fmt.Sprint(first[0])
		case len(first) > 1:
			return fmt.Sprintf("first port of the next hops%s: one of %d parallel links", x.direction(h), len(first))
		}
		return "first port of the next hops" + x.direction(h)
	case policy == RoundRobin:
		return which + ", which LIDs take in turn (not computed again)"
	case policy == DModK:
		return which + ", by a digit of the number of the LID (not computed again)"
	}
	why := ", by load: "
	switch x.b.Engine {
	case dragonfly.Name:
		which += " with the fewest links between groups"
	case lash.Name:
		why = ", one path from switch to switch, for few lanes and even loads: "
	case dfsssp.Name:
		why = ", for few lanes and even loads: "
	}
	return which + why + x.loadText(s, h.Out, next)
}

// first are the ports to the neighbour of the first port.
func (x *explainer) first(s int) []uint8 {
	groups := x.next.List().Groups
	best := 0
	for i := range groups {
		if groups[i].Ports[0] < groups[best].Ports[0] && !x.g.HasPortOrder(s) {
			best = i
		}
	}
	return groups[best].Ports
}

// load is the load of a port of switch s.
func (x *explainer) load(s int, port uint8) float64 {
	return x.loads[x.g.Target(int32(s), port).Channel()]
}

// loadText compares the load of port with those of next, which has it.
func (x *explainer) loadText(s int, port uint8, next []uint8) string {
	least, most := math.Inf(1), 0.0
	for _, p := range next {
		least, most = min(least, x.load(s, p)), max(most, x.load(s, p))
	}
	own := x.load(s, port)
	text := "load " + rounded(own) + " by routes and rates"
	if x.g.Capacity().Costs() == nil {
		text = plural.Count(int(own), "route", "routes")
	}
	switch {
	case least == most:
		return text + " over each"
	case own == least:
		return fmt.Sprintf("least loaded, %s; others up to %s", text, rounded(most))
	}
	return fmt.Sprintf("%s; all %s to %s", text, rounded(least), rounded(most))
}

// rounded is x with at most two decimal places.
func rounded(x float64) string { return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64) }

// inDimensions is the rule of torus-2qos, if it gives the port.
func (x *explainer) inDimensions(h *routes.Hop) string {
	plan := x.b.torus
	if plan == nil || plan.graph != x.g {
		return "dimension order of torus-2qos, not computed again: the network has changed since its places were found"
	}
	t, s, home := plan.torus, h.Switch, x.term.Switch
	to := x.g.ChannelTo(x.g.Target(int32(s), h.Out).Channel())
	direction := t.Routes(plan.order).Next(int32(s), int32(home))
	if direction < 0 || !t.Placed[to] {
		return "not in dimension order: added by a shortest path"
	}
	d := direction / 2
	for k := range t.Points[s] {
		if (t.Points[s][k] != t.Points[to][k]) != (k == d) {
			return fmt.Sprintf("not in dimension order, which is along dimension %d", d+1)
		}
	}
	return fmt.Sprintf("dimension order: along dimension %d, order of dimensions %v", d+1, oneBased(plan.order))
}

// oneBased are numbers that begin with 1 in place of 0.
func oneBased(list []int) []int {
	out := slices.Clone(list)
	for i := range out {
		out[i]++
	}
	return out
}

// shared counts the links of the path from switch s out of port, and those among them that paths from switch
// first to earlier LIDs of the same port take (LMC). ok is false if the path does not arrive.
func (x *explainer) shared(first, s int, port uint8) (links, shared int, ok bool) {
	g, lid := x.g, x.p.LID
	taken := map[int32]bool{}
	for before := x.term.LID; before < lid; before++ {
		at := int32(first)
		for range g.Switches() {
			target := g.Target(at, x.r.Entry(at, before))
			if !target.IsChannel() {
				break
			}
			taken[target.Channel()] = true
			at = g.ChannelTo(target.Channel())
		}
	}
	at := int32(s)
	for range g.Switches() {
		target := g.Target(at, port)
		if !target.IsChannel() {
			return links, shared, int(at) == x.term.Switch
		}
		links++
		if taken[target.Channel()] {
			shared++
		}
		at = g.ChannelTo(target.Channel())
		port = x.r.Entry(at, lid)
	}
	return 0, 0, false
}

// siblings states how much the rest of the path shares with the paths from its source to earlier LIDs of the same
// port.
func (x *explainer) siblings(h *routes.Hop) string {
	if x.p.LID == x.term.LID {
		return ""
	}
	links, shared, ok := x.shared(x.p.Hops[0].Switch, h.Switch, h.Out)
	if !ok {
		return ""
	}
	first := plural.Count(int(x.p.LID-x.term.LID), "LID", "LIDs")
	if shared == 0 {
		return fmt.Sprintf("; from here disjoint from the paths to the first %s of the port (LMC)", first)
	}
	return fmt.Sprintf("; from here %d of %s shared with the paths to the first %s of the port (LMC)", shared, plural.Count(links, "link", "links"), first)
}

// fewerShared states that the path out of port, which the rule gives, would share more with the paths to
// earlier LIDs of the same port; else that the reason is unknown.
func (x *explainer) fewerShared(h *routes.Hop, port uint8) string {
	if x.p.LID > x.term.LID {
		_, by, ok := x.shared(h.Switch, h.Switch, port)
		_, is, arrives := x.shared(h.Switch, h.Switch, h.Out)
		if ok && arrives && is < by {
			return fmt.Sprintf(", and from here would share %s instead of %d", plural.Count(by, "link", "links"), is)
		}
		return "; later LIDs of a port (LMC) take other ports to share fewer links and for even loads, and tables that were kept or repaired to change less"
	}
	return "; tables that were kept or repaired have other ports, to change less or to even out loads"
}
