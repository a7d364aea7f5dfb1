package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/discover"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// StoppedError reports that a change of links was stopped at one of them, which was
// restored. The links before it are changed, those after it are not.
type StoppedError struct {
	Link  string // one of its ports
	Cause error
	// Unrestored is why the link is not as before, after it was restored; nil: it is.
	Unrestored error
	// Done and Skipped name the links before and after it.
	Done, Skipped []string

	unchanged bool   // nothing of the link was written, or it was only reset
	left      []int  // cells of the link and those after it
	end       string // how the change of the links before it ended
}

func (e *StoppedError) Error() string {
	text := e.restored() + "; done: " + listOf(e.Done) + "; not done: " + listOf(append([]string{e.Link}, e.Skipped...))
	if e.end != "" {
		text += "; " + e.end
	}
	return text
}

// restored describes the link.
func (e *StoppedError) restored() string {
	text := fmt.Sprintf("%s: %v; this link ", e.Link, e.Cause)
	switch {
	case e.unchanged:
		return text + "was not changed"
	case e.Unrestored != nil:
		return text + fmt.Sprintf("was restored, but: %v", e.Unrestored)
	}
	return text + "was restored"
}

// Unwrap returns the cause.
func (e *StoppedError) Unwrap() error { return e.Cause }

// ended returns the error of the change, after it has ended with outcome and err.
func (e *StoppedError) ended(outcome Outcome, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w; %w", e, err)
	case outcome == Confirmed:
		e.end = "what is done is confirmed"
	default:
		e.end = "what was done is reverted too"
	}
	return e
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// How long a subnet manager may take to handle a link that went down or came up. OpenSM
// sweeps at once when it receives trap 128, else after sweep_interval, 10 s by default
// (opensm osm_subnet.c).
const (
	settleWithin = time.Minute
	settleEvery  = time.Second
	// lostFor is how long its tables may lose pairs while they do not change: it may still
	// compute new ones.
	lostFor = 10 * time.Second
	// silentFor is how long it may fail to answer: it may be busy.
	silentFor = 10 * time.Second
)

// links applies a change of links beside a subnet manager: link by link, each after the
// manager's tables of the link before have been read and checked.
type links struct {
	run    *Run
	f      *fabric.Fabric // before the change
	checks *Checks
	paths  *change.Baseline // before the change; nil: tables are not checked, as in a reversal
	last   *reading         // before the next link
	first  int              // round of the current link
	before [][]byte         // the cells before it
}

// reading is the fabric and its tables, as just read.
type reading struct {
	f      *fabric.Fabric
	tables *routes.Routes
}

// newLinks records the paths of f, which was just swept, unless the change is reverted.
func (r *Run) newLinks(ctx context.Context, f *fabric.Fabric, checks *Checks, back bool) (*links, error) {
	l := &links{run: r, f: f, checks: checks}
	if back {
		return l, nil
	}
	if r.Live == nil || r.Live.Graph().Fabric() != f {
		var err error
		if r.Live, err = readTables(ctx, r.Host.Engine, f); err != nil {
			return nil, err
		}
	}
	l.last = &reading{f, r.Live}
	var err error
	l.paths, err = change.NewBaseline(ctx, r.Live, func(ctx context.Context, tables *routes.Routes) error {
		t := &change.Tables{Live: tables}
		r.Host.levels("").InForce(t, r.Host.Engine)
		return t.InLanes(ctx, tables)
	})
	return l, err
}

