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
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Prover plans the rounds of a change, or of its reversal, and proves those of forwarding
// tables and virtual lanes.
type Prover struct {
	Engine *engine.Engine
	Fabric *fabric.Fabric
	// Live are the forwarding tables of Fabric; nil: they are read.
	Live   *routes.Routes
	Levels change.Levels
	Cells  []*certificate.Change
	// Certificate is that of the plan, whose changes are the cells; nil: it has no
	// certificate. Its rounds are taken if it holds.
	Certificate *certificate.Certificate
	// Static are the switches whose adaptive routing the change disables.
	Static []mad.GUID
	// Back is set when the change is reverted. To stop in between would not be better
	// than losing paths that the old tables do not have, or than a credit loop that
	// resolves without intervention.
	Back bool
	// AcceptCreditLoops continues even if packets may deadlock.
	AcceptCreditLoops bool
	// Reason is why an order is new that is not of a plan, for the log.
	Reason string
	Log    func(text string)
}

// Prove plans rounds from the current states of the cells to the wanted ones: first the cells
// that add paths, then linear forwarding tables and SL2VL, then the cells that remove paths.
// mode arranges them. A certificate of the result, which is sent, is checked against the
// tables in force.
func (p *Prover) Prove(ctx context.Context, mode mode, now, want [][]byte) (*Proven, error) {
	local, err := p.Engine.Port()
	if err != nil {
		return nil, err
	}
	before, after, tables := unrouted(p.Cells, now, want, newCuts(p.Fabric, p.Live, local.LID, local.SMLID).rank)
	compose := func(tables []certificate.Round) []certificate.Round {
		rounds := slices.DeleteFunc(slices.Concat(before, tables, after), func(r certificate.Round) bool { return len(r.Writes) == 0 })
		return mode.arrange(rounds)
	}
	if !tables {
		return newProven(compose(nil)), nil
	}
	c, err := p.certify(ctx, &local, now, want, compose)
	if err != nil {
		return nil, err
	}
	return newProven(c.Rounds), nil
}

// unrouted returns the rounds before and after those of forwarding tables and SL2VL: of cells
// that add paths, and of cells that remove paths, ordered by rank (nil: in one round). tables
// reports whether there are such tables.
func unrouted(cells []*certificate.Change, now, want [][]byte, rank func(*certificate.Change) int) (before, after []certificate.Round, tables bool) {
	var first, broken, last certificate.Round
	for i, c := range cells {
		if bytes.Equal(now[i], want[i]) {
			tables = tables || c.Rewrites()
			continue
		}
		write := certificate.Write{Change: i, Data: want[i]}
		switch {
		case routed(c):
			tables = true
		case c.Attr == mad.AttrMulticastForwardingTable:
			// Between two trees packets could circulate: branches are removed before
			// new ones are added.
			if both := commonPorts(now[i], want[i]); !bytes.Equal(both, now[i]) {
				broken.Writes = append(broken.Writes, certificate.Write{Change: i, Data: both})
			}
			last.Writes = append(last.Writes, write)
		case c.Attr == mad.AttrVLArbitrationTable:
			// A lane without an entry sends nothing: entries are added before the
			// packets use them, and removed afterwards.
			if both := mergedArbitration(now[i], want[i]); !bytes.Equal(both, now[i]) {
				first.Writes = append(first.Writes, certificate.Write{Change: i, Data: both})
				if bytes.Equal(both, want[i]) {
					continue
				}
			}
			last.Writes = append(last.Writes, write)
		case c.Trains() || removes(c, now[i], want[i]):
			last.Writes = append(last.Writes, write)
		default:
			first.Writes = append(first.Writes, write)
		}
	}
	if first.Writes != nil {
		before = append(before, first)
	}
	if broken.Writes != nil {
		after = append(after, broken)
	}
	return before, append(after, lastRounds(cells, last.Writes, rank)...), tables
}

