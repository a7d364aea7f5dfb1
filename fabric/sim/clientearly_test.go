package sim

import (
	"testing"
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
	r.Programs.GiveUp(time.Now().Add(20 * time.Second))
	check("it has never sent anything", "other Get, undelivered")
	ask(mute, mad.AttrNodeInfo)
	check("nor gets it later", "mute GetResp")
}
