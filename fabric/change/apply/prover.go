package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Prover orders the cells of a change, or of its reversal, and proves the order of
// forwarding tables and virtual lanes.
type Prover struct {
	Engine *engine.Engine
	Fabric *fabric.Fabric
	// Live are the forwarding tables of Fabric; nil: they are read.
	Live   *routes.Routes
	Levels change.Levels
	Cells  []*Cell
	// Static are the switches whose adaptive routing the change disables.
	Static []mad.GUID
	// Back is set when the change is reverted. To stop in between would not be better
	// than losing paths that the old tables do not have, or than a credit loop that
	// resolves without intervention.
	Back bool
	// AcceptCreditLoops continues even if packets may deadlock.
	AcceptCreditLoops bool
	Log               func(text string)
}

// Order plans rounds from the current states of the cells to the wanted ones.
func (p *Prover) Order(ctx context.Context, now, want [][]byte) ([]Round, error) {
	local, err := p.Engine.Port()
	if err != nil {
		return nil, err
	}
	return Ordered(p.Cells, p.tables, newCuts(p.Fabric, p.Live, local.LID, local.SMLID).rank)(ctx, now, want)
}

// Ordered returns the order of all kinds of cells: first the cells that add paths, then
// linear forwarding tables and SL2VL, ordered by tables, then the cells that remove paths,
// ordered by rank (nil: in one round).
func Ordered(cells []*Cell, tables func(ctx context.Context, now, want [][]byte) ([]Round, error), rank func(*Cell) int) func(context.Context, [][]byte, [][]byte) ([]Round, error) {
	return func(ctx context.Context, now, want [][]byte) ([]Round, error) {
		var first, broken, last Round
		routed := false
		for i, c := range cells {
			if bytes.Equal(now[i], want[i]) {
				routed = routed || c.rewrites()
				continue
			}
			step := Step{i, want[i]}
			switch {
			case c.routed():
				routed = true
			case c.Attr == mad.AttrMulticastForwardingTable:
				// Between two trees packets could circulate: branches are removed before
				// new ones are added.
				if both := commonPorts(now[i], want[i]); !bytes.Equal(both, now[i]) {
					broken.Steps = append(broken.Steps, Step{i, both})
				}
				last.Steps = append(last.Steps, step)
			case c.Attr == mad.AttrVLArbitrationTable:
				// A lane without an entry sends nothing: entries are added before the
				// packets use them, and removed afterwards.
				if both := mergedArbitration(now[i], want[i]); !bytes.Equal(both, now[i]) {
					first.Steps = append(first.Steps, Step{i, both})
					if bytes.Equal(both, want[i]) {
						continue
					}
				}
				last.Steps = append(last.Steps, step)
			case c.trains() || c.removes(now[i], want[i]):
				last.Steps = append(last.Steps, step)
			default:
				first.Steps = append(first.Steps, step)
			}
		}
		var rounds []Round
		add := func(r ...Round) {
			for _, r := range r {
				if len(r.Steps) > 0 {
					rounds = append(rounds, r)
				}
			}
		}
		add(first)
		if routed {
			middle, err := tables(ctx, now, want)
			if err != nil {
				return nil, err
			}
			add(middle...)
		}
		add(broken)
		add(lastRounds(cells, last.Steps, rank)...)
		return rounds, nil
	}
}

// tables orders the forwarding tables and virtual lanes among the cells.
func (p *Prover) tables(ctx context.Context, now, want [][]byte) ([]Round, error) {
	if p.Live == nil {
		read, failed, err := device.ReadRoutes(ctx, p.Engine, p.Fabric)
		if err != nil {
			return nil, err
		}
		if len(failed) > 0 {
			return nil, fmt.Errorf("forwarding table of %s: cannot be read; nothing is proven: %w", failed[0].Switch.Label(), failed[0].Err)
		}
		p.Live = read
	}
	local, err := p.Engine.Port()
	if err != nil {
		return nil, err
	}
	t := change.Tables{Live: p.Live, Last: lastLIDs(&local), AcceptLost: p.Back, AcceptCreditLoops: p.AcceptCreditLoops}
	p.Levels.InForce(&t, p.Engine)
	if p.Back {
		t.Levels = p.levelsBack
	}
	var writes []change.Write
	for i, c := range p.Cells {
		if !p.Back || !bytes.Equal(now[i], want[i]) {
			writes = append(writes, change.Write{Attr: c.Attr, Modifier: c.Modifier, Node: c.Node, Label: c.Name, Old: now[i], New: want[i]})
		}
	}
	a, err := readAdaptivity(ctx, p.Engine, &t)
	if err == nil {
		err = p.checkStatic(a, writes)
	}
	if err != nil {
		return nil, err
	}
	in, s, err := t.Order(ctx, writes)
	if t.Basis != "" && !p.Back {
		p.Log("service levels: " + t.Basis)
	}
	if p.Back && !p.AcceptCreditLoops && change.CreditLoop(err) {
		if slices.Contains(in.Drain, 0) {
			return nil, fmt.Errorf("%w\nnot reverted automatically, because a switch holds packets for ever (HOQLife); fabsh change revert --accept-credit-loop-risk reverts it nevertheless", err)
		}
		t.AcceptCreditLoops = true
		in, s, err = t.Order(ctx, writes)
	}
	var refusal *order.Refusal
	if p.Back && errors.As(err, &refusal) && p.isWhole(want) {
		p.Log(fmt.Sprintf("no order of the reversal is safe at each step, so the old tables are written in one round: %v", err))
		return p.inOneRound(now, want), nil
	}
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, nil
	case s.Figures.Cycle != nil:
		p.Log(fmt.Sprintf("during the change packets may deadlock in a credit loop of %d links, until HOQLife drops them: %v", len(s.Figures.Cycle), s.Figures.Cycle[0]))
	}
	return p.rounds(s, now, want)
}

