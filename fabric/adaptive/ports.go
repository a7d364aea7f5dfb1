package adaptive

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// Ports is a set of ports of a switch. It is comparable: equal sets are ==.
type Ports [4]uint64

// PortSet is the set of the given ports.
func PortSet(ports ...uint8) Ports {
	var s Ports
	for _, p := range ports {
		s.Add(p)
	}
	return s
}

// PortsOfMask is the set of a mask in attributes: port p is bit 1<<(p%8) of byte 31-p/8.
func PortsOfMask(mask [32]byte) (s Ports) {
	for i := range s {
		s[i] = binary.BigEndian.Uint64(mask[32-8*(i+1):])
	}
	return s
}

// Mask is the inverse of PortsOfMask.
func (s Ports) Mask() (mask [32]byte) {
	for i, w := range s {
		binary.BigEndian.PutUint64(mask[32-8*(i+1):], w)
	}
	return mask
}

// Add adds port p.
func (s *Ports) Add(p uint8) { s[p/64] |= 1 << (p % 64) }

// Remove removes port p.
func (s *Ports) Remove(p uint8) { s[p/64] &^= 1 << (p % 64) }

// Has reports whether p is in s.
func (s Ports) Has(p uint8) bool { return s[p/64]>>(p%64)&1 != 0 }

// Empty reports whether s has no port.
func (s Ports) Empty() bool { return s == Ports{} }

// First is the lowest port; 0 without ports.
func (s Ports) First() uint8 {
	for p := range s.All() {
		return p
	}
	return 0
}

// Len is the number of ports.
func (s Ports) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Union has the ports of both.
func (s Ports) Union(t Ports) Ports {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// All are the ports, in order.
func (s Ports) All() iter.Seq[uint8] {
	return func(yield func(uint8) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(uint8(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// String lists the ports, with ranges: "1-4,7"; "" without ports.
func (s Ports) String() string {
	var b strings.Builder
	first, last := -1, -1
	flush := func() {
		if first < 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
	}
	for p := range s.All() {
		if int(p) == last+1 && first >= 0 {
			last++
			continue
		}
		flush()
		first, last = int(p), int(p)
	}
	flush()
	return b.String()
}
