//go:build linux && (amd64 || arm64)

package umad

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// segment is what one holds of a request's data, in bytes.
const segment = mad.Size - mad.SADataOffset

// table is the answer to GetTable with n bytes of data.
func table(request []byte, n int) []byte {
	m := append(append([]byte(nil), request[:mad.SADataOffset]...), numbered(n)...)
	binary.BigEndian.PutUint16(m[mad.SAAttrOffsetOffset:], 1)
	m[mad.RMPPOffset], m[mad.RMPPOffset+1], m[mad.RMPPOffset+2] = 1, 1, 1 // version, data, active
	return m
}

// serveTables answers GetTable with as many bytes as the modifier says, and
// GetMulti with its own data.
func serveTables(t *testing.T, tr *Transport) {
	serve(t, tr, mad.ClassSubnAdm, func(m []byte) []byte {
		h := mad.ParseHeader(m)
		n := int(h.Modifier)
		if h.Method == mad.MethodGetMulti && !bytes.Equal(m[mad.SADataOffset:][:n], numbered(n)) {
			return table(m, 0)
		}
		return table(m, n)
	})
}

func getTable(t *testing.T, e *engine.Engine, to engine.Address, n int) ([]byte, time.Duration) {
	t.Helper()
	c := &engine.Call{To: to}
	c.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, uint32(n), 0, nil)
	return fetch(t, e, c)
}

// getMulti asks with n bytes, for the same n bytes.
func getMulti(t *testing.T, e *engine.Engine, to engine.Address, n int) ([]byte, time.Duration) {
	t.Helper()
	c := &engine.Call{To: to, Payload: numbered(n)}
	c.PutSA(mad.MethodGetMulti, mad.AttrMultiPathRecord.ID, uint32(n), 0, nil)
	return fetch(t, e, c)
}

func fetch(t *testing.T, e *engine.Engine, c *engine.Call) ([]byte, time.Duration) {
	t.Helper()
	if err := e.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return c.Table, c.Elapsed
}

// The kernel joins the segments; of what does not fit it tells the length.
func TestKernelRMPP(t *testing.T) {
	tr := openHost(t)
	serveTables(t, tr)
	e := newEngine(t, tr, engine.Options{Timeout: 30 * time.Second})
	for _, n := range []int{200, 201, 400, 1000, 1_000_000, 2000} {
		got, took := getTable(t, e, toSelf(t, tr), n)
		if !bytes.Equal(got, numbered(n)) {
			t.Errorf("%d bytes: got %d, or others", n, len(got))
		}
		t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
	}
}

// The kernel cuts requests, and joins them at the other end.
func TestKernelRMPPRequest(t *testing.T) {
	tr := openHost(t)
	serveTables(t, tr)
	e := newEngine(t, tr, engine.Options{Timeout: 30 * time.Second})
	for _, n := range []int{8, 200, 201, 1000, 1_000_000} {
		got, took := getMulti(t, e, toSelf(t, tr), n)
		if !bytes.Equal(got, numbered(n)) {
			t.Errorf("%d bytes: got %d, or others", n, len(got))
		}
		t.Logf("%d bytes there and back in %v", n, took.Round(time.Millisecond))
	}
}

// A table may take longer than an attempt: it is requested again, but the kernel
// does not drop the answer to the first request.
func TestKernelLateRMPP(t *testing.T) {
	tr := openHost(t)
	const n = 1000
	first := true
	serve(t, tr, mad.ClassSubnAdm, func(m []byte) []byte {
		if !first {
			return nil
		}
		first = false
		time.Sleep(1500 * time.Millisecond) // real time: longer than an attempt, by the kernel's clock
		return table(m, n)
	})
	e := newEngine(t, tr, engine.Options{Timeout: time.Second, Retries: 9})
	got, took := getTable(t, e, toSelf(t, tr), n)
	if sent := e.Stats().Sent; !bytes.Equal(got, numbered(n)) || sent < 2 {
		t.Errorf("got %d bytes, or others, after %d requests", len(got), sent)
	}
	t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
}

