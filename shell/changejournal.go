package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change/apply"
)

// latestChange finds the latest change of the fabric at hand, without a sweep.
func (s *session) latestChange() (*apply.Run, error) {
	if s.engine == nil {
		return nil, s.noLive("change", "this needs the fabric of the change: this session reads a file")
	}
	return changes.HostOf(s.Runtime).Latest()
}

// changeStatus tells what became of the latest change.
func (s *session) changeStatus(ctx context.Context) error {
	r, err := s.latestChange()
	if err != nil {
		return err
	}
	j, err := apply.ReadJournal(apply.JournalIn(r.Dir))
	if err != nil {
		return err
	}
	b := j.Begin()
	last := j.Records[len(j.Records)-1]
	text := fmt.Sprintf("%s: begun %s by %s, %s\n", b.Summary, j.Records[0].At.Format(time.RFC3339), cmp.Or(b.By, "somebody"), fabric.Plural(len(b.Cells), "block", "blocks"))
	text += fmt.Sprintf("%s %s", last.Kind, last.At.Format(time.RFC3339))
	if last.Why != "" {
		text += ": " + last.Why
	}
	switch {
	case j.Open() && r.Unguarded():
		text += "; its guard process is gone, and nothing takes it back by itself: confirm, revert or resume it, or end it as it is (change revert --abandon)"
	case last.Kind == apply.KindApplied:
		text += fmt.Sprintf("; it is taken back at %s unless it is confirmed", last.At.Add(last.Within).Format(time.RFC3339))
	}
	s.Print(text + "\n")
	states, err := apply.Look(ctx, s.engine, j)
	var foreign *apply.ForeignError
	if err != nil && !errors.As(err, &foreign) {
		return &hostError{err}
	}
	count := map[apply.State]int{}
	for _, state := range states {
		count[state]++
	}
	s.Print(fmt.Sprintf("in the fabric: %d old, %d new, %d between, %d foreign\n", count[apply.Old], count[apply.New], count[apply.Between], count[apply.Foreign]))
	if foreign != nil {
		s.Print(foreign.Error() + "\n")
	}
	if j.Open() {
		return findings()
	}
	return nil
}

// abandon ends a change with the fabric as it is.
func (s *session) abandon(ctx context.Context, r *apply.Run) error {
	left, err := r.Abandon(ctx)
	if err != nil {
		return s.told(apply.Stuck, err)
	}
	for _, text := range left {
		s.Print("left: " + lang.OneLine(text) + "\n")
	}
	s.Print(fmt.Sprintf("abandoned: nothing was written; %s not as before the change\n", fabric.Plural(len(left), "block is", "blocks are")))
	return nil
}

// nameUnended warns of a change of this fabric that was broken off.
func (s *session) nameUnended() {
	if s.engine == nil || s.app.changing {
		return
	}
	if b := changes.HostOf(s.Runtime).Unended(); b != nil {
		s.Warn("the change %q, which %s began, was broken off: fabsh change status tells how far; then resume or revert it, or end it as it is (change revert --abandon)", b.Summary, cmp.Or(b.By, "somebody"))
	}
}
