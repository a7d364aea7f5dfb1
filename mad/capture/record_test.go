package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// TestPackets: what stands in a recording, packet by packet.
func TestPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			switch {
			case d.LID == 99:
				return
			case d.LID == 98:
				d.Undelivered = true
			default:
				d = respond(d, 1)
			}
			p.after(ms, d)
		})
		recording := record(t, p, engine.Options{Retries: -1}, func(e *engine.Engine) {
			do(t, e, smp(mad.AttrNodeInfo, 0, 1))
			c := new(engine.Call)
			c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
			c.SetLID(9)
			c.To.SL, c.To.PKeyIndex = 4, 2
			c.To.HasGRH, c.To.GID, c.To.FlowLabel, c.To.HopLimit, c.To.TrafficClass = true, mad.MakeGID(1, 2), 3, 4, 5
			do(t, e, c)
			c = smp(mad.AttrNodeInfo, 0)
			c.SetLID(99)
			do(t, e, c)
			c.SetLID(98)
			do(t, e, c)
			trap := respond(engine.Datagram{Address: engine.Address{LID: 3, QP: 1, SL: 1}, MAD: make([]byte, mad.Size)}, 0)
			(&mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodReport, Attribute: mad.AttrSubnAdmNotice.ID, TID: 0x77}).Put(trap.MAD)
			p.recv <- trap
			synctest.Wait()
		})
		var got []string
		for _, p := range packets(t, recording) {
			h := mad.ParseHeader(p.Payload)
			line := fmt.Sprintf("%d %d>%d QP %d>%d SL %d VL %d key %#x/%#x %v %s %#04x", p.Interface, p.SLID, p.DLID, p.SrcQP, p.DestQP, p.SL, p.VL, p.PKey, p.QKey,
				h.Class, h.Method.Name(h.Class, h.ClassVersion), uint16(h.Attribute))
			if p.Error {
				line += " gave up"
			}
			if g := p.GRH; g != nil {
				line += fmt.Sprintf(" %v>%v %d %d %d", mad.GID(g.SGID), mad.GID(g.DGID), g.FlowLabel, g.HopLimit, g.TrafficClass)
			}
			got = append(got, line)
		}
		want := []string{
			"2 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected GetResp 0x0011", // the local port
			"2 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected GetResp 0x0010",
			"2 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected GetResp 0x0015",
			"2 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected GetResp 0x0016",
			"2 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected GetResp 0x0016",
			"0 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected Get 0x0011",
			"1 65535>65535 QP 0>0 SL 0 VL 15 key 0xffff/0x0 SubnDirected GetResp 0x0011",
			"0 7>9 QP 1>1 SL 4 VL 0 key 0x8003/0x80010000 Perf Get 0x0012 fe80::1:2:c903:0:3>::1:0:0:0:2 3 4 5",
			"1 9>7 QP 1>1 SL 4 VL 0 key 0x8003/0x80010000 Perf GetResp 0x0012 ::1:0:0:0:2>fe80::1:2:c903:0:3 3 4 5",
			"0 7>99 QP 0>0 SL 0 VL 15 key 0xffff/0x0 Subn Get 0x0011",
			"2 7>99 QP 0>0 SL 0 VL 15 key 0xffff/0x0 Subn Get 0x0011 gave up",
			"0 7>98 QP 0>0 SL 0 VL 15 key 0xffff/0x0 Subn Get 0x0011",
			"2 7>98 QP 0>0 SL 0 VL 15 key 0xffff/0x0 Subn Get 0x0011 gave up",
			"1 3>7 QP 1>1 SL 1 VL 0 key 0x8001/0x80010000 SubnAdm Report 0x0002",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func packets(t *testing.T, recording []byte) (list []erf.Packet) {
	t.Helper()
	r, err := erf.NewReader(bytes.NewReader(recording), erf.LinkNone)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var p erf.Packet
		switch err := r.Read(&p); {
		case err == io.EOF:
			return list
		case err != nil:
			t.Fatal(err)
		}
		p.Payload = bytes.Clone(p.Payload)
		list = append(list, p)
	}
}

