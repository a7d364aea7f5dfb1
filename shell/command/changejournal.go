package command

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
	"fabsh/shell/session"
)

// latestChange finds the latest change of the fabric at hand, without a sweep.
func latestChange(s *session.Session) (*apply.Run, error) {
	if s.Engine == nil {
		return nil, s.NoLive("change", "this needs the fabric of the change: this session reads a file")
	}
	return changes.HostOf(s.Runtime).Latest()
}

// changeStatus tells what became of the latest change.
func changeStatus(ctx context.Context, s *session.Session) error {
	r, err := latestChange(s)
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
	states, err := apply.Look(ctx, s.Engine, j)
	var foreign *apply.ForeignError
	if err != nil && !errors.As(err, &foreign) {
		return &session.HostError{Err: err}
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
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// abandonChange ends a change with the fabric as it is.
func abandonChange(ctx context.Context, s *session.Session, r *apply.Run) error {
	left, err := r.Abandon(ctx)
	if err != nil {
		return told(s, apply.Stuck, err)
	}
	for _, text := range left {
		s.Print("left: " + lang.OneLine(text) + "\n")
	}
	s.Print(fmt.Sprintf("abandoned: nothing was written; %s not as before the change\n", fabric.Plural(len(left), "block is", "blocks are")))
	return nil
}