// program is a program with an agent of subnet administration.
type program struct {
	t       *testing.T
	file    file
	to      engine.Address
	entries chan string
	tid     atomic.Uint64 // of what was read last
}

// newProgram starts a program, whose agent receives the given methods. user: it does RMPP
// itself.
func newProgram(t *testing.T, tr *Transport, user bool, methods ...mad.Method) *program {
	t.Helper()
	f, err := openFile(tr.gsi.path())
	if err != nil {
		t.Fatal(err)
	}
	r := agentRequest(mad.ClassSubnAdm, user)
	for _, m := range methods {
		acceptMethod(&r, m)
	}
	if err := f.register(&r); err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, file: f, to: toSelf(t, tr), entries: make(chan string, 100)}
	done := make(chan bool)
	go func() {
		defer close(done)
		b := make([]byte, headerSize+1<<20)
		for {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			p.tid.Store(mad.ParseHeader(b[headerSize:n]).TID)
			p.entries <- describe(b[:n])
		}
	}()
	t.Cleanup(func() {
		f.Close()
		<-done
	})
	return p
}

// describe writes an entry: its length and its status, the method and the RMPP header.
func describe(b []byte) string {
	text := fmt.Sprintf("%d bytes", len(b))
	if status := binary.NativeEndian.Uint32(b[offStatus:]); status != 0 {
		return fmt.Sprintf("%s: status %d", text, status)
	} else if length := binary.NativeEndian.Uint32(b[offLength:]); int(length) != len(b) {
		text += fmt.Sprintf(", length %d", length)
	}
	m := b[headerSize:]
	return fmt.Sprintf("%s: method %#x %s", text, m[3], header(m))
}

func header(m []byte) string {
	var h mad.RMPPHeader
	h.Decode(m[mad.RMPPOffset:])
	return fmt.Sprintf("version %d type %d time %d flags %d status %d segment %d window %d", h.RMPPVersion, h.RMPPType, h.RRespTime, h.RMPPFlags, h.RMPPStatus, h.SegmentNumber, h.PayloadLength)
}

// next is the next entry that is read, or nothing after a while.
func (p *program) next(wait time.Duration) string {
	select {
	case text := <-p.entries:
		return text
	case <-time.After(wait):
		return "nothing"
	}
}

// write writes a MAD of subnet administration with n bytes of data.
func (p *program) write(method mad.Method, tid uint64, modifier, timeout, retries uint32, h mad.RMPPHeader, n int) {
	p.t.Helper()
	b := make([]byte, headerSize+mad.SADataOffset, headerSize+mad.Size)
	putHeader(b, 0, &engine.Datagram{Address: p.to, Timeout: time.Duration(timeout) * time.Millisecond})
	binary.NativeEndian.PutUint32(b[offRetries:], retries)
	m := b[headerSize:]
	hdr := mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: method, Attribute: mad.AttrMultiPathRecord.ID, Modifier: modifier, TID: tid}
	hdr.Put(m)
	h.Encode(m[mad.RMPPOffset:])
	b = append(b, numbered(n)...)
	if n < segment {
		b = b[:headerSize+mad.Size]
	}
	if _, err := p.file.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// What programs see of the kernel's transfers: their own answers, the segments and ACKs
