package traffic

import (
	"bytes"
	"context"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Rerouted is the change of paths from one Routes to another.
type Rerouted struct {
	// Pairs counts the pairs of an endpoint and a LID of another whose packets take other
	// cables, or other ports, than before: they leave a switch through another port, or
	// another switch or endpoint is behind the port. Where switches route adaptively, some
	// switch that packets may pass has other choices.
	Pairs int64
	// Broken counts the pairs of Pairs whose packets no longer arrive.
	Broken int64
	// Before and After are the most routes on a link, as LargestLoad counts them; 0
	// where Pairs is.
	Before, After int64
}

// CountRerouted compares the paths of r with the paths of old, between CAs and routers that
// both have. before is the port of the older fabric that a port of the newer one
// is; or nil.
//
// Time: O(S) for each LID whose paths may differ, and O(S*L) to find these.
func CountRerouted(ctx context.Context, r *routes.Routes, old *routes.Routes, before func(*fabric.Port) *fabric.Port) (Rerouted, error) {
	x := &reroute{new: r, old: old, switches: make([]int32, len(r.Graph().Switches()))}
	x.pair(before)
	if r.HasChoices() || old.HasChoices() {
		return x.countChoices(ctx)
	}
	x.compare()
	if !slices.Contains(x.differs, true) {
		return Rerouted{}, nil
	}
	return x.count(ctx)
}

// reroute is a comparison of paths. Numbers are of the newer graph.
type reroute struct {
	new, old  *routes.Routes
	switches  []int32  // the older number of a switch, or -1
	terminals []int32  // and of a terminal
	ports     [][]bool // by switch: the ports behind which there is another switch or endpoint
	on        []int64  // endpoints that both have, by switch
	was       []int32  // the older LID of a LID of an endpoint, or -1
	differs   []bool   // by LID: some hop towards it differs
	alike     []bool   // by switch: no hop differs at it
}

// pair finds the older numbers, and the ports that lead elsewhere.
func (x *reroute) pair(before func(*fabric.Port) *fabric.Port) {
	g, o := x.new.Graph(), x.old.Graph()
	x.terminals = slices.Repeat([]int32{-1}, len(g.Terminals()))
	x.on = make([]int64, len(g.Switches()))
	for t := range g.Terminals() {
		if p := before(g.Terminals()[t].Port); p != nil {
			x.terminals[t] = int32(o.TerminalOf(p))
		}
		if e := &g.Terminals()[t]; e.Switch >= 0 && e.IsEndpoint(0) && x.terminals[t] >= 0 && o.Terminals()[x.terminals[t]].IsEndpoint(0) {
			x.on[e.Switch]++
		}
	}
	x.ports = make([][]bool, len(g.Switches()))
	for s, n := range g.Switches() {
		x.switches[s] = -1
		if p := before(n.Port(0)); p != nil {
			x.switches[s] = int32(o.SwitchOf(p.Node()))
		}
		for p := range n.Ports() {
			was := before(p)
			same := was != nil && (was.Peer() == nil) == (p.Peer() == nil)
			if same && p.Peer() != nil {
				same = before(p.Peer()) == was.Peer() && x.switches[s] >= 0 &&
					(g.Target(int32(s), uint8(p.Num())) != graph.NoTarget) == (o.Target(x.switches[s], uint8(p.Num())) != graph.NoTarget)
			}
			if same {
				continue
			}
			if x.ports[s] == nil {
				x.ports[s] = make([]bool, n.NumPorts()+1)
			}
			x.ports[s][p.Num()] = true
		}
	}
}

// compare finds the LIDs towards which some switch sends packets through another port
// than before, or through one that leads elsewhere.
func (x *reroute) compare() {
	g, o := x.new.Graph(), x.old.Graph()
	x.was = slices.Repeat([]int32{-1}, int(g.Top())+1)
	x.differs = make([]bool, int(g.Top())+1)
	for t, e := range g.Terminals() {
		if x.terminals[t] < 0 || e.Switch < 0 || e.Out == 0 {
			continue
		}
		f := &o.Terminals()[x.terminals[t]]
		for k := range min(e.Count, f.Count) {
			if lid := int(e.LID) + k; lid < len(x.was) {
				x.was[lid] = int32(f.LID) + int32(k)
			}
		}
	}
	moved := false // some LID is another than before
	for lid, was := range x.was {
		moved = moved || was >= 0 && int(was) != lid
	}
	x.alike = make([]bool, len(g.Switches()))
	for s, was := range x.switches {
		if !moved && was >= 0 && x.ports[s] == nil && sameEntries(x.new.Row(s), x.old.Row(int(was))) {
			x.alike[s] = true
			continue
		}
		for lid, was := range x.was {
			if was >= 0 && x.hopDiffers(int32(s), lid, int(was)) {
				x.differs[lid] = true
			}
		}
	}
}

// sameEntries reports whether tables are equal, but for LIDs at the end of the longer one that it
// drops.
func sameEntries(a, b routes.Row) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest := b[len(a):]
	return bytes.Equal(a, b[:len(a)]) && bytes.Count(rest, []byte{routes.NoPort}) == len(rest)
}

