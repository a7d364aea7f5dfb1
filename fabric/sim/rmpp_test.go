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

// TestTableWithFaults: a table arrives complete with loss, duplicates, delays and
// reordering, over the engine, in virtual time.
func TestTableWithFaults(t *testing.T) {
	want := newRig(t, "fattree:k=8,levels=3").wholeTable(t)
	for _, faults := range []string{
		"delay=20ms", "loss=0.05", "loss=0.05,delay=20ms", "loss=0.2,delay=5ms", "dup=0.3,delay=5ms", "delay=5ms,jitter=20ms",
		"loss=0.1,dup=0.1,busy=0.3,delay=10ms,jitter=10ms",
	} {
		t.Run(faults, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=8,levels=3,"+faults)
				start := time.Now()
				if got := r.wholeTable(t); !bytes.Equal(got, want) {
					t.Errorf("%d bytes, want %d, or they differ", len(got), len(want))
				}
				t.Logf("%d bytes in %v", len(want), time.Since(start))
				synctest.Wait()
			})
		})
	}
}

// wholeTable is the 208 NodeRecords and 848 PortInfoRecords.
func (r *rig) wholeTable(t *testing.T) []byte {
	e := r.engine(engine.Options{Retries: 10})
	nodes := saCall(mad.MethodGetTable, mad.AttrNodeRecord, 0, 0, nil, r.state.SM.LID)
	ports := saCall(mad.MethodGetTable, mad.AttrPortInfoRecord, 0, 0, nil, r.state.SM.LID)
	do(t, e, nodes, ports)
	return append(bytes.Clone(nodes.Table), ports.Table...)
}

// segments sends requests and reads the segments of the answers, until none comes
// for some virtual time.
func (r *rig) segments(wait time.Duration) (list []mad.RMPPHeader) {
	deadline := time.Now().Add(wait)
	for {
		synctest.Wait()
		for r.conn.Waiting() > 0 {
			var d engine.Datagram
			if err := r.conn.Recv(&d); err != nil {
				r.t.Fatal(err)
			}
			var h mad.RMPPHeader
			h.Decode(d.MAD[mad.RMPPOffset:])
			list = append(list, h)
		}
		if !time.Now().Before(deadline) {
			return list
		}
		<-time.After(time.Millisecond)
	}
}

func (r *rig) send(c *engine.Call) {
	r.t.Helper()
	if err := r.conn.Send(&engine.Datagram{Address: c.To, MAD: c.MAD[:]}); err != nil {
		r.t.Fatal(err)
	}
}

// control is an ACK, STOP or ABORT to the answer of request.
func control(request *engine.Call, h mad.RMPPHeader) *engine.Call {
	c := &engine.Call{To: request.To, MAD: request.MAD}
	h.RMPPVersion, h.RMPPFlags = 1, mad.RMPPFlagsActive
	h.Encode(c.MAD[mad.RMPPOffset:])
	return c
}

