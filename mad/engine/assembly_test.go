package engine

import (
	"encoding/binary"
	"testing"

	"fabsh/mad"
)

// maxTestTable is how long a table may be, in bytes.
const maxTestTable = 64 << 20

// TestAssembly: what each segment leads to.
func TestAssembly(t *testing.T) {
	type step struct {
		n              uint32
		last           bool
		progress, ack  bool
		acked, granted uint32
	}
	for name, steps := range map[string][]step{
		"first again, our ACK was lost": {{1, false, true, true, 1, 65}, {1, false, false, true, 1, 65}},
		"second again, not yet acknowledged": {
			{1, false, true, true, 1, 65}, {2, false, true, false, 1, 65}, {2, false, false, false, 1, 65}},
		"out of order": {
			{1, false, true, true, 1, 65}, {4, true, true, false, 1, 65}, {4, true, false, false, 1, 65},
			{3, false, true, false, 1, 65}, {2, false, true, true, 4, 65}},
		"too far ahead": {{1, false, true, true, 1, 65}, {66, false, false, false, 1, 65}, {65, false, true, false, 1, 65}},
	} {
		t.Run(name, func(t *testing.T) {
			m := make([]byte, mad.Size)
			m[mad.RMPPVersionOffset], m[mad.RMPPTypeOffset] = 1, byte(mad.RMPPTypeData)
			a := newRMPPAssembly(m, maxTestTable)
			for i, want := range steps {
				m[mad.RMPPFlagsOffset] = byte(mad.RMPPFlagsActive)
				if want.n == 1 {
					m[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsFirst)
				}
				if want.last {
					m[mad.RMPPFlagsOffset] |= byte(mad.RMPPFlagsLast)
				}
				binary.BigEndian.PutUint32(m[mad.SegmentNumberOffset:], want.n)
				binary.BigEndian.PutUint32(m[mad.PayloadLengthOffset:], 220)
				got := step{n: want.n, last: want.last}
				var err error
				if got.progress, got.ack, err = a.Add(m); err != nil {
					t.Fatal(err)
				}
				if got.ack {
					a.Acknowledge()
				}
				got.acked, got.granted = a.acked, a.granted
				if got != want {
					t.Errorf("step %d: got %+v, want %+v", i, got, want)
				}
			}
		})
	}
	m := make([]byte, mad.Size)
	m[mad.RMPPVersionOffset], m[mad.RMPPTypeOffset], m[mad.RMPPFlagsOffset] = 1, byte(mad.RMPPTypeData), byte(mad.RMPPFlagsActive)
	a := newRMPPAssembly(m, maxTestTable)
	a.next = maxTestTable/mad.SegmentData + 2
	binary.BigEndian.PutUint32(m[mad.SegmentNumberOffset:], a.next)
	if _, _, err := a.Add(m); err == nil || err.Error() != "the table is longer than 67108864 bytes; request less at once" {
		t.Errorf("endless table: %v", err)
	}
}

// FuzzAssembly: whatever segments come, there is no panic, memory grows only
// with what came, and a table that is complete is what its segments held.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte{1, 3, 100, 2, 1, 0, 3, 5, 220})
	f.Add([]byte{1, 7, 20})
	f.Add([]byte{2, 1, 0, 1, 3, 0, 2, 1, 0, 3, 5, 30})
	f.Fuzz(func(t *testing.T, script []byte) {
		m := make([]byte, mad.Size)
		a := newRMPPAssembly(m, maxTestTable)
		held := map[uint32]byte{}
		came := 0
		for i := 0; i+3 <= len(script) && !a.Done(); i += 3 {
			// Three bytes a segment: number, flags, payload length.
			n := uint32(int8(script[i]))
			m[mad.RMPPVersionOffset], m[mad.RMPPTypeOffset], m[mad.RMPPFlagsOffset] = 1, byte(mad.RMPPTypeData), script[i+1]
			m[mad.RMPPStatusOffset] = script[i+1] >> 7
			binary.BigEndian.PutUint32(m[mad.SegmentNumberOffset:], n)
			binary.BigEndian.PutUint32(m[mad.PayloadLengthOffset:], uint32(int8(script[i+2]))+20)
			for j := range mad.SegmentData {
				m[mad.SADataOffset+j] = byte(i)
			}
			before := a.next
			progress, _, err := a.Add(m)
			if err != nil {
				return
			}
			if progress {
				if _, twice := held[n]; twice {
					t.Fatalf("segment %d taken twice", n)
				}
				held[n] = byte(i)
				came++
			}
			if a.next < before {
				t.Fatal("went back")
			}
		}
		if cap(a.data) > 2*(came+rmppWindow)*mad.SegmentData {
			t.Fatalf("%d bytes held for %d segments", cap(a.data), came)
		}
		if !a.Done() {
			return
		}
		table := a.Table()
		if n := uint32((len(table) + mad.SegmentData - 1) / mad.SegmentData); n > a.last || n+1 < a.last {
			t.Fatalf("%d bytes of %d segments", len(table), a.last)
		}
		for i, b := range table {
			if b != held[uint32(i/mad.SegmentData+1)] {
				t.Fatalf("byte %d is not of its segment", i)
			}
		}
	})
}
