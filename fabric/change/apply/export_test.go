package apply

import (
	"context"
	"os"
	"syscall"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/jsonfile"
	"fabsh/fabric/sa"
)

// What tests call by itself.
var (
	Find       = journalsOf
	FormatLine = formatLine
	Unended    = openChange
	ReadStaged = readStaged
	Classify   = classify
)

// RecordMembers returns the members of the records of a journal.
func RecordMembers() []jsonfile.Member { return recordFormat().Members() }

// ReadRecord reads a record.
func ReadRecord(text []byte) (rec Record, err error) {
	return rec, recordFormat().Unmarshal(text, &rec)
}

// Unproven are rounds of a test, as if they were proven.
func Unproven(rounds []certificate.Round) *Proven { return newProven(rounds) }

// Rounds are the rounds of p, which a test may alter.
func (p *Proven) Rounds() []certificate.Round { return p.rounds }

// Unrouted are the rounds of all cells but those of forwarding tables and SL2VL.
func Unrouted(cells []*certificate.Change, now, want [][]byte) (before, after []certificate.Round, routed bool) {
	return unrouted(cells, now, want, nil)
}

// By has w write what p proves.
func (w *Writer) By(p *Prover) *Writer {
	w.Prove = func(ctx context.Context, now, want [][]byte) (*Proven, error) { return p.Prove(ctx, w.mode, now, want) }
	return w
}

// Make applies the change from the start.
func (w *Writer) Make(ctx context.Context) error { return w.forward(ctx, true) }

// Resume applies the rest of the change.
func (w *Writer) Resume(ctx context.Context) error { return w.forward(ctx, false) }

func (w *Writer) forward(ctx context.Context, fresh bool) error {
	now, err := w.prepare(ctx, fresh)
	if err != nil {
		return err
	}
	return w.applied(w.move(ctx, now, New))
}

// Apply applies a change of cells that are not of a plan.
func (r *Run) Apply(ctx context.Context, f *fabric.Fabric, manager *sa.SM, b *Begin) (Outcome, error) {
	held, j, err := r.begin(f, b)
	if err != nil {
		return Unresolved, err
	}
	defer j.Close()
	return r.forward(ctx, held, j, f, manager, true)
}

// FillAfter has the disk of j be full after so many more records.
func (j *Journal) FillAfter(records int) { j.f = &fullDisk{journalFile: j.f, left: records} }

type fullDisk struct {
	journalFile
	left int
}

func (d *fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if d.left--; d.left < 0 {
		n, _ := d.journalFile.WriteAt(b[:len(b)/2], at)
		return n, &os.PathError{Op: "write", Path: "journal", Err: syscall.ENOSPC}
	}
	return d.journalFile.WriteAt(b, at)
}
