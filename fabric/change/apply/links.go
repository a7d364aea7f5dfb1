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
	"fabsh/fabric/change/certificate"
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

// links is the mode of a change of links beside a subnet manager: link by link, each after the
// manager's tables of the link before have been read and checked.
type links struct {
	sets
	run    *Run
	f      *fabric.Fabric // before the change
	checks *Checks
	back   bool              // the change is reverted
	paths  *change.Baseline  // before the change; nil: tables are not checked, as in a reversal
	kept   *change.KeptPorts // ports of hosts that the change takes down while others keep their paths
	last   *reading          // before the next link
	link   string            // the current one
	first  int               // its first round
	before [][]byte          // the cells before it
	silent bool              // the subnet manager failed to answer for silentFor
}

// reading is the fabric and its tables, as just read.
type reading struct {
	f      *fabric.Fabric
	tables *routes.Routes
}

// newLinks records the paths of f, which was just swept, unless the change is reverted.
func (r *Run) newLinks(ctx context.Context, f *fabric.Fabric, checks *Checks, w *Writer, back bool) (*links, error) {
	l := &links{sets: sets{Writer: w}, run: r, f: f, checks: checks, back: back}
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
	var changes []certificate.Change
	for _, c := range w.Journal.Begin().Cells {
		changes = append(changes, *c)
	}
	var err error
	if l.kept, err = change.KeptBy(ctx, f, changes, r.Host.pkeys); err != nil {
		return nil, err
	}
	l.paths, err = change.NewBaseline(ctx, r.Live, func(ctx context.Context, tables *routes.Routes) error {
		t := &change.Tables{Live: tables}
		r.Host.levels("").InForce(t, r.Host.Engine)
		return t.InLanes(ctx, tables)
	})
	return l, err
}

// arrange makes rounds of each link alone. Links come in the order of their last writes in
// rounds; the writes of one stay in their order.
func (l *links) arrange(rounds []certificate.Round) (split []certificate.Round) {
	type link struct {
		rounds []certificate.Round
		last   int
	}
	of := map[string]*link{}
	var all []*link
	for n, r := range rounds {
		for _, w := range r.Writes {
			name := l.name(l.cells[w.Change])
			x := of[name]
			if x == nil {
				x = &link{last: -1}
				of[name] = x
				all = append(all, x)
			}
			if x.last != n {
				x.rounds, x.last = append(x.rounds, certificate.Round{Drain: r.Drain}), n
			}
			last := &x.rounds[len(x.rounds)-1]
			last.Writes = append(last.Writes, w)
		}
	}
	slices.SortStableFunc(all, func(a, b *link) int { return cmp.Compare(a.last, b.last) })
	for _, x := range all {
		split = append(split, x.rounds...)
	}
	return split
}

// begin notes the cells before each link.
func (l *links) begin(n int, r *certificate.Round, now [][]byte) {
	if link := l.linkOf(r); l.before == nil || link != l.link {
		l.link, l.first, l.before = link, n, slices.Clone(now)
	}
}

// name names the link of a cell, by its first port.
func (l *links) name(c *certificate.Change) string {
	port := c.PortIn(l.f)
	switch {
	case port == nil:
		return c.Name
	case port.Peer() != nil && port.Peer().ID() < port.ID():
		return port.Peer().Name()
	}
	return port.Name()
}

// settle waits until the subnet manager has handled what was written. A reversal continues
// where it has not.
func (l *links) settle(ctx context.Context, writes []certificate.Write) error {
	err := l.handled(ctx, writes)
	if err != nil && l.back && ctx.Err() == nil {
		l.Log(fmt.Sprintf("revert: %v", err))
		return nil
	}
	return err
}

