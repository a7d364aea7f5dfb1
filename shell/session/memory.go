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
	// collectsWithin is how long it may take to tell garbage from what is in use,
	// where there is half as much again as may be. On a busy machine it takes long.
	collectsWithin = 700 * time.Millisecond
	// stopsWithin is how long a script may go on after its memory is used up: one
	// step of the language can ask for 16 GiB, or take minutes. With far too much
	// of it, it is farStopsWithin.
	stopsWithin    = 800 * time.Millisecond
	farStopsWithin = 300 * time.Millisecond
	// leavesWithin is how long the program then has to say goodbye to its fabric.
	leavesWithin = 700 * time.Millisecond
)

const (
	// maxStack is in bytes. A stack grows by doubling, and Go ends the program
	// whose stack is to become 2 GiB (debug.SetMaxStack); filling 512 MiB takes a
	// fraction of a second. Functions that call each other as deep as the language
	// lets them, 100,000 calls, take 256 MiB.
	maxStack = 400 << 20
	// smallStack is what other goroutines, such as those of parallel, have.
	smallStack = 64 << 10
)

const (
	// Most runs are short: at 400 a sweep of 702 nodes ends before the first
	// collection, which takes some 4 ms of its 25.
	SmallHeapPercent = 400
	// A heap in which more than largeHeap is in use may not grow so far: tables and
	// past reads of 11,664 hosts take 8 to 21 MB each.
	largeHeap        = 32 << 20
	largeHeapPercent = 150
)

// CollectAt has garbage collected when the heap has grown by that many per
// cent, unless the environment says when. It returns what was in force.
func CollectAt(percent int) (was int) {
	if os.Getenv("GOGC") != "" {
		return percent
	}
	return debug.SetGCPercent(percent)
}

// memory is the watch over what an evaluation uses. It costs a look at three
// counters, 20 times a second.
//
// The goroutine that looks allocates nothing: who does while garbage is collected
// has to help, and while one step of a script copies gigabytes no collection ends.
// Another goroutine does what takes memory.
type memory struct {
	limit   uint64 // bytes
	tooMuch excess
	tooDeep excess

	stop   context.CancelCauseFunc // stops the evaluation
	report func(message []byte)
	kill   func() // ends the program, after its goodbyes
	exit   func() // ends the program

	// Of the goroutine that looks.
	timer   *time.Timer
	samples []metrics.Sample // of use
	state   watchState
	since   time.Duration // in this state
	isLarge bool          // the heap grows as a large one does

	collect   chan struct{} // asks for a collection
	collected chan struct{} // it has ended
	exceeded  chan *lang.LimitError
	killing   chan struct{}
	done      chan struct{} // the evaluation has ended
}

// excess is a way to use too much, and the line that people read of it.
type excess struct {
	err     *lang.LimitError
	message []byte
}

// watchState is what the watch waits for.
type watchState int

const (
	withinLimit watchState = iota // as of the last look
	collecting                    // more is taken: a collection tells what of it is garbage
)

// use is what the process takes, in bytes.
type use struct {
	all    uint64 // heap and stacks
	stacks uint64
	live   uint64 // of the heap, what was no garbage at the last collection
}

// watchMemory has an evaluation stopped that uses more than size, and the program
// ended where that is of no use; end ends the watch. where is added to the last words
// of a program that is ended so.
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
		tooMuch: exceeds(fmt.Sprintf("the script takes more than %v of memory: keep less at a time, or allow more with --memory", &size)),
		tooDeep: exceeds("a value is nested too deep, or functions call each other without end"),

		stop: stop,
		report: func(message []byte) {
			c.leave()
			c.stderr.Write(message)
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
	// What variables of the prompt keep leaves room to do away with it. The first look
	// allocates.
	m.limit = max(m.limit, m.use().all+m.limit/4)
	debug.SetMemoryLimit(int64(m.limit)) // has garbage collected before
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

// serve does what the watch asks for, until that ends.
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

// watch looks until the evaluation ends, which it is made to where there is too much
// of something; the program ends where it does not.
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

// sleep waits for the next look; false: the evaluation has ended.
func (m *memory) sleep() bool {
	m.timer.Reset(lookEvery)
	select {
	case <-m.timer.C:
		return true
	case <-m.done:
		return false
	}
}

// pace has garbage of a large heap collected sooner.
func (m *memory) pace(u use) {
	if m.isLarge || u.live <= largeHeap {
		return
	}
	m.isLarge = true
	if was := CollectAt(largeHeapPercent); was < largeHeapPercent {
		CollectAt(was) // of the exporter
	}
}

// judge returns what there is too much of; nil: nothing, as far as is known.
func (m *memory) judge(u use) *excess {
	switch {
	case u.stacks > maxStack+smallStack*uint64(runtime.NumGoroutine()):
		// With less memory than a stack may have it is too much memory, whichever
		// of the two this look was in time for.
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

// judgeCollecting is judge while garbage is collected.
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

// awaitStop reports whether the evaluation ends in time after it was told to.
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

// isFar reports whether u is so far beyond the limit that it is no garbage, which grows
// to the limit and is collected then. It is one value, which is being filled.
func (m *memory) isFar(u use) bool { return u.all > max(2*m.limit, m.limit+1<<30) }

// use returns what is in use now.
func (m *memory) use() use {
	metrics.Read(m.samples)
	heap, stacks, live := m.samples[0].Value.Uint64(), m.samples[1].Value.Uint64(), m.samples[2].Value.Uint64()
	return use{all: heap + stacks, stacks: stacks, live: live}
}
