package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// slot is how long counters are merged that grew, in seconds.
const slot = 5 * 60

const hourSeconds = 60 * 60

// A counter that grew at more than this share of ports, and at widePorts of them, is kept by hour instead
// of as rows: a byte for each port, of its growth in a second.
const (
	wideShare = 50 // 2 %
	widePorts = 256
)

// grown is what a counter of a port grew by in the 5 minutes, the hour and the day of its last row.
type grown struct {
	t5, n5           int64
	t60, n60, most   int64
	day, nDay, hours int64
}

type grownKey struct{ port, counter int64 }

// growth is a counter that grew in a cycle.
type growth struct {
	port, counter int64 // counter: an index of audit.Counters
	n             int64
}

// counters keeps what the counters of ports grew by since the last cycle. What they count between the
// last cycle and a reset is lost.
func (w *writer) counters(c Cycle, same match, now *fabric.Fabric) {
	read := c.Counters
	if read == nil || w.err != nil {
		return
	}
	was := w.lastRead()
	w.after = append(w.after, func() { w.Recorder.read = read })
	if was == nil || !read.Began.After(was.Began) {
		return
	}
	since := new(audit.Comparison)
	since.Add(read, was)
	var list []growth
	ports := 0
	flaps, restarted := map[portKey]int64{}, map[mad.GUID]bool{}
	var cleared []portKey
	downs := audit.CounterIndex("link_downed_counter")
	var traffic [2]*samples
	if c.Traffic && w.full == "" {
		traffic = [2]*samples{w.hour().kind(SampleMean), w.hour().kind(SampleWait)}
	}
	known, own := w.readIDs, false
	for p, node := range read.All() {
		x := since.Newest(p)
		k := portKey{node, int(p.Key().Num)}
		var id int64
		if ports < len(known) && known[ports].k == k {
			id = known[ports].id
		} else {
			id = w.port(k, 0)
			if known = known[:ports]; !own {
				known, own = slices.Clone(known), true
			}
			known = append(known, readID{k, id})
		}
		ports++
		fell, all := x.Fell()
		switch {
		case all:
			restarted[node] = true
			continue
		case fell:
			cleared = append(cleared, k)
		}
		if traffic[0] != nil {
			sent, wait := x.Traffic()
			if seconds := sent.Window.Seconds(); sent.Why == audit.Known {
				w.add(traffic[0], id, float64(sent.Count)/1e6, seconds)
				if share, ok := audit.WaitShare(sent, wait); ok {
					w.add(traffic[1], id, 100*share*seconds, seconds)
				}
			}
		}
		moving := x.Grown()
		for _, i := range moving {
			n := int64(min(x.Rate(i).Count, math.MaxInt64))
			if n > 0 {
				list = append(list, growth{id, int64(i), n})
			}
			if i == downs && n > 0 {
				flaps[k] = n
			}
		}
	}
	w.after = append(w.after, func() { w.Recorder.readIDs = known[:ports] })
	w.cleared(cleared, restarted, now)
	w.flapped(flaps, restarted, same, now)
	w.keepGrowth(list, ports, read.Began.Sub(was.Began).Seconds())
	if w.hours != nil && (c.Every == 0 || w.t-w.hours.kept >= keepHourEvery) {
		w.keepHour(w.hours)
	}
}

// lastRead returns the counters of the last cycle; nil if they are unknown.
func (w *writer) lastRead() *audit.Read {
	data, ok := w.pending("read")
	if w.read != nil || !ok {
		return w.read
	}
	read, err := audit.DecodeRead(data)
	if err != nil { // of another version
		w.notes = append(w.notes, "counters are compared from this cycle on: "+err.Error())
		return nil
	}
	return read
}

// pending returns what the last recorder left to the next one, and removes it: it is used once.
func (w *writer) pending(name string) (data []byte, ok bool) {
	for _, row := range w.rows(tablePending, "name = ?", name) {
		data, ok = row[2].([]byte)
		w.remove(tablePending, row)
	}
	return data, ok
}

// cleared adds the events of counters that fell.
func (w *writer) cleared(ports []portKey, nodes map[mad.GUID]bool, f *fabric.Fabric) {
	if n := len(f.Nodes()); len(nodes) > max(n/wideShare, widePorts) {
		w.event(Event{Kind: CounterCleared, Port: noNum, PeerPort: noNum, Subject: fmt.Sprintf("%d of %d nodes", len(nodes), n)})
		nodes = nil
	}
	if n := len(f.Ports()); len(ports) > max(n/wideShare, widePorts) {
		w.event(Event{Kind: CounterCleared, Port: noNum, PeerPort: noNum, Subject: fmt.Sprintf("%d of %d ports", len(ports), n)})
		ports = nil
	}
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; nodes[n.GUID()] && (i == 0 || f.Nodes()[i-1].GUID() != n.GUID()) {
			w.event(Event{Kind: CounterCleared, Node: n.GUID(), Port: noNum, PeerPort: noNum, Subject: nodeLabel(n), Now: "all ports"})
		}
	}
	for _, k := range ports {
		w.event(Event{Kind: CounterCleared, Node: k.node, Port: k.num, PeerPort: noNum, Subject: portName(f, k)})
	}
}