// isWhole reports whether all cells are restored. Tables that are restored in part may
// loop, so then an order must be proven.
func (p *Prover) isWhole(want [][]byte) bool {
	for i, c := range p.Cells {
		if !c.same(want[i], c.Old) {
			return false
		}
	}
	return true
}

// levelsBack returns the service levels of packets for a reversal: a missing file of them
// must not leave the change half reverted.
func (p *Prover) levelsBack(ctx context.Context, live *routes.Routes) (*routes.SL, string, error) {
	levels, basis, err := p.Levels.Of(ctx, live)
	if err == nil || ctx.Err() != nil {
		return levels, basis, err
	}
	p.Log(fmt.Sprintf("the service levels of paths cannot be read, so any may be in use: %v", err))
	return nil, err.Error(), nil
}

// inOneRound returns all forwarding tables and virtual lanes as one round.
func (p *Prover) inOneRound(now, want [][]byte) []Round {
	var r Round
	for i, c := range p.Cells {
		if c.routed() && !bytes.Equal(now[i], want[i]) {
			r.Steps = append(r.Steps, Step{i, want[i]})
		}
	}
	return []Round{r}
}

// routed reports whether tables orders the cell.
func (c *Cell) routed() bool {
	return c.Attr == mad.AttrLinearForwardingTable || c.Attr == mad.AttrSLtoVLMappingTable
}

// blockKey is a block of a switch's forwarding table.
type blockKey struct {
	node  mad.GUID
	block int
}

// rounds returns the rounds of s, in cells.
func (p *Prover) rounds(s *order.Schedule, now, want [][]byte) (rounds []Round, err error) {
	g := p.Live.Graph()
	at := map[blockKey]int{}
	lanes := Round{}
	for i, c := range p.Cells {
		switch {
		case c.Attr == mad.AttrLinearForwardingTable:
			at[blockKey{c.Node, int(c.Modifier)}] = i
		case c.Attr == mad.AttrSLtoVLMappingTable && !bytes.Equal(now[i], want[i]):
			lanes.Steps = append(lanes.Steps, Step{i, want[i]})
		}
	}
	for _, r := range s.Rounds {
		if r.Lanes {
			lanes.Drain = r.Drain
			rounds = append(rounds, lanes)
			lanes = Round{}
			continue
		}
		round := Round{Drain: r.Drain}
		for _, b := range r.Blocks {
			n := g.Switches()[b.Switch]
			i, ok := at[blockKey{n.GUID(), b.Number}]
			if !ok {
				return nil, fmt.Errorf("the order writes block %d of %s, which is not in the change", b.Number, n.Label())
			}
			round.Steps = append(round.Steps, Step{i, bytes.Clone(b.Entries[:])})
		}
		rounds = append(rounds, round)
	}
	if lanes.Steps != nil { // SL2VL of channel adapters
		rounds = append([]Round{lanes}, rounds...)
	}
	// Entries that no path uses, as the entries of LIDs that no port has, are not ordered.
	last := Round{}
	is := slices.Clone(now)
	for _, r := range rounds {
		for _, s := range r.Steps {
			is[s.Cell] = s.Data
		}
	}
	for i, c := range p.Cells {
		if c.Attr == mad.AttrLinearForwardingTable && !bytes.Equal(is[i], want[i]) {
			last.Steps = append(last.Steps, Step{i, want[i]})
		}
	}
	if last.Steps != nil {
		rounds = append(rounds, last)
	}
	return rounds, nil
}

// commonPorts returns the ports that both entries of a multicast forwarding table have.
func commonPorts(a, b []byte) []byte {
	both := make([]byte, len(a))
	for at := 0; at < len(a); at += 2 {
		binary.BigEndian.PutUint16(both[at:], binary.BigEndian.Uint16(a[at:])&binary.BigEndian.Uint16(b[at:]))
	}
	return both
}

