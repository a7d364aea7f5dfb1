package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Run applies changes of one subnet, and ends them.
type Run struct {
	Host *Host
	// Dir is the directory of the journal and the lock of the subnet. Empty: the fabric
	// is simulated in this process, so that no other process can guard or confirm the
	// change.
	Dir string
	// Live are the forwarding tables of the fabric, if they were just read; nil: they are
	// read when needed.
	Live *routes.Routes
	// AcceptCreditLoops reverts a change even if packets may deadlock for ever.
	AcceptCreditLoops bool

	// plan is the certificate of the plan that is applied, by number of its changes; nil: it
	// has none, or the change was begun before.
	plan *certificate.Certificate
}

// Outcome is how a change ended.
type Outcome uint8

const (
	Nothing           Outcome = iota // there was nothing to do
	Confirmed                        // the change stays
	Expired                          // reverted, because it was not confirmed
	RevertedOnRequest                // reverted on request
	Failed                           // a check failed, and the change was reverted
	Unresolved                       // none of these: the error describes the state
)

// poll is how often processes read the journal of another process.
const poll = 200 * time.Millisecond

// journalName and lockName are the files in Run.Dir.
const (
	journalName = "change.journal"
	lockName    = "change.lock"
	guardName   = "change.guard" // the guard process holds its lock
)

// JournalIn returns the path of the journal in a directory.
func JournalIn(dir string) string { return filepath.Join(dir, journalName) }

// OpenError reports that the previous change has not ended.
type OpenError struct{ Begin *Begin }

func (e *OpenError) Error() string {
	return fmt.Sprintf("the change %q, begun by %s, has not ended: see fabsh change status; then confirm, revert or resume it, or end it without a write (change revert --abandon)", e.Begin.Summary, e.Begin.By)
}