// instant answers before Send returns.
type instant struct{ *peer }

func (i instant) Send(d *engine.Datagram) error {
	got := make(chan bool)
	go func() {
		i.recv <- respond(*d, 1)
		synctest.Wait()
		close(got)
	}()
	<-got
	return i.refuse
}

// TestSend: a request stands before its answer, however quick that is, and is
// missing when the transport has refused it.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recording := record(t, instant{newPeer(engine.Traits{}, nil)}, engine.Options{}, func(e *engine.Engine) {
			do(t, e, smp(mad.AttrNodeInfo, 0, 1))
		})
		var got []uint8
		for _, p := range packets(t, recording)[5:] {
			got = append(got, p.Interface)
		}
		if diff := cmp.Diff([]uint8{ifaceSent, ifaceReceived}, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(engine.Traits{}, nil)
		p.refuse = &engine.SendError{Err: errors.New("no such LID")}
		recording := record(t, p, engine.Options{}, func(e *engine.Engine) {
			got := do(t, e, smp(mad.AttrNodeInfo, 0, 1))[0].Err
			if want := "SubnGet(NodeInfo) to route 0,1: no such LID"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
		if n := len(packets(t, recording)[5:]); n > 0 {
			t.Errorf("%d packets", n)
		}
	})
}

// bouncing gives all back before Send returns.
type bouncing struct{ *peer }

func (b bouncing) Send(d *engine.Datagram) error {
	got := make(chan bool)
	go func() {
		back := respond(*d, 1)
		back.MAD[3] = d.MAD[3]
		copy(back.MAD[mad.TIDOffset:], d.MAD[mad.TIDOffset:][:8])
		back.Undelivered = true
		b.recv <- back
		synctest.Wait()
		close(got)
	}()
	<-got
	return nil
}

// TestBounce: the last attempt stands before the end of the call, however soon
// it comes back.
func TestBounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want result
		recording := record(t, bouncing{newPeer(engine.Traits{}, nil)}, engine.Options{}, func(e *engine.Engine) {
			want = do(t, e, smp(mad.AttrNodeInfo, 0, 1))[0]
		})
		all := packets(t, recording)[5:]
		for i, p := range all {
			if last := i == len(all)-1; p.Error != last {
				t.Errorf("packet %d of %d: the end %v", i+1, len(all), p.Error)
			}
		}
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			if got := do(t, e, smp(mad.AttrNodeInfo, 0, 1))[0]; got.Err != want.Err || got.Attempts != want.Attempts {
				t.Errorf("recorded: %s after %d attempts; replayed: %s after %d", want.Err, want.Attempts, got.Err, got.Attempts)
			}
		})
	})
}

// TestWriteError: the recording ends, the session goes on, and the error is returned by Close.
func TestWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(p *peer, d engine.Datagram, nth int) { p.after(ms, respond(d, 1)) }
		for _, n := range []int{0, 30, 1000} {
			if _, err := Record(newPeer(engine.Traits{}, answer), &full{n}); err != errFull {
				t.Errorf("room for %d bytes: got %v", n, err)
			}
		}
		tr, err := Record(newPeer(engine.Traits{}, answer), &full{2000})
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(tr, engine.Options{})
		for i := range 5 {
			if r := do(t, e, smp(mad.AttrPortInfo, uint32(i), 1))[0]; r.Err != "" {
				t.Error(r.Err)
			}
		}
		if err := e.Close(); !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
	})
}

// badPort has no facts of the port.
type badPort struct{ *peer }

func (badPort) Port() (engine.Port, error) { return engine.Port{}, errFull }

func TestNoPort(t *testing.T) {
	if _, err := Record(badPort{newPeer(engine.Traits{}, nil)}, new(file)); err != errFull {
		t.Errorf("got %v", err)
	}
}

