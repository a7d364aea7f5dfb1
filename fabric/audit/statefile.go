package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"reflect"
	"slices"
	"sync"
	"time"

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
//	the number of ports that were seen, and column by column their history
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

// countersVersion returns a number that identifies the list of counters, whose order the file
// uses.
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

// columnsOf returns a function that writes, or reads, a field of each element of list in turn.
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

// counter writes the values of a counter that are not 0: how many ports, how far each is behind
// the port before, and the values.
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

// readMagic begins what EncodeRead writes.
const readMagic = "fabsh counters 1\n"

// EncodeRead returns a read as bytes, for DecodeRead of this version of fabsh.
func EncodeRead(r *Read) ([]byte, error) {
	w := stateWriter{}
	w.uint(countersVersion())
	w.read(r)
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.EncodeAll(w.b, []byte(readMagic)), nil
}

// DecodeRead returns the read that EncodeRead wrote. It accepts any bytes.
func DecodeRead(data []byte) (*Read, error) {
	packed, ok := bytes.CutPrefix(data, []byte(readMagic))
	var head zstd.Header
	if !ok || head.Decode(packed) != nil || !head.HasCheckSum {
		return nil, errors.New("not counters of this version of fabsh")
	}
	limit := stateBase + stateRatio*len(packed)
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	plain, err := z.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("the counters are damaged: %w", err)
	}
	r := stateReader{b: plain, limit: limit}
	if version := r.uint("the counters", any64); r.err == nil && version != countersVersion() {
		return nil, errOtherCounters
	}
	read := r.read()
	if r.err == nil && len(r.b) > 0 {
		r.fail("the end after the counters")
	}
	return read, r.err
}

// decode reads the file. It accepts any bytes.
func (st *State) decode(data []byte) error {
	packed, ok := bytes.CutPrefix(data, []byte(stateMagic+stateVersion))
	timed := ok
	if !ok {
		packed, ok = bytes.CutPrefix(data, []byte(stateMagic+stateBefore))
	}
	switch {
	case !bytes.HasPrefix(data, []byte(stateMagic)):
		return fmt.Errorf("%s: expected a state of fabsh, which begins with %q", st.path, stateMagic+stateVersion)
	case !ok:
		return fmt.Errorf("%s: written by another version of fabsh", st.path)
	}
	var head zstd.Header
	if head.Decode(packed) == nil && !head.HasCheckSum { // damage could have cleared the bit
		return fmt.Errorf("%s: the state is damaged: it has no checksum", st.path)
	}
	limit := stateBase + stateRatio*len(packed)
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
	if err != nil {
		return err
	}
	defer z.Close()
	plain, err := z.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("%s: the state is damaged: %w", st.path, err)
	}
	r := stateReader{b: plain, limit: limit}
	if err := r.state(st, timed); err != nil {
		return fmt.Errorf("%s: %w", st.path, err)
	}
	return nil
}

// stateReader keeps the first error, and then reads zeros.
type stateReader struct {
	b     []byte
	kept  int // bytes in memory
	limit int
	err   error
}

func (r *stateReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("the state is damaged: expected %s", fmt.Sprintf(format, args...))
	}
	r.b = nil
}

// keep counts what is about to be kept in memory.
func (r *stateReader) keep(n, size int) {
	if r.kept += n * size; r.kept > r.limit {
		r.fail("less than %d MB", r.limit>>20)
	}
}

