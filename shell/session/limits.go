package session

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"fabsh/builtins/lang"
	"fabsh/mad/engine"
)

const (
	// grace is how long a script may go on reporting after its deadline.
	grace = 10 * time.Second
	// mayCompute is how long it may do so without output and without a request to the
	// fabric: a script that only computed for this long reports nothing.
	mayCompute = time.Second
	// hearsEvery is the interval of the checks for it. A late check counts no more idle
	// time than one in time: the machine may be suspended, or busy.
	hearsEvery = 100 * time.Millisecond
)

// A TimeLimit is the time of a run: --deadline, including the time to open the fabric.
// Several sessions in sequence may share it.
type TimeLimit struct {
	after time.Duration // 0: unlimited
	ends  time.Time
}

// Over reports whether the time has passed.
func (l TimeLimit) Over() bool { return l.after > 0 && !time.Now().Before(l.ends) }

// Context returns a context that ends with the time.
func (l TimeLimit) Context() context.Context {
	if l.after == 0 {
		return context.Background()
	}
	ctx, cancel := context.WithDeadlineCause(context.Background(), l.ends, &lang.DeadlineError{After: l.after})
	context.AfterFunc(ctx, cancel)
	return ctx
}

// Deadline is the end of a session's time, or of a statement's at the prompt. From then
// on all requests to the fabric end with an error, including pending ones, and so do
// sleeps; the script goes on, unless it only computes. After the grace it is stopped in
// any case, and if that has no effect the program is ended: it may hang on a pipe
// without a reader.
type Deadline struct {
	late *lang.DeadlineError
	at   time.Time
	over context.Context // ends when the script must stop
	end  context.CancelCauseFunc
	kill func(why error) // nil: nothing is ended by force

	mu       sync.Mutex     // guards the fields below
	engine   *engine.Engine // nil: no live fabric, or none yet
	activity *lang.Activity // nil: no session yet
	timer    *time.Timer
	word     time.Time     // the last activity of the script
	silent   time.Duration // idle time since then, by the checks
	stopped  bool
}

// StartDeadline starts the time; it returns nil if after is 0, which is unlimited. kill
// ends the program by force; it may be nil.
func StartDeadline(after time.Duration, kill func(why error)) *Deadline {
	if after == 0 {
		return nil
	}
	return deadlineAt(time.Now().Add(after), after, kill)
}

// deadlineAt is StartDeadline with a time that began earlier.
func deadlineAt(at time.Time, after time.Duration, kill func(why error)) *Deadline {
	d := &Deadline{late: &lang.DeadlineError{After: after}, at: at, kill: kill}
	d.over, d.end = context.WithCancelCause(context.Background())
	d.mu.Lock() // the timer may go off before it is stored
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(time.Until(at), d.pass)
	return d
}

func (d *Deadline) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	if d.activity != nil && d.activity.Waits() {
		d.activity.Note() // the wait ends now, and the script has its time from here
	}
	d.halt(d.late)
	d.word = d.lastWord()
	d.silent = d.at.Sub(d.word)
	d.look()
}

// lastWord returns the time of the script's last activity, or its start. d.mu is held.
func (d *Deadline) lastWord() time.Time {
	if d.activity != nil {
		return d.activity.Last()
	}
	return d.at.Add(-d.late.After)
}

// look stops the script if it only computes or its grace has ended, and otherwise
// schedules the next check. d.mu is held.
func (d *Deadline) look() {
	computes, left := mayCompute-d.silent, time.Until(d.at.Add(grace))
	switch next := min(computes, left, hearsEvery); {
	case next > 0:
		d.timer = time.AfterFunc(next, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.stopped {
				return
			}
			d.silent += next
			if word := d.lastWord(); word.After(d.word) {
				d.word, d.silent = word, min(time.Since(word), next)
			}
			d.look()
		})
	case left > 0:
		d.close(d.late)
	default:
		d.close(fmt.Errorf("%w; the session did not end within %v after it", d.late, grace))
	}
}

// close stops the script. d.mu is held.
func (d *Deadline) close(why error) {
	d.end(why)
	if d.kill != nil {
		d.timer = time.AfterFunc(endsWithin, func() { d.kill(why) })
	}
}

// Limit ends requests of e, which may be nil, at the deadline, or now if it has passed.
// a is the other activity of the script.
func (d *Deadline) Limit(e *engine.Engine, a *lang.Activity) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine, d.activity = e, a
	d.activity.Note()
	if d.hasPassed() {
		d.halt(d.late)
	}
}

// Within returns a context that also ends at the deadline, for work that has nothing to
// report after it.
func (d *Deadline) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d == nil {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, d.at, d.late)
}

func (d *Deadline) halt(cause error) {
	if d.engine != nil {
		d.engine.Halt(cause)
	}
}