// TestAtOnce: after each answer the file has all that came before, whole.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f file
		tr, err := Record(newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) { p.after(ms, respond(d, 1)) }), &f)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(tr, engine.Options{})
		defer e.Close()
		for i := range 5 {
			do(t, e, smp(mad.AttrPortInfo, uint32(i), 1))
			if got, want := len(packets(t, f.Bytes())), 5+2*(i+1); got != want {
				t.Errorf("%d packets, want %d", got, want)
			}
		}
	})
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	e := simEngine(t, new(file))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				c := smp(mad.AttrPortInfo, uint32(i%8), 1)
				e.Do(context.Background(), c)
				if _, err := e.Port(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestFarEnd: the address of a datagram is what its packet tells.
func TestFarEnd(t *testing.T) {
	port := localPort()
	for _, want := range []engine.Address{
		{LID: 9, QP: 5, SL: 3},
		{LID: 9, QP: 1, HasGRH: true, GID: mad.MakeGID(1, 2), FlowLabel: 3, HopLimit: 4, TrafficClass: 5},
	} {
		for _, iface := range []uint8{ifaceSent, ifaceReceived, ifaceLocal} {
			p := packet(iface, time.Time{}, &want, &port, table(mad.AttrNodeRecord).MAD[:])
			if diff := cmp.Diff(want, farEnd(&p)); diff != "" {
				t.Errorf("interface %d: -want +got\n%s", iface, diff)
			}
		}
	}
}

// TestSplit: a long datagram becomes the segments that were on the wire.
func TestSplit(t *testing.T) {
	for _, n := range []int{0, 1, mad.SegmentData - 1, mad.SegmentData + 1, 2 * mad.SegmentData, 2*mad.SegmentData + 1, 100 * mad.SegmentData} {
		data := count(n)
		m := make([]byte, mad.SADataOffset)
		(&mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGetTableResp, TID: 5}).Put(m)
		var joined []byte
		want := max(1, (n+mad.SegmentData-1)/mad.SegmentData)
		number := 0
		split(append(m, data...), func(m []byte) {
			number++
			var s mad.RMPPHeader
			s.Decode(m[mad.RMPPOffset:])
			size := mad.Size - mad.SADataOffset
			if number == want {
				size = int(s.PayloadLength) - mad.SegmentHeader
			}
			joined = append(joined, m[mad.SADataOffset:][:size]...)
			expected := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: uint32(number), PayloadLength: s.PayloadLength}
			if number == 1 {
				expected.RMPPFlags |= mad.RMPPFlagsFirst
				if total := uint32(n + want*mad.SegmentHeader); s.PayloadLength != total {
					t.Errorf("%d bytes: the first segment announces %d, want %d", n, s.PayloadLength, total)
				}
			}
			if number == want {
				expected.RMPPFlags |= mad.RMPPFlagsLast
			}
			if diff := cmp.Diff(expected, s); diff != "" || len(m) != mad.Size || binary.BigEndian.Uint64(m[mad.TIDOffset:]) != 5 {
				t.Errorf("%d bytes, segment %d of %d bytes: -want +got\n%s", n, number, len(m), diff)
			}
		})
		if number != want || !bytes.Equal(joined, data) {
			t.Errorf("%d bytes: %d segments of %d bytes, want %d", n, number, len(joined), want)
		}
	}
}

// direct is a peer by which the reader can send. Every tenth datagram it would
// have to wait for, which leaves it to the writer.
type direct struct {
	*peer
	beforeWait            func() (again bool)
	writer, reader, tries atomic.Int32
}

func (d *direct) BeforeWait(f func() (again bool)) bool {
	d.beforeWait = f
	return true
}

func (d *direct) TrySend(m *engine.Datagram) (bool, error) {
	if d.tries.Add(1)%10 == 0 {
		return false, nil
	}
	d.reader.Add(1)
	return true, d.peer.Send(m)
}