// hopDiffers reports whether switch s, which is not alike, sends packets to a LID elsewhere.
func (x *reroute) hopDiffers(s int32, lid, was int) bool {
	p := x.new.Entry(s, mad.LID(lid))
	return x.switches[s] < 0 || p != x.old.Entry(x.switches[s], mad.LID(was)) || x.ports[s] != nil && int(p) < len(x.ports[s]) && x.ports[s][p]
}

// count adds up the pairs whose packets are rerouted, and the load before and now.
// Where few switches differ, the older paths are followed, and what these switches
// change is added; else the newer ones too.
//
// Time: O(S) for each LID of the older tables, and O(D*H) for D switches that differ
// and H hops, or O(S), for each of the newer.
func (x *reroute) count(ctx context.Context) (Rerouted, error) {
	olds, news := verify.SelectEndpoints(x.old.Graph(), 0), verify.SelectEndpoints(x.new.Graph(), 0)
	p := x.newPatches(olds, news)
	paired, err := verify.CountRoutes(ctx, x.old, olds.Only(p.was), p.patch) // by channel of the older graph
	if err != nil {
		return Rerouted{}, err
	}
	sum := p.found()
	changed := make([][]bool, x.new.Graph().Workers())
	found := make([]Rerouted, x.new.Graph().Workers())
	now, err := verify.CountRoutes(ctx, x.new, news.Without(p.is), func(worker int, w *verify.Walk, lid mad.LID) {
		if !x.differs[lid] {
			return
		}
		if changed[worker] == nil {
			changed[worker] = make([]bool, len(x.switches))
		}
		x.countTo(w, int(lid), changed[worker], &found[worker])
	})
	for _, f := range found {
		sum.add(f)
	}
	if err != nil || sum.Pairs == 0 {
		return sum, err
	}
	before, err := verify.CountRoutes(ctx, x.old, olds.Without(p.was), nil)
	if err != nil {
		return sum, err
	}
	addTo(before, paired)
	for i := range p.work {
		addTo(paired, p.work[i].gone)
		addTo(now, p.work[i].come)
	}
	for c, was := range x.channels() {
		if was >= 0 {
			now[c] += paired[was]
		}
	}
	sum.Before, sum.After = LargestLoad(x.old.Graph(), before), LargestLoad(x.new.Graph(), now)
	return sum, nil
}

func addTo(sum, more []int64) {
	for i, n := range more {
		sum[i] += n
	}
}

// countTo adds the pairs whose destination is a LID, which w has followed from all
// switches with endpoints. changed is memory, by switch: the path from it differs.
func (x *reroute) countTo(w *verify.Walk, lid int, changed []bool, found *Rerouted) {
	g := x.new.Graph()
	t := int32(g.TerminalByLID(mad.LID(lid)))
	for s, n := range x.on {
		if n > 0 {
			w.From(int32(s), w.Column(mad.LID(lid)), t)
		}
	}
	clear(changed)
	loops := false
	for _, s := range w.Order { // each after its next hop, but where packets loop
		c := w.Via[s]
		changed[s] = c >= 0 && changed[g.ChannelTo(c)] || !x.alike[s] && x.hopDiffers(s, lid, int(x.was[lid]))
		loops = loops || w.State[s] == verify.Looping
	}
	for _, s := range w.Order {
		if c := w.Via[s]; loops && c >= 0 && changed[g.ChannelTo(c)] { // what is so anywhere on a loop
			changed[s] = true
		}
		n := x.on[s]
		if n == 0 || !changed[s] {
			continue
		}
		if int(s) == g.Terminals()[t].Switch {
			n-- // not to itself
		}
		found.Pairs += n
		if w.State[s] < 0 {
			found.Broken += n
		}
	}
}