// that it sends to a program that does RMPP itself, and how it rejects others.
func TestKernelSegments(t *testing.T) {
	tr := openHost(t)
	serveTables(t, tr)
	kernel, user := newProgram(t, tr, false), newProgram(t, tr, true)
	var got []string
	note := func(format string, a ...any) { got = append(got, fmt.Sprintf(format, a...)) }
	const wait = 5 * time.Second
	for i, n := range []uint32{0, 1, 199, 200, 201, 1000} {
		kernel.write(mad.MethodGetTable, uint64(1+i), n, 5000, 0, mad.RMPPHeader{}, 0)
		note("table of %d: %s", n, kernel.next(wait))
	}
	kernel.write(mad.MethodGetTable, 6, 1000, 300, 0, mad.RMPPHeader{}, 0)
	note("with the same transaction ID: %s", kernel.next(wait))
	note("it sends a table")
	user.write(mad.MethodGetTable, 1, 1000, 5000, 0, mad.RMPPHeader{}, 0)
	note("%s", user.next(wait))
	for _, a := range [][2]int{{1, 3}, {3, 4}, {4, 9}, {5, 9}} {
		user.acknowledge(1, ack(a[0], a[1]))
		note("acknowledged %v", a)
		for range min(a[1], 5) - a[0] {
			note("%s", user.next(wait))
		}
	}

	note("it receives a request")
	for i, h := range []mad.RMPPHeader{data(1, 3, 620), data(2, 1, 0), data(1, 3, 620), data(3, 5, 28), data(3, 5, 28)} {
		user.write(mad.MethodGetMulti, 2, 0, 0, 0, h, 200)
		note("%s:", header(appendHeader(h)))
		if h.SegmentNumber != 2 {
			note("%s", user.next(wait))
		}
		if i == 3 {
			note("%s", user.next(wait)) // the answer
			user.acknowledge(2, ack(1, 1))
		}
	}

	note("it rejects")
	for i, h := range []mad.RMPPHeader{
		data(1, 1, 220), data(2, 3, 220), {RMPPVersion: 2, RMPPType: mad.RMPPTypeData, RMPPFlags: 3, SegmentNumber: 1},
		{RMPPVersion: 1, RMPPType: 9, RMPPFlags: 3, SegmentNumber: 1}, {RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 3, RMPPStatus: 7, SegmentNumber: 1},
		ack(3, 2), {RMPPVersion: 1, RMPPType: mad.RMPPTypeStop, RMPPFlags: 1, RMPPStatus: 7}, {RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RMPPFlags: 1, RMPPStatus: 7},
	} {
		user.write(mad.MethodGetMulti, uint64(10+i), 0, 0, 0, h, 200)
		note("%s:", header(appendHeader(h)))
		note("%s", user.next(wait))
	}
	user.write(mad.MethodGetTable, 20, 1000, 5000, 0, mad.RMPPHeader{}, 0)
	note("%s", user.next(wait))
	user.acknowledge(20, ack(2, 2))
	note("too large a segment number: %s", user.next(wait))
	user.acknowledge(20, ack(1, 3))
	note("too late: %s", user.next(300*time.Millisecond))
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(wantSegments), "\n"), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// data is the header of a segment.
func data(number, flags, length int) mad.RMPPHeader {
	return mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime, RMPPFlags: mad.RMPPFlags(flags), SegmentNumber: uint32(number), PayloadLength: uint32(length)}
}

func ack(number, window int) mad.RMPPHeader {
	h := data(number, 1, window)
	h.RMPPType = mad.RMPPTypeACK
	return h
}

func appendHeader(h mad.RMPPHeader) []byte {
	m := make([]byte, mad.Size)
	h.Encode(m[mad.RMPPOffset:])
	return m
}

// acknowledge writes an ACK of an answer: it is a request.
func (p *program) acknowledge(tid uint64, h mad.RMPPHeader) {
	p.t.Helper()
	method := mad.Method(mad.MethodGetTable)
	if tid == 2 {
		method = mad.MethodGetMulti
	}
	p.write(method, tid, 0, 0, 0, h, 200)
}

