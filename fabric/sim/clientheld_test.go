package sim

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestHeldTables: tables that a client does not take are bounded, by the subnet
// administrator being busy; once they are taken, there are more.
func TestHeldTables(t *testing.T) {
	r := newRig(t, "fattree:k=16,levels=3")
	busy, segments := 0, 0
	c, err := r.Programs.AttachClient(ClientOptions{QP: 7, Receive: func(m *Message) {
		if mad.Status(binary.BigEndian.Uint16(m.MAD[mad.StatusOffset:])) == mad.StatusBusy {
			busy++
		} else {
			segments++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Detach()
	var call engine.Call
	call.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, 0, 0, nil)
	ask := func() { c.Send(&Message{DLID: r.state.SM.LID, DQP: 1, SQP: 7, MAD: call.MAD}) }
	size := len(r.state.Nodes) * ((mad.AttrNodeRecord.Size + 7) &^ 7)
	fit, beyond := 64<<20/size, 10
	for range fit + beyond {
		ask()
	}
	if busy != beyond {
		t.Errorf("it was busy %d times, want %d", busy, beyond)
	}
	for c.More(1000) {
	}
	if want := fit * ((size + mad.SegmentData - 1) / mad.SegmentData); segments != want {
		t.Errorf("%d segments, want %d", segments, want)
	}
	if ask(); !c.More(0) {
		t.Error("no more once all are taken")
	}
}

// TestLateAnswers: answers that wait for their delay are bounded.
func TestLateAnswers(t *testing.T) {
	const maxLate = 1 << 14
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small+",delay=1m")
		got := make(chan bool, 2*maxLate)
		c, err := r.Programs.AttachClient(ClientOptions{Receive: func(*Message) { got <- true }})
		if err != nil {
			t.Fatal(err)
		}
		var call engine.Call
		call.PutPerf(mad.MethodGet, mad.AttrPerfClassPortInfo.ID, 0, nil)
		for range 2 {
			for range maxLate + 100 {
				c.Send(&Message{DLID: r.lid("leaf-1"), DQP: 1, MAD: call.MAD})
			}
			time.Sleep(2 * time.Minute)
			if n := len(got); n != maxLate {
				t.Errorf("%d answers, want %d", n, maxLate)
			}
			for range len(got) {
				<-got
			}
		}
	})
}
