package audit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"

	"fabsh/mad"
)

// The file of a state is a line with the magic and the version, and a zstd frame
// with a checksum. Numbers are varints (LEB128), signed ones zigzag; texts follow
// their length. In it:
//
//	what the counters are, as a number; subnet; job
//	since version 5: the time of the last run: by the clock, the boot, and since it
//	the number of reads, and each: when, which counters it has, the number
//	of ports; then, column by column, port GUIDs, port numbers, node GUIDs, system
//	GUIDs, answered and silent sets, times, and of each counter the ports where it
//	is not 0, and its values
//	the number of findings and of their members, and each
//	the number of ports that were seen, and column by column what of them
//	when agents were asked, the number of agents, and column by column their answers
//	E
const (
	stateMagic   = "fabsh audit state "
	stateVersion = "5\n"
	stateBefore  = "4\n" // it is still read
)

// Limits of the file. zstd packs up to 30,000 to one, so what a file may take in
// memory depends on its length.
const (
	maxStateFile = 256 << 20 // bytes
	stateBase    = 512 << 20 // bytes in memory: reads of 70,000 ports
	stateRatio   = 16        // bytes in memory by byte of the file
	maxPast      = 100_000
	maxStateText = 1 << 16 // bytes
)

// countersVersion is another number when other counters are read than when a file
// was written: their order is the file's.
var countersVersion = sync.OnceValue(func() uint64 {
	h := fnv.New64a()
	for _, c := range Counters() {
		fmt.Fprintf(h, "%s %d %v", c.Name, c.Scale, c.Traffic)
		for _, s := range c.sources {
			fmt.Fprintf(h, " %d %s %d", s.set, s.field.Script, s.element)
		}
	}
	return h.Sum64()
})

// encode makes the file.
func (st *State) encode() ([]byte, error) {
	w := stateWriter{b: make([]byte, 0, 1<<20)}
	w.uint(countersVersion())
	w.text(st.subnet)
	w.text(st.job)
	w.int(st.at.Time.UnixNano())
	w.text(st.at.Boot)
	w.int(int64(st.at.Uptime))
	w.uint(uint64(len(st.reads)))
	for _, r := range st.reads {
		w.read(r)
	}
	w.uint(uint64(len(st.findings)))
	for i := range st.findings {
		w.finding(&st.findings[i])
	}
	w.history(&st.history)
	w.agents(&st.agents)
	w.b = append(w.b, 'E')
	// The encoder clears twice the window, most of which a small state would not use.
	window := min(max(1<<bits.Len(uint(len(w.b))), zstd.MinWindowSize), 4<<20)
	// With more than one goroutine the bytes could differ from run to run.
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.EncodeAll(w.b, []byte(stateMagic+stateVersion)), nil
}

type stateWriter struct{ b []byte }

// columnsOf returns what writes, or reads, a field of each of list in turn.
func columnsOf[T any](list []T) func(field func(*T)) {
	return func(field func(*T)) {
		for i := range list {
			field(&list[i])
		}
	}
}

func (w *stateWriter) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *stateWriter) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }

func (w *stateWriter) text(s string) {
	s = s[:min(len(s), maxStateText)]
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *stateWriter) read(r *Read) {
	w.int(r.Began.UnixNano())
	w.b = append(w.b, byte(r.holds))
	ids := r.table.ids[:r.Len()]
	w.uint(uint64(len(ids)))
	column := columnsOf(ids)
	last := mad.GUID(0)
	column(func(p *portID) { w.uint(uint64(p.key.GUID - last)); last = p.key.GUID })
	column(func(p *portID) { w.b = append(w.b, p.key.Num) })
	column(func(p *portID) { w.int(int64(p.node - p.key.GUID)) })
	column(func(p *portID) { w.int(int64(p.system - p.node)) })
	kinds := columnsOf(r.kind[:r.Len()])
	kinds(func(k *uint32) { w.uint(uint64(r.kinds[*k].answered)) })
	kinds(func(k *uint32) { w.uint(uint64(r.kinds[*k].silent)) })
	for attr := range numAttributes {
		sets := setsOf(attr)
		for i := range r.Len() {
			if p := r.port(i); p.kind().answered&sets != 0 {
				w.uint(uint64(p.after(attr).Microseconds()))
			}
		}
	}
	var some []int // ports that have counted something: of errors, few
	for i := range r.Len() {
		if r.port(i).counted() {
			some = append(some, i)
		}
	}
	for counter := range Counters() {
		w.counter(r, counter, some)
	}
}

// counter writes what is not 0: how many ports, how far each is behind the one before,
// and the values.
func (w *stateWriter) counter(r *Read, counter int, some []int) {
	var ports []int
	var values []uint64
	for _, i := range some {
		if v, _ := r.port(i).value(counter); v > 0 {
			ports, values = append(ports, i), append(values, v)
		}
	}
	w.uint(uint64(len(ports)))
	next := 0
	for _, i := range ports {
		w.uint(uint64(i - next))
		next = i + 1
	}
	for _, v := range values {
		w.uint(v)
	}
}

func (w *stateWriter) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *stateWriter) finding(f *Finding) {
	w.int(f.Since.UnixNano())
	w.uint(uint64(f.Severity))
	for _, s := range []string{f.Audit, f.Check, f.Message, f.Cause, string(f.Subject.Kind)} {
		w.text(s)
	}
	w.uint(uint64(len(f.Subject.Ends)))
	for _, e := range f.Subject.Ends {
		w.uint(uint64(e.Node))
		w.int(int64(e.Num))
		w.text(e.Name)
	}
}
