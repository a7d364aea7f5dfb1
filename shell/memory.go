package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
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
	smallHeapPercent = 400
	// A heap in which more than largeHeap is in use may not grow so far: tables and
	// past reads of 11,664 hosts take 8 to 21 MB each.
	largeHeap        = 32 << 20
	largeHeapPercent = 150
)

// collectAt has garbage collected when the heap has grown by that many per
// cent, unless the environment says when. It returns what was in force.
func collectAt(percent int) (was int) {
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
	limit uint64 // bytes
	over  *lang.LimitError
	deep  *lang.LimitError

	stop context.CancelCauseFunc // stops the evaluation
	tell func(why *lang.LimitError)
	kill func() // ends the program, after its goodbyes
	exit func() // ends the program

	timer     *time.Timer      // of watch
	samples   []metrics.Sample // of inUse
	collect   chan struct{}    // asks for a collection
	collected chan struct{}    // it has ended
	convicted chan *lang.LimitError
	killing   chan struct{}
	done      chan struct{} // the evaluation has ended
}

// watchMemory has an evaluation stopped that uses more than it may, and the
// program ended where that is of no use; end ends the watch.
func (s *session) watchMemory(stop context.CancelCauseFunc) (end func()) {
	size := s.app.memory
	if size == 0 {
		size = defaultMemory()
	}
	m := &memory{
		limit: uint64(size),
		over:  &lang.LimitError{Reason: fmt.Sprintf("the script takes more than %v of memory: keep less at a time, or allow more with --memory", &size)},
		deep:  &lang.LimitError{Reason: "a value is nested too deep, or functions call each other without end"},

		stop: stop,
		kill: func() { s.app.interrupts.force(func() {}, lang.StatusUsage) },
		exit: func() { s.app.interrupts.exit(lang.StatusUsage) },

		timer:     time.NewTimer(lookEvery),
		samples:   []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/live:bytes"}},
		collect:   make(chan struct{}, 1),
		collected: make(chan struct{}, 1),
		convicted: make(chan *lang.LimitError, 1),
		killing:   make(chan struct{}),
		done:      make(chan struct{}),
	}
	lines := map[*lang.LimitError][]byte{m.over: fmt.Appendf(nil, "fabsh: %v%s\n", m.over, s.where), m.deep: fmt.Appendf(nil, "fabsh: %v%s\n", m.deep, s.where)}
	m.tell = func(why *lang.LimitError) {
		s.app.console.leave()
		s.app.console.stderr.Write(lines[why])
	}
	used, _, _ := m.inUse() // the first time it allocates
	// What variables of the prompt keep leaves room to do away with it.
	m.limit = max(m.limit, used+m.limit/4)
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
		case why := <-m.convicted:
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

// watch looks until the evaluation ends, or there is too much of something.
func (m *memory) watch() {
	defer m.timer.Stop()
	// sleep is false when the evaluation ends.
	sleep := func(d time.Duration) bool {
		m.timer.Reset(d)
		select {
		case <-m.timer.C:
			return true
		case <-m.done:
			return false
		}
	}
	collecting := time.Duration(0) // for how long; 0: not
	large := false
	for sleep(lookEvery) {
		used, stacks, live := m.inUse()
		if live > largeHeap && !large {
			large = true
			if was := collectAt(largeHeapPercent); was < largeHeapPercent {
				collectAt(was) // of the exporter
			}
		}
		var why *lang.LimitError
		switch {
		case stacks > maxStack+smallStack*uint64(runtime.NumGoroutine()):
			// With less memory than a stack may have it is too much memory, whichever
			// of the two this look was in time for.
			why = m.deep
			if m.limit < maxStack {
				why = m.over
			}
		case m.far(used):
			why = m.over
		case collecting > 0:
			collecting += lookEvery
			select {
			case <-m.collected:
				collecting = 0
				if _, stacks, live := m.inUse(); live+stacks > m.limit {
					why = m.over
				}
			default:
				if used > m.limit+m.limit/2 && collecting > collectsWithin {
					why = m.over
				}
			}
		case used > m.limit:
			m.collect <- struct{}{}
			collecting = lookEvery
		}
		if why == nil {
			continue
		}
		m.convicted <- why
		for waited := time.Duration(0); waited < stopsWithin; waited += lookEvery {
			if !sleep(lookEvery) {
				return
			}
			used, stacks, _ := m.inUse()
			if waited >= farStopsWithin && (m.far(used) || stacks > maxStack) {
				break
			}
		}
		m.tell(why)
		close(m.killing)
		m.timer.Reset(leavesWithin)
		<-m.timer.C
		m.exit()
	}
}

// far: it is so far beyond the limit that it is no garbage, which grows to the
// limit and is collected then. It is one value, which is being filled.
func (m *memory) far(used uint64) bool { return used > max(2*m.limit, m.limit+1<<30) }

// inUse is how many bytes heap and stacks take, the stacks alone, and what of the
// heap was no garbage at the last collection.
func (m *memory) inUse() (all, stacks, live uint64) {
	metrics.Read(m.samples)
	heap, stacks, live := m.samples[0].Value.Uint64(), m.samples[1].Value.Uint64(), m.samples[2].Value.Uint64()
	return heap + stacks, stacks, live
}

// byteSize is a flag's number of bytes.
type byteSize uint64

// Bounds of --memory. With less fabsh itself would not do.
const (
	minMemory byteSize = 64 << 20
	maxMemory byteSize = 1 << 50
)

// units are the powers of 1024, from the largest.
var units = []struct {
	name  string
	bytes byteSize
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// Set takes 512MiB, 4G, 1.5GiB, or a number of bytes.
func (s *byteSize) Set(text string) error {
	number, unit := strings.TrimRight(text, "KMGTiB"), byteSize(1)
	if suffix := text[len(number):]; suffix != "" {
		unit = 0
		for _, u := range units {
			if suffix == u.name || suffix == u.name[:1] {
				unit = u.bytes
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	// Its negation is false for what is no number.
	if bytes := n * float64(unit); err != nil || !(bytes >= float64(minMemory) && bytes <= float64(maxMemory)) {
		return errors.New("want a size of 64MiB or more, such as 512MiB or 4GiB")
	}
	*s = byteSize(n * float64(unit))
	return nil
}

// String is the size in the largest unit of which it is a multiple.
func (s *byteSize) String() string {
	for _, u := range units {
		if *s > 0 && *s%u.bytes == 0 {
			return strconv.FormatUint(uint64(*s/u.bytes), 10) + " " + u.name
		}
	}
	return ""
}

func (s *byteSize) Type() string { return "size" }

// defaultMemory is what a script may use where --memory does not say: 4 GiB, or a
// quarter of the machine.
func defaultMemory() byteSize {
	machine := machineMemory()
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} { // of a container
		text, err := os.ReadFile(file)
		if n, numErr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && numErr == nil {
			machine = min(machine, byteSize(n))
		}
	}
	return max(minMemory, min(4<<30, machine/4)) &^ (1<<20 - 1)
}
