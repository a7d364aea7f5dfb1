package audit

import (
	"math"
	"math/bits"
	"time"
)

// PortRead is the counters of a port in a Read. The zero value is a port that was not read.
type PortRead struct {
	read *Read
	at   int32 // index
}

// Known reports whether the port was read.
func (p PortRead) Known() bool { return p.read != nil }

// Key is the key of the port.
func (p PortRead) Key() PortKey { return p.id().key }

func (p PortRead) id() *portID { return &p.read.table.ids[p.at] }

func (p PortRead) kind() *portKind { return &p.read.kinds[p.read.kind[p.at]] }

// after is the time from the begin of the read to the answer with an attribute.
func (p PortRead) after(attr int) time.Duration {
	if column := p.read.after[attr]; column != nil {
		return time.Duration(column[p.at]) * tick
	}
	return 0
}

// main is the attribute that every port which was read has answered with: PortCounters,
// or PortCountersExtended where that has all of it.
func (p PortRead) main() int {
	if p.kind().answered.has(setBase) {
		return counterSets[setBase].attr
	}
	return counterSets[setWideErrors].attr
}

// value is a counter as it was, and where it was read; or nil.
func (p PortRead) value(counter int) (uint64, *source) {
	l := p.kind().layout
	at := l.position[counter]
	if at < 0 {
		return 0, nil
	}
	return p.read.counts.at(int(p.at), len(l.counters), at), l.fields[at]
}

// Value is a counter of Counters by name, times its Scale; false: unknown.
func (p PortRead) Value(name string) (uint64, bool) { return p.valueOf(CounterIndex(name)) }

func (p PortRead) valueOf(counter int) (uint64, bool) {
	v, s, _ := p.readOf(counter)
	scale := Counters()[counter].Scale
	if s == nil || v > math.MaxUint64/scale {
		return 0, false
	}
	return v * scale, true
}

// counted reports whether a counter of p is above 0.
func (p PortRead) counted() bool { return p.read.counts.start[p.at] > 0 }

// readOf is the value of a counter, and where it was read; or where it would have
// been, had it not been known to be 0 without a request.
func (p PortRead) readOf(counter int) (v uint64, s *source, asked bool) {
	if v, s = p.value(counter); s != nil {
		return v, s, true
	}
	c := &Counters()[counter]
	if p.lacks(c) {
		return 0, nil, true
	}
	s = &c.sources[0]
	if sum, ok := p.sum(s.set); !ok || sum > 0 {
		return 0, nil, true
	}
	return 0, s, false
}

// counts are the values of counters by port. Those that are 0, as most are, take no room.
type counts struct {
	start  []uint32   // by port, where its words begin in pieces; 0: all values are 0
	pieces [][]uint64 // a bit for each value that is not 0, from the lowest, then these values
}

// pieceBits is how much room is made at a time, in words, as a power of 2.
const pieceBits = 12

func newCounts(ports int) counts { return counts{start: make([]uint32, ports)} }

// put replaces the values of a port.
func (c *counts) put(port int, values []uint64) {
	words := maskWords(len(values))
	for _, v := range values {
		if v > 0 {
			words++
		}
	}
	if c.start[port] = 0; words == maskWords(len(values)) {
		return
	}
	last := len(c.pieces) - 1
	if last < 0 || len(c.pieces[last])+words > 1<<pieceBits {
		c.pieces = append(c.pieces, make([]uint64, 0, 1<<pieceBits))
		if last++; last == 0 {
			c.pieces[0] = append(c.pieces[0], 0) // no port begins at 0
		}
	}
	piece := c.pieces[last]
	begin := len(piece)
	c.start[port] = uint32(last<<pieceBits | begin)
	piece = piece[:begin+words]
	next := begin + maskWords(len(values))
	for i, v := range values {
		if v > 0 {
			piece[begin+i/64] |= 1 << (i % 64)
			piece[next] = v
			next++
		}
	}
	c.pieces[last] = piece
}

// at is value i of n of a port.
func (c *counts) at(port, n, i int) uint64 {
	start := c.start[port]
	if start == 0 {
		return 0
	}
	words := c.pieces[start>>pieceBits][start&(1<<pieceBits-1):]
	bit := uint64(1) << (i % 64)
	if words[i/64]&bit == 0 {
		return 0
	}
	before := bits.OnesCount64(words[i/64] & (bit - 1))
	for _, w := range words[:i/64] {
		before += bits.OnesCount64(w)
	}
	return words[maskWords(n)+before]
}

func maskWords(n int) int { return (n + 63) / 64 }
