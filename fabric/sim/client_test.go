package sim

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestEarlyRequests: a subnet manager gets what it is asked once it has sent
// something itself; if it never does, that comes back.
func TestEarlyRequests(t *testing.T) {
	f, o := mustParse(t, small)
	o.Bare = true
	r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
	var got []string
	attach := func(name string) *Client {
		c, err := r.Programs.AttachClient(ClientOptions{Node: r.named("node-0001 HCA-1").ID(), Receive: func(m *Message) {
			text := name + " " + mad.Method(m.MAD[mad.MethodOffset]).Name(mad.ClassSubn, 1)
			if m.Undelivered {
				text += ", undelivered"
			}
			got = append(got, text)
		}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	check := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", when, diff)
		}
		got = nil
	}
	ask := func(c *Client, a *mad.Attribute) {
		var call engine.Call
		call.PutSMP(mad.MethodGet, a.ID, 0, nil)
		call.SetRoute(mad.DirectedRoute{0})
		c.Send(&Message{SLID: mad.PermissiveLID, DLID: mad.PermissiveLID, MAD: call.MAD})
	}
	sm, other := attach("sm"), attach("other")
	sm.SetSM(true)
	ask(other, mad.AttrSMInfo)
	check("before it has sent anything")
	ask(sm, mad.AttrNodeInfo)
	check("its first request", "sm GetResp", "sm Get")
	ask(other, mad.AttrSMInfo)
	check("then", "sm Get")
	sm.Detach()
	check("it has gone", "other Get, undelivered", "other Get, undelivered")

	mute := attach("mute")
	mute.SetSM(true)
	ask(other, mad.AttrSMInfo)
	r.Programs.ReturnExpired(time.Now().Add(20 * time.Second))
	check("it has never sent anything", "other Get, undelivered")
	ask(mute, mad.AttrNodeInfo)
	check("nor gets it later", "mute GetResp")
}

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
