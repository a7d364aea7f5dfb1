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

// Change makes a change, or takes it back. Its owner holds the lock of the subnet.
type Change struct {
	Engine  *engine.Engine
	Journal *Journal
	// Order plans rounds from what the cells are to what they are to be, and proves
	// them: every state in between is safe.
	Order func(ctx context.Context, now, want [][]byte) ([]Round, error)
	// Check looks at the fabric after a round; changed are the nodes that it wrote to.
	// Nil: nobody looks.
	Check func(ctx context.Context, changed []mad.GUID) error
	// Sleep waits; an error is the end of ctx.
	Sleep func(ctx context.Context, d time.Duration) error
	// Tell gets a line on each round. Nil: nobody.
	Tell func(text string)

	// ForeignStay has TakeBack leave foreign cells unchanged, else they are an error.
	ForeignStay bool

	stage *stage       // OpenSM writes; nil: fabsh does
	stay  map[int]bool // the cells that ForeignStay leaves unchanged
	*access
	drained time.Duration // of all rounds
}

// Make makes the change from the very beginning: all cells must be as before it.
func (c *Change) Make(ctx context.Context) error { return c.forward(ctx, true) }

// Resume makes the rest of it.
func (c *Change) Resume(ctx context.Context) error { return c.forward(ctx, false) }

func (c *Change) forward(ctx context.Context, fresh bool) error {
	c.begin()
	now, states, err := c.look(ctx)
	if err != nil {
		return err
	}
	if fresh {
		if err := checkCells(c.cells, states); err != nil {
			return err
		}
	}
	if err := c.move(ctx, now, New); err != nil {
		return err
	}
	b := c.Journal.Begin()
	return c.Journal.Append(Record{Kind: KindApplied, Within: b.Within + time.Duration(b.Drains)*c.drained})
}

// TakeBack makes all cells as they were before the change. It also does so if the
// journal cannot be written, which the error reports.
func (c *Change) TakeBack(ctx context.Context, why string) error {
	c.begin()
	noted := c.Journal.Append(Record{Kind: KindReverting, Why: why})
	now, states, err := c.look(ctx)
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
	if err := c.Journal.Append(Record{Kind: KindReverted, Why: why}); err != nil {
		return fmt.Errorf("the fabric is as before the change, but %w", err)
	}
	_ = noted // what counts is written after it
	return nil
}

func (c *Change) begin() {
	if c.access != nil {
		return
	}
	c.access = newAccess(c.Engine, c.Journal.Begin().Cells)
	if c.Tell == nil {
		c.Tell = func(string) {}
	}
	if c.Check == nil {
		c.Check = func(context.Context, []mad.GUID) error { return nil }
	}
}

// Look reads all cells, and says what each is.
func Look(ctx context.Context, e *engine.Engine, j *Journal) ([]State, error) {
	c := Change{Journal: j, access: newAccess(e, j.Begin().Cells)}
	_, states, err := c.look(ctx)
	return states, err
}

// look reads all cells: none may be foreign.
func (c *Change) look(ctx context.Context) (now [][]byte, states []State, err error) {
	read, err := c.readEach(ctx, c.all())
	if err != nil {
		return nil, nil, err
	}
	for i := range read {
		now = append(now, c.cells[i].only(read[i].data))
		states = append(states, c.classify(i, now[i]))
	}
	return now, states, c.foreign(now, states)
}

// classify says what a cell is. What a journalled round has made of it, and is
// neither, is between.
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

// foreign is the error that names the cells whose states are Foreign.
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

// describe says what a cell is, and what it was to be, at the first difference.
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

// move goes round by round from what the cells are, now, to their old or new state.
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
		if cell.same(now[i], want[i]) && (to == Old || !cell.traceless()) { // it may have moved on by itself
			now[i] = want[i]
		}
	}
	rounds, err := c.Order(ctx, now, want)
	if err != nil {
		return err
	}
	canary := to == New
	for n, r := range rounds {
		if err := c.round(ctx, n+1, &r, now, to, canary); err != nil {
			return err
		}
		canary = false
		c.Tell(c.progress(n+1, len(rounds), &r, to))
	}
	return c.arrived(ctx, want)
}

