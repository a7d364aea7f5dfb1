//go:build linux

package builtins

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestForwardingTables compares both kinds of forwarding tables with ibroute.
// OpenSM leaves those for multicast empty: they are filled with smp_set.
func TestForwardingTables(t *testing.T) {
	writable := func(o *SessionOptions) { o.Write, o.OverrideSM = true, true }
	onPeerNets(t, writable, func(t *testing.T, f *peerFixture) {
		random := rand.New(rand.NewPCG(3, 4))
		fab := f.sweep(t)
		for i := range fab.Nodes() {
			n := &fab.Nodes()[i]
			if !n.IsSwitch() {
				continue
			}
			f.compareUnicast(t, n)
			f.fillMulticast(t, random, n)
			f.compareMulticast(t, n)
		}
	})
}

func (f *peerFixture) compareUnicast(t *testing.T, n *fabric.Node) {
	t.Helper()
	var theirs []uint64
	for _, m := range regexp.MustCompile(`(?m)^0x([0-9a-f]{4}) ([0-9]{3})`).FindAllStringSubmatch(f.peer.Run(t, "ibroute", "-a", "-n", fmt.Sprint(n.LID())), -1) {
		lid, port := numbersIn("0x" + m[1])[0], decimal(m[2])
		if lid != uint64(len(theirs)) {
			t.Fatalf("ibroute of %s: LID %d comes after %d entries", n.Label(), lid, len(theirs))
		}
		theirs = append(theirs, port)
	}
	var blocks []attributes
	f.eval(t, &blocks, `[smp_get("LinearForwardingTable", dr(%q), block=b) for b in range(%d)]`, n.Route(), n.SwitchInfo().LinearFDBTop/64+1)
	var ours []uint64
	for _, b := range blocks {
		ours = append(ours, b.uints("port_block")...)
	}
	if top := int(n.SwitchInfo().LinearFDBTop); len(theirs) != top+1 || !slices.Equal(theirs, ours[:top+1]) {
		t.Errorf("%s, up to LID %d: ibroute has\n%d, we\n%d", n.Label(), top, theirs, ours)
	}
	var whole []*uint64
	f.eval(t, &whole, "list(get_lft(%d))", n.LID())
	ours = nil
	for _, port := range whole {
		if port == nil {
			ours = append(ours, mad.NoPort)
		} else {
			ours = append(ours, *port)
		}
	}
	if !slices.Equal(theirs, ours) {
		t.Errorf("%s: ibroute has\n%d, get_lft\n%d", n.Label(), theirs, ours)
	}
}

// decimal is a number with leading zeros.
func decimal(digits string) (n uint64) {
	for _, d := range digits {
		n = 10*n + uint64(d-'0')
	}
	return n
}

// positions are the groups of 16 ports of a switch, port 0 included.
func positions(n *fabric.Node) int { return n.NumPorts()/16 + 1 }

// fillMulticast sets some blocks to what is as likely to have a bit as not.
func (f *peerFixture) fillMulticast(t *testing.T, random *rand.Rand, n *fabric.Node) {
	t.Helper()
	for position := range positions(n) {
		for _, block := range []int{0, 7, 31} {
			masks := make([]string, 32)
			for i := range masks {
				masks[i] = fmt.Sprint(random.Uint32() & 0xffff & (1<<(n.NumPorts()+1-16*position) - 1))
			}
			var set attributes
			f.eval(t, &set, `smp_set("MulticastForwardingTable", dr(%q), modifier=%#x, port_mask_block=[%s])`,
				n.Route(), position<<28|block, strings.Join(masks, ", "))
		}
	}
}