// handled waits until the subnet manager has handled what was written: the links are
// in the states that the writes ask for, it has cleared PortStateChange at their switches or
// written other tables, and two readings agree. Then these connect the pairs that were
// connected before the change, without a new credit loop. A *CheckError describes what is
// missing after settleWithin, or lostFor.
func (l *links) handled(ctx context.Context, writes []certificate.Write) error {
	clock := l.run.Host.Clock
	start := clock.Now()
	answered, sound := start, start // when it last did, or when tables last changed
	if l.silent {                   // known since the link before
		answered = start.Add(-silentFor)
	}
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
			answered, l.silent = clock.Now(), false
		case clock.Now().Sub(answered) >= silentFor:
			l.silent = true
			return &CheckError{strings.TrimSuffix("the subnet manager no longer answers; "+state, "; ")}
		}
		now, err := l.reread(ctx)
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
			why, down = l.pending(writes, now)
			if state = why; down && clock.Now().Sub(start) >= trainsWithin {
				return &CheckError{fmt.Sprintf("%s, after %v", why, trainsWithin)}
			} else if why == "" && !same {
				why = "tables or links still change"
			}
			if why == "" {
				lost, err := l.unsound(ctx, now)
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

// reread sweeps the fabric, and reads its tables.
func (l *links) reread(ctx context.Context) (*reading, error) {
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

// pending describes what shows that the subnet manager has not handled writes yet; "":
// nothing does. down reports that a link has not trained, which it does without one.
func (l *links) pending(writes []certificate.Write, now *reading) (why string, down bool) {
	marked, unmarked := "", false
	for _, w := range writes {
		c := l.cells[w.Change]
		port := c.PortIn(l.f)
		if port == nil {
			continue
		}
		for _, end := range l.ends(port, now) {
			at := portIn(now.f, end)
			if at == nil && end != port && !end.Node().IsSwitch() && disables(c, w.Data) {
				continue // the adapter has no other link
			}
			if at == nil || at.Info() == nil {
				return end.Name() + " does not answer", false
			}
			if why := missing(c, w.Data, at); why != "" {
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

// disables reports whether data disables the port of c.
func disables(c *certificate.Change, data []byte) bool {
	f := mad.AttrPortInfo.Field("port_physical_state")
	if !slices.Contains(c.Fields, f.Script) {
		return false
	}
	to := mad.PortPhysicalState(f.Uint(data))
	return to == mad.PortPhysicalStateDisabled || to == mad.PortPhysicalStateSleep
}

// missing describes how the state of a port of the link of c differs from the state that data
// requests; "": it does not.
func missing(c *certificate.Change, data []byte, at *fabric.Port) string {
	f := mad.AttrPortInfo.Field("port_physical_state")
	if !slices.Contains(c.Fields, f.Script) {
		return ""
	}
	state := at.Info().PortState
	if disables(c, data) {
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

// unsound describes what tables lack of the paths before the change; "": nothing. The pairs of ports that
// are down by now are ignored if their hosts keep others.
func (l *links) unsound(ctx context.Context, now *reading) (string, error) {
	if l.paths == nil {
		return "", nil
	}
	gone := &change.KeptPorts{By: map[*fabric.Port]*fabric.Port{}}
	for p, by := range l.kept.By {
		if at := portIn(now.f, p); at == nil || at.Peer() == nil {
			gone.By[p] = by
		}
	}
	d, err := l.paths.Ignoring(gone).Compare(ctx, now.tables)
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

// failed restores the link of round n, which failed with cause, and returns the
// *StoppedError. It returns cause, or what failed besides, if the whole change must be
// reverted: nothing but this link was changed, it cannot be restored, or the change was
// interrupted. now are the cells.
func (l *links) failed(ctx context.Context, rounds []certificate.Round, n int, now [][]byte, cause error) error {
	if ctx.Err() != nil || errors.Is(cause, ErrJournal) {
		return cause
	}
	e := &StoppedError{Link: l.link, Cause: cause, Done: l.linksOf(rounds[:l.first])}
	var all []certificate.Write
	for _, r := range rounds[l.first : n+1] {
		all = append(all, r.Writes...)
	}
	back, err := l.written(ctx, all, now)
	if e.unchanged = len(back) == 0; err == nil && !e.unchanged {
		e.Unrestored, err = l.restore(ctx, n+1, back, now)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; and the link cannot be restored: %w", cause, err)
	case l.first == 0:
		return &CheckError{e.restored() + "; no other link was changed"}
	}
	for _, r := range rounds[l.first:] {
		e.left = append(e.left, cellsOf(r.Writes)...)
		if link := l.linkOf(&r); link != e.Link && !slices.Contains(e.Skipped, link) {
			e.Skipped = append(e.Skipped, link)
		}
	}
	return e
}

// linkOf names the link of a round.
func (l *links) linkOf(r *certificate.Round) string { return l.name(l.cells[r.Writes[0].Change]) }

// linksOf names the links of rounds, each once.
func (l *links) linksOf(rounds []certificate.Round) (names []string) {
	for i := range rounds {
		names = append(names, l.linkOf(&rounds[i]))
	}
	return slices.Compact(names)
}

// written returns the writes that restore the cells that read as after writes.
func (l *links) written(ctx context.Context, writes []certificate.Write, now [][]byte) (back []certificate.Write, err error) {
	if seen, err := l.reread(ctx); err == nil { // other links may have failed
		refreshRoutes(seen.f, l.cells)
	}
	read, err := l.read(ctx, cellsOf(writes))
	if err != nil {
		return nil, err
	}
	for i, w := range writes {
		cell, data := l.cells[w.Change], read[i].data
		switch now[w.Change] = cell.Masked(data); {
		case cell.Same(data, l.before[w.Change]):
		case cell.Same(data, w.Data):
			back = append(back, certificate.Write{Change: w.Change, Data: l.before[w.Change]})
		default:
			return nil, &ForeignError{Cells: []string{l.describe(w.Change, now[w.Change])}}
		}
	}
	return back, nil
}

// restore writes what was before, at last what makes the link train, and waits until the
// subnet manager has handled that. unrestored is why it has not.
func (l *links) restore(ctx context.Context, number int, writes []certificate.Write, now [][]byte) (unrestored, err error) {
	l.Log("restoring " + l.link)
	_ = l.Journal.Append(Record{Kind: KindRound, Number: number, Round: certificate.Round{Writes: writes}}) // a full disk must not prevent it
	state := mad.AttrPortInfo.Field("port_physical_state").Script
	trains := func(w certificate.Write) int {
		if slices.Contains(l.cells[w.Change].Fields, state) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(writes, func(a, b certificate.Write) int { return cmp.Compare(trains(a), trains(b)) })
	for _, w := range writes {
		one := []certificate.Write{w}
		read, err := l.read(ctx, cellsOf(one))
		if err == nil {
			err = l.write(ctx, one, read, now)
		}
		if err != nil {
			return nil, err
		}
	}
	_ = l.Journal.Append(Record{Kind: KindDone, Number: number})
	paths := l.paths
	l.paths = nil // the paths before the change need not come back at once
	unrestored = l.handled(ctx, writes)
	l.paths = paths
	return unrestored, ctx.Err()
}
