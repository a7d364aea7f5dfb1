package sim

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// multi is a request for the paths from the subnet manager to itself, n times.
func (r *rig) multi(n int) *engine.Call {
	record := mad.MultiPathRecord{SGIDCount: 1, DGIDCount: uint8(n)}
	self := mad.MakeGID(state.GIDPrefix, r.state.SM.GUID)
	record.SDGID[0] = self
	var b [200]byte
	record.Encode(b[:])
	payload := b[:mad.AttrMultiPathRecord.Field("sdgid").Offset/8]
	for range 1 + n {
		payload = append(payload, self[:]...)
	}
	c := &engine.Call{Payload: payload}
	c.PutSA(mad.MethodGetMulti, mad.AttrMultiPathRecord.ID, 0, multiPathMask("sgid_count")|multiPathMask("dgid_count"), nil)
	c.SetLID(r.state.SM.LID)
	return c
}

// TestLongRequest: requests of one to many segments arrive complete with loss,
// duplicates, delays and reordering, over the engine, in virtual time.
func TestLongRequest(t *testing.T) {
	for _, faults := range []string{"", ",delay=20ms", ",loss=0.1", ",dup=0.3,delay=5ms", ",delay=5ms,jitter=20ms", ",loss=0.1,dup=0.1,busy=0.3,delay=10ms,jitter=10ms"} {
		t.Run(faults, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, small+faults)
				e := r.engine(engine.Options{Retries: 10})
				sizes := []int{1, 10, 11, 12, 60, 120}
				var calls []*engine.Call
				for _, n := range sizes {
					calls = append(calls, r.multi(n))
				}
				do(t, e, calls...)
				one := calls[0].Table
				if len(one) != mad.AttrPathRecord.Size {
					t.Fatalf("%d bytes", len(one))
				}
				for i, c := range calls {
					if !bytes.Equal(c.Table, bytes.Repeat(one, sizes[i])) {
						t.Errorf("%d destinations: %d bytes, want %d, or they differ", sizes[i], len(c.Table), sizes[i]*len(one))
					}
				}
				synctest.Wait()
			})
		})
	}
}

// TestReceiver sends the segments of a request one by one.
func TestReceiver(t *testing.T) {
	data := func(n uint32, flags mad.RMPPFlags, length uint32) mad.RMPPHeader {
		return mad.RMPPHeader{RMPPType: mad.RMPPTypeData, RMPPFlags: flags, SegmentNumber: n, PayloadLength: length}
	}
	answer := func(what mad.RMPPType, why mad.RMPPStatus, n, window uint32) mad.RMPPHeader {
		return mad.RMPPHeader{RMPPVersion: 1, RMPPType: what, RRespTime: 31, RMPPFlags: mad.RMPPFlagsActive, RMPPStatus: why, SegmentNumber: n, PayloadLength: window}
	}
	ack := func(n, window uint32) mad.RMPPHeader { return answer(mad.RMPPTypeACK, 0, n, window) }
	abort := func(why mad.RMPPStatus) mad.RMPPHeader { return answer(mad.RMPPTypeAbort, why, 0, 0) }
	first, last := data(1, mad.RMPPFlagsFirst, 0), func(n uint32) mad.RMPPHeader { return data(n, mad.RMPPFlagsLast, 220) }
	// Nothing that could be carried out: the answer's status says so.
	done := mad.RMPPHeader{}
	for name, test := range map[string]struct{ send, want []mad.RMPPHeader }{
		"in order":       {[]mad.RMPPHeader{first, data(2, 0, 0), last(3)}, []mad.RMPPHeader{ack(1, 9), ack(3, 9), done}},
		"out of order":   {[]mad.RMPPHeader{first, last(3), data(2, 0, 0)}, []mad.RMPPHeader{ack(1, 9), ack(3, 9), done}},
		"one":            {[]mad.RMPPHeader{data(1, mad.RMPPFlagsFirst|mad.RMPPFlagsLast, 220)}, []mad.RMPPHeader{ack(1, 1), done}},
		"first again":    {[]mad.RMPPHeader{first, first}, []mad.RMPPHeader{ack(1, 9), ack(1, 9)}},
		"last again":     {[]mad.RMPPHeader{first, last(2), last(2)}, []mad.RMPPHeader{ack(1, 9), ack(2, 9), done, ack(2, 9)}},
		"after window":   {[]mad.RMPPHeader{data(2, 0, 0), first, data(10, 0, 0)}, []mad.RMPPHeader{ack(1, 9)}},
		"sender aborts":  {[]mad.RMPPHeader{first, {RMPPType: mad.RMPPTypeAbort, RMPPStatus: 126}, data(2, 0, 0)}, []mad.RMPPHeader{ack(1, 9)}},
		"segment 0":      {[]mad.RMPPHeader{data(0, 0, 0)}, []mad.RMPPHeader{abort(mad.RMPPStatusInconsistentFirstAndSegmentNumber)}},
		"second first":   {[]mad.RMPPHeader{data(2, mad.RMPPFlagsFirst, 0)}, []mad.RMPPHeader{abort(mad.RMPPStatusInconsistentFirstAndSegmentNumber)}},
		"status":         {[]mad.RMPPHeader{{RMPPType: mad.RMPPTypeData, RMPPStatus: 1, SegmentNumber: 1}}, []mad.RMPPHeader{abort(mad.RMPPStatusIllegalStatus)}},
		"last too long":  {[]mad.RMPPHeader{first, data(2, mad.RMPPFlagsLast, 221)}, []mad.RMPPHeader{ack(1, 9), abort(mad.RMPPStatusInconsistentLastAndPayloadLength)}},
		"last too short": {[]mad.RMPPHeader{first, data(2, mad.RMPPFlagsLast, 19)}, []mad.RMPPHeader{ack(1, 9), abort(mad.RMPPStatusInconsistentLastAndPayloadLength)}},
		"after the last": {[]mad.RMPPHeader{first, last(3), data(4, 0, 0)}, []mad.RMPPHeader{ack(1, 9), abort(mad.RMPPStatusInconsistentLastAndPayloadLength)}},
		"too long":       {[]mad.RMPPHeader{first, data(1<<31, 0, 0)}, []mad.RMPPHeader{ack(1, 9), answer(mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted, 0, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, small)
				request := saCall(mad.MethodGetMulti, mad.AttrMultiPathRecord, 0, 0, nil, r.state.SM.LID)
				for _, h := range test.send {
					h.RMPPVersion, h.RMPPFlags = 1, h.RMPPFlags|mad.RMPPFlagsActive
					h.Encode(request.MAD[mad.RMPPOffset:])
					r.send(request)
				}
				if diff := cmp.Diff(test.want, r.segments(time.Millisecond)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
	t.Run("many", func(t *testing.T) {
		r := newRig(t, small)
		request := saCall(mad.MethodGetMulti, mad.AttrMultiPathRecord, 0, 0, nil, r.state.SM.LID)
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive | mad.RMPPFlagsFirst, SegmentNumber: 1}
		h.Encode(request.MAD[mad.RMPPOffset:])
		for i := range uint64(1000) {
			binary.BigEndian.PutUint64(request.MAD[8:], i)
			r.send(request)
		}
		if n := r.conn.Reassemblies(); n != 64 {
			t.Errorf("%d requests are remembered, want 64", n)
		}
	})
}
