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

	// certify checks the certificate of the plan after its order is proven; nil: there is
	// no certificate, or the change was begun before.
	certify func(context.Context) error
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

// Apply applies a change to f, which was just swept, and waits until it is confirmed or
// reverted.
func (r *Run) Apply(ctx context.Context, f *fabric.Fabric, manager *sa.SM, b *Begin) (Outcome, error) {
	held, err := r.lock()
	if err != nil {
		return Unresolved, err
	}
	defer held.Release()
	path := ""
	if r.Dir != "" {
		path = JournalIn(r.Dir)
		if before, err := r.Read(); err == nil {
			if err := before.Begin().checkSubnet(r.Dir, fabric.SubnetOf(f, "")); err != nil {
				return Unresolved, fmt.Errorf("change: %w", err)
			}
			if before.Open() {
				return Unresolved, &OpenError{before.Begin()}
			}
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return Unresolved, err
		}
	}
	b.Links, b.Switches = linksOf(f, b.Cells), membersOf(f, b.Cells)
	j, err := NewJournal(path, b)
	if err != nil {
		return Unresolved, fmt.Errorf("%w; nothing was sent", err)
	}
	defer j.Close()
	return r.forward(ctx, held, j, f, manager, (*Change).Make)
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
	if !isFree(j.path, guardName) { // it is about to revert the change, and needs the lock
		return Unresolved, fmt.Errorf("the guard process of the change reverts it: %w", format.ErrLockHeld)
	}
	return r.forward(ctx, held, j, f, manager, (*Change).Resume)
}

// forward starts the guard, applies the change by fn, and waits for its end.
func (r *Run) forward(ctx context.Context, held *format.FileLock, j *Journal, f *fabric.Fabric, manager *sa.SM, fn func(*Change, context.Context) error) (Outcome, error) {
	c, err := r.change(j, f, false)
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
		if c.links, err = r.newLinks(ctx, f, checks, false); err != nil {
			return r.nothingSent(j, err)
		}
	}
	c.Check = check
	var guard Guard
	if r.Dir != "" {
		if guard, err = r.Host.StartGuard(ctx, j.path); err != nil {
			return r.nothingSent(j, fmt.Errorf("the guard process did not start; nothing was sent: %w", err))
		}
		defer guard.Release()
		c.Check = func(ctx context.Context, changed []mad.GUID) error {
			select {
			case <-guard.Done():
				return &CheckError{"the guard process has ended"}
			default:
				return check(ctx, changed)
			}
		}
	}
	err = fn(c, ctx)
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
		return Failed, err
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
	if j.Records[len(j.Records)-1].Kind == KindReverted {
		return Nothing, r.asBefore(ctx, j)
	}
	if err := r.revertJournal(ctx, j, nil, whyRequested); err != nil {
		return Unresolved, err
	}
	return RevertedOnRequest, nil
}

// manager returns the subnet manager of f, beside which the change of the journal may
// continue, or be reverted (back); nil: there is no manager.
func (r *Run) manager(ctx context.Context, f *fabric.Fabric, back bool) (*sa.SM, error) {
	j, err := r.Read()
	if err != nil {
		return nil, err
	}
	return r.Host.manager(ctx, f, j.Begin().beside(back))
}

// Confirm ends a change, which then stays. It reads all blocks again, and unless force is
// set checks the links and the subnet manager.
func (r *Run) Confirm(ctx context.Context, force bool) (Outcome, error) {
	held, j, err := r.open()
	if err != nil {
		return Unresolved, err
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
	states, err := Look(ctx, r.Host.Engine, j)
	if err != nil {
		return Unresolved, err
	}
	left := j.Last(KindApplied).Left
	for i, s := range states {
		if s != New && !j.Begin().Cells[i].traceless() && !slices.Contains(left, i) {
			return Unresolved, fmt.Errorf("%s is %v: not confirmed", j.Begin().Cells[i].Name, s)
		}
	}
	if !force {
		if err := r.checkLinks(ctx, j.Begin()); err != nil {
			return Unresolved, fmt.Errorf("change confirm: %w; not confirmed: change confirm --force confirms it nevertheless", err)
		}
	}
	return Confirmed, j.Append(Record{Kind: KindConfirmed})
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
	c, err := r.change(j, f, true)
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
		if c.links, err = r.newLinks(ctx, f, checks, true); err != nil {
			return err
		}
	}
	c.ForeignStay = foreignStay
	return c.Revert(ctx, why)
}

func (r *Run) change(j *Journal, f *fabric.Fabric, back bool) (*Change, error) {
	b := j.Begin()
	p := Prover{Engine: r.Host.Engine, Fabric: f, Cells: b.Cells, Static: b.Static, Back: back, Levels: r.Host.levels(b.Levels), AcceptCreditLoops: r.AcceptCreditLoops || b.AcceptCreditLoops, Log: r.Host.log}
	if r.Live != nil && r.Live.Graph().Fabric() == f && !back {
		p.Live = r.Live
	}
	c := &Change{Engine: r.Host.Engine, Journal: j, Order: p.Order, Sleep: r.Host.Clock.Sleep, Log: r.Host.log}
	if r.certify != nil && !back {
		c.Order = func(ctx context.Context, now, want [][]byte) ([]Round, error) {
			rounds, err := p.Order(ctx, now, want)
			if err == nil {
				err = r.certify(ctx)
			}
			return rounds, err
		}
	}
	if b.Staged != nil {
		process, err := b.Staged.process()
		if err != nil {
			return nil, &FabricError{err}
		}
		c.stage = &stage{Staged: b.Staged, f: f, opensm: process}
	}
	return c, nil
}

// open takes the lock and opens the journal.
func (r *Run) open() (*format.FileLock, *Journal, error) {
	held, err := r.lock()
	if err != nil {
		return nil, nil, err
	}
	j, err := OpenJournal(JournalIn(r.Dir))
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
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, err
	}
	return format.AcquireLock(filepath.Join(r.Dir, lockName))
}
