package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Change applies a change, or reverts it. Its owner holds the lock of the subnet.
type Change struct {
	Engine  *engine.Engine
	Journal *Journal
	// Order plans rounds from the current state of the cells to the wanted one, and
	// proves them: every state in between is safe.
	Order func(ctx context.Context, now, want [][]byte) ([]Round, error)
	// Check checks the fabric after a round; changed are the nodes that it wrote to. Nil:
	// no check.
	Check func(ctx context.Context, changed []mad.GUID) error
	// Sleep waits. It returns an error if ctx has ended.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log receives a line for each round. Nil: no log.
	Log func(text string)

	// ForeignStay makes Revert leave foreign cells unchanged; otherwise they are an
	// error.
	ForeignStay bool

	stage *stager      // OpenSM writes; nil: fabsh does
	links *links       // each link is a round, after which a subnet manager writes tables; nil: no such change
	stay  map[int]bool // the cells that ForeignStay leaves unchanged
	*access
	drained time.Duration // of all rounds
}

// Make applies the change from the start: all cells must be as before it.
func (c *Change) Make(ctx context.Context) error { return c.forward(ctx, true) }

// Resume applies the rest of the change.
func (c *Change) Resume(ctx context.Context) error { return c.forward(ctx, false) }

func (c *Change) forward(ctx context.Context, fresh bool) error {
	c.begin()
	now, states, err := c.readStates(ctx)
	if err != nil {
		return err
	}
	if fresh {
		if err := checkCells(c.cells, states); err != nil {
			return err
		}
	}
	stopped := new(StoppedError)
	if err := c.move(ctx, now, New); err != nil && !errors.As(err, &stopped) {
		return err
	}
	b := c.Journal.Begin()
	err = c.Journal.Append(Record{Kind: KindApplied, Within: b.Within + time.Duration(b.Drains)*c.drained, Left: stopped.left})
	if err == nil && stopped.Cause != nil {
		return stopped
	}
	return err
}

// Revert restores all cells to their state before the change. It does so even if the
// journal cannot be written, which the error reports.
func (c *Change) Revert(ctx context.Context, why string) error {
	c.begin()
	_ = c.Journal.Append(Record{Kind: KindReverting, Why: why}) // the records after it decide
	now, states, err := c.readStates(ctx)
	if c.ForeignStay && errors.As(err, new(*ForeignError)) {
		err, c.stay = nil, map[int]bool{}
		for i, s := range states {
			c.stay[i] = s == Foreign
		}
	}
	if err == nil {
		err = c.move(ctx, now, Old)
	}
	if c.stage != nil {
		err = errors.Join(err, c.stage.restore())
	}
	if err != nil {
		if ctx.Err() == nil {
			_ = c.Journal.Append(Record{Kind: KindStopped, Why: err.Error()})
		}
		return err
	}
	if c.stay != nil {
		return c.Journal.Append(Record{Kind: KindAbandoned, Why: why + ": all but foreign blocks are reverted"})
	}
	if text := c.Journal.Begin().Unrestored(); text != "" {
		c.Log(text)
	}
	if err := c.Journal.Append(Record{Kind: KindReverted, Why: why}); err != nil {
		return fmt.Errorf("the fabric is as before the change, but %w", err)
	}
	return nil
}

func (c *Change) begin() {
	if c.access != nil {
		return
	}
	c.access = newAccess(c.Engine, c.Journal.Begin().Cells)
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.Check == nil {
		c.Check = func(context.Context, []mad.GUID) error { return nil }
	}
}

// cellStates reads all cells, and returns their states.
func cellStates(ctx context.Context, e *engine.Engine, j *Journal) ([]State, error) {
	c := Change{Journal: j, access: newAccess(e, j.Begin().Cells)}
	_, states, err := c.readStates(ctx)
	return states, err
}

// readStates reads all cells. A foreign cell is an error.
func (c *Change) readStates(ctx context.Context) (now [][]byte, states []State, err error) {
	read, err := c.readEach(ctx, c.all())
	if err != nil {
		return nil, nil, err
	}
	for i := range read {
		now = append(now, c.cells[i].masked(read[i].data))
		states = append(states, c.classify(i, now[i]))
	}
	return now, states, c.foreign(now, states)
}

// classify returns the state of a cell. A cell that a journaled round has written, and
// that is neither old nor new, is between.
func (c *Change) classify(i int, data []byte) State {
	state := c.cells[i].Classify(data)
	if state != Foreign || c.Journal == nil {
		return state
	}
	for _, rec := range c.Journal.Records {
		for _, s := range rec.Steps {
			if s.Cell == i && c.cells[i].same(data, s.Data) {
				return Between
			}
		}
	}
	return Foreign
}

// foreign returns the error that names the cells whose states are Foreign.
func (c *Change) foreign(now [][]byte, states []State) error {
	var e ForeignError
	for i, s := range states {
		if s == Foreign {
			e.Cells = append(e.Cells, c.describe(i, now[i]))
		}
	}
	if e.Cells == nil {
		return nil
	}
	return &e
}

