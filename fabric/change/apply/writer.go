package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Writer writes the rounds of a change, or of its reversal. Its owner holds the lock of the
// subnet.
type Writer struct {
	Engine  *engine.Engine
	Journal *Journal
	// Prove plans rounds from the current state of the cells to the wanted one, and proves
	// them: every state in between is safe. Only such rounds are sent.
	Prove func(ctx context.Context, now, want [][]byte) (*Proven, error)
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

	mode mode         // nil before start: fabsh sends Sets
	stay map[int]bool // the cells that ForeignStay leaves unchanged
	*access
	drained time.Duration // of all rounds
}

// prepare reads the cells of a change that is applied: from the start (fresh), where all must
// be as before it, or the rest of it.
func (w *Writer) prepare(ctx context.Context, fresh bool) ([]Block, error) {
	w.start()
	now, err := w.readBlocks(ctx)
	if err == nil && fresh {
		err = checkCells(now)
	}
	return now, err
}

// Revert restores all cells to their state before the change. It does so even if the
// journal cannot be written, which the error reports.
func (w *Writer) Revert(ctx context.Context, why string) error {
	w.start()
	_ = w.Journal.Append(Record{Kind: KindReverting, Why: why}) // the records after it decide
	now, err := w.readBlocks(ctx)
	if w.ForeignStay && errors.As(err, new(*ForeignError)) {
		err, w.stay = nil, map[int]bool{}
		for i := range now {
			w.stay[i] = now[i].State == Foreign
		}
	}
	if err == nil {
		err = w.move(ctx, now, Old)
	}
	if restored := w.mode.reverted(); restored != nil {
		err = errors.Join(err, restored)
	}
	if err != nil {
		if ctx.Err() == nil {
			_ = w.Journal.Append(Record{Kind: KindStopped, Why: err.Error()})
		}
		return err
	}
	if w.stay != nil {
		return w.Journal.Append(Record{Kind: KindAbandoned, Why: why + ": all but foreign blocks are reverted"})
	}
	if text := w.Journal.Begin().Unrestored(); text != "" {
		w.Log(text)
	}
	if err := w.Journal.Append(Record{Kind: KindReverted, Why: why}); err != nil {
		return fmt.Errorf("all blocks are as before the change, but %w", err)
	}
	return nil
}

func (w *Writer) start() {
	if w.access != nil {
		return
	}
	w.access = newAccess(w.Engine, w.Journal.Begin().Cells)
	if w.Log == nil {
		w.Log = func(string) {}
	}
	if w.Check == nil {
		w.Check = func(context.Context, []mad.GUID) error { return nil }
	}
	if w.mode == nil {
		w.mode = &sets{Writer: w}
	}
}

// readBlocks reads all cells. A cell that cannot be read, or is foreign, is also an error.
func (w *Writer) readBlocks(ctx context.Context) ([]Block, error) {
	read, err := w.read(ctx, w.all())
	if err != nil && !errors.As(err, new(*AccessError)) {
		return nil, err
	}
	var foreign ForeignError
	blocks := make([]Block, len(read))
	for i := range read {
		b, cell := &blocks[i], w.cells[i]
		if b.Text = cell.Name; read[i].err != nil {
			b.State, b.Text = Unread, fmt.Sprintf("%s: not read: %v", cell.Name, read[i].err)
			continue
		}
		b.data = cell.Masked(read[i].data)
		if b.State = w.classify(i, b.data); b.State == Foreign {
			b.Text = w.describe(i, b.data)
			foreign.Cells = append(foreign.Cells, b.Text)
		}
	}
	if err == nil && foreign.Cells != nil {
		err = &foreign
	}
	return blocks, err
}

// classify returns the state of a cell. A cell that a journaled round has written, and
// that is neither old nor new, is between.
func (w *Writer) classify(i int, data []byte) State {
	state := classify(w.cells[i], data)
	if state != Foreign || w.Journal == nil {
		return state
	}
	for _, rec := range w.Journal.Records {
		for _, one := range rec.Writes {
			if one.Change == i && w.cells[i].Same(data, one.Data) {
				return Between
			}
		}
	}
	return Foreign
}

// describe states the actual and the expected content of a cell, at the first difference.
func (w *Writer) describe(i int, data []byte) string {
	cell := w.cells[i]
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
	return fmt.Sprintf("%s: %s", cell.Name, w.classify(i, data))
}

func outPort(p byte) string {
	if p == mad.NoPort {
		return "dropped"
	}
	return fmt.Sprintf("port %d", p)
}

