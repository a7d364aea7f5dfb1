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

// TestTablesOfPorts compares whole tables with smpquery, as OpenSM set them up,
// and again when we have set them.
func TestTablesOfPorts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	writable := func(o *SessionOptions) { o.Write, o.OverrideSM = true, true }
	onPeerNets(t, writable, func(t *testing.T, f *peerFixture) {
		random := rand.New(rand.NewPCG(5, 6))
		for _, entrance := range someEntrances(f.sweep(t)) {
			f.compareTable(t, entrance, "get_guids", 0, "GUIDInfo", checkWholeGUIDs)
			for _, num := range somePorts(entrance) {
				base := num == 0 && !entrance.Node().SwitchInfo().EnhancedPort0
				for pass := range 2 {
					f.compareTable(t, entrance, "get_pkeys", num, "PKeys", checkWholePKeys)
					f.compareTable(t, entrance, "get_sl2vl", num, "SL2VL", checkWholeLanes)
					if !base {
						f.compareTable(t, entrance, "get_vlarb", num, "VLArb", checkWholeArbitration)
					}
					if pass == 0 {
						f.setTables(t, random, entrance, num, base)
					}
				}
			}
		}
	})
}

// somePorts are the ports of a switch that are linked, and a few others; of a
// CA the one.
func somePorts(entrance *fabric.Port) (nums []int) {
	n := entrance.Node()
	if !n.IsSwitch() {
		return []int{entrance.Num()}
	}
	for num := range n.NumPorts() + 1 {
		if num <= 1 || num <= 4 && n.Port(num).Peer() != nil {
			nums = append(nums, num)
		}
	}
	return nums
}

// compareTable asks both for a table of a port; 0 of a CA: the one.
func (f *peerFixture) compareTable(t *testing.T, entrance *fabric.Port, get string, num int, op string, check func(out string, ours attributes) []string) {
	t.Helper()
	route := entrance.Route().String()
	tool := []string{"-D", op, route}
	call := fmt.Sprintf("%s(dr(%q))", get, route)
	if get != "get_guids" {
		tool = append(tool, fmt.Sprint(num))
		call = fmt.Sprintf("%s(dr(%q), %d)", get, route, num)
	}
	var ours attributes
	f.eval(t, &ours, "%s", call)
	if problems := check(f.peer.Run(t, "smpquery", tool...), ours); len(problems) > 0 {
		t.Errorf("%s and smpquery %v:\n\t%s", call, tool, strings.Join(problems, "\n\t"))
	}
}

// listed are the entries of a table that its JSON shows by number.
func (a attributes) listed(name string) []uint64 {
	list := make([]uint64, a.Uint("cap"))
	for key := range a[name].(map[string]any) {
		list[decimal(key)] = attributes(a[name].(map[string]any)).Uint(key)
	}
	return list
}

func checkWholePKeys(out string, ours attributes) []string {
	capacity, problems := checkTable(out, ours.listed("pkeys"))
	if uint64(capacity) != ours.Uint("cap") {
		problems = append(problems, fmt.Sprintf("capacity is %d, ours %s", capacity, ours.text("cap")))
	}
	return problems
}

func checkWholeGUIDs(out string, ours attributes) []string {
	capacity, problems := checkTable(out, ours.listed("guids"))
	if uint64(capacity) != ours.Uint("cap") {
		problems = append(problems, fmt.Sprintf("capacity is %d, ours %s", capacity, ours.text("cap")))
	}
	return problems
}

func checkWholeLanes(out string, ours attributes) []string {
	var rows []attributes
	for _, r := range ours["rows"].([]any) {
		lanes := slices.Clone(r.(map[string]any)["vls"].([]any))
		for i := range lanes {
			if lanes[i] == nil {
				lanes[i] = mad.DropVL
			}
		}
		rows = append(rows, attributes{"sl_to_vl": lanes})
	}
	return checkLanes(out, rows)
}