// Run calls fn with a context that ends when it is to be stopped.
func (d *Deadline) Run(ctx context.Context, fn func(context.Context) error) error {
	if d == nil {
		return fn(ctx)
	}
	ctx, cancel := context.WithCancelCause(lang.WithDeadline(ctx, d.at, d.late))
	defer cancel(nil)
	defer context.AfterFunc(d.over, func() { cancel(context.Cause(d.over)) })()
	return fn(ctx)
}

// IsOver reports whether the current evaluation must stop.
func (d *Deadline) IsOver() bool { return d != nil && d.over.Err() != nil }

// WhenOver calls fn when the current evaluation must stop; stop cancels that.
func (d *Deadline) WhenOver(fn func(error)) (stop func() bool) {
	if d == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(d.over, func() { fn(context.Cause(d.over)) })
}

// hasPassed reports whether the deadline has passed, by the clock, because a timer may
// be late.
func (d *Deadline) hasPassed() bool { return d != nil && !time.Now().Before(d.at) }

// Stop ends the time early, and lets the engine work again.
func (d *Deadline) Stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
	d.halt(nil)
	d.end(nil)
}

const (
	lookEvery = 50 * time.Millisecond
	// collectsWithin is how long a collection may take to separate garbage from memory
	// in use, when the heap is half as large again as allowed. On a busy machine it
	// takes long.
	collectsWithin = 700 * time.Millisecond
	// stopsWithin is how long a script may go on after its memory is used up: one step
	// of the language can request 16 GiB, or take minutes. Far beyond the limit, it is
	// farStopsWithin.
	stopsWithin    = 800 * time.Millisecond
	farStopsWithin = 300 * time.Millisecond
	// leavesWithin is how long the program then has to close its connections to the
	// fabric.
	leavesWithin = 700 * time.Millisecond
)

const (
	// maxStack is in bytes. A stack grows by doubling, and Go ends the program whose
	// stack would reach 2 GiB (debug.SetMaxStack); filling 512 MiB takes a fraction of
	// a second. Functions that call each other as deep as the language allows, 100,000
	// calls, take 256 MiB.
	maxStack = 400 << 20
	// smallStack is the limit for other goroutines, such as the fibers of parallel.
	smallStack = 64 << 10
)

const (
	// Most runs are short: at 400 a sweep of 702 nodes ends before the first
	// collection, which takes about 4 ms of its 25.
	SmallHeapPercent = 400
	// A heap with more than largeHeap in use may not grow so far: tables and past reads
	// of 11,664 hosts take 8 to 21 MB each.
	largeHeap        = 32 << 20
	largeHeapPercent = 150
)

// CollectAt collects garbage when the heap has grown by this percentage, unless the
// environment sets it. It returns the previous percentage.
func CollectAt(percent int) (was int) {
	if os.Getenv("GOGC") != "" {
		return percent
	}
	return debug.SetGCPercent(percent)
}

// memory watches the memory of an evaluation. It reads three counters, 20 times a
// second.
//
// The goroutine that watches allocates nothing: an allocation during a collection has
// to help with it, and while one step of a script copies gigabytes no collection ends.
// Another goroutine does the work that needs memory.
type memory struct {
	limit   uint64 // bytes
	tooMuch excess
	tooDeep excess

	stop   context.CancelCauseFunc // stops the evaluation
	report func(message []byte)
	kill   func() // ends the program, after closing connections
	exit   func() // ends the program

	// Of the goroutine that watches.
	timer   *time.Timer
	samples []metrics.Sample // of use
	state   watchState
	since   time.Duration // in this state
	isLarge bool          // the heap grows as a large one

	collect   chan struct{} // requests a collection
	collected chan struct{} // the collection has ended
	exceeded  chan *lang.LimitError
	killing   chan struct{}
	done      chan struct{} // the evaluation has ended
}

// excess is a kind of excessive use, and its message.
type excess struct {
	err     *lang.LimitError
	message []byte
}

// watchState is what the watch waits for.
type watchState int

const (
	withinLimit watchState = iota // as of the last check
	collecting                    // more is in use: a collection finds out how much of it is garbage
)

// use is what the process takes, in bytes.
type use struct {
	all    uint64 // heap and stacks
	stacks uint64
	live   uint64 // of the heap, in use after the last collection
}