func (r *stateReader) uint(what string, limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.fail("%s", what)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) int(what string) int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("%s", what)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) byte(what string) byte {
	if len(r.b) == 0 {
		r.fail("%s", what)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *stateReader) text(what string) string {
	n := int(r.uint("the length of "+what, maxStateText))
	if n > len(r.b) {
		r.fail("%s", what)
		return ""
	}
	if r.keep(n, 1); r.err != nil {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

const any64 = 1<<64 - 1

// errOtherCounters reports that the state is of another version of fabsh.
var errOtherCounters = errors.New("written by another version of fabsh, which reads other counters")

// state reads the file; timed reports whether it has the time of the last run.
func (r *stateReader) state(st *State, timed bool) error {
	if version := r.uint("the counters", any64); r.err == nil && version != countersVersion() {
		return errOtherCounters
	}
	if subnet, job := r.text("a subnet"), r.text("a job"); r.err == nil && (subnet != st.subnet || job != st.job) {
		return fmt.Errorf("it is of the job %q in the subnet %q; was the file moved?", job, subnet)
	}
	if timed {
		st.at = Moment{time.Unix(0, r.int("a time")), r.text("a boot"), time.Duration(r.int("a time since boot"))}
	}
	for range r.uint("up to 20 reads", maxReads) {
		st.reads = append(st.reads, r.read())
		if n := len(st.reads); r.err == nil && n > 1 && !st.reads[n-2].Began.Before(st.reads[n-1].Began) {
			r.fail("the oldest read first")
		}
	}
	n := int(r.uint("a number of findings", maxPast))
	for i := 0; i < n && r.err == nil; i++ {
		r.keep(2, int(reflect.TypeFor[Finding]().Size()))
		st.findings = append(st.findings, r.finding())
	}
	r.history(&st.history)
	r.agents(&st.agents)
	if r.byte("the end") != 'E' || len(r.b) > 0 {
		r.fail("the end after the last agent")
	}
	return r.err
}

func (r *stateReader) read() *Read {
	read := &Read{Began: time.Unix(0, r.int("a time"))}
	read.holds = holding(min(r.byte("what is kept"), byte(holdsDowns)))
	n := int(r.uint("a number of ports", uint64(len(r.b)/7))) // of which each has seven bytes or more
	const columns = 4*(2+int(numAttributes)) + 4 + 24         // bytes of a port in the columns of Read, and in those below
	if r.keep(n, int(reflect.TypeFor[portID]().Size())+columns); r.err != nil {
		n = 0
	}
	read.table = &portTable{make([]portID, n), n}
	column := columnsOf(read.table.ids)
	last := mad.GUID(0)
	column(func(p *portID) { p.key.GUID = last + mad.GUID(r.uint("a port GUID", any64)); last = p.key.GUID })
	column(func(p *portID) { p.key.Num = r.byte("a port number") })
	column(func(p *portID) { p.node = p.key.GUID + mad.GUID(r.int("a node GUID")) })
	column(func(p *portID) { p.system = p.node + mad.GUID(r.int("a system GUID")) })
	sets := make([][2]SetMask, n) // answered, silent
	for i := range sets {
		sets[i][0] = SetMask(r.uint("counters", 1<<numSets-1))
	}
	var kinds kindSet
	for i := range sets {
		sets[i][1] = SetMask(r.uint("counters", 1<<numSets-1))
		read.kind = append(read.kind, kinds.number(sets[i][0], sets[i][1], read.holds))
	}
	read.kinds, read.counts = kinds.kinds, newCounts(n)
	for attr := range numAttributes {
		for i := range sets {
			if sets[i][0]&setsOf(attr) == 0 {
				continue
			}
			if read.after[attr] == nil {
				read.after[attr] = make([]uint32, n)
			}
			read.after[attr][i] = ticks(time.Duration(r.uint("a time", uint64(24*time.Hour/time.Microsecond))) * time.Microsecond)
		}
	}
	if !slices.IsSortedFunc(read.table.ids, func(a, b portID) int { return a.key.compare(b.key) }) {
		r.fail("ports by GUID and number")
	}
	if r.err != nil {
		return read
	}
	r.values(read)
	return read
}

// values reads the counters of all ports.
func (r *stateReader) values(read *Read) {
	counted := make([][]uint64, read.Len()) // nil: the port has counted nothing
	for counter := range Counters() {
		ports := make([]int, r.uint("a number of ports that have counted", uint64(min(len(r.b), read.Len()))))
		next := 0
		for k := range ports {
			ports[k] = next + int(r.uint("a port that has counted", uint64(read.Len())))
			next = ports[k] + 1
			if r.err == nil && (ports[k] >= read.Len() || read.port(ports[k]).kind().layout.position[counter] < 0) {
				r.fail("a port that has the counter")
			}
		}
		if r.err != nil {
			return
		}
		for _, i := range ports {
			v, l := r.uint("a counter", any64), read.port(i).kind().layout
			if v > 0 && counted[i] == nil {
				r.keep(len(l.counters), 8)
				counted[i] = make([]uint64, len(l.counters))
			}
			if v > 0 {
				counted[i][l.position[counter]] = v
			}
		}
	}
	for i, values := range counted {
		if values != nil {
			read.counts.put(i, values)
		}
	}
}

func (r *stateReader) finding() Finding {
	f := Finding{Since: time.Unix(0, r.int("a time"))}
	f.Severity = Severity(r.uint("a severity", uint64(Critical)))
	f.Audit, f.Check, f.Message, f.Cause = r.text("an audit"), r.text("a check"), r.text("a message"), r.text("a cause")
	f.Subject.Kind = SubjectKind(r.text("a kind of subject"))
	for range r.uint("a number of ends", 2) {
		f.Subject.Ends = append(f.Subject.Ends, End{Node: mad.GUID(r.uint("a node", any64)), Num: int(r.int("a port")), Name: r.text("a name")})
	}
	return f
}

func (w *stateWriter) agents(a *Agents) {
	w.int(a.asked.Unix())
	w.uint(uint64(len(a.list)))
	column := columnsOf(a.list)
	last := mad.GUID(0)
	column(func(x *knownAgent) { w.uint(uint64(x.key.GUID - last)); last = x.key.GUID })
	column(func(x *knownAgent) { w.b = append(w.b, x.key.Num) })
	column(func(x *knownAgent) { w.int(int64(x.model.node - x.key.GUID)) })
	column(func(x *knownAgent) { w.uint(x.model.device) })
	column(func(x *knownAgent) { w.uint(uint64(x.model.revision)) })
	column(func(x *knownAgent) { w.uint(uint64(x.caps)) })
	column(func(x *knownAgent) { w.uint(uint64(x.caps2)) })
}

func (r *stateReader) agents(a *Agents) {
	a.asked = time.Unix(r.int("a time"), 0)
	n := int(r.uint("a number of agents", uint64(len(r.b)/7))) // of which each has seven bytes or more
	if r.keep(n, 48); r.err != nil {
		return
	}
	a.list = make([]knownAgent, n)
	column := columnsOf(a.list)
	last := mad.GUID(0)
	column(func(x *knownAgent) { x.key.GUID = last + mad.GUID(r.uint("a port GUID", any64)); last = x.key.GUID })
	column(func(x *knownAgent) { x.key.Num = r.byte("a port number") })
	column(func(x *knownAgent) { x.model.node = x.key.GUID + mad.GUID(r.int("a node GUID")) })
	column(func(x *knownAgent) { x.model.device = r.uint("a device", 1<<48-1) })
	column(func(x *knownAgent) { x.model.revision = uint32(r.uint("a revision", 1<<32-1)) })
	column(func(x *knownAgent) { x.caps = uint16(r.uint("capabilities", 1<<16-1)) })
	column(func(x *knownAgent) { x.caps2 = uint32(r.uint("capabilities", 1<<32-1)) })
	if !slices.IsSortedFunc(a.list, func(x, y knownAgent) int { return x.key.compare(y.key) }) {
		r.fail("agents by GUID and port number")
	}
}

func (w *stateWriter) history(h *History) {
	w.uint(uint64(len(h.ports)))
	column := columnsOf(h.ports)
	last := mad.GUID(0)
	column(func(p *portPast) { w.uint(uint64(p.key.GUID - last)); last = p.key.GUID })
	column(func(p *portPast) { w.b = append(w.b, p.key.Num) })
	column(func(p *portPast) { w.int(p.up) })
	column(func(p *portPast) { w.int(int64(p.peer - p.key.GUID)) })
	column(func(p *portPast) { w.b = append(w.b, p.peerNum) })
	column(func(p *portPast) { w.bool(p.toSwitch) })
	column(func(p *portPast) { w.uint(uint64(p.waits)) })
}

func (r *stateReader) history(h *History) {
	n := int(r.uint("a number of ports that were seen", uint64(len(r.b)/7))) // of which each has seven bytes or more
	if r.keep(n, 40); r.err != nil {
		return
	}
	h.ports = make([]portPast, n)
	column := columnsOf(h.ports)
	last := mad.GUID(0)
	column(func(p *portPast) { p.key.GUID = last + mad.GUID(r.uint("a port GUID", any64)); last = p.key.GUID })
	column(func(p *portPast) { p.key.Num = r.byte("a port number") })
	column(func(p *portPast) { p.up = r.int("a time") })
	column(func(p *portPast) { p.peer = p.key.GUID + mad.GUID(r.int("a node GUID")) })
	column(func(p *portPast) { p.peerNum = r.byte("a port number") })
	column(func(p *portPast) { p.toSwitch = r.byte("a kind of node") != 0 })
	column(func(p *portPast) { p.waits = uint16(r.uint("runs", 1<<pastRuns-1)) })
	if !slices.IsSortedFunc(h.ports, func(a, b portPast) int { return a.key.compare(b.key) }) {
		r.fail("ports that were seen by GUID and number")
	}
}