// mergedArbitration returns a block of a VL arbitration table, pairs of a lane and its weight, with
// which all lanes send that now or want serve: want, and the lanes of now that have no
// weight in want. If there is no room for both it returns want.
func mergedArbitration(now, want []byte) []byte {
	both := bytes.Clone(want)
	for at := 0; at+1 < len(both); at += 2 {
		if both[at+1] == 0 {
			copy(both[at:at+2], now[at:at+2])
		}
	}
	if sendingLanes(both)&sendingLanes(now) != sendingLanes(now) {
		return want
	}
	return both
}

// sendingLanes returns a bit for each lane with a weight.
func sendingLanes(block []byte) (lanes uint16) {
	for at := 0; at+1 < len(block); at += 2 {
		if block[at+1] > 0 {
			lanes |= 1 << (block[at] & 15)
		}
	}
	return lanes
}

// removes reports whether the step removes something that tables may still use: a port, the
// last entries of a forwarding table, or partitions.
func (c *Cell) removes(now, want []byte) bool {
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		from, to := f.Uint(now), f.Uint(want)
		switch {
		case name == "port_physical_state" && mad.PortPhysicalState(to) == mad.PortPhysicalStateDisabled,
			name == "linear_fdb_top" && to < from, name == "multicast_fdb_top" && to < from:
			return true
		}
	}
	return c.Attr == mad.AttrPKeyTable
}

// cuts decides how late each removal is written. The port of the subnet manager, where the
// subnet administrator runs, and the port of this host are cut last. Other ports are cut
// the earlier, the farther away they are, so that directed routes to nodes written later
// still work.
type cuts struct {
	f    *fabric.Fabric
	ends []*fabric.Port        // of this host and of the subnet manager
	on   map[*fabric.Port]bool // by which packets between these leave switches
}

// farthest is longer than any directed route.
const farthest = 64

// newCuts computes cuts of f from the tables in force; nil: the tables are unknown.
func newCuts(f *fabric.Fabric, live *routes.Routes, host, manager mad.LID) *cuts {
	c := &cuts{f: f, on: map[*fabric.Port]bool{}}
	for _, lid := range []mad.LID{host, manager} {
		if p := f.PortByLID(lid); lid != 0 && p != nil {
			c.ends = append(c.ends, p)
		}
	}
	if live == nil || len(c.ends) < 2 {
		return c
	}
	for _, way := range [][2]mad.LID{{host, manager}, {manager, host}} {
		path, err := live.Trace(way[0], way[1])
		if err != nil {
			continue // one end is in no table
		}
		for _, hop := range path.Hops {
			if p := live.Graph().Switches()[hop.Switch].Port(int(hop.Out)); p != nil && p.Peer() != nil {
				c.on[p], c.on[p.Peer()] = true, true
			}
		}
	}
	return c
}

// rank returns when the removal by c is written: the higher, the later.
func (c *cuts) rank(cell *Cell) int {
	nodes := c.f.NodeByGUID(cell.Node)
	if len(nodes) != 1 {
		return 0
	}
	near, last := len(nodes[0].Route()), c.isEnd(nodes[0])
	if cell.Attr != mad.AttrPortInfo {
		if last {
			return 3 * farthest
		}
		return -farthest
	}
	port := nodes[0].Port(int(cell.Modifier & 0xff))
	if port != nil && port.Peer() != nil {
		near = min(near, len(port.Peer().Node().Route()))
		last = last || c.isEnd(port.Peer().Node())
	}
	switch {
	case last:
		return 3*farthest - near
	case c.on[port]:
		return 2*farthest - near
	}
	return -near
}

func (c *cuts) isEnd(n *fabric.Node) bool {
	return slices.ContainsFunc(c.ends, func(p *fabric.Port) bool { return p.Node() == n })
}

// lastRounds returns the rounds of steps that remove something. Steps of one rank share a
// round; a link that only retrains comes first, because all other links are still up.
func lastRounds(cells []*Cell, steps []Step, rank func(*Cell) int) (rounds []Round) {
	if rank == nil {
		rank = func(*Cell) int { return 0 }
	}
	key := func(s Step) int { return rank(cells[s.Cell]) }
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(key(a), key(b)) })
	for i, s := range steps {
		n := len(rounds) - 1
		if i == 0 || key(steps[i-1]) != key(s) || cells[s.Cell].trains() || cells[steps[i-1].Cell].trains() {
			rounds, n = append(rounds, Round{}), n+1
		}
		rounds[n].Steps = append(rounds[n].Steps, s)
	}
	return rounds
}

// checkStatic returns an error if adaptive routing is on at a switch whose forwarding table
// is written, and that is not in p.Static: it was switched on after the change began.
func (p *Prover) checkStatic(a *device.Adaptivity, writes []change.Write) error {
	for _, n := range a.On {
		if slices.ContainsFunc(writes, func(w change.Write) bool {
			return w.Node == n.GUID() && w.Attr == mad.AttrLinearForwardingTable
		}) && (p.Back || !slices.Contains(p.Static, n.GUID())) {
			return &CheckError{fmt.Sprintf("adaptive routing of %s was switched on; its forwarding table is not written", n.Label())}
		}
	}
	return nil
}