// describe states the actual and the expected content of a cell, at the first difference.
func (c *Change) describe(i int, data []byte) string {
	cell := c.cells[i]
	for _, name := range cell.Fields {
		f := cell.Attr.Field(name)
		if got := f.Uint(data); got != f.Uint(cell.Old) && got != f.Uint(cell.New) {
			return fmt.Sprintf("%s: %s is %d, and not %d or %d", cell.Name, f.Name, got, f.Uint(cell.Old), f.Uint(cell.New))
		}
	}
	if cell.Attr == mad.AttrLinearForwardingTable {
		if bytes.Count(data, []byte{mad.NoPort}) == len(data) {
			return fmt.Sprintf("%s: all LIDs are dropped, as after a restart of the switch", cell.Name)
		}
		for at := range data {
			if data[at] != cell.Old[at] && data[at] != cell.New[at] {
				want := outPort(cell.Old[at])
				if cell.New[at] != cell.Old[at] {
					want += " or " + outPort(cell.New[at])
				}
				return fmt.Sprintf("%s: LID %d is %s, and not %s", cell.Name, int(cell.Modifier)*mad.LFTBlock+at, outPort(data[at]), want)
			}
		}
	}
	return fmt.Sprintf("%s: %s", cell.Name, c.classify(i, data))
}

func outPort(p byte) string {
	if p == mad.NoPort {
		return "dropped"
	}
	return fmt.Sprintf("port %d", p)
}

// move writes round by round, from the current states of the cells to their old or new
// one.
func (c *Change) move(ctx context.Context, now [][]byte, to State) error {
	want := make([][]byte, len(now))
	for i, cell := range c.cells {
		switch want[i] = cell.New; {
		case c.stay[i]:
			want[i] = now[i]
			continue
		case to == Old:
			want[i] = cell.Old
		}
		if cell.same(now[i], want[i]) && (to == Old || !cell.traceless()) { // it may have changed without a Set
			now[i] = want[i]
		}
	}
	rounds, err := c.Order(ctx, now, want)
	if err != nil {
		return err
	}
	if c.links != nil {
		rounds = c.links.split(c.cells, rounds)
	}
	canary := to == New
	for n, r := range rounds {
		if c.links != nil && (n == 0 || c.linkOf(&r) != c.linkOf(&rounds[n-1])) {
			c.links.first, c.links.before = n, slices.Clone(now)
		}
		if err := c.round(ctx, n+1, &r, now, to, canary); err != nil {
			if c.links != nil && to == New {
				return c.stopAt(ctx, rounds, n, now, err)
			}
			return err
		}
		canary = false
		c.Log(c.progress(n+1, len(rounds), &r, to))
	}
	return c.checkFinal(ctx, want)
}

func (c *Change) progress(n, of int, r *Round, to State) string {
	what := "round"
	if to == Old {
		what = "revert: round"
	}
	text := fmt.Sprintf("%s %d of %d: %s read back", what, n, of, plural.Count(len(r.Steps), "block", "blocks"))
	if r.Drain > 0 {
		text += fmt.Sprintf(", waited %v for packets under way", r.Drain.Round(time.Millisecond))
	}
	return text
}

// round journals, writes and reads back one round. now are the states of the cells before
// it and, if there is no error, after it.
func (c *Change) round(ctx context.Context, n int, r *Round, now [][]byte, to State, canary bool) error {
	if err := c.Journal.Append(Record{Kind: KindRound, Round: n, Steps: r.Steps, Drain: r.Drain}); err != nil && (to == New || !c.plain(r)) {
		return err // a full disk must not prevent the reversal
	}
	read, err := c.readEach(ctx, cellsOf(r.Steps))
	if err != nil {
		return err
	}
	if err := c.checkStates(read, func(i int) []byte { return now[read[i].cell] }); err != nil {
		return err
	}
	steps := r.Steps
	canary = canary && c.stage == nil && c.links == nil // OpenSM writes the whole file at once, a link has few blocks
	if canary && len(steps) > 1 {
		if err := c.write(ctx, steps[:1], read[:1], now); err != nil {
			return err
		}
		steps, read = steps[1:], read[1:]
	}
	if err := c.write(ctx, steps, read, now); err != nil {
		return err
	}
	if r.Drain > 0 {
		c.drained += r.Drain
		if err := c.Sleep(ctx, r.Drain); err != nil {
			return err
		}
	}
	if err := c.settled(ctx, r, to); err != nil {
		return err
	}
	var changed []mad.GUID
	for _, s := range r.Steps {
		if node := c.cells[s.Cell].Node; len(changed) == 0 || changed[len(changed)-1] != node {
			changed = append(changed, node)
		}
	}
	if err := c.Check(ctx, changed); err != nil && to == New {
		return err
	}
	if err := c.Journal.Append(Record{Kind: KindDone, Round: n}); err != nil && to == New {
		return err
	}
	return nil
}