// begin locks the subnet of f, which was just swept, and begins the journal of a change.
func (r *Run) begin(f *fabric.Fabric, b *Begin) (*format.FileLock, *Journal, error) {
	held, err := r.lock()
	if err != nil {
		return nil, nil, err
	}
	path := ""
	if r.Dir != "" {
		path = JournalIn(r.Dir)
		var before *Journal
		if before, err = r.Read(); err == nil {
			if err = before.Begin().checkSubnet(r.Dir, fabric.SubnetOf(f, "")); err == nil && before.Open() {
				err = &OpenError{before.Begin()}
			}
		} else if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	var j *Journal
	if err == nil {
		b.Links, b.Written, b.Switches = linksOf(f, b.Cells), writtenLinksOf(f, b.Cells), membersOf(f, b.Cells)
		if j, err = NewJournal(path, b, r.Host.Clock); err != nil {
			err = fmt.Errorf("%w; nothing was sent", err)
		}
	}
	if err != nil {
		held.Release()
		return nil, nil, err
	}
	return held, j, nil
}

// Resume applies the rest of a change on f, which was just swept.
func (r *Run) Resume(ctx context.Context, f *fabric.Fabric) (Outcome, error) {
	manager, err := r.manager(ctx, f, false)
	if err != nil {
		return Unresolved, err
	}
	held, j, err := r.open()
	if err != nil {
		return Unresolved, err
	}
	defer held.Release()
	defer j.Close()
	if !j.Open() {
		return Nothing, nil
	}
	if !isUnlocked(j.path, guardName) { // it is about to revert the change, and needs the lock
		return Unresolved, fmt.Errorf("the guard process of the change reverts it: %w", format.ErrLockHeld)
	}
	return r.forward(ctx, held, j, f, manager, false)
}

// Status is the state of a change, from its journal and the fabric.
type Status struct {
	Journal *Journal // of a damaged one, the lines that verify
	Damage  *DamageError
	Blocks  []Block // as just read; nil: the change is unknown, as the first line is damaged
	// Differs describes ports and the subnet manager that differ from before a reverted
	// change, as just read; nil: they do not.
	Differs error
}

// Block is the state of a cell in the fabric.
type Block struct {
	State State
	data  []byte // what the cell changes, as read
	Text  string // its name; for Foreign its content, for Unread the reason
}

// Status reads the journal, and all blocks of the change.
func (r *Run) Status(ctx context.Context) (*Status, error) {
	s := new(Status)
	var err error
	if s.Journal, err = r.Read(); err != nil && !errors.As(err, &s.Damage) {
		return nil, err
	}
	if s.Journal.Begin() != nil {
		if s.Blocks, err = r.blocks(ctx, s.Journal); err != nil {
			return nil, err
		}
		if s.Damage == nil && s.Journal.Records[len(s.Journal.Records)-1].Kind == KindReverted {
			s.Differs = r.checkPorts(ctx, s.Journal.Begin(), statusWithin)
		}
	}
	return s, nil
}

// Abandon ends a change without a write, whatever state the blocks are in: for blocks
// that another writer keeps, or switches that are gone. left describes the blocks that
// are not as before the change. A damaged journal is replaced; if its first line, which
// contains the change, does not verify, it is set aside instead, no block is read, and
// the *DamageError is returned.
func (r *Run) Abandon(ctx context.Context) (left []string, err error) {
	held, err := r.lock()
	if err != nil {
		return nil, err
	}
	defer held.Release()
	var damage *DamageError
	old, err := r.Read()
	switch damaged := errors.As(err, &damage); {
	case damaged && old.Begin() == nil:
		if err := r.setAside(damage); err != nil {
			return nil, err
		}
		return nil, damage
	case err != nil && !damaged:
		return nil, err
	case !damaged && !old.Open():
		return nil, errors.New("the change has ended already; nothing to abandon")
	}
	if left, err = r.left(ctx, old); err != nil {
		return nil, err
	}
	j, err := r.openReplacing(func(j *Journal) (*Begin, error) { return j.Begin(), nil })
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return left, j.Append(Record{Kind: KindAbandoned, Why: whyRequested})
}

// Confirm ends a change, which then stays. It reads all blocks again, and unless force is
// set checks the links and the subnet manager.
func (r *Run) Confirm(ctx context.Context, force bool) (Outcome, error) {
	held, j, err := r.open()
	if err != nil {
		return Unresolved, r.notYet(err)
	}
	defer held.Release()
	defer j.Close()
	switch j.Records[len(j.Records)-1].Kind {
	case KindApplied:
	case KindConfirmed, KindReverted, KindAbandoned:
		return Nothing, nil
	default:
		return Unresolved, errors.New("the change is not complete: revert it, or resume it")
	}
	blocks, err := r.reader(j).readBlocks(ctx)
	if err != nil {
		return Unresolved, err
	}
	left := j.Last(KindApplied).Left
	for i, b := range blocks {
		if b.State != New && !traceless(j.Begin().Cells[i]) && !slices.Contains(left, i) {
			return Unresolved, fmt.Errorf("%s is %v: not confirmed", b.Text, b.State)
		}
	}
	if !force {
		if err := r.checkLinks(ctx, j.Begin()); err != nil {
			return Unresolved, fmt.Errorf("%w; not confirmed: change confirm --force confirms it nevertheless", err)
		}
	}
	return Confirmed, j.Append(Record{Kind: KindConfirmed})
}

// Revert reverts a change that is open, or that was confirmed. f was just swept.
func (r *Run) Revert(ctx context.Context, f *fabric.Fabric) (Outcome, error) {
	if _, err := r.manager(ctx, f, true); err != nil {
		return Unresolved, err
	}
	held, j, err := r.open()
	if err != nil {
		return Unresolved, err
	}
	defer held.Release()
	defer j.Close()
	outcome := Nothing
	if j.Records[len(j.Records)-1].Kind != KindReverted {
		if err := r.revertJournal(ctx, j, nil, whyRequested); err != nil {
			return Unresolved, err
		}
		outcome = RevertedOnRequest
	}
	if err := r.checkReverted(ctx, j); err != nil {
		return Unresolved, err
	}
	return outcome, nil
}

// forward starts the guard, applies the change from the start (fresh), or the rest of it, and
// waits for its end. It releases held.
func (r *Run) forward(ctx context.Context, held *format.FileLock, j *Journal, f *fabric.Fabric, manager *sa.SM, fresh bool) (Outcome, error) {
	defer held.Release()
	reason := "the plan has no certificate"
	if !fresh {
		reason = "the rest of the change"
	}
	w, err := r.writer(j, f, false, reason)
	if err != nil {
		return r.nothingSent(j, err)
	}
	checks, err := NewChecks(ctx, r.Host.SA, f, manager, j.Begin().Cells)
	if err != nil {
		return r.nothingSent(j, err)
	}
	check := checks.Between
	if j.Begin().LinkByLink {
		check = checks.state // a link that goes down makes switches discard packets
		if w.mode, err = r.newLinks(ctx, f, checks, w, false); err != nil {
			return r.nothingSent(j, err)
		}
	} else if len(checks.watched) > 0 {
		r.Host.log(checks.Cost())
	}
	w.Check = check
	var guard Guard
	if r.Dir != "" {
		if guard, err = r.Host.StartGuard(ctx, j.path); err != nil {
			return r.nothingSent(j, fmt.Errorf("the guard process did not start; nothing was sent: %w", err))
		}
		defer guard.Release()
		w.Check = func(ctx context.Context, changed []mad.GUID) error {
			select {
			case <-guard.Done():
				return &CheckError{"the guard process has ended"}
			default:
				return check(ctx, changed)
			}
		}
	}
	now, err := w.prepare(ctx, fresh)
	if err == nil {
		err = w.applied(w.move(ctx, now, New))
	}
	if stopped := new(StoppedError); errors.As(err, &stopped) { // the links before it stay, as all of a change
		r.Host.log(err.Error())
		outcome, err := r.applied(ctx, held, j, f, guard, checks, nil)
		return outcome, stopped.ended(outcome, err)
	}
	return r.applied(ctx, held, j, f, guard, checks, err)
}

// applied waits until the change that was applied, or failed with err, has ended.
func (r *Run) applied(ctx context.Context, held *format.FileLock, j *Journal, f *fabric.Fabric, guard Guard, checks *Checks, err error) (Outcome, error) {
	switch {
	case errors.Is(err, errNothing):
		_, _ = r.nothingSent(j, err)
		return Nothing, nil
	case err != nil && j.Last(KindRound) == nil:
		return r.nothingSent(j, err)
	case guard == nil && err == nil:
		return Confirmed, j.Append(Record{Kind: KindConfirmed, Why: "all checks passed, and no other process can reach this fabric"})
	case guard == nil:
		if back := r.revertJournal(context.WithoutCancel(ctx), j, f, err.Error()); back != nil {
			return Unresolved, fmt.Errorf("%w; and it could not be reverted: %w", err, back)
		}
		return r.reverted(context.WithoutCancel(ctx), j, err)
	case err != nil:
		_ = j.Append(Record{Kind: KindFailed, Why: err.Error()})
		r.Host.log(fmt.Sprintf("%v: reverting the change", err))
		held.Release()
		guard.Release()
	default:
		r.Host.log(fmt.Sprintf("applied; reverted in %v unless confirmed: fabsh change confirm", j.Last(KindApplied).Within.Round(time.Millisecond)))
		held.Release()
	}
	return r.await(ctx, j, guard, checks, err)
}

// nothingSent closes a journal of a change of which nothing has been sent.
func (r *Run) nothingSent(j *Journal, why error) (Outcome, error) {
	if j.Last(KindRound) != nil { // it was resumed, and stays open
		return Unresolved, why
	}
	_ = j.NothingSent("nothing was sent: " + why.Error())
	return Unresolved, why
}

// manager returns the subnet manager of f, beside which the change of the journal may
// continue, or be reverted (back); nil: there is no manager.
func (r *Run) manager(ctx context.Context, f *fabric.Fabric, back bool) (*sa.SM, error) {
	j, err := r.Read()
	if err != nil {
		return nil, err
	}
	return r.Host.manager(ctx, f, j.Begin().coexistence(back))
}

// revertJournal reverts the change of j. f is the fabric; nil: it is swept.
func (r *Run) revertJournal(ctx context.Context, j *Journal, f *fabric.Fabric, why string) error {
	if j.Last(KindRound) == nil {
		// The last rounds may be missing from the journal: the fabric shows them.
		left, err := r.left(ctx, j)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return j.NothingSent(why)
		}
	}
	return r.revertAll(ctx, j, f, why, false)
}

