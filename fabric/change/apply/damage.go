package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/format"
)

// DamageError reports a journal with a complete line that does not verify. An incomplete
// last line is not damage: its writer was killed.
type DamageError struct {
	Path string
	Line int
	Why  string
	// Copy is the copy of the journal beside it; "": there is no copy.
	Copy string
	// Last is the kind of the last record; "": that line does not verify either.
	Last RecordKind
}

func (e *DamageError) Error() string {
	text := fmt.Sprintf("journal %s line %d: %s; the file is unchanged", e.Path, e.Line, e.Why)
	if e.Copy != "" {
		text += ", and copied to " + e.Copy
	}
	if e.Line == 1 {
		return text + "; fabsh change revert --from-fabric PLAN reverts the change of the plan that was applied, and --abandon sets the journal aside"
	}
	return text + "; fabsh change status shows the blocks, fabsh change revert --from-fabric reverts them, and --abandon ends the change without a write"
}

// ofUnknown returns the message for a damaged journal of an unknown change.
func (e *DamageError) ofUnknown() string {
	return "a change of this fabric may be open and hidden: " + e.Error()
}

// Read reads the journal. With a *DamageError, which names the copy of the file, it also
// returns a journal of the lines that verify.
func (r *Run) Read() (*Journal, error) {
	j, err := ReadJournal(JournalIn(r.Dir))
	return j, withCopy(err)
}

// checkJournals returns the *DamageError of the journal that a change would replace. It
// also reports damaged journals of this subnet in other directories, which may hide an
// open change.
func (r *Run) checkJournals(ctx context.Context) error {
	if r.Dir == "" {
		return nil
	}
	_, err := r.Read()
	if errors.As(err, new(*DamageError)) {
		return err
	}
	_, damaged := r.Host.Unended(ctx)
	for _, err := range damaged {
		r.Host.log("warning: " + err.Error())
	}
	return nil
}

// RevertFromFabric reverts the blocks that are in the new state, or between old and new,
// and leaves foreign ones unchanged; left describes the blocks that are then not as
// before. It replaces a damaged journal; the change is taken from its first line, otherwise
// from p, if p is not nil. f was just swept.
func (r *Run) RevertFromFabric(ctx context.Context, f *fabric.Fabric, p *change.Plan) (left []string, err error) {
	held, err := r.lock()
	if err != nil {
		return nil, err
	}
	defer held.Release()
	j, err := r.openReplacing(func(j *Journal) (*Begin, error) { return r.beginOf(ctx, j, f, p) })
	if err != nil {
		return nil, err
	}
	defer j.Close()
	if _, err := r.Host.manager(ctx, f, j.Begin().coexistence(true)); err != nil {
		return nil, err
	}
	if err := r.revertAll(ctx, j, f, whyRequested, true); err != nil {
		return nil, err
	}
	if left, err = r.left(ctx, j); err != nil || len(left) > 0 {
		return left, err
	}
	return nil, r.checkPorts(ctx, j.Begin(), silentFor)
}

// beginOf returns the change of a journal, or the change of p if the first line is damaged.
func (r *Run) beginOf(ctx context.Context, j *Journal, f *fabric.Fabric, p *change.Plan) (*Begin, error) {
	b := j.Begin()
	switch {
	case b != nil && p != nil:
		return nil, errors.New("change revert --from-fabric: the first line of the journal verifies and has the change; omit the plan")
	case b != nil:
		return b, nil
	case p == nil:
		return nil, errors.New("change revert --from-fabric: the first line of the journal, which has the change, does not verify; name the plan that was applied: change revert --from-fabric PLAN")
	}
	if own, err := r.Host.runOf(f); err != nil || own.Dir != r.Dir {
		return nil, cmp.Or(err, fmt.Errorf("change revert --from-fabric: the damaged journal is in %s, which may be that of another subnet; this one has %s", r.Dir, own.Dir))
	}
	cells, err := Planned(p, f)
	if err != nil {
		return nil, fmt.Errorf("change revert --from-fabric: %w", err)
	}
	port, err := r.Host.Engine.Port()
	if err != nil {
		return nil, err
	}
	manager, err := r.Host.manager(ctx, f, coexistenceOf(cells, false, true))
	if err != nil {
		return nil, err
	}
	return r.Host.begin(&port, manager, cells, &ChangeOptions{Summary: p.From})
}

// openReplacing opens the journal. If it is damaged, openReplacing replaces it by a journal
// of a change, which beginOf returns for the lines that verify. The caller holds the lock.
func (r *Run) openReplacing(beginOf func(*Journal) (*Begin, error)) (*Journal, error) {
	path := JournalIn(r.Dir)
	j, err := OpenJournal(path, r.Host.Clock)
	var damage *DamageError
	if !errors.As(err, &damage) {
		return j, err
	}
	old, err := r.Read()
	if !errors.As(err, &damage) {
		return nil, err
	}
	b, err := beginOf(old)
	if err != nil {
		return nil, err
	}
	if damage.Copy == "" {
		return nil, fmt.Errorf("%w; not replaced, because it cannot be copied", damage)
	}
	begin := Record{Kind: KindBegin, Begin: b}
	if b == old.Begin() {
		begin.At = old.Records[0].At
	}
	if j, err = newJournal(path, begin, r.Host.Clock); err != nil {
		return nil, err
	}
	j.DropPrevious() // the damaged one
	for _, rec := range old.Records {
		if rec.Kind == KindRound { // its Sets are not foreign
			if err := j.Append(rec); err != nil {
				j.Close()
				return nil, err
			}
		}
	}
	return j, nil
}

// setAside removes a damaged journal, of which a copy is kept.
func (r *Run) setAside(damage *DamageError) error {
	if damage.Copy == "" {
		return fmt.Errorf("%w; not removed, because it cannot be copied", damage)
	}
	if err := os.Remove(JournalIn(r.Dir)); err != nil {
		return err
	}
	return syncFolder(r.Dir)
}

// withCopy copies the journal of a *DamageError to a file beside it, whose name has a
// checksum of the contents, so that it is copied once. Other errors are returned
// unchanged.
func withCopy(err error) error {
	var damage *DamageError
	if !errors.As(err, &damage) {
		return err
	}
	name, copyErr := copyJournal(damage.Path)
	if copyErr != nil {
		return fmt.Errorf("%w (no copy: %w)", damage, copyErr)
	}
	damage.Copy = name
	return err
}

// copyJournal copies the journal at path, and returns the name of the copy.
func copyJournal(path string) (name string, err error) {
	in, err := format.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer in.Close()
	st, err := in.Stat()
	switch {
	case err != nil:
		return "", err
	case !format.IsOwn(st):
		return "", fmt.Errorf("%s is a journal of another user", path)
	case st.Size() > maxLine:
		return "", fmt.Errorf("%s has %d bytes", path, st.Size())
	}
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, in); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s.damaged-%08x", path, sum.Sum32())
	if there, err := os.Lstat(name); err == nil && there.Mode().IsRegular() && there.Size() == st.Size() {
		return name, nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if err := format.WriteOwn(name, 0o600, func(w io.Writer) error { _, err := io.Copy(w, in); return err }); err != nil {
		return "", err
	}
	if err := syncFolder(filepath.Dir(name)); err != nil {
		return "", err
	}
	return name, nil
}
