//go:build linux

package builtins

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

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
