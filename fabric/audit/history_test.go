package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// pair is a CA on a switch, whose cable is there or not, in a logical state.
func pair(linked bool, state mad.PortState) *fabric.Fabric {
	b := fabric.NewBuilder()
	sw := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 2, NodeGUID: 0x10, PortGUID: 0x10}, Switch: new(mad.SwitchInfo)})
	info := mad.PortInfo{PortState: mad.PortStateDown, PortPhysicalState: mad.PortPhysicalStatePolling}
	if linked {
		ca := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 0x20, PortGUID: 0x21}})
		info.PortState, info.PortPhysicalState = state, mad.PortPhysicalStateLinkUp
		b.SetPort(ca, 1, &info)
		if err := b.Link(sw, 1, ca, 1); err != nil {
			panic(err)
		}
	}
	b.SetPort(sw, 1, &info)
	b.SetPort(sw, 2, &mad.PortInfo{PortState: mad.PortStateDown, PortPhysicalState: mad.PortPhysicalStatePolling})
	return b.Build()
}

// TestHistory: what was up is remembered for a week, through a file, and links that are
// not active are counted in the latest ten runs; ports that never were up are not told.
func TestHistory(t *testing.T) {
	st := openState(t, t.TempDir())
	now := noon
	see := func(f *fabric.Fabric) {
		t.Helper()
		st.See(f, now)
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		st.Read()
		if st.Anew != nil {
			t.Fatal(st.Anew)
		}
		now = now.Add(time.Hour)
	}
	told := func(f *fabric.Fabric) string {
		var b strings.Builder
		for _, d := range st.History().Down(f, now) {
			fmt.Fprintf(&b, "%v/%d down %v, was at %v, a switch: %v\n", d.Port.Node().GUID(), d.Port.Num(), d.For, d.Peer, d.ToSwitch)
		}
		for _, w := range st.History().Waits(f) {
			fmt.Fprintf(&b, "%v/%d waits in %d\n", w.Port.Node().GUID(), w.Port.Num(), w.Runs)
		}
		return b.String()
	}
	want := func(f *fabric.Fabric, text string) {
		t.Helper()
		if got := told(f); got != text {
			t.Errorf("got\n%swant\n%s", got, text)
		}
	}
	up, down, wait := pair(true, mad.PortStateActive), pair(false, 0), pair(true, mad.PortStateInitialize)
	see(down)
	want(down, "")
	see(up)
	see(down)
	want(down, "0x0000000000000010/1 down 2h0m0s, was at 0x0000000000000020, a switch: false\n")
	want(up, "")
	for range 3 {
		see(wait)
	}
	want(wait, "0x0000000000000010/1 waits in 4\n")
	want(up, "0x0000000000000010/1 waits in 3\n")
	for range PastRuns - 1 {
		see(up)
	}
	want(up, "")
	now = now.Add(maxPastAge)
	want(down, "")
	see(down)
	if n := len(st.History().ports); n != 0 {
		t.Errorf("%d ports are kept for longer than a week", n)
	}
}