// TestSender acknowledges the segments of a table one by one.
func TestSender(t *testing.T) {
	data := func(n uint32, flags mad.RMPPFlags, length uint32) mad.RMPPHeader {
		return mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: 31,
			RMPPFlags: mad.RMPPFlagsActive | flags, SegmentNumber: n, PayloadLength: length}
	}
	abort := func(why mad.RMPPStatus) mad.RMPPHeader {
		return mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RRespTime: 31, RMPPFlags: mad.RMPPFlagsActive, RMPPStatus: why}
	}
	ack := func(n, window uint32) mad.RMPPHeader {
		return mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, SegmentNumber: n, PayloadLength: window}
	}
	// 14 NodeRecords of 112 bytes: 1568 bytes, 8 segments.
	first, last := data(1, mad.RMPPFlagsFirst, 8*20+1568), data(8, mad.RMPPFlagsLast, 20+168)
	middle := func(n uint32) mad.RMPPHeader { return data(n, 0, 0) }
	const tick = 10 * time.Millisecond // less than the time to a resend
	type step struct {
		send []mad.RMPPHeader
		wait time.Duration
		want []mad.RMPPHeader
	}
	for name, steps := range map[string][]step{
		"all at once": {{nil, tick, []mad.RMPPHeader{first}},
			{[]mad.RMPPHeader{ack(1, 64)}, tick, []mad.RMPPHeader{middle(2), middle(3), middle(4), middle(5), middle(6), middle(7), last}},
			{[]mad.RMPPHeader{ack(8, 64)}, time.Minute, nil}},
		"small windows": {{nil, tick, []mad.RMPPHeader{first}},
			{[]mad.RMPPHeader{ack(1, 3)}, tick, []mad.RMPPHeader{middle(2), middle(3)}},
			{[]mad.RMPPHeader{ack(2, 3)}, tick, nil},
			{[]mad.RMPPHeader{ack(3, 7), ack(2, 3)}, tick, []mad.RMPPHeader{middle(4), middle(5), middle(6), middle(7)}},
			{[]mad.RMPPHeader{ack(7, 8)}, tick, []mad.RMPPHeader{last}},
			{[]mad.RMPPHeader{ack(8, 8)}, time.Minute, nil}},
		"resends": {{nil, 150 * time.Millisecond, []mad.RMPPHeader{first, first}},
			{[]mad.RMPPHeader{ack(1, 3)}, 350 * time.Millisecond, []mad.RMPPHeader{
				middle(2), middle(3), middle(2), middle(3), middle(2), middle(3), middle(2), middle(3)}},
			{[]mad.RMPPHeader{ack(2, 3)}, 150 * time.Millisecond, []mad.RMPPHeader{middle(3)}},
			{[]mad.RMPPHeader{ack(8, 8)}, time.Minute, []mad.RMPPHeader{abort(mad.RMPPStatusSegmentNumberTooBig)}}},
		"gives up": {{nil, time.Minute, []mad.RMPPHeader{first, first, first, first, first, first, first, first, abort(mad.RMPPStatusTooManyRetries)}}},
		"stopped":  {{nil, tick, []mad.RMPPHeader{first}}, {[]mad.RMPPHeader{{RMPPType: mad.RMPPTypeStop}}, time.Minute, nil}},
		"aborted":  {{nil, tick, []mad.RMPPHeader{first}}, {[]mad.RMPPHeader{{RMPPType: mad.RMPPTypeAbort}}, time.Minute, nil}},
		"window shrinks": {{nil, tick, []mad.RMPPHeader{first}},
			{[]mad.RMPPHeader{ack(1, 3)}, tick, []mad.RMPPHeader{middle(2), middle(3)}},
			{[]mad.RMPPHeader{ack(2, 2)}, time.Minute, []mad.RMPPHeader{abort(mad.RMPPStatusNewWindowLastTooSmall)}}},
		"ACK of what was not sent": {{nil, tick, []mad.RMPPHeader{first}},
			{[]mad.RMPPHeader{ack(2, 64)}, time.Minute, []mad.RMPPHeader{abort(mad.RMPPStatusSegmentNumberTooBig)}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, small)
				request := saCall(mad.MethodGetTable, mad.AttrNodeRecord, 0, 0, nil, r.state.SM.LID)
				request.MAD[15] = 99
				r.send(request)
				for i, step := range steps {
					for _, h := range step.send {
						r.send(control(request, h))
					}
					if diff := cmp.Diff(step.want, r.segments(step.wait)); diff != "" {
						t.Fatalf("step %d (-want +got)\n%s", i, diff)
					}
				}
				if r.conn.Transfers() > 0 {
					t.Error("the transfer goes on")
				}
			})
		})
	}
	t.Run("empty", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, small)
			r.send(saCall(mad.MethodGetTable, mad.AttrNodeRecord, 0, 1, nil, r.state.SM.LID)) // LID 0
			want := []mad.RMPPHeader{data(1, mad.RMPPFlagsFirst|mad.RMPPFlagsLast, 20)}
			if diff := cmp.Diff(want, r.segments(tick)); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("asked again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, small)
			request := saCall(mad.MethodGetTable, mad.AttrNodeRecord, 0, 0, nil, r.state.SM.LID)
			r.send(request)
			r.send(request)
			if diff := cmp.Diff([]mad.RMPPHeader{first, first}, r.segments(tick)); diff != "" {
				t.Error(diff)
			}
			if r.conn.Transfers() != 1 {
				t.Errorf("%d transfers", r.conn.Transfers())
			}
		})
	})
}