// certify returns a certificate, which was checked, of rounds of forwarding tables and virtual
// lanes: those of the plan if it holds for them, else those of a new order. Without Lanes it has the
// rounds only, which write nothing that a proof covers.
func (p *Prover) certify(ctx context.Context, local *engine.Port, now, want [][]byte, compose func([]certificate.Round) []certificate.Round) (*certificate.Certificate, error) {
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
	t := &change.Tables{Live: p.Live, Last: lastLIDs(local), AcceptLost: p.Back, AcceptCreditLoops: p.AcceptCreditLoops}
	p.Levels.InForce(t, p.Engine)
	if p.Back {
		t.Levels = p.levelsBack
	}
	changes := make([]certificate.Change, len(p.Cells))
	for i, c := range p.Cells {
		if !p.Back || !bytes.Equal(now[i], want[i]) { // else there is nothing to write, and to prove
			changes[i] = *c
			changes[i].Old, changes[i].New = now[i], want[i]
		}
	}
	a, err := readAdaptivity(ctx, p.Engine, t)
	if err == nil {
		err = p.checkStatic(a, changes)
	}
	if err != nil {
		return nil, err
	}
	reason := p.Reason
	if p.Certificate != nil {
		c, err := p.planned(ctx, t, changes, compose)
		failed := new(certificate.FailureError)
		if !errors.As(err, &failed) {
			return c, err
		}
		reason, t.Basis = failed.Error(), "" // read again for the order
	}
	c, err := p.ordered(ctx, t, changes, want, compose)
	if t.Basis != "" && !p.Back {
		p.Log("service levels: " + t.Basis)
	}
	if err == nil && c.Lanes > 0 { // else a write of SL2VL of channel adapters alone, which needs no proof
		p.Log(newOrder(reason, c))
	}
	return c, err
}

// newOrder describes in one line an order that is not the order of the plan.
func newOrder(reason string, c *certificate.Certificate) string {
	text := fmt.Sprintf("%s: a new order of %s was found, and its certificate holds", reason, plural.Count(len(c.Rounds), "round", "rounds"))
	switch {
	case c.EndOnly:
		return fmt.Sprintf("%s: %s of writes; its certificate covers only what is written, not the steps", reason, plural.Count(len(c.Rounds), "round", "rounds"))
	case c.AcceptCreditLoops:
		return text + ", but does not cover credit loops"
	}
	return text
}

// planned returns the certificate of the plan with the other rounds of the change, if it holds
// for them. Otherwise the error is a *certificate.FailureError.
func (p *Prover) planned(ctx context.Context, t *change.Tables, changes []certificate.Change, compose func([]certificate.Round) []certificate.Round) (*certificate.Certificate, error) {
	c := *p.Certificate
	if c.AcceptCreditLoops && !p.AcceptCreditLoops {
		return nil, &certificate.FailureError{Reason: "the plan accepts credit loops"}
	}
	last := func(w certificate.Write) int {
		ch := &changes[w.Change]
		if ch.Attr == mad.AttrLinearForwardingTable && slices.ContainsFunc(t.Last, func(lid mad.LID) bool { return uint32(lid)/mad.LFTBlock == ch.Modifier }) {
			return 1
		}
		return 0
	}
	var rounds []certificate.Round
	for _, r := range c.Rounds {
		r.Writes = slices.Clone(r.Writes)
		if slices.ContainsFunc(r.Writes, func(w certificate.Write) bool { return w.Change < 0 || w.Change >= len(changes) }) {
			return nil, &certificate.FailureError{Reason: "it is one of other changes"}
		}
		slices.SortStableFunc(r.Writes, func(a, b certificate.Write) int { return cmp.Compare(last(a), last(b)) })
		rounds = append(rounds, r)
	}
	c.Rounds = compose(rounds)
	result, err := t.Check(ctx, changes, &c)
	switch {
	case err != nil:
		return nil, err
	case result.OldLoop:
		p.Log(change.BeyondOldLoop(change.OldLoopEnd(result.OldLoopUntil)))
	case c.AcceptCreditLoops:
		p.Log("during the change packets may deadlock in a credit loop, which was accepted when the plan was made")
	}
	if t.Basis != "" {
		p.Log("service levels: " + t.Basis)
	}
	return &c, nil
}