// A request of the kernel's that is not acknowledged is sent again, and comes back; one
// that is, and not answered, only comes back.
func TestKernelUnacknowledged(t *testing.T) {
	tr := openHost(t)
	kernel, user := newProgram(t, tr, false, mad.MethodGetTable), newProgram(t, tr, true, mad.MethodGetMulti)
	var got []string
	note := func(format string, a ...any) { got = append(got, fmt.Sprintf(format, a...)) }
	active := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 1}
	kernel.write(mad.MethodGetMulti, 1, 0, 500, 1, active, 1000)
	note("%s", user.next(5*time.Second))
	note("%s", user.next(5*time.Second))
	note("%s", kernel.next(5*time.Second))

	note("acknowledged")
	kernel.write(mad.MethodGetMulti, 2, 0, 700, 3, active, 250)
	note("%s", user.next(5*time.Second))
	began := time.Now()
	user.write(mad.MethodGetMulti|mad.Response, user.tid.Load(), 0, 0, 0, ack(1, 3), 200)
	note("%s", user.next(5*time.Second))
	user.write(mad.MethodGetMulti|mad.Response, user.tid.Load(), 0, 0, 0, ack(2, 3), 200)
	note("%s", user.next(5*time.Second))
	note("%s", kernel.next(5*time.Second))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("came back after %v", took)
	}
	note("%s", user.next(10*time.Millisecond))

	note("an answer")
	user.write(mad.MethodGetTable, 3, 0, 9000, 0, mad.RMPPHeader{}, 0)
	note("%s", kernel.next(5*time.Second))
	kernel.write(mad.MethodGetTable|mad.Response, kernel.tid.Load(), 0, 0, 0, active, 250)
	note("%s", user.next(5*time.Second))
	note("%s", kernel.next(5*time.Second))
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(wantUnacknowledged), "\n"), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

const wantSegments = `
table of 0: 120 bytes: method 0x92 version 1 type 1 time 0 flags 7 status 0 segment 1 window 20
table of 1: 121 bytes: method 0x92 version 1 type 1 time 0 flags 7 status 0 segment 1 window 21
table of 199: 319 bytes: method 0x92 version 1 type 1 time 0 flags 7 status 0 segment 1 window 219
table of 200: 320 bytes: method 0x92 version 1 type 1 time 0 flags 7 status 0 segment 1 window 220
table of 201: 321 bytes: method 0x92 version 1 type 1 time 0 flags 3 status 0 segment 1 window 241
table of 1000: 1120 bytes: method 0x92 version 1 type 1 time 0 flags 3 status 0 segment 1 window 1100
with the same transaction ID: 88 bytes: status 110
it sends a table
320 bytes: method 0x92 version 1 type 1 time 0 flags 3 status 0 segment 1 window 1100
acknowledged [1 3]
320 bytes: method 0x92 version 1 type 1 time 0 flags 1 status 0 segment 2 window 0
320 bytes: method 0x92 version 1 type 1 time 0 flags 1 status 0 segment 3 window 0
acknowledged [3 4]
320 bytes: method 0x92 version 1 type 1 time 0 flags 1 status 0 segment 4 window 0
acknowledged [4 9]
320 bytes: method 0x92 version 1 type 1 time 0 flags 5 status 0 segment 5 window 220
acknowledged [5 9]
it receives a request
version 1 type 1 time 31 flags 3 status 0 segment 1 window 620:
320 bytes: method 0x94 version 1 type 2 time 31 flags 1 status 0 segment 1 window 65
version 1 type 1 time 31 flags 1 status 0 segment 2 window 0:
version 1 type 1 time 31 flags 3 status 0 segment 1 window 620:
320 bytes: method 0x94 version 1 type 2 time 31 flags 1 status 0 segment 2 window 65
version 1 type 1 time 31 flags 5 status 0 segment 3 window 28:
320 bytes: method 0x94 version 1 type 2 time 31 flags 1 status 0 segment 3 window 65
320 bytes: method 0x94 version 1 type 1 time 0 flags 7 status 0 segment 1 window 20
version 1 type 1 time 31 flags 5 status 0 segment 3 window 28:
320 bytes: method 0x94 version 1 type 2 time 31 flags 1 status 0 segment 3 window 65
it rejects
version 1 type 1 time 31 flags 1 status 0 segment 1 window 220:
320 bytes: method 0x94 version 1 type 4 time 31 flags 1 status 120 segment 0 window 0
version 1 type 1 time 31 flags 3 status 0 segment 2 window 220:
320 bytes: method 0x94 version 1 type 4 time 31 flags 1 status 120 segment 0 window 0
version 2 type 1 time 0 flags 3 status 0 segment 1 window 0:
320 bytes: method 0x94 version 1 type 4 time 0 flags 1 status 125 segment 0 window 0
version 1 type 9 time 0 flags 3 status 0 segment 1 window 0:
320 bytes: method 0x94 version 1 type 4 time 0 flags 1 status 121 segment 0 window 0
version 1 type 1 time 0 flags 3 status 7 segment 1 window 0:
320 bytes: method 0x94 version 1 type 4 time 0 flags 1 status 124 segment 0 window 0
version 1 type 2 time 31 flags 1 status 0 segment 3 window 2:
320 bytes: method 0x94 version 1 type 4 time 31 flags 1 status 122 segment 0 window 0
version 1 type 3 time 0 flags 1 status 7 segment 0 window 0:
320 bytes: method 0x94 version 1 type 4 time 0 flags 1 status 124 segment 0 window 0
version 1 type 4 time 0 flags 1 status 7 segment 0 window 0:
320 bytes: method 0x94 version 1 type 4 time 0 flags 1 status 124 segment 0 window 0
320 bytes: method 0x92 version 1 type 1 time 0 flags 3 status 0 segment 1 window 1100
too large a segment number: 320 bytes: method 0x92 version 1 type 4 time 31 flags 1 status 123 segment 0 window 0
too late: nothing
`