// revertAll is revertJournal for a change of which something was sent. Foreign blocks are
// an error, or stay.
func (r *Run) revertAll(ctx context.Context, j *Journal, f *fabric.Fabric, why string, foreignStay bool) error {
	// Sets of a process that was killed may be under way: they count as lost after this
	// time.
	if err := r.Host.Clock.Sleep(ctx, r.Host.Engine.Options().Timeout); err != nil {
		return err
	}
	if f == nil {
		var err error
		if f, err = discover.Sweep(ctx, r.Host.Engine, r.Host.Sweep); err != nil {
			return fmt.Errorf("discover: %w", err)
		}
	}
	refreshRoutes(f, j.Begin().Cells)
	w, err := r.writer(j, f, true, "revert")
	if err != nil {
		_ = j.Append(Record{Kind: KindStopped, Why: err.Error()})
		return err
	}
	checks := &Checks{client: r.Host.SA, f: f, manager: j.Begin().manager()}
	if err := checks.Manager(ctx); err != nil {
		err = fmt.Errorf("%w; its tables are not changed", err)
		_ = j.Append(Record{Kind: KindStopped, Why: err.Error()})
		return err
	}
	if j.Begin().LinkByLink && j.Begin().Manager != 0 {
		if w.mode, err = r.newLinks(ctx, f, checks, w, true); err != nil {
			return err
		}
	}
	w.ForeignStay = foreignStay
	return w.Revert(ctx, why)
}