// channels are, by channel, the channel of the older graph over its cable; -1: no such channel.
func (x *reroute) channels() []int32 {
	g, o := x.new.Graph(), x.old.Graph()
	list := make([]int32, len(g.Channels()))
	for s, was := range x.switches {
		for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
			list[c] = -1
			port := g.Channels()[c].Port
			if was < 0 || x.ports[s] != nil && x.ports[s][port] {
				continue
			}
			if target := o.Target(was, port); target.IsChannel() {
				list[c] = target.Channel()
			}
		}
	}
	return list
}

// patches are what the switches that differ change in the paths to LIDs that both
// tables have, where all endpoints stay.
type patches struct {
	x         *reroute
	was, is   []bool  // LIDs that are patched: of the older tables, of the newer
	lid       []int32 // by LID of the older tables: the LID of the newer
	different []int32 // switches that are not alike
	work      []patchWork
}

// patchWork is what a worker has found, and its memory.
type patchWork struct {
	found Rerouted
	gone  []int64 // load that is gone, at most 0, by channel of the older graph
	come  []int64 // load that is new, by channel of the newer
	at    []int32 // switches that send packets to the LID elsewhere
	isAt  []bool  // by switch of the older graph: it is one of them
	first []int64 // by such a switch: packets that come to it before any other of them
}

// fewSwitches is which part of the switches may differ, at most: to patch the paths
// behind more of them takes longer than to follow all again.
const fewSwitches = 8

// newPatches finds the LIDs that can be patched.
func (x *reroute) newPatches(olds, news *verify.Endpoints) *patches {
	g, o := x.new.Graph(), x.old.Graph()
	p := &patches{x: x, was: make([]bool, int(o.Top())+1), is: make([]bool, int(g.Top())+1), lid: make([]int32, int(o.Top())+1), work: make([]patchWork, o.Workers())}
	for s, alike := range x.alike {
		if !alike {
			p.different = append(p.different, int32(s))
		}
	}
	if len(g.Switches()) != len(o.Switches()) || len(p.different) > len(g.Switches())/fewSwitches {
		return p
	}
	for s, was := range x.switches {
		if was < 0 || news.On[s] != olds.On[was] || int64(news.On[s]) != x.on[s] {
			return p
		}
	}
	for lid, was := range x.was {
		if was < 0 || !news.Wanted[lid] || int(was) >= int(o.Top())+1 || !olds.Wanted[was] {
			continue
		}
		if x.terminals[g.TerminalByLID(mad.LID(lid))] == int32(o.TerminalByLID(mad.LID(was))) { // else two ports have one LID
			p.is[lid], p.was[was], p.lid[was] = true, true, int32(lid)
		}
	}
	return p
}

// patch removes the packets to a LID that come to a switch that differs from the cables behind
// it, and adds them to the cables that they take now. w has followed the older paths, and has
// the endpoints behind each switch.
func (p *patches) patch(worker int, w *verify.Walk, was mad.LID) {
	lid := int(p.lid[was])
	if !p.x.differs[lid] {
		return
	}
	m := &p.work[worker]
	if m.isAt == nil {
		m.isAt, m.first = make([]bool, len(w.State)), make([]int64, len(w.State))
		m.gone, m.come = make([]int64, len(w.Graph.Channels())), make([]int64, len(p.x.new.Graph().Channels()))
	}
	arrive := true
	m.at = m.at[:0]
	for _, s := range p.different {
		if of := p.x.switches[s]; w.State[of] != verify.Unknown && p.x.hopDiffers(s, lid, int(was)) {
			m.at = append(m.at, s)
			m.first[s], m.isAt[of] = int64(w.Flow[of]), true
			arrive = arrive && w.State[of] >= 0
		}
	}
	if arrive {
		p.removePackets(m, w)
		p.addPackets(m, lid)
	} else { // how many packets come there is not known: they are followed again
		p.is[lid] = false
		for _, s := range w.Order {
			if c := w.Via[s]; c >= 0 && w.State[s] >= 0 {
				m.gone[c] -= int64(w.Flow[s])
			}
		}
	}
	for _, s := range m.at {
		m.isAt[p.x.switches[s]] = false
	}
}

