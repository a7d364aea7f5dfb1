//go:build linux && (amd64 || arm64)

package umad

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

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

// A table may take longer than an attempt: it is asked for again, but the kernel
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
		time.Sleep(1500 * time.Millisecond)
		return table(m, n)
	})
	e := newEngine(t, tr, engine.Options{Timeout: time.Second, Retries: 9})
	got, took := getTable(t, e, toSelf(t, tr), n)
	if sent := e.Stats().Sent; !bytes.Equal(got, numbered(n)) || sent < 2 {
		t.Errorf("got %d bytes, or others, after %d requests", len(got), sent)
	}
	t.Logf("%d bytes in %v", n, took.Round(time.Millisecond))
}