// split makes rounds of each link alone. Links come in the order of their last steps in
// rounds; the steps of one stay in their order.
func (l *links) split(cells []*Cell, rounds []Round) (split []Round) {
	type link struct {
		rounds []Round
		last   int
	}
	of := map[string]*link{}
	var all []*link
	for n, r := range rounds {
		for _, s := range r.Steps {
			name := l.name(cells[s.Cell])
			x := of[name]
			if x == nil {
				x = &link{last: -1}
				of[name] = x
				all = append(all, x)
			}
			if x.last != n {
				x.rounds, x.last = append(x.rounds, Round{Drain: r.Drain}), n
			}
			last := &x.rounds[len(x.rounds)-1]
			last.Steps = append(last.Steps, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *link) int { return cmp.Compare(a.last, b.last) })
	for _, x := range all {
		split = append(split, x.rounds...)
	}
	return split
}

// name names the link of a cell, by its first port.
func (l *links) name(c *Cell) string {
	port := l.port(c)
	switch {
	case port == nil:
		return c.Name
	case port.Peer() != nil && port.Peer().ID() < port.ID():
		return port.Peer().Name()
	}
	return port.Name()
}

// port returns the port that a cell writes; nil: it is not in the fabric.
func (l *links) port(c *Cell) *fabric.Port {
	if nodes := l.f.NodeByGUID(c.Node); len(nodes) == 1 {
		return nodes[0].Port(int(c.Modifier & 0xff))
	}
	return nil
}

// settle waits until the subnet manager has handled what steps have written: the links are
// in the states that they ask for, it has cleared PortStateChange at their switches or
// written other tables, and two readings agree. Then these connect the pairs that were
// connected before the change, without a new credit loop. A *CheckError describes what is
// missing after settleWithin, or lostFor.
func (l *links) settle(ctx context.Context, cells []*Cell, steps []Step) error {
	clock := l.run.Host.Clock
	start := clock.Now()
	answered, sound := start, start // when it last did, or when tables last changed
	var was *reading
	why, state := "", ""
	for {
		manager, err := l.checks.findManager(ctx)
		switch {
		case err != nil:
			return err
		case manager != nil:
			if err := l.checks.sameManager(manager); err != nil {
				return err
			}
			answered = clock.Now()
		case clock.Now().Sub(answered) >= silentFor:
			return &CheckError{strings.TrimSuffix("the subnet manager no longer answers; "+state, "; ")}
		}
		now, err := l.read(ctx)
		if err != nil && ctx.Err() != nil {
			return err
		} else if err != nil {
			why, was = err.Error(), nil
		} else {
			same := was != nil && was.same(now)
			if !same {
				sound = clock.Now()
			}
			was = now
			var down bool
			why, down = l.pending(cells, steps, now)
			if state = why; down && clock.Now().Sub(start) >= trainsWithin {
				return &CheckError{fmt.Sprintf("%s, after %v", why, trainsWithin)}
			} else if why == "" && !same {
				why = "tables or links still change"
			}
			if why == "" {
				lost, err := l.unsound(ctx, now.tables)
				if err != nil {
					return err
				}
				if lost == "" {
					l.last = now
					return nil
				}
				if why = lost; clock.Now().Sub(sound) >= lostFor {
					return &CheckError{why}
				}
			}
		}
		if waited := clock.Now().Sub(start); waited >= settleWithin {
			return &CheckError{fmt.Sprintf("the subnet manager has not handled it within %v: %s", settleWithin, why)}
		}
		if err := clock.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
}

// read sweeps the fabric, and reads its tables.
func (l *links) read(ctx context.Context) (*reading, error) {
	f, err := discover.Sweep(ctx, l.run.Host.Engine, l.run.Host.Sweep)
	if err != nil {
		return nil, err
	}
	if !f.Complete() {
		return nil, fmt.Errorf("incomplete sweep: %s", f.FirstMissing())
	}
	tables, err := readTables(ctx, l.run.Host.Engine, f)
	return &reading{f, tables}, err
}

// same reports whether topology and tables of two readings are equal.
func (r *reading) same(o *reading) bool {
	a, b := change.FingerprintOf(r.f, nil), change.FingerprintOf(o.f, nil)
	return len(a.Since(&b)) == 0 && o.tables.Diff(r.tables).Entries == 0
}

// pending describes what shows that the subnet manager has not handled steps yet; "":
// nothing does. down reports that a link has not trained, which it does without one.
func (l *links) pending(cells []*Cell, steps []Step, now *reading) (why string, down bool) {
	marked, unmarked := "", false
	for _, s := range steps {
		c := cells[s.Cell]
		port := l.port(c)
		if port == nil {
			continue
		}
		for _, end := range l.ends(port, now) {
			at := portIn(now.f, end)
			if at == nil || at.Info() == nil {
				return end.Name() + " does not answer", false
			}
			if why := c.missing(s, at); why != "" {
				return why, at.Info().PortPhysicalState != mad.PortPhysicalStateLinkUp
			}
			if set, known := stateChange(now.f, end); known && !l.marked(end) {
				if unmarked = true; set {
					marked = at.Name()
				}
			}
		}
	}
	if unmarked && marked != "" && l.last != nil && now.tables.Diff(l.last.tables).Entries == 0 {
		return fmt.Sprintf("it has not seen the change of %s (PortStateChange is set), and the tables are as before", marked), false
	}
	return "", false
}

// ends returns a port and the other end of its link, which is known only now if the link was
// down before the change.
func (l *links) ends(port *fabric.Port, now *reading) []*fabric.Port {
	peer := port.Peer()
	if at := portIn(now.f, port); peer == nil && at != nil {
		peer = at.Peer()
	}
	if peer == nil {
		return []*fabric.Port{port}
	}
	return []*fabric.Port{port, peer}
}

// missing describes how the state of a port of the link that step s of c changes differs from
// the requested state; "": it does not.
func (c *Cell) missing(s Step, at *fabric.Port) string {
	f := mad.AttrPortInfo.Field("port_physical_state")
	if !slices.Contains(c.Fields, f.Script) {
		return ""
	}
	state := at.Info().PortState
	switch mad.PortPhysicalState(f.Uint(s.Data)) {
	case mad.PortPhysicalStateDisabled, mad.PortPhysicalStateSleep:
		if state != mad.PortStateDown {
			return fmt.Sprintf("%s is still %v", at.Name(), state)
		}
		return ""
	}
	if state != mad.PortStateActive {
		return fmt.Sprintf("the link at %s is not up: %v, %v", at.Name(), state, at.Info().PortPhysicalState)
	}
	return ""
}

// marked reports whether PortStateChange was set at the node of a port before.
func (l *links) marked(port *fabric.Port) bool {
	if l.last == nil {
		return false
	}
	set, _ := stateChange(l.last.f, port)
	return set
}

// stateChange returns PortStateChange of the switch of a port in another sweep; known: it
// was read.
func stateChange(f *fabric.Fabric, port *fabric.Port) (set, known bool) {
	at := portIn(f, port)
	if at == nil || at.Node().SwitchInfo() == nil {
		return false, false
	}
	return at.Node().SwitchInfo().PortStateChange, true
}

// portIn returns a port in another sweep of the subnet; nil: it is not there.
func portIn(f *fabric.Fabric, port *fabric.Port) *fabric.Port {
	if nodes := f.NodeByGUID(port.Node().GUID()); len(nodes) == 1 {
		return nodes[0].Port(port.Num())
	}
	return nil
}

// unsound describes what tables lack of the paths before the change; "": nothing.
func (l *links) unsound(ctx context.Context, tables *routes.Routes) (string, error) {
	if l.paths == nil {
		return "", nil
	}
	d, err := l.paths.Compare(ctx, tables)
	switch {
	case err != nil:
		return "", err
	case d.Lost > 0:
		return fmt.Sprintf("by the tables of the subnet manager %s lost, such as %s", plural.Count(int(d.Lost), "pair is", "pairs are"), d.Example), nil
	case d.CreditLoop != "" && !d.LoopBefore:
		return "the tables of the subnet manager have " + d.CreditLoop, nil
	}
	return "", nil
}

// settled waits until the subnet manager has handled the link of r. A reversal continues
// where it has not.
func (c *Change) settled(ctx context.Context, r *Round, to State) error {
	if c.links == nil {
		return nil
	}
	err := c.links.settle(ctx, c.cells, r.Steps)
	if err != nil && to == Old && ctx.Err() == nil {
		c.Log(fmt.Sprintf("revert: %v", err))
		return nil
	}
	return err
}

// stopAt restores the link of round n, which failed with cause, and returns the
// *StoppedError. It returns cause, or what failed besides, if the whole change must be
// reverted: nothing but this link was changed, it cannot be restored, or the change was
// interrupted. now are the cells.
func (c *Change) stopAt(ctx context.Context, rounds []Round, n int, now [][]byte, cause error) error {
	if ctx.Err() != nil || errors.Is(cause, ErrJournal) {
		return cause
	}
	first := c.links.first
	e := &StoppedError{Link: c.linkOf(&rounds[n]), Cause: cause, Done: c.linksOf(rounds[:first])}
	var all []Step
	for _, r := range rounds[first : n+1] {
		all = append(all, r.Steps...)
	}
	steps, err := c.written(ctx, all, now)
	if e.unchanged = len(steps) == 0; err == nil && !e.unchanged {
		e.Unrestored, err = c.restore(ctx, n+1, steps, now)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; and the link cannot be restored: %w", cause, err)
	case first == 0:
		return &CheckError{e.restored() + "; no other link was changed"}
	}
	for _, r := range rounds[first:] {
		e.left = append(e.left, cellsOf(r.Steps)...)
		if link := c.linkOf(&r); link != e.Link && !slices.Contains(e.Skipped, link) {
			e.Skipped = append(e.Skipped, link)
		}
	}
	return e
}

// linkOf names the link of a round.
func (c *Change) linkOf(r *Round) string { return c.links.name(c.cells[r.Steps[0].Cell]) }

// linksOf names the links of rounds, each once.
func (c *Change) linksOf(rounds []Round) (names []string) {
	for i := range rounds {
		names = append(names, c.linkOf(&rounds[i]))
	}
	return slices.Compact(names)
}

// written returns the steps that restore the cells that read as after steps.
func (c *Change) written(ctx context.Context, steps []Step, now [][]byte) (back []Step, err error) {
	if seen, err := c.links.read(ctx); err == nil { // other links may have failed
		refreshRoutes(seen.f, c.cells)
	}
	read, err := c.readEach(ctx, cellsOf(steps))
	if err != nil {
		return nil, err
	}
	for i, s := range steps {
		cell, data := c.cells[s.Cell], read[i].data
		switch now[s.Cell] = cell.masked(data); {
		case cell.same(data, c.links.before[s.Cell]):
		case cell.same(data, s.Data):
			back = append(back, Step{s.Cell, c.links.before[s.Cell]})
		default:
			return nil, &ForeignError{[]string{c.describe(s.Cell, now[s.Cell])}}
		}
	}
	return back, nil
}

// restore writes steps, at last the steps that make the link train, and waits until the
// subnet manager has handled that. unrestored is why it has not.
func (c *Change) restore(ctx context.Context, number int, steps []Step, now [][]byte) (unrestored, err error) {
	c.Log("restoring " + c.linkOf(&Round{Steps: steps}))
	_ = c.Journal.Append(Record{Kind: KindRound, Round: number, Steps: steps}) // a full disk must not prevent it
	state := mad.AttrPortInfo.Field("port_physical_state").Script
	trains := func(s Step) int {
		if slices.Contains(c.cells[s.Cell].Fields, state) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(trains(a), trains(b)) })
	for _, s := range steps {
		read, err := c.readEach(ctx, []int{s.Cell})
		if err == nil {
			err = c.write(ctx, []Step{s}, read, now)
		}
		if err != nil {
			return nil, err
		}
	}
	_ = c.Journal.Append(Record{Kind: KindDone, Round: number})
	paths := c.links.paths
	c.links.paths = nil // the paths before the change need not come back at once
	unrestored = c.links.settle(ctx, c.cells, steps)
	c.links.paths = paths
	return unrestored, ctx.Err()
}
