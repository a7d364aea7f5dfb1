package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"fabsh/mad"
)

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