// compareMulticast compares LIDs that have a mask, and the masks, which the
// tool writes 16 ports after 16.
func (f *peerFixture) compareMulticast(t *testing.T, n *fabric.Node) {
	t.Helper()
	const lids, blocks = 0xc000, 32
	masks := make([]string, 32*blocks)
	for position := range positions(n) {
		var table []attributes
		f.eval(t, &table, `[smp_get("MulticastForwardingTable", %d, modifier=%#x + b) for b in range(%d)]`, n.LID(), position<<28, blocks)
		for i := range masks {
			masks[i] += fmt.Sprintf("%04x", table[i/32].uints("port_mask_block")[i%32])
		}
	}
	var ours []string
	for i, mask := range masks {
		if strings.Trim(mask, "0") != "" {
			ours = append(ours, fmt.Sprintf("%#x %s", lids+i, mask))
		}
	}
	var theirs []string
	for line := range strings.Lines(f.peer.Run(t, "ibroute", "-M", "-n", fmt.Sprint(n.LID()))) {
		if strings.HasPrefix(line, "0x") {
			theirs = append(theirs, strings.Join(strings.Fields(line), " "))
		}
	}
	if len(ours) < 32 || !slices.Equal(theirs, ours) {
		t.Errorf("%s: ibroute has\n%q, we\n%q", n.Label(), theirs, ours)
	}
}

// TestSMPDump compares bytes with smpdump where smpquery mangles or cuts them:
// names, and tables that it does not know.
func TestSMPDump(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		for _, p := range entrances(f.sweep(t)) {
			var name string
			f.eval(t, &name, `smp_get("NodeDescription", %d).node_string`, p.LID())
			theirs := string(f.smpdump(t, fmt.Sprint(p.LID()), "0x10", "0"))
			if theirs, _, _ = strings.Cut(theirs, "\x00"); name != theirs {
				t.Errorf("LID %d: smpdump has the name %q, we %q", p.LID(), theirs, name)
			}
			if !p.Node().IsSwitch() {
				continue
			}
			var block attributes
			f.eval(t, &block, `smp_get("LinearForwardingTable", %d)`, p.LID())
			var ours []byte
			for _, port := range block.uints("port_block") {
				ours = append(ours, byte(port))
			}
			if theirs := f.smpdump(t, fmt.Sprint(p.LID()), "0x19", "0"); !slices.Equal(theirs, ours) {
				t.Errorf("LID %d: smpdump has the table\n%d, we\n%d", p.LID(), theirs, ours)
			}
		}
	})
}

// smpdump returns the bytes of an attribute.
func (f *peerFixture) smpdump(t *testing.T, lid, attr, modifier string) []byte {
	t.Helper()
	out, _, _ := strings.Cut(f.peer.Run(t, "smpdump", lid, attr, modifier), "SMP status")
	data, err := hex.DecodeString(strings.Join(strings.Fields(out), ""))
	if err != nil || len(data) != 64 {
		t.Fatalf("what is %q: %v", out, err)
	}
	return data
}

// TestSMInfo compares smp_get with sminfo. OpenSM counts each request.
func TestSMInfo(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		fab := f.sweep(t)
		sm := fab.PortByLID(fab.From().Info().MasterSMLID)
		for _, way := range []struct{ arg, at, expr string }{
			{"-L", fmt.Sprint(sm.LID()), fmt.Sprint(sm.LID())},
			{"-D", sm.Route().String(), fmt.Sprintf("dr(%q)", sm.Route())},
		} {
			var before, after attributes
			f.eval(t, &before, `smp_get("SMInfo", %s)`, way.expr)
			out := f.peer.Run(t, "sminfo", way.arg, way.at)
			f.eval(t, &after, `smp_get("SMInfo", %s)`, way.expr)
			m := regexp.MustCompile(`^sminfo: sm lid (\d+) sm guid (0x[0-9a-f]+), activity count (\d+) priority (\d+) state (\d+) SMINFO_MASTER\n$`).FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("what is %q", out)
			}
			theirs := dump{{"guid", m[2]}, {"activity count", m[3]}, {"priority", m[4]}, {"state", m[5]}}
			columns := []column{
				{"guid", "guid", asHex(0)},
				{"activity count", "act_count", plainly},
				{"priority", "priority", plainly},
				{"state", "sm_state", func(a attributes, name string) string {
					if a.text(name) != "master" {
						return "other than master"
					}
					return a.text(name + "_code")
				}},
				{"", "sm_key", nil},
			}
			settle(columns, []string{"act_count"}, theirs, before, after)
			for _, problem := range compare(columns, theirs, before) {
				t.Errorf("%s: %s", way.expr, problem)
			}
		}
	})
}