// watchMemory stops an evaluation that uses more than size, and ends the program if
// that has no effect; end ends the watch. where is appended to the last message of a
// program that is ended so.
func watchMemory(size ByteSize, where string, c *Console, i *Interrupts, stop context.CancelCauseFunc) (end func()) {
	if size == 0 {
		size = defaultMemory()
	}
	exceeds := func(reason string) excess {
		err := &lang.LimitError{Reason: reason}
		return excess{err, fmt.Appendf(nil, "fabsh: %v%s\n", err, where)}
	}
	m := &memory{
		limit:   uint64(size),
		tooMuch: exceeds(fmt.Sprintf("memory limit of %v exceeded by the script; keep fewer values at a time, or raise --memory", &size)),
		tooDeep: exceeds("values nested too deep, or functions that call each other without end"),

		stop: stop,
		report: func(message []byte) {
			c.leave()
			c.lastWords.Write(message)
		},
		kill: func() { i.Force(func() {}, lang.StatusUsage) },
		exit: func() { i.exit(lang.StatusUsage) },

		timer:     time.NewTimer(lookEvery),
		samples:   []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/live:bytes"}},
		collect:   make(chan struct{}, 1),
		collected: make(chan struct{}, 1),
		exceeded:  make(chan *lang.LimitError, 1),
		killing:   make(chan struct{}),
		done:      make(chan struct{}),
	}
	// Memory of variables at the prompt leaves room to delete them. The first check
	// allocates.
	m.limit = max(m.limit, m.use().all+m.limit/4)
	debug.SetMemoryLimit(int64(m.limit)) // has collected garbage before
	debug.SetMaxStack(1 << 30)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if m.sleep() { // most evaluations end before
			go m.serve()
			m.watch()
		}
	}()
	return func() {
		close(m.done)
		<-watched
		m.timer.Stop()
	}
}

// serve does the work that the watch requests, until that ends.
func (m *memory) serve() {
	for {
		select {
		case <-m.done:
			return
		case <-m.collect:
			go func() {
				runtime.GC()
				m.collected <- struct{}{}
			}()
		case why := <-m.exceeded:
			m.stop(why)
			select {
			case <-m.done:
			case <-m.killing:
				m.kill()
			}
			return
		}
	}
}

// watch checks until the evaluation ends. It stops the evaluation on excessive use, and
// the program if the evaluation does not stop.
func (m *memory) watch() {
	var found *excess
	for {
		u := m.use()
		m.pace(u)
		if found = m.judge(u); found != nil {
			break
		}
		if !m.sleep() {
			return
		}
	}
	m.exceeded <- found.err
	if m.awaitStop() {
		return
	}
	m.report(found.message)
	close(m.killing)
	m.timer.Reset(leavesWithin)
	<-m.timer.C
	m.exit()
}

// sleep waits for the next check; false: the evaluation has ended.
func (m *memory) sleep() bool {
	m.timer.Reset(lookEvery)
	select {
	case <-m.timer.C:
		return true
	case <-m.done:
		return false
	}
}

// pace collects garbage of a large heap sooner.
func (m *memory) pace(u use) {
	if m.isLarge || u.live <= largeHeap {
		return
	}
	m.isLarge = true
	if was := CollectAt(largeHeapPercent); was < largeHeapPercent {
		CollectAt(was) // of the exporter
	}
}

// judge returns the excess; nil: none, as far as is known.
func (m *memory) judge(u use) *excess {
	switch {
	case u.stacks > maxStack+smallStack*uint64(runtime.NumGoroutine()):
		// If the limit is less than a stack may take, it is too much memory, whichever
		// of the two this check found first.
		if m.limit < maxStack {
			return &m.tooMuch
		}
		return &m.tooDeep
	case m.isFar(u):
		return &m.tooMuch
	case m.state == collecting:
		return m.judgeCollecting(u)
	case u.all > m.limit:
		m.collect <- struct{}{}
		m.state, m.since = collecting, lookEvery
	}
	return nil
}

// judgeCollecting is judge during a collection.
func (m *memory) judgeCollecting(u use) *excess {
	m.since += lookEvery
	select {
	case <-m.collected:
		m.state = withinLimit
		if u := m.use(); u.live+u.stacks > m.limit {
			return &m.tooMuch
		}
	default:
		if u.all > m.limit+m.limit/2 && m.since > collectsWithin {
			return &m.tooMuch
		}
	}
	return nil
}

// awaitStop reports whether the evaluation ends in time after it was stopped.
func (m *memory) awaitStop() bool {
	for waited := time.Duration(0); waited < stopsWithin; waited += lookEvery {
		if !m.sleep() {
			return true
		}
		if u := m.use(); waited >= farStopsWithin && (m.isFar(u) || u.stacks > maxStack) {
			break
		}
	}
	return false
}

// isFar reports whether u exceeds the limit so far that it cannot be garbage, which
// grows to the limit and is collected then: it is one value that is being filled.
func (m *memory) isFar(u use) bool { return u.all > max(2*m.limit, m.limit+1<<30) }

// use returns what is in use now.
func (m *memory) use() use {
	metrics.Read(m.samples)
	heap, stacks, live := m.samples[0].Value.Uint64(), m.samples[1].Value.Uint64(), m.samples[2].Value.Uint64()
	return use{all: heap + stacks, stacks: stacks, live: live}
}