// plain reports whether the states of the cells after r follow from the first record of
// the journal, without a record of r.
func (c *Change) plain(r *Round) bool {
	return !slices.ContainsFunc(r.Steps, func(s Step) bool { return c.cells[s.Cell].Classify(s.Data) == Foreign })
}

// checkStates returns a *ForeignError unless all cells that were read have the states want.
func (c *Change) checkStates(read []exchange, want func(i int) []byte) error {
	var e ForeignError
	for i := range read {
		if cell := read[i].cell; !c.cells[cell].same(read[i].data, want(i)) {
			e.Cells = append(e.Cells, c.describe(cell, c.cells[cell].masked(read[i].data)))
		}
	}
	if e.Cells == nil {
		return nil
	}
	return &e
}

// tries is how often a write that had no effect is sent.
const tries = 3

// write writes steps over what was read of their cells, and reads them back. Cells that
// are still as before are written again, because the Set may have been lost.
func (c *Change) write(ctx context.Context, steps []Step, read []exchange, now [][]byte) error {
	if c.stage != nil {
		return c.stage.write(ctx, c, steps, now)
	}
	all := steps
	for try := 1; len(steps) > 0; try++ {
		sets := make([]exchange, len(steps))
		for i, s := range steps {
			sets[i] = exchange{cell: s.Cell, data: c.cells[s.Cell].request(read[i].data, s.Data)}
		}
		if err := c.do(ctx, mad.MethodSet, nil, sets); err != nil {
			return err
		}
		back, err := c.readEach(ctx, cellsOf(steps))
		if err != nil {
			return err
		}
		var left []Step
		var leftRead []exchange
		var foreign ForeignError
		var refused error
		for i, s := range steps {
			cell := c.cells[s.Cell]
			switch {
			case sets[i].err != nil && (cell.traceless() || cell.same(s.Data, now[s.Cell])): // only the answer shows that it arrived
				left, leftRead = append(left, s), append(leftRead, back[i])
				if try == tries && refused == nil || !errors.Is(sets[i].err, engine.ErrTimeout) {
					refused = fmt.Errorf("%s: %w", cell.Name, sets[i].err)
				}
			case cell.same(back[i].data, s.Data):
				now[s.Cell] = s.Data
			case cell.same(back[i].data, now[s.Cell]):
				left, leftRead = append(left, s), append(leftRead, back[i])
				if sets[i].err != nil && !errors.Is(sets[i].err, engine.ErrTimeout) || try == tries && refused == nil {
					refused = fmt.Errorf("%s: %w", cell.Name, setError(sets[i].err))
				}
			default:
				foreign.Cells = append(foreign.Cells, c.describe(s.Cell, cell.masked(back[i].data)))
			}
		}
		switch {
		case foreign.Cells != nil:
			return &foreign
		case refused != nil:
			return &AccessError{len(left), refused}
		}
		steps, read = left, leftRead
	}
	return c.trained(ctx, all)
}

// setError returns the reason that a Set had no effect.
func setError(err error) error {
	if err == nil {
		return errors.New("the Set was answered, but it reads back as before")
	}
	return err
}

// checkFinal reads all cells once more: a late Set of another writer, or of a process that
// was killed, may have arrived.
func (c *Change) checkFinal(ctx context.Context, want [][]byte) error {
	read, err := c.readEach(ctx, c.all())
	if err != nil {
		return err
	}
	return c.checkStates(read, func(i int) []byte { return want[i] })
}

// trainsWithin is how long a link may take to train.
const trainsWithin = 10 * time.Second

// trained waits until the links that steps have made train again are up, if they were up
// before.
func (c *Change) trained(ctx context.Context, steps []Step) error {
	state := mad.AttrPortInfo.Field("port_physical_state")
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		cell := c.cells[s.Cell]
		return !cell.trains() || mad.PortPhysicalState(state.Uint(cell.Old)) != mad.PortPhysicalStateLinkUp
	})
	for waited := time.Duration(0); len(steps) > 0; waited += poll {
		back, err := c.read(ctx, cellsOf(steps))
		if err != nil {
			return err
		}
		var left []Step
		for i, s := range steps {
			if back[i].err != nil || mad.PortPhysicalState(state.Uint(back[i].data)) != mad.PortPhysicalStateLinkUp {
				left = append(left, s)
			}
		}
		if steps = left; len(steps) > 0 && waited >= trainsWithin {
			return &CheckError{fmt.Sprintf("%s: the link was reset, and is not up after %v", c.cells[steps[0].Cell].Name, trainsWithin)}
		} else if len(steps) > 0 {
			if err := c.Sleep(ctx, poll); err != nil {
				return err
			}
		}
	}
	return nil
}