// portName returns the name of a port as f has it.
func portName(f *fabric.Fabric, k portKey) string {
	if nodes := f.NodeByGUID(k.node); len(nodes) > 0 {
		if p := nodes[0].Port(k.num); p != nil {
			return p.Name()
		}
	}
	return k.node.String() + "/" + strconv.Itoa(k.num)
}

// flapped adds the events of links that went down and up between two sweeps that both found them.
func (w *writer) flapped(downs map[portKey]int64, restarted map[mad.GUID]bool, same match, f *fabric.Fabric) {
	if len(downs) == 0 || w.last == nil {
		return
	}
	for i := range w.last.Ports() {
		old, ok := cableAt(&w.last.Ports()[i])
		if !ok {
			continue
		}
		n := max(downs[keyOf(old.a)], downs[keyOf(old.b)])
		if n == 0 {
			continue
		}
		a, b := same.port(old.a), same.port(old.b)
		if a == nil || b == nil || a.Peer() != b {
			continue // its end is an event
		}
		kind := LinkFlap
		if restarted[keyOf(old.a).node] || restarted[keyOf(old.b).node] {
			kind = LinkRestart
		}
		w.link(kind, cable{a, b}, "", strconv.FormatInt(n, 10))
	}
}

// keepGrowth writes the counters that grew, seconds after they were read last.
func (w *writer) keepGrowth(list []growth, ports int, seconds float64) {
	counts := map[int64]int{}
	for _, g := range list {
		counts[g.counter]++
	}
	wide := map[int64]bool{}
	for i := range audit.Counters() {
		if counts[int64(i)] > max(ports/wideShare, widePorts) {
			wide[int64(i)] = true
			w.wide = append(w.wide, audit.Counters()[i].Name)
		}
	}
	t5, t60, day := floor(w.t, slot), floor(w.t, hourSeconds), dayOf(w.t)
	for _, g := range list {
		name := audit.Counters()[g.counter].Name
		if wide[g.counter] {
			w.add(w.hour().kind(name), g.port, float64(g.n), seconds)
			continue
		}
		w.grown++
		k := grownKey{g.port, w.word("counter", name)}
		was := w.lastGrown(k, t5, t60, day)
		x := was
		if x.t5 != t5 {
			x.t5, x.n5 = t5, 0
		}
		if x.t60 != t60 {
			x.t60, x.n60, x.most = t60, 0, 0
			x.hours++
		}
		if x.day != day {
			x.day, x.nDay, x.hours = day, 0, 1
		}
		x.n5, x.n60, x.nDay = sum(x.n5, g.n), sum(x.n60, g.n), sum(x.nDay, g.n)
		x.most = max(x.most, x.n5)
		if w.full == "" {
			w.put(tableErr5, rowIf(was.t5 == t5, g.port, t5, k.counter, was.n5), []any{g.port, t5, k.counter, x.n5})
		} else {
			x.t5, x.n5 = was.t5, was.n5
		}
		w.put(tableErr60, rowIf(was.t60 == t60, g.port, t60, k.counter, was.n60, was.most), []any{g.port, t60, k.counter, x.n60, x.most})
		w.put(tableErrDay, rowIf(was.day == day, day, g.port, k.counter, was.hours, was.nDay), []any{day, g.port, k.counter, x.hours, x.nDay})
		w.after = append(w.after, func() { w.Recorder.grownRows[k] = x })
	}
}

// sum adds counts.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// rowIf returns the values of a row that is there; nil: it is not.
func rowIf(is bool, row ...any) []any {
	if !is {
		return nil
	}
	return row
}

// lastGrown returns the rows of a counter of a port.
func (w *writer) lastGrown(k grownKey, t5, t60, day int64) grown {
	if w.grownRows == nil {
		w.Recorder.grownRows = map[grownKey]grown{}
	}
	x, ok := w.grownRows[k]
	if ok || w.rowsSince <= day && w.rowsSince != 0 { // this recorder would have written them
		return x
	}
	if w.today == nil { // the counters that grew today before this recorder began
		w.today = map[grownKey]bool{}
		w.err = cmp.Or(w.err, eachRow(w.ctx, w.tx, tableErrDay, "t = ?", []any{day}, func(row []any) error {
			w.today[grownKey{number(row[1]), number(row[2])}] = true
			return nil
		}))
	}
	x = grown{t5: -1, t60: -1, day: -1}
	if !w.today[k] {
		return x
	}
	for _, row := range w.rows(tableErr5, "port = ? and t = ? and counter = ?", k.port, t5, k.counter) {
		x.t5, x.n5 = t5, number(row[3])
	}
	for _, row := range w.rows(tableErr60, "port = ? and t = ? and counter = ?", k.port, t60, k.counter) {
		x.t60, x.n60, x.most = t60, number(row[3]), number(row[4])
	}
	for _, row := range w.rows(tableErrDay, "t = ? and port = ? and counter = ?", day, k.port, k.counter) {
		x.day, x.hours, x.nDay = day, number(row[3]), number(row[4])
	}
	return x
}