const wantUnacknowledged = `
320 bytes: method 0x14 version 1 type 1 time 0 flags 3 status 0 segment 1 window 1100
320 bytes: method 0x14 version 1 type 1 time 0 flags 3 status 0 segment 1 window 1100
88 bytes: status 110
acknowledged
320 bytes: method 0x14 version 1 type 1 time 0 flags 3 status 0 segment 1 window 290
320 bytes: method 0x14 version 1 type 1 time 0 flags 5 status 0 segment 2 window 70
320 bytes: method 0x14 version 1 type 2 time 31 flags 1 status 0 segment 0 window 1
88 bytes: status 110
nothing
an answer
320 bytes: method 0x12 version 0 type 0 time 0 flags 0 status 0 segment 0 window 0
320 bytes: method 0x92 version 1 type 1 time 0 flags 3 status 0 segment 1 window 290
88 bytes: status 110
`

// lossy loses datagrams, each direction its share.
type lossy struct {
	engine.Transport
	share    float64
	out, in  *rand.Rand
	userRMPP bool
}

func (l *lossy) Traits() engine.Traits {
	traits := l.Transport.Traits()
	traits.RMPP = traits.RMPP && !l.userRMPP
	return traits
}

func (l *lossy) Send(d *engine.Datagram) error {
	if l.out.Float64() < l.share {
		return nil
	}
	return l.Transport.Send(d)
}

func (l *lossy) TrySend(d *engine.Datagram) (bool, error) {
	if l.out.Float64() < l.share {
		return true, nil
	}
	return l.Transport.TrySend(d)
}

func (l *lossy) Recv(d *engine.Datagram) error {
	for {
		if err := l.Transport.Recv(d); err != nil || d.Undelivered || l.in.Float64() >= l.share {
			return err
		}
	}
}

// userRMPP is an engine that does RMPP itself, against the kernel's at the other
// end of tr, and loses a share of the segments each way.
func userRMPP(t *testing.T, tr *Transport, loss float64) *engine.Engine {
	tr.gsi.userRMPP = true
	return newEngine(t, &lossy{
		Transport: tr, share: loss, userRMPP: true,
		out: rand.New(rand.NewPCG(1, 1)), in: rand.New(rand.NewPCG(1, 2)),
	}, engine.Options{Timeout: 3 * time.Second, Retries: 5})
}

