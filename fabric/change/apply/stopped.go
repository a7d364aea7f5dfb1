package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

func listOf(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

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

// written returns the steps that restore the cells of steps: of those that read as after
// them.
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
		switch now[s.Cell] = cell.only(data); {
		case cell.same(data, c.links.before[s.Cell]):
		case cell.same(data, s.Data):
			back = append(back, Step{s.Cell, c.links.before[s.Cell]})
		default:
			return nil, &ForeignError{[]string{c.describe(s.Cell, now[s.Cell])}}
		}
	}
	return back, nil
}

// restore writes steps, those that make the link train last, and waits until the subnet
// manager has handled that. unrestored is why it has not.
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