func (d *direct) Send(m *engine.Datagram) error {
	d.writer.Add(1)
	return d.peer.Send(m)
}

func (d *direct) Recv(m *engine.Datagram) error {
	for d.beforeWait != nil && len(d.recv) == 0 && d.beforeWait() {
	}
	return d.peer.Recv(m)
}

// TestRecordedFastPath: the reader sends through a recorder as it does without,
// and what it sends is recorded once, before the answer.
func TestRecordedFastPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		tr := &direct{peer: newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) { p.after(ms, respond(d, 1)) })}
		recording := record(t, tr, engine.Options{}, func(e *engine.Engine) {
			calls := make([]*engine.Call, n)
			for i := range calls {
				calls[i] = smp(mad.AttrPortInfo, uint32(i), 1)
			}
			do(t, e, calls...)
		})
		if w, r := tr.writer.Load(), tr.reader.Load(); w+r != n || r < n/2 {
			t.Errorf("%d sent by the writer, %d by the reader", w, r)
		}
		asked, answered := map[uint32]int{}, map[uint32]int{}
		for _, p := range packets(t, recording)[5:] {
			switch i := mad.ParseHeader(p.Payload).Modifier; p.Interface {
			case ifaceSent:
				asked[i]++
			case ifaceReceived:
				if answered[i]++; asked[i] != 1 {
					t.Errorf("request %d was recorded %d times before its answer", i, asked[i])
				}
			}
		}
		for i := range uint32(n) {
			if asked[i] != 1 || answered[i] != 1 {
				t.Errorf("request %d was recorded %d times, its answer %d times", i, asked[i], answered[i])
			}
		}
	})
}

// TestUnasked: what came unasked is recorded with its answer, and neither is a
// request that a replay would answer; nor does it tell of events.
func TestUnasked(t *testing.T) {
	f, o, err := sim.Parse("ring:n=2")
	if err != nil {
		t.Fatal(err)
	}
	subnet := sim.New(f, o)
	conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	recording := new(file)
	r, err := Record(conn, recording)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(r, engine.Options{})
	l, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil)
	if err != nil {
		t.Fatal(err)
	}
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.InformTypeAll, TrapNumber: 128, ProducerType: mad.ProducerTypeAll}
	data := make([]byte, mad.AttrInformInfo.Size)
	info.Encode(data)
	ask := func() {
		t.Helper()
		subscribe := &engine.Call{Subscribes: true}
		subscribe.PutSA(mad.MethodSet, mad.AttrInformInfo.ID, 0, 0, data)
		subscribe.SetLID(3)
		if err := e.Do(t.Context(), subscribe); err != nil || subscribe.Err != nil {
			t.Fatal(err, subscribe.Err)
		}
	}
	ask()
	if err := subnet.Cables.Unlink(f.NodeByName("switch-2")[0].GUID(), 1); err != nil {
		t.Fatal(err)
	}
	var d engine.Datagram
	if _, err := l.Next(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	ask() // by now ReportResp is sent
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	methods := map[mad.Method]int{}
	for _, p := range packets(t, recording.Bytes()) {
		if h := mad.ParseHeader(p.Payload); h.Class == mad.ClassSubnAdm {
			methods[h.Method]++
		}
	}
	if methods[mad.MethodReport] != 1 || methods[mad.MethodReportResp] != 1 {
		t.Errorf("recorded: %v", methods)
	}
	loaded, err := Load(bytes.NewReader(recording.Bytes()), "a")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(loaded.requests); n != 1 {
		t.Errorf("%d requests", n)
	}
	again := engine.New(NewReplay(loaded), engine.Options{})
	defer again.Close()
	if _, err := again.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err == nil || err.Error() != "a replay does not deliver events; those of a are in the file" {
		t.Errorf("listening to a replay: %v", err)
	}
}