// removePackets removes the packets from their cables, up to the next switch that differs: it
// removes them from the cables behind it.
func (p *patches) removePackets(m *patchWork, w *verify.Walk) {
	for _, s := range m.at {
		at := p.x.switches[s]
		n := int64(w.Flow[at])
		for w.Via[at] >= 0 {
			m.gone[w.Via[at]] -= n
			if at = w.Graph.ChannelTo(w.Via[at]); m.isAt[at] {
				m.first[p.newer(m, at)] -= n
				break
			}
		}
	}
}

// newer is the number in the newer graph of a switch that differs.
func (p *patches) newer(m *patchWork, old int32) int32 {
	for _, s := range m.at {
		if p.x.switches[s] == old {
			return s
		}
	}
	return graph.NoChannel
}

// addPackets adds the packets to their cables, if they arrive.
func (p *patches) addPackets(m *patchWork, lid int) {
	g := p.x.new.Graph()
	t := int32(g.TerminalByLID(mad.LID(lid)))
	for _, s := range m.at {
		n := m.first[s]
		if n == 0 {
			continue
		}
		arrives := p.load(m.come, s, lid, n)
		if int(s) == g.Terminals()[t].Switch {
			n-- // not to itself
		}
		m.found.Pairs += n
		if !arrives {
			m.found.Broken += n
		}
	}
}

// load adds n packets from switch s to a LID to the load, if they arrive.
func (p *patches) load(load []int64, s int32, lid int, n int64) bool {
	g := p.x.new.Graph()
	t := int32(g.TerminalByLID(mad.LID(lid)))
	var way [64]int32
	path := way[:0]
	for at := s; len(path) <= len(g.Switches()); {
		target := g.Target(at, p.x.new.Entry(at, mad.LID(lid)))
		if target < 0 {
			if target != graph.ToTerminal(t) {
				return false
			}
			for _, c := range path {
				load[c] += n
			}
			return true
		}
		path = append(path, target.Channel())
		at = g.ChannelTo(target.Channel())
	}
	return false // a loop
}

// found adds up what the workers have found.
func (p *patches) found() Rerouted {
	var sum Rerouted
	for i := range p.work {
		sum.add(p.work[i].found)
	}
	return sum
}

func (r *Rerouted) add(f Rerouted) {
	r.Pairs += f.Pairs
	r.Broken += f.Broken
}

// chosenPaths are the paths to a LID that switches may choose, of packets of any kind: the
// memory of a worker.
type chosenPaths struct {
	x      *reroute
	kinds  []verify.PacketKind
	plfts  [][]uint8 // by switch: the private LFTs that packets may follow
	state  []outcome // by switch
	differ []func(lid mad.LID) bool
}

// outcome is what may become of packets from a switch on.
type outcome uint8

const (
	outcomeKnown   outcome = 1 << iota
	outcomeOpen            // on the path that is followed now
	outcomeDiffers         // some switch has other choices than before
	outcomeLost            // some packets do not arrive
)

// countChoices is count where switches of one of the Routes route adaptively: a pair counts
// if any switch that its packets may pass has another static port or other choices, and is
// broken if some packets do not arrive. Loads are the loads of static ports.
//
// Time: O(C) for each LID.
func (x *reroute) countChoices(ctx context.Context) (Rerouted, error) {
	x.compare() // finds the LIDs that both have
	g := x.new.Graph()
	kinds := verify.PacketKinds(x.new)
	before, now := routes.ActiveSwitches(x.old), routes.ActiveSwitches(x.new)
	plfts := make([][]uint8, len(now))
	for s, a := range now {
		plfts[s] = usedPLFTs(a)
	}
	found := make([]Rerouted, g.Workers())
	paths := make([]*chosenPaths, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(x.was), func(worker, lid int) {
		if x.was[lid] < 0 {
			return
		}
		p := paths[worker]
		if p == nil {
			p = &chosenPaths{x: x, kinds: kinds, plfts: plfts, state: make([]outcome, len(now)), differ: make([]func(lid mad.LID) bool, len(now))}
			for s, a := range now {
				if was := x.switches[s]; was >= 0 {
					p.differ[s] = adaptive.Differ(before[was], a)
				}
			}
			paths[worker] = p
		}
		if p.any(mad.LID(lid), now) {
			p.count(mad.LID(lid), now, &found[worker])
		}
	})
	if err != nil {
		return Rerouted{}, err
	}
	var sum Rerouted
	for _, f := range found {
		sum.add(f)
	}
	if sum.Pairs == 0 {
		return sum, nil
	}
	for _, t := range []struct {
		r  *routes.Routes
		to *int64
	}{{x.old, &sum.Before}, {x.new, &sum.After}} {
		load, err := verify.CountAllRoutes(ctx, t.r)
		if err != nil {
			return sum, err
		}
		*t.to = LargestLoad(t.r.Graph(), load)
	}
	return sum, nil
}