// The engine's own RMPP takes a megabyte from the kernel's, lossless or not. A
// segment that is lost costs 2 s, for so long the kernel waits for an ACK.
func TestKernelUserRMPP(t *testing.T) {
	for _, loss := range []float64{0, 0.0005} {
		t.Run(fmt.Sprintf("loss %v", loss), func(t *testing.T) {
			tr := openHost(t)
			serveTables(t, tr)
			e := userRMPP(t, tr, loss)
			for _, n := range []int{1, 200, 201, 1_000_000} {
				got, took := getTable(t, e, toSelf(t, tr), n)
				if !bytes.Equal(got, numbered(n)) {
					t.Errorf("%d bytes: got %d, or others", n, len(got))
				}
				t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
			}
			t.Logf("%+v", e.Stats().Counts)
		})
	}
}

// The engine's own RMPP gives a megabyte to the kernel's, lossless or not, and
// takes a short answer.
func TestKernelUserRMPPRequest(t *testing.T) {
	for _, loss := range []float64{0, 0.01} {
		t.Run(fmt.Sprintf("loss %v", loss), func(t *testing.T) {
			tr := openHost(t)
			joined := make(chan []byte, 1)
			serve(t, tr, mad.ClassSubnAdm, func(m []byte) []byte {
				joined <- bytes.Clone(m[mad.SADataOffset:])
				return table(m, 8)
			})
			e := userRMPP(t, tr, loss)
			for _, n := range []int{1, 200, 201, 1_000_000} {
				c := &engine.Call{To: toSelf(t, tr), Payload: numbered(n)}
				c.PutSA(mad.MethodGetMulti, mad.AttrMultiPathRecord.ID, 0, 0, nil)
				table, took := fetch(t, e, c)
				got := <-joined
				if n < segment {
					got = got[:n] // the rest of the only one
				}
				if !bytes.Equal(got, numbered(n)) || !bytes.Equal(table, numbered(8)) || c.Attempts != 1 {
					t.Errorf("%d bytes: got %d, or others; %d back, %d attempts", n, len(got), len(table), c.Attempts)
				}
				t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
			}
			t.Logf("%+v", e.Stats().Counts)
		})
	}
}

// Both at once: a long request to the kernel's RMPP, and a long answer from it.
func TestKernelUserRMPPBothWays(t *testing.T) {
	tr := openHost(t)
	serveTables(t, tr)
	e := userRMPP(t, tr, 0)
	for _, n := range []int{1, 200, 201, 1_000_000} {
		got, took := getMulti(t, e, toSelf(t, tr), n)
		if !bytes.Equal(got, numbered(n)) {
			t.Errorf("%d bytes: got %d, or others", n, len(got))
		}
		t.Logf("%d bytes there and back in %v", n, took.Round(time.Millisecond))
	}
}

// The kernel obeys our ABORT: it sends no more of an aborted table, which it would
// after 2 s without an ACK.
func TestKernelUserRMPPAbort(t *testing.T) {
	tr := openHost(t)
	serveTables(t, tr)
	e := userRMPP(t, tr, 0)
	c := &engine.Call{To: toSelf(t, tr)}
	c.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, 10_000_000, 0, nil)
	ended := make(chan bool)
	c.Notify = engine.CompleterFunc(func(*engine.Call) { close(ended) })
	e.Start(c)
	for e.Stats().Sent < 20 { // ACKs, each of a window
		time.Sleep(time.Millisecond) // polls: nothing signals the count
	}
	e.Cancel(c, context.Canceled)
	<-ended
	before := e.Stats().Late
	for quiet, n := 0, 0; quiet < 3 && n < 40; n++ { // until the segments that were under way have arrived
		time.Sleep(time.Second)
		late := e.Stats().Late
		if quiet++; late != before || late == 0 {
			quiet = 0
		}
		before = late
	}
	time.Sleep(3 * time.Second) // longer than the kernel's 2 s: nothing must come, so there is no event to wait for
	if late := e.Stats().Late; late != before || late == 0 {
		t.Errorf("%d segments after the ABORT, and then %d more", before, late-before)
	}
}
