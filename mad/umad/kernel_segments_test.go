//go:build linux && (amd64 || arm64)

package umad

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

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
