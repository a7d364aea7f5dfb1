package audit

import (
	"fmt"
	"slices"
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
// not active are counted in the latest ten runs; ports that never were up are not reported.
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
		if st.Reset != nil {
			t.Fatal(st.Reset)
		}
		now = now.Add(time.Hour)
	}
	describe := func(f *fabric.Fabric) string {
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
		if got := describe(f); got != text {
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
	for range pastRuns - 1 {
		see(up)
	}
	want(up, "")
	now = now.Add(PastAge)
	want(down, "")
	see(down)
	if n := len(st.History().ports); n != 0 {
		t.Errorf("%d ports are kept for longer than a week", n)
	}
}

// TestDownLink: both ends of a link that is down are one; not where one end is up at
// another port by now, or its node is gone.
func TestDownLink(t *testing.T) {
	build := func(nodes int, ends ...[2]int) *fabric.Fabric { // ends: node and port, two for each link
		b := fabric.NewBuilder()
		for i := range nodes {
			guid := mad.GUID(0x10 * (i + 1))
			b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 2, NodeGUID: guid, PortGUID: guid}, Switch: new(mad.SwitchInfo)})
			for num := 1; num <= 2; num++ {
				info := mad.PortInfo{PortState: mad.PortStateDown, PortPhysicalState: mad.PortPhysicalStatePolling}
				if slices.Contains(ends, [2]int{i, num}) {
					info = mad.PortInfo{PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp}
				}
				b.SetPort(i, num, &info)
			}
		}
		for i := 0; i < len(ends); i += 2 {
			if err := b.Link(ends[i][0], ends[i][1], ends[i+1][0], ends[i+1][1]); err != nil {
				t.Fatal(err)
			}
		}
		return b.Build()
	}
	a, b, c := [2]int{0, 1}, [2]int{1, 1}, [2]int{2, 2}
	first := build(3, a, b)
	for _, test := range []struct {
		name       string
		before, at *fabric.Fabric
		want       string
	}{
		{"up", first, first, ""},
		{"down", first, build(3), "0x0000000000000010/1 and 0x0000000000000020/1\n"},
		{"moved", first, build(3, b, c), ""}, // what was behind the port has another link
		{"moved, then down", build(3, b, c), build(3), "0x0000000000000010/1\n0x0000000000000020/1 and 0x0000000000000030/2\n"},
		{"gone", first, build(1), "0x0000000000000010/1\n"},
	} {
		st := openState(t, t.TempDir())
		st.See(first, noon)
		st.See(test.before, noon)
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		st.Read()
		var got strings.Builder
		for _, d := range st.History().Down(test.at, noon.Add(time.Hour)) {
			fmt.Fprintf(&got, "%v/%d", d.Port.Node().GUID(), d.Port.Num())
			if d.Other != nil {
				fmt.Fprintf(&got, " and %v/%d", d.Other.Node().GUID(), d.Other.Num())
			}
			got.WriteString("\n")
		}
		if got.String() != test.want {
			t.Errorf("%s: got\n%swant\n%s", test.name, got.String(), test.want)
		}
	}
}