// number returns an int64 that was read.
func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// hours are the samples of the hour that is not over, by kind.
type hours struct {
	t, kept int64 // begin; when they were written last
	kinds   map[string]*samples
}

// samples are, by port id, the sum, its seconds, and the largest in a second.
type samples [3][]float32

func (h *hours) kind(name string) *samples {
	x := h.kinds[name]
	if x == nil {
		x = new(samples)
		h.kinds[name] = x
	}
	return x
}

// keepHourEvery is how often the samples of the hour that is not over are written, in seconds.
const keepHourEvery = 15 * 60

// readID is the id of a port of a read.
type readID struct {
	k  portKey
	id int64
}

// add adds what a port did in some seconds.
func (w *writer) add(x *samples, port int64, sum, seconds float64) {
	if w.full != "" || port <= 0 || port >= maxPorts || !(seconds > 0) {
		return
	}
	for i := range x {
		if int(port) >= len(x[i]) {
			x[i] = append(x[i], make([]float32, max(int(w.lastPort), int(port))+1-len(x[i]))...)
		}
	}
	x[0][port] += float32(sum)
	x[1][port] += float32(seconds)
	x[2][port] = max(x[2][port], float32(sum/seconds))
}

// hour returns the samples of this hour. Those of the hour before are written.
func (w *writer) hour() *hours {
	t := floor(w.t, hourSeconds)
	if w.hours == nil {
		if data, ok := w.pending("hours"); ok {
			if h, err := decodeHours(data); err == nil {
				w.Recorder.hours, w.Recorder.loadedHours = h, true
			}
		}
	}
	if w.hours == nil || w.hours.t != t {
		if w.hours != nil {
			w.keepHour(w.hours)
		}
		w.Recorder.hours = &hours{t: t, kept: w.t, kinds: map[string]*samples{}}
	}
	return w.hours
}

// keepHour writes the samples of an hour.
func (w *writer) keepHour(h *hours) {
	if w.full != "" || w.err != nil {
		return
	}
	h.kept = w.t
	for _, name := range sortedKeys(h.kinds) {
		x := h.kinds[name]
		mean, most := make([]byte, len(x[0])), make([]byte, len(x[0]))
		some := false
		for port, seconds := range x[1] {
			if seconds > 0 {
				mean[port] = encodeSample(name, float64(x[0][port]/seconds))
				most[port] = mostStep(mean[port], encodeSample(name, float64(x[2][port])))
				some = true
			}
		}
		if !some {
			continue
		}
		w.putHour(h.t, name, mean)
		if name == SampleMean {
			w.putHour(h.t, SampleMost, most)
		}
	}
}

// putHour writes a row of hour, in which it replaces what is there.
func (w *writer) putHour(t int64, kind string, ports []byte) {
	id := w.word("sample", kind)
	var old []any
	for _, row := range w.rows(tableHour, "t = ? and kind = ?", t, id) {
		old = row
	}
	w.put(tableHour, old, []any{t, id, encodeHour(ports)})
}

// decodeHours reads what encode wrote.
func decodeHours(data []byte) (*hours, error) {
	plain, err := unpack(data, maxHours)
	if err != nil {
		return nil, err
	}
	errShort := errors.New("the samples are damaged")
	next := func(n int) []byte {
		if n < 0 || n > len(plain) {
			plain, err = nil, errShort
			return make([]byte, min(8, max(0, n)))
		}
		b := plain[:n]
		plain = plain[n:]
		return b
	}
	h := &hours{t: int64(binary.LittleEndian.Uint64(next(8))), kinds: map[string]*samples{}}
	for len(plain) > 0 && err == nil {
		name := string(next(int(next(1)[0])))
		n := int(binary.LittleEndian.Uint32(next(4)))
		if err != nil || n > len(plain)/12 {
			return nil, errShort
		}
		x := h.kind(name)
		for i := range x {
			x[i] = make([]float32, n)
			for port := range x[i] {
				x[i][port] = math.Float32frombits(binary.LittleEndian.Uint32(next(4)))
			}
		}
	}
	return h, err
}

// maxHours limits the samples of an hour, in bytes.
const maxHours = 256 << 20

// encode returns the samples as bytes.
func (h *hours) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(h.t))
	for name, x := range h.kinds {
		b = append(append(b, byte(len(name))), name...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(x[0])))
		for i := range x {
			for _, v := range x[i] {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
	}
	return pack(b)
}
