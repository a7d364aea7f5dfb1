package session

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"fabsh/builtins/lang"
)

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
	// smallStack is the limit for other goroutines, such as those of parallel.
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
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		m.watch()
	}()
	go m.serve()
	return func() {
		close(m.done)
		<-looks
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
	defer m.timer.Stop()
	var found *excess
	for found == nil {
		if !m.sleep() {
			return
		}
		u := m.use()
		m.pace(u)
		found = m.judge(u)
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