// ordered finds an order of the changes, and its certificate.
func (p *Prover) ordered(ctx context.Context, t *change.Tables, changes []certificate.Change, want [][]byte, compose func([]certificate.Round) []certificate.Round) (*certificate.Certificate, error) {
	in, s, err := t.Order(ctx, changes)
	if p.Back && !p.AcceptCreditLoops && change.CreditLoop(err) {
		if slices.Contains(in.Drain, 0) {
			return nil, fmt.Errorf("%w\nnot reverted automatically, because a switch holds packets for ever (HOQLife); fabsh change revert --accept-credit-loop-risk reverts it nevertheless", err)
		}
		t.AcceptCreditLoops = true
		in, s, err = t.Order(ctx, changes)
	}
	var c *certificate.Certificate
	refusal := new(order.Refusal)
	switch {
	case errors.As(err, &refusal) && p.Back && p.isWhole(want):
		p.Log(fmt.Sprintf("no order of the reversal is safe at each step, so the old tables are written in one round: %v", err))
		c = &certificate.Certificate{Lanes: 1, EndOnly: true, Rounds: inOneRound(changes)}
	case err != nil:
		return nil, err
	case s == nil: // SL2VL of channel adapters
		return &certificate.Certificate{Rounds: compose(inOneRound(changes))}, nil
	default:
		if loop := s.Figures.Cycle; loop != nil {
			p.Log(fmt.Sprintf("during the change packets may deadlock in a credit loop of %d links, until HOQLife drops them: %v", len(loop), loop[0]))
		}
		c = change.Uncertified(&in, s)
	}
	c.Rounds = compose(c.Rounds)
	result, err := t.Certify(ctx, &in, changes, c)
	failed := new(certificate.FailureError)
	if errors.As(err, &failed) && p.Back && !c.EndOnly && p.isWhole(want) {
		p.Log(fmt.Sprintf("the order of the reversal has no certificate: %s", failed.Reason))
		c.EndOnly = true
		result, err = t.Certify(ctx, &in, changes, c)
	}
	switch {
	case errors.As(err, &failed):
		return nil, &order.Refusal{Round: -1, Reason: "order of writes found, but no certificate: " + failed.Reason}
	case err == nil && result.OldLoop:
		p.Log(change.BeyondOldLoop(change.OldLoopEnd(result.OldLoopUntil)))
	}
	return c, err
}

// isWhole reports whether all cells are restored. Tables that are restored in part may
// loop, so then an order must be proven.
func (p *Prover) isWhole(want [][]byte) bool {
	for i, c := range p.Cells {
		if !c.Same(want[i], c.Old) {
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

// inOneRound returns all virtual lanes, and all forwarding tables, as one round each.
func inOneRound(changes []certificate.Change) (rounds []certificate.Round) {
	for _, attr := range []*mad.Attribute{mad.AttrSLtoVLMappingTable, mad.AttrLinearForwardingTable} {
		var r certificate.Round
		for i, ch := range changes {
			if ch.Attr == attr && !bytes.Equal(ch.Old, ch.New) {
				r.Writes = append(r.Writes, certificate.Write{Change: i, Data: ch.New})
			}
		}
		if r.Writes != nil {
			rounds = append(rounds, r)
		}
	}
	return rounds
}

// routed reports whether a change is one of a forwarding table, or of virtual lanes.
func routed(c *certificate.Change) bool {
	return c.Attr == mad.AttrLinearForwardingTable || c.Attr == mad.AttrSLtoVLMappingTable
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

// removes reports whether the write removes something that tables may still use: a port, the
// last entries of a forwarding table, or partitions.
func removes(c *certificate.Change, now, want []byte) bool {
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
func (c *cuts) rank(cell *certificate.Change) int {
	n := cell.NodeIn(c.f)
	if n == nil {
		return 0
	}
	near, last := len(n.Route()), c.isEnd(n)
	if cell.Attr != mad.AttrPortInfo {
		if last {
			return 3 * farthest
		}
		return -farthest
	}
	port := cell.PortIn(c.f)
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

// lastRounds returns the rounds of writes that remove something. Writes of one rank share a
// round; a link that only retrains comes first, because all other links are still up.
func lastRounds(cells []*certificate.Change, writes []certificate.Write, rank func(*certificate.Change) int) (rounds []certificate.Round) {
	if rank == nil {
		rank = func(*certificate.Change) int { return 0 }
	}
	key := func(w certificate.Write) int { return rank(cells[w.Change]) }
	slices.SortStableFunc(writes, func(a, b certificate.Write) int { return cmp.Compare(key(a), key(b)) })
	for i, w := range writes {
		n := len(rounds) - 1
		if i == 0 || key(writes[i-1]) != key(w) || cells[w.Change].Trains() || cells[writes[i-1].Change].Trains() {
			rounds, n = append(rounds, certificate.Round{}), n+1
		}
		rounds[n].Writes = append(rounds[n].Writes, w)
	}
	return rounds
}

// checkStatic returns an error if adaptive routing is on at a switch whose forwarding table
// is written, and that is not in p.Static: it was switched on after the change began.
func (p *Prover) checkStatic(a *device.Adaptivity, changes []certificate.Change) error {
	for _, n := range a.On {
		if slices.ContainsFunc(changes, func(c certificate.Change) bool {
			return c.Node == n.GUID() && c.Attr == mad.AttrLinearForwardingTable
		}) && (p.Back || !slices.Contains(p.Static, n.GUID())) {
			return &CheckError{fmt.Sprintf("adaptive routing of %s was switched on; its forwarding table is not written", n.Label())}
		}
	}
	return nil
}
