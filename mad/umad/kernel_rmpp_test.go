//go:build kerneltest

package umad

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fabsh/mad"
)

// table is the answer to GetTable with n bytes of data.
func table(request []byte, n int) []byte {
	m := append(append([]byte(nil), request[:mad.SADataOffset]...), numbered(n)...)
	binary.BigEndian.PutUint16(m[mad.SAAttrOffsetOffset:], 1)
	m[mad.RMPPOffset], m[mad.RMPPOffset+1], m[mad.RMPPOffset+2] = 1, 1, 1 // version, data, active
	return m
}

// serveTables answers GetTable with as many bytes as the modifier says.
func serveTables(t *testing.T, tr *Transport) {
	serve(t, tr, mad.ClassSubnAdm, func(m []byte) []byte {
		return table(m, int(mad.ParseHeader(m).Modifier))
	})
}

func getTable(t *testing.T, e *mad.Engine, to mad.Address, n int) ([]byte, time.Duration) {
	t.Helper()
	c := &mad.Call{To: to}
	c.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, uint32(n), 0, nil)
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
	tr := openRoCE(t)
	serveTables(t, tr)
	e := newEngine(t, tr, mad.Options{Timeout: 30 * time.Second})
	for _, n := range []int{200, 201, 400, 1000, 1_000_000, 2000} {
		got, took := getTable(t, e, toSelf(t, tr), n)
		if !bytes.Equal(got, numbered(n)) {
			t.Errorf("%d bytes: got %d, or others", n, len(got))
		}
		t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
	}
}

// A table may take longer than an attempt: it is asked for again, but the kernel
// does not drop the answer to the first request.
func TestKernelLateRMPP(t *testing.T) {
	tr := openRoCE(t)
	const n = 1000
	first := true
	serve(t, tr, mad.ClassSubnAdm, func(m []byte) []byte {
		if !first {
			return nil
		}
		first = false
		time.Sleep(1500 * time.Millisecond)
		return table(m, n)
	})
	e := newEngine(t, tr, mad.Options{Timeout: time.Second, Retries: 9})
	got, took := getTable(t, e, toSelf(t, tr), n)
	if sent := e.Stats().Sent; !bytes.Equal(got, numbered(n)) || sent < 2 {
		t.Errorf("got %d bytes, or others, after %d requests", len(got), sent)
	}
	t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
}

// lossy loses datagrams, each direction its share.
type lossy struct {
	mad.Transport
	share    float64
	out, in  *rand.Rand
	userRMPP bool
}

func (l *lossy) Traits() mad.Traits {
	traits := l.Transport.Traits()
	traits.RMPP = traits.RMPP && !l.userRMPP
	return traits
}

func (l *lossy) Send(d *mad.Datagram) error {
	if l.out.Float64() < l.share {
		return nil
	}
	return l.Transport.Send(d)
}

func (l *lossy) Recv(d *mad.Datagram) error {
	for {
		if err := l.Transport.Recv(d); err != nil || d.Undelivered || l.in.Float64() >= l.share {
			return err
		}
	}
}

// The engine's own RMPP takes a megabyte from the kernel's, lossless or not.
func TestKernelUserRMPP(t *testing.T) {
	for _, loss := range []float64{0, 0.0005} {
		t.Run(fmt.Sprintf("loss %v", loss), func(t *testing.T) {
			tr := openRoCE(t)
			serveTables(t, tr)
			tr.gsi.userRMPP = true
			e := newEngine(t, &lossy{
				Transport: tr, share: loss, userRMPP: true,
				out: rand.New(rand.NewPCG(1, 1)), in: rand.New(rand.NewPCG(1, 2)),
			}, mad.Options{Timeout: 3 * time.Second, Retries: 5})
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