// usedPLFTs are the private LFTs that some packets follow.
func usedPLFTs(a *adaptive.Switch) []uint8 {
	list := []uint8{0}
	if a == nil {
		return list
	}
	var known [256]bool
	known[0] = true
	for _, row := range a.Private {
		for _, plft := range row {
			if !known[plft] {
				known[plft] = true
				list = append(list, plft)
			}
		}
	}
	return list
}

// count adds the pairs whose destination is lid.
func (p *chosenPaths) count(lid mad.LID, now []*adaptive.Switch, found *Rerouted) {
	g := p.x.new.Graph()
	clear(p.state)
	home := g.Terminals()[g.TerminalByLID(lid)].Switch
	for s, n := range p.x.on {
		if n == 0 {
			continue
		}
		if s == home {
			n-- // not to itself
		}
		state := p.follow(int32(s), lid, now)
		if state&outcomeDiffers == 0 {
			continue
		}
		found.Pairs += n
		if state&outcomeLost != 0 {
			found.Broken += n
		}
	}
}

// any reports whether some switch does something else with packets to lid than before.
func (p *chosenPaths) any(lid mad.LID, now []*adaptive.Switch) bool {
	for s := range now {
		if p.differs(int32(s), lid) || p.x.ports[s] != nil {
			return true
		}
	}
	return false
}

// differs reports whether switch s has another static port for lid, or other choices.
func (p *chosenPaths) differs(s int32, lid mad.LID) bool {
	return p.x.hopDiffers(s, int(lid), int(p.x.was[lid])) || p.differ[s] != nil && p.differ[s](lid)
}

// follow is what may become of packets from switch s on.
func (p *chosenPaths) follow(s int32, lid mad.LID, now []*adaptive.Switch) outcome {
	if p.state[s]&outcomeKnown != 0 {
		return p.state[s]
	}
	if p.state[s]&outcomeOpen != 0 {
		return outcomeLost // they may loop
	}
	p.state[s] |= outcomeOpen
	g, x := p.x.new.Graph(), p.x
	var state outcome
	if p.differs(s, lid) {
		state |= outcomeDiffers
	}
	ports := p.ports(s, lid, now[s])
	if ports.Empty() {
		state |= outcomeLost
	}
	for port := range ports.All() {
		if x.ports[s] != nil && int(port) < len(x.ports[s]) && x.ports[s][port] {
			state |= outcomeDiffers
		}
		switch target := g.Target(s, port); {
		case target.IsChannel():
			state |= p.follow(g.ChannelTo(target.Channel()), lid, now) & (outcomeDiffers | outcomeLost)
		case target != graph.ToTerminal(int32(g.TerminalByLID(lid))):
			state |= outcomeLost
		}
	}
	p.state[s] = state | outcomeKnown
	return p.state[s]
}

// ports are the ports that packets of any kind may take.
func (p *chosenPaths) ports(s int32, lid mad.LID, a *adaptive.Switch) adaptive.Ports {
	if a == nil {
		return adaptive.Single(p.x.new.Entry(s, lid)).Ports
	}
	var all adaptive.Ports
	down := routes.Down(p.x.new.Graph(), int(s))
	for _, plft := range p.plfts[s] {
		for i := range p.kinds {
			all = all.Union(a.PortsOf(plft, p.kinds[i].Packet(0), lid, down))
		}
	}
	return all
}