// writer returns what writes the change of a journal, or its reversal (back), on f. reason is
// why the order of the writes is new, unless it is the order of a plan.
func (r *Run) writer(j *Journal, f *fabric.Fabric, back bool, reason string) (*Writer, error) {
	b := j.Begin()
	p := Prover{Engine: r.Host.Engine, Fabric: f, Cells: b.Cells, Static: b.Static, Back: back, Levels: r.Host.levels(b.Levels), AcceptCreditLoops: r.AcceptCreditLoops || b.AcceptCreditLoops, Reason: reason, Log: r.Host.log}
	if !back {
		p.Certificate = r.plan
	}
	if r.Live != nil && r.Live.Graph().Fabric() == f && !back {
		p.Live = r.Live
	}
	w := &Writer{Engine: r.Host.Engine, Journal: j, Sleep: r.Host.Clock.Sleep, Log: r.Host.log}
	w.Prove = func(ctx context.Context, now, want [][]byte) (*Proven, error) { return p.Prove(ctx, w.mode, now, want) }
	w.mode = &sets{Writer: w, canary: !back}
	if b.Staged != nil {
		process, err := b.Staged.process()
		if err != nil {
			return nil, &FabricError{err}
		}
		w.mode = &stager{Staged: b.Staged, sets: sets{Writer: w}, f: f, opensm: process}
	}
	return w, nil
}

// open takes the lock and opens the journal.
func (r *Run) open() (*format.FileLock, *Journal, error) {
	held, err := r.lock()
	if err != nil {
		return nil, nil, err
	}
	j, err := OpenJournal(JournalIn(r.Dir), r.Host.Clock)
	if err != nil {
		held.Release()
		return nil, nil, withCopy(err)
	}
	return held, j, nil
}

// lock acquires the lock of the subnet; nil: its journal is not in a file.
func (r *Run) lock() (*format.FileLock, error) {
	if r.Dir == "" {
		return nil, nil
	}
	if err := format.MakeDirectory(r.Dir, 0o755); err != nil {
		return nil, err
	}
	return format.AcquireLock(filepath.Join(r.Dir, lockName))
}

// reader returns what reads the cells of a change.
func (r *Run) reader(j *Journal) *Writer {
	return &Writer{Journal: j, access: newAccess(r.Host.Engine, j.Begin().Cells)}
}

// blocks reads all cells of a change, whatever their states.
func (r *Run) blocks(ctx context.Context, j *Journal) ([]Block, error) {
	blocks, err := r.reader(j).readBlocks(ctx)
	if blocks != nil {
		err = nil
	}
	return blocks, err
}

// left describes b, a block that is not known to be as before the change.
func (b *Block) left() string {
	if b.State == Foreign || b.State == Unread {
		return b.Text
	}
	return fmt.Sprintf("%s is %v", b.Text, b.State)
}

// left reads all cells, and describes the cells that are not known to be as before the
// change.
func (r *Run) left(ctx context.Context, j *Journal) (texts []string, err error) {
	blocks, err := r.blocks(ctx, j)
	for _, b := range blocks {
		if b.State != Old {
			texts = append(texts, b.left())
		}
	}
	return texts, err
}
