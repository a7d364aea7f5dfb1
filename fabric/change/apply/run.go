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
	"fabsh/fabric/plural"
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
	if !isUnlocked(j.path, guardName) { // it is about to revert the change, and needs the lock
		return Unresolved, fmt.Errorf("the guard process of the change reverts it: %w", format.ErrLockHeld)
	}
	return r.forward(ctx, held, j, f, manager, (*Change).Resume)
}

// Status is the state of a change, from its journal and the fabric.
type Status struct {
	Journal *Journal // of a damaged one, the lines that verify
	Damage  *DamageError
	Blocks  []Block // as just read; nil: the change is unknown, as the first line is damaged
}

// Block is the state of a cell in the fabric.
type Block struct {
	State State
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
		s.Blocks, err = r.blocks(ctx, s.Journal)
		return s, err
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
		return nil, errors.New("change: the change has ended already; nothing to abandon")
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
	states, err := cellStates(ctx, r.Host.Engine, j)
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
		return Nothing, r.checkReverted(ctx, j)
	}
	if err := r.revertJournal(ctx, j, nil, whyRequested); err != nil {
		return Unresolved, err
	}
	return RevertedOnRequest, nil
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
		c.stage = &stager{Staged: b.Staged, f: f, opensm: process}
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

// blocks reads all cells of a change.
func (r *Run) blocks(ctx context.Context, j *Journal) ([]Block, error) {
	c := Change{Journal: j, access: newAccess(r.Host.Engine, j.Begin().Cells)}
	read, err := c.read(ctx, c.all())
	if err != nil {
		return nil, err
	}
	blocks := make([]Block, len(read))
	for i := range read {
		b := &blocks[i]
		if b.Text = c.cells[i].Name; read[i].err != nil {
			b.State, b.Text = Unread, fmt.Sprintf("%s: not read: %v", b.Text, read[i].err)
			continue
		}
		data := c.cells[i].masked(read[i].data)
		if b.State = c.classify(i, data); b.State == Foreign {
			b.Text = c.describe(i, data)
		}
	}
	return blocks, nil
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

// checkReverted reads all blocks, and returns an error if some are not as before the change.
func (r *Run) checkReverted(ctx context.Context, j *Journal) error {
	blocks, err := r.blocks(ctx, j)
	if err != nil {
		return err
	}
	var unread, left []string
	for _, b := range blocks {
		switch b.State {
		case Unread:
			unread = append(unread, b.Text)
		case Old:
		default:
			left = append(left, b.left())
		}
	}
	switch {
	case left != nil:
		return &CheckError{fmt.Sprintf("the journal records the change as reverted, but %s not as before it: %s; change revert --from-fabric reverts all blocks but foreign ones",
			plural.Count(len(left), "block is", "blocks are"), firstOf(5, left))}
	case unread != nil:
		return &CheckError{fmt.Sprintf("the journal records the change as reverted, but %s not be read: %s", plural.Count(len(unread), "block could", "blocks could"), firstOf(5, unread))}
	}
	return nil
}
