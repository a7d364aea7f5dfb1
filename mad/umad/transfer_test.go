package umad

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// The kernel is told how often it is to send segments again: those of requests.
func TestTransfer(t *testing.T) {
	segmented := func(d *engine.Datagram, n int) *engine.Datagram {
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive}
		h.Encode(d.MAD[mad.RMPPOffset:])
		d.MAD = append(d.MAD, make([]byte, n)...)
		return d
	}
	for _, c := range []struct {
		name              string
		d                 *engine.Datagram
		timeout           time.Duration
		userRMPP          bool
		length            int
		wantMS, wantAgain uint32
	}{
		{"short request", request(mad.ClassSubnAdm, 0), 100 * time.Millisecond, false, 256, 100, 0},
		{"SMP", request(mad.ClassSubn, 0), 100 * time.Millisecond, false, 256, 100, 0},
		{"long request", segmented(request(mad.ClassSubnAdm, 0), 1000), 5 * time.Second, false, 1256, 5000, 5},
		{"in a hurry", segmented(request(mad.ClassSubnAdm, 0), 1000), 100 * time.Millisecond, false, 1256, 2001, 5},
		{"segment of the engine's", segmented(request(mad.ClassSubnAdm, 0), 0), 100 * time.Millisecond, true, 256, 100, 0},
	} {
		tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
		tr.gsi.userRMPP = c.userRMPP
		c.d.Timeout = c.timeout
		if err := tr.Send(c.d); err != nil {
			t.Fatal(err)
		}
		b := files["umad0"].written[0]
		ne := binary.NativeEndian
		got := fmt.Sprint(len(b)-headerSize, ne.Uint32(b[offTimeout:]), ne.Uint32(b[offRetries:]))
		if want := fmt.Sprint(c.length, c.wantMS, c.wantAgain); got != want {
			t.Errorf("%s: got %s, want %s", c.name, got, want)
		}
	}
}