func (c *Change) progress(n, of int, r *Round, to State) string {
	what := "round"
	if to == Old {
		what = "back: round"
	}
	text := fmt.Sprintf("%s %d of %d: %s read back", what, n, of, plural.Count(len(r.Steps), "block", "blocks"))
	if r.Drain > 0 {
		text += fmt.Sprintf(", waited %v for packets under way", r.Drain.Round(time.Millisecond))
	}
	return text
}

// round journals, writes and reads back one round. now is what the cells are, and is
// what they have become where there is no error.
func (c *Change) round(ctx context.Context, n int, r *Round, now [][]byte, to State, canary bool) error {
	if err := c.Journal.Append(Record{Kind: KindRound, Round: n, Steps: r.Steps, Drain: r.Drain}); err != nil && (to == New || !c.plain(r)) {
		return err // to take back must not hang on a full disk
	}
	read, err := c.readEach(ctx, cellsOf(r.Steps))
	if err != nil {
		return err
	}
	if err := c.asPlanned(read, func(i int) []byte { return now[read[i].cell] }); err != nil {
		return err
	}
	steps := r.Steps
	canary = canary && c.stage == nil // OpenSM writes what the file has, at once
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

// plain: what the cells are after r can be told from the beginning of the journal
// alone, without the record of r.
func (c *Change) plain(r *Round) bool {
	return !slices.ContainsFunc(r.Steps, func(s Step) bool { return c.cells[s.Cell].Classify(s.Data) == Foreign })
}

// asPlanned: all cells that were read are as they are thought to be.
func (c *Change) asPlanned(read []exchange, want func(i int) []byte) error {
	var e ForeignError
	for i := range read {
		if cell := read[i].cell; !c.cells[cell].same(read[i].data, want(i)) {
			e.Cells = append(e.Cells, c.describe(cell, c.cells[cell].only(read[i].data)))
		}
	}
	if e.Cells == nil {
		return nil
	}
	return &e
}

// tries is how often what was not taken is written.
const tries = 3

// write writes steps over what was read of their cells, and reads back. What is
// still as before is written again, for the Set may have been lost.
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
			case cell.traceless() && sets[i].err != nil: // nothing else tells whether it came
				left, leftRead = append(left, s), append(leftRead, back[i])
				if try == tries && refused == nil || !errors.Is(sets[i].err, engine.ErrTimeout) {
					refused = fmt.Errorf("%s: %w", cell.Name, sets[i].err)
				}
			case cell.same(back[i].data, s.Data):
				now[s.Cell] = s.Data
			case cell.same(back[i].data, now[s.Cell]):
				left, leftRead = append(left, s), append(leftRead, back[i])
				if sets[i].err != nil && !errors.Is(sets[i].err, engine.ErrTimeout) || try == tries && refused == nil {
					refused = fmt.Errorf("%s: %w", cell.Name, orStays(sets[i].err))
				}
			default:
				foreign.Cells = append(foreign.Cells, c.describe(s.Cell, cell.only(back[i].data)))
			}
		}
		switch {
		case foreign.Cells != nil:
			return &foreign
		case refused != nil:
			return &SilentError{len(left), refused}
		}
		steps, read = left, leftRead
	}
	return c.trained(ctx, all)
}

// orStays is why a Set had no effect.
func orStays(err error) error {
	if err == nil {
		return errors.New("the Set was answered, but it reads back as before")
	}
	return err
}

// arrived reads all cells once more: a late Set of somebody else, or of a process
// that was killed, may have come.
func (c *Change) arrived(ctx context.Context, want [][]byte) error {
	read, err := c.readEach(ctx, c.all())
	if err != nil {
		return err
	}
	return c.asPlanned(read, func(i int) []byte { return want[i] })
}

func cellsOf(steps []Step) []int {
	cells := make([]int, len(steps))
	for i, s := range steps {
		cells[i] = s.Cell
	}
	return cells
}
