package apply

import (
	"errors"
	"os"
)

// NothingSent ends a journal of which nothing has been sent: the latest change is the one
// before, if there was one. The error is that this could not be written.
func (j *Journal) NothingSent(why string) error {
	err := j.Append(Record{Kind: KindReverted, Why: why})
	if j.path == "" {
		return err
	}
	switch e := os.Rename(j.before(), j.path); {
	case e == nil:
		return nil
	case err != nil: // it would look like a change that has begun
		os.Remove(j.path)
	}
	return err
}

// before is where the journal of the change before is, while nothing of this one is sent.
func (j *Journal) before() string { return j.path + ".before" }

// keepBefore keeps the journal of the change before, which may have to be taken back yet.
func (j *Journal) keepBefore() error {
	if err := os.Remove(j.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(j.path, j.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
