package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/format"
)

// runIn makes changes of the subnet whose journal is in dir; "": it is in no file.
func (s *session) runIn(dir string) *apply.Run {
	return &apply.Run{
		Engine: s.engine, SA: s.SA(), Dir: dir, Sweep: s.Sweep, Sleep: s.Clock.Sleep,
		Guard: s.startGuard, Reloader: reloader, Levels: s.levels(""),
		Tell: func(text string) {
			if !s.Quiet {
				fmt.Fprintln(s.app.console.Err(), text)
			}
		},
	}
}

// levels tell which service levels packets have: by a file, "": by path records.
func (s *session) levels(file string) change.Levels {
	return change.Levels{Client: s.SA(), File: file, Open: func(path string) (io.ReadCloser, error) {
		file, err := format.OpenRegular(path) // the guard reads it anew: it can be no pipe
		if err != nil {
			return nil, noFile(err)
		}
		return file, nil
	}}
}

// inProcess: the fabric is simulated in this process, and nobody else reaches it.
func (s *session) inProcess() bool { return s.engine.Traits().Name == "sim" }

// journals is the folder of the folders of journals.
func (s *session) journals() (string, error) {
	dir := s.app.stateDir()
	if dir == "" {
		return "", errors.New("change: there is no place for the journal: give --state DIR")
	}
	return filepath.Abs(dir)
}

// runOf makes changes of a subnet.
func (s *session) runOf(subnet fabric.Subnet) (*apply.Run, error) {
	if s.inProcess() {
		return s.runIn(""), nil
	}
	dir, err := s.journals()
	if err != nil {
		return nil, err
	}
	port, err := s.engine.Port()
	if err != nil {
		return nil, err
	}
	if !subnet.IsKnown() { // nothing names it
		return s.runIn(filepath.Join(dir, "port-"+port.PortGUID.String())), nil
	}
	return s.runIn(subnet.Folder(dir)), nil
}

// journaled finds the journal of the fabric at hand, without a sweep.
func (s *session) journaled() (*apply.Run, error) {
	switch {
	case s.engine == nil:
		return nil, s.noLive("change", "this needs the fabric of the change: this session reads a file")
	case s.inProcess():
		return nil, errors.New("change: a fabric that is simulated in this process ends with it: there is no change to be confirmed or taken back")
	}
	dir, err := s.journals()
	if err != nil {
		return nil, err
	}
	port, err := s.engine.Port()
	if err != nil {
		return nil, err
	}
	dirs := apply.Find(dir, &port)
	switch len(dirs) {
	case 0:
		if path := apply.Hidden(dir); path != "" {
			return nil, fmt.Errorf("change: no change of this fabric that you may read has been made from here, and %s is another user's, who alone may confirm it or take it back", path)
		}
		return nil, fmt.Errorf("change: no change of this fabric has been made from here (looked below %s; --state DIR names another folder)", dir)
	case 1:
	default:
		return nil, fmt.Errorf("change: there are several journals of this fabric: %s; remove what is not needed", strings.Join(dirs, ", "))
	}
	st, err := os.Stat(apply.JournalIn(dirs[0]))
	if err != nil {
		return nil, err
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("change: user %d made it, and only they may confirm it or take it back", owner.Uid)
	}
	return s.runIn(dirs[0]), nil
}

// changeStatus tells what became of the latest change.
func (s *session) changeStatus(ctx context.Context) error {
	r, err := s.journaled()
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
	dir := s.app.stateDir()
	if s.engine == nil || s.inProcess() || dir == "" || s.app.changing {
		return
	}
	port, err := s.engine.Port()
	if err != nil {
		return // whoever needs the port is told
	}
	if b := apply.Unended(dir, &port); b != nil {
		s.Warn("the change %q, which %s began, was broken off: fabsh change status tells how far; then resume or revert it, or end it as it is (change revert --abandon)", b.Summary, cmp.Or(b.By, "somebody"))
	}
}