// move writes round by round, from the current states of the cells to their old or new
// one. What is written was proven, is journaled before, and is compared with the fabric.
func (w *Writer) move(ctx context.Context, read []Block, to State) error {
	now, want := make([][]byte, len(read)), make([][]byte, len(read))
	for i, cell := range w.cells {
		now[i] = read[i].data
		switch want[i] = cell.New; {
		case w.stay[i]:
			want[i] = now[i]
			continue
		case to == Old:
			want[i] = cell.Old
		}
		if cell.Same(now[i], want[i]) && (to == Old || !traceless(cell)) { // it may have changed without a Set
			now[i] = want[i]
		}
	}
	proven, err := w.Prove(ctx, now, want)
	if err != nil {
		return err
	}
	for n := range proven.rounds {
		r, err := proven.round(n)
		if err != nil {
			return err
		}
		w.mode.begin(n, r, now)
		err = w.record(n+1, len(proven.rounds), r, to)
		var read []exchange
		if err == nil {
			read, err = w.read(ctx, cellsOf(r.Writes))
		}
		if err == nil {
			err = w.checkStates(read, func(i int) []byte { return now[read[i].cell] })
		}
		if err == nil {
			err = w.mode.write(ctx, r.Writes, read, now)
		}
		if err == nil && r.Drain > 0 {
			w.drained += r.Drain
			err = w.Sleep(ctx, r.Drain)
		}
		if err == nil {
			err = w.mode.settle(ctx, r.Writes)
		}
		if err == nil {
			err = w.done(ctx, n+1, r, to)
		}
		switch {
		case err != nil && to == New:
			return w.mode.failed(ctx, proven.rounds, n, now, err)
		case err != nil:
			return err
		}
		w.Log(progress(n+1, len(proven.rounds), r, to))
	}
	return w.checkFinal(ctx, want)
}

// applied records the end of a change that move has written with err. If a mode has stopped it
// with a *StoppedError, what was written before stays.
func (w *Writer) applied(err error) error {
	stopped := new(StoppedError)
	if err != nil && !errors.As(err, &stopped) {
		return err
	}
	b := w.Journal.Begin()
	err = w.Journal.Append(Record{Kind: KindApplied, Within: b.Within + time.Duration(b.Drains)*w.drained, Left: stopped.left})
	if err == nil && stopped.Cause != nil {
		return stopped
	}
	return err
}

// record journals round n of some before its first Set.
func (w *Writer) record(n, of int, r *certificate.Round, to State) error {
	switch err := w.Journal.Append(Record{Kind: KindRound, Number: n, Rounds: of, Round: *r}); {
	case err == nil:
		w.Journal.DropPrevious()
	case to == New || !w.plain(r): // a full disk must not prevent the reversal
		return err
	}
	return nil
}

// done checks the fabric after a round, and journals its end.
func (w *Writer) done(ctx context.Context, n int, r *certificate.Round, to State) error {
	var changed []mad.GUID
	for _, one := range r.Writes {
		if node := w.cells[one.Change].Node; len(changed) == 0 || changed[len(changed)-1] != node {
			changed = append(changed, node)
		}
	}
	err := w.Check(ctx, changed)
	if err == nil || to == Old {
		err = w.Journal.Append(Record{Kind: KindDone, Number: n})
	}
	if to == Old {
		return nil
	}
	return err
}

func progress(n, of int, r *certificate.Round, to State) string {
	what := "round"
	if to == Old {
		what = "revert: round"
	}
	text := fmt.Sprintf("%s %d of %d: %s read back", what, n, of, plural.Count(len(r.Writes), "block", "blocks"))
	if r.Drain > 0 {
		text += fmt.Sprintf(", waited %v for packets under way", r.Drain.Round(time.Millisecond))
	}
	return text
}

// plain reports whether the states of the cells after r follow from the first record of
// the journal, without a record of r.
func (w *Writer) plain(r *certificate.Round) bool {
	return !slices.ContainsFunc(r.Writes, func(one certificate.Write) bool { return classify(w.cells[one.Change], one.Data) == Foreign })
}

// checkStates returns a *ForeignError unless all cells that were read have the states want.
func (w *Writer) checkStates(read []exchange, want func(i int) []byte) error {
	var e ForeignError
	for i := range read {
		if cell := read[i].cell; !w.cells[cell].Same(read[i].data, want(i)) {
			data := w.cells[cell].Masked(read[i].data)
			e.Cells, e.Moved = append(e.Cells, w.describe(cell, data)), e.Moved || w.classify(cell, data) != Foreign
		}
	}
	if e.Cells == nil {
		return nil
	}
	return &e
}

// checkFinal reads all cells once more: a late Set of another writer, or of a process that
// was killed, may have arrived.
func (w *Writer) checkFinal(ctx context.Context, want [][]byte) error {
	read, err := w.read(ctx, w.all())
	if err != nil {
		return err
	}
	return w.checkStates(read, func(i int) []byte { return want[i] })
}