func checkWholeArbitration(out string, ours attributes) []string {
	info, blocks := attributes{}, []attributes(nil)
	for _, name := range []string{"low", "high"} {
		var vls, weights []any
		for _, e := range ours[name].([]any) {
			vls, weights = append(vls, e.([]any)[0]), append(weights, e.([]any)[1])
		}
		info["vl_arbitration_"+name+"_cap"] = len(vls)
		blocks = append(blocks, attributes{"vl": vls, "weight": weights})
	}
	return checkArbitration(out, append([]attributes{info}, blocks...))
}

// setTables changes some entries of each table, others of each port.
func (f *peerFixture) setTables(t *testing.T, random *rand.Rand, entrance *fabric.Port, num int, base bool) {
	t.Helper()
	route := entrance.Route().String()
	room := int(entrance.Node().Info().PartitionCap)
	if entrance.Node().IsSwitch() && num > 0 {
		room = int(entrance.Node().SwitchInfo().PartitionEnforcementCap)
	}
	var done any
	f.eval(t, &done, "set_pkeys(dr(%q), {%d: %d, 1: None}, %d)", route, 2+random.IntN(room-2), random.IntN(0x10000)|1, num)
	f.eval(t, &done, "set_sl2vl(dr(%q), {%d: %d, %d: None}, %d)", route, random.IntN(8), random.IntN(8), 8+random.IntN(8), num)
	if !base {
		f.eval(t, &done, "set_vlarb(dr(%q), {'low': {%d: (%d, %d)}, 'high': [(%d, 7)] * 3}, %d)", route, random.IntN(8), random.IntN(8), random.IntN(256), random.IntN(8), num)
	}
}

// TestMulticastTables compares whole multicast tables with ibroute, as they
// were set block by block, and as whole tables.
func TestMulticastTables(t *testing.T) {
	writable := func(o *SessionOptions) { o.Write, o.OverrideSM = true, true }
	onPeerNets(t, writable, func(t *testing.T, f *peerFixture) {
		random := rand.New(rand.NewPCG(7, 8))
		fab := f.sweep(t)
		for i := range fab.Nodes() {
			n := &fab.Nodes()[i]
			if !n.IsSwitch() {
				continue
			}
			f.fillMulticast(t, random, n)
			f.compareWholeMulticast(t, n, 60)
			var done any
			f.eval(t, &done, "set_mft(%d, {0xc000 + i: [i %% %d] for i in range(100)})", n.LID(), n.NumPorts()+1)
			f.compareWholeMulticast(t, n, 100)
			f.eval(t, &done, "set_mft(%d, [[1], None, [%d, 0]])", n.LID(), n.NumPorts())
			f.compareWholeMulticast(t, n, 2)
			f.eval(t, &done, "set_lft(%d, {40: 1, 41: None})", n.LID())
			f.compareUnicast(t, f.sweep(t).NodeByGUID(n.GUID())[0])
		}
	})
}

var maskLine = regexp.MustCompile(`(?m)^(0x[0-9a-f]{4})\s+([0-9a-f]{4,})`)

// compareWholeMulticast compares the LIDs that have ports, at least so many.
func (f *peerFixture) compareWholeMulticast(t *testing.T, n *fabric.Node, least int) {
	t.Helper()
	theirs := map[string][]uint64{}
	for _, m := range maskLine.FindAllStringSubmatch(f.peer.Run(t, "ibroute", "-M", "-n", fmt.Sprint(n.LID())), -1) {
		ports := []uint64{}
		for group := 0; 4*group < len(m[2]); group++ {
			mask := numbersIn("0x" + m[2][4*group:][:4])[0]
			for bit := range 16 {
				if mask>>bit&1 != 0 {
					ports = append(ports, uint64(16*group+bit))
				}
			}
		}
		theirs[fmt.Sprint(numbersIn(m[1])[0])] = ports
	}
	var ours struct{ Ports map[string][]uint64 }
	f.eval(t, &ours, "get_mft(%d)", n.LID())
	if len(theirs) < least || fmt.Sprint(theirs) != fmt.Sprint(ours.Ports) {
		t.Errorf("%s: ibroute has\n%v, get_mft\n%v", n.Label(), theirs, ours.Ports)
	}
}
