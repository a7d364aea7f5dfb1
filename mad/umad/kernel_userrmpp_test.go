//go:build linux && (amd64 || arm64)

package umad

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

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

// The kernel heeds our ABORT: it sends no more of a table that nobody wants,
// which it would without an ACK after 2 s.
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
		time.Sleep(time.Millisecond)
	}
	e.Cancel(c, context.Canceled)
	<-ended
	time.Sleep(500 * time.Millisecond)
	before := e.Stats().Late
	time.Sleep(3 * time.Second)
	if late := e.Stats().Late; late != before || late == 0 {
		t.Errorf("%d segments after the ABORT, and then %d more", before, late-before)
	}
}
