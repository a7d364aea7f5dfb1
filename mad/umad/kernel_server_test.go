//go:build linux && (amd64 || arm64)

package umad

import (
	"encoding/binary"
	"sync"
	"testing"

	"fabsh/mad"
)

// serve has handle answer requests of a class on the device that tr is on. What
// it returns is the answer, longer than
// mad.Size if the kernel is to cut it in segments, nil if there is none.
func serve(t *testing.T, tr *Transport, class mad.Class, handle func(m []byte) []byte) {
	t.Helper()
	f, err := openFile(tr.gsi.path())
	if err != nil {
		t.Fatal(err)
	}
	r := agentRequest(class, false)
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodGetTable, mad.MethodGetMulti} {
		acceptMethod(&r, method)
	}
	if err := f.register(&r); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		b := make([]byte, headerSize+1<<20)
		for {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			m := handle(b[headerSize:n])
			if m == nil {
				continue
			}
			m[3] |= byte(mad.Response)
			clear(b[offTimeout:offQP])
			// Segments without an ACK are sent again after 2 s. (A timeout
			// of less would make that never: mad_rmpp.c, send_next_seg,
			// leaves an absolute time where the relative one should be.)
			binary.NativeEndian.PutUint32(b[offRetries:], 20)
			if _, err := f.Write(append(b[:headerSize:headerSize], m...)); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		f.Close()
		done.Wait()
	})
}
