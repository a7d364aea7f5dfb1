//go:build linux

package builtins

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestSMPQuery compares smp_get with smpquery, field by field, along directed
// routes and by LID: all of the first nodes of a type, and of the others the node
// and the ports alone (with FABSH_SOAK all of all); of irregular nets each thing one
// of these ways, and not all of the ports without a link.
func TestSMPQuery(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		i := smpInquiry{all: strings.HasSuffix(t.Name(), "/tree"), seen: map[mad.NodeType]int{}}
		for _, p := range entrances(f.sweep(t)) {
			i.askNode(p)
		}
		f.ask(t, i.questions)
	})
}

// entrances are the ports that SMPs get into nodes by: all that are linked of
// a channel adapter or router, which answer for that port; port 0 of a switch.
func entrances(fab *fabric.Fabric) (list []*fabric.Port) {
	for i := range fab.Nodes() {
		n := &fab.Nodes()[i]
		if n.IsSwitch() {
			list = append(list, n.Port(0))
			continue
		}
		for p := range n.Ports() {
			if p.Route() != nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// someEntrances are those into three nodes of each type; with FABSH_SOAK all.
func someEntrances(fab *fabric.Fabric) []*fabric.Port {
	seen := map[mad.NodeType]int{}
	return slices.DeleteFunc(entrances(fab), func(p *fabric.Port) bool {
		seen[p.Node().Type()]++
		return seen[p.Node().Type()] > 3 && os.Getenv("FABSH_SOAK") == ""
	})
}

// smpInquiry collects questions for smpquery and smp_get.
type smpInquiry struct {
	all       bool // every question both ways
	odd       bool // the next one goes by LID
	seen      map[mad.NodeType]int
	whole     bool // the node at hand is asked for its tables, too
	entrance  *fabric.Port
	questions []question
}

func (i *smpInquiry) askNode(entrance *fabric.Port) {
	i.entrance = entrance
	n := entrance.Node()
	i.seen[n.Type()]++
	i.whole = i.seen[n.Type()] <= 2 || os.Getenv("FABSH_SOAK") != ""
	i.ask("NodeInfo", fields(nodeInfoColumns), "NodeInfo")
	i.ask("NodeDesc", fields(nodeDescriptionColumns), "NodeDescription")
	guids := []string{fmt.Sprintf("PortInfo, %d", entrance.Num())}
	for block := range (int(entrance.Info().GUIDCap) + 7) / 8 {
		guids = append(guids, fmt.Sprintf("GUIDInfo, block=%d", block))
	}
	i.ask("GUIDInfo", checkGUIDs, guids...)
	if !n.IsSwitch() {
		i.askPort(entrance, int(n.Info().PartitionCap), "SLtoVLMappingTable, in_port=0, out_port=0")
		return
	}
	i.ask("SwitchInfo", fields(switchInfoColumns), "SwitchInfo")
	for num := range n.NumPorts() + 1 {
		keys := int(n.Info().PartitionCap)
		if num > 0 {
			keys = int(n.SwitchInfo().PartitionEnforcementCap)
		}
		var lanes []string
		for in := range n.NumPorts() + 1 {
			lanes = append(lanes, fmt.Sprintf("SLtoVLMappingTable, in_port=%d, out_port=%d", in, num))
		}
		if p := n.Port(num); num <= 4 || p.Peer() != nil {
			i.askPort(p, keys, lanes...)
		}
	}
}

// askPort is about a port with a P_Key table of so many entries.
func (i *smpInquiry) askPort(p *fabric.Port, pkeys int, lanes ...string) {
	num := p.Num()
	i.odd = !i.odd // or all ports would be asked the same way
	i.ask(fmt.Sprintf("PortInfo %d", num), fields(portInfoColumns), fmt.Sprintf("PortInfo, %d", num))
	if !i.whole {
		return
	}
	var keys []string
	for block := range (pkeys + 31) / 32 {
		keys = append(keys, fmt.Sprintf("P_KeyTable, %d, block=%d", num, block))
	}
	i.ask(fmt.Sprintf("PKeys %d", num), checkPKeys, keys...)
	i.ask(fmt.Sprintf("SL2VL %d", num), checkLanes, lanes...)
	check := checkArbitration
	if n := p.Node(); n.IsSwitch() && num == 0 && !n.SwitchInfo().EnhancedPort0 {
		check = checkNoArbitration
	}
	i.ask(fmt.Sprintf("VLArb %d", num), check, // the first blocks have room for 32 entries; simulated ports have 8
		fmt.Sprintf("PortInfo, %d", num), fmt.Sprintf("VLArbitrationTable, %d, block=1", num), fmt.Sprintf("VLArbitrationTable, %d, block=3", num))
}

// ask has smpquery asked for op ("PortInfo 3"), and ours for records
// ("PortInfo, 3").
func (i *smpInquiry) ask(op string, check func(string, []attributes) []string, records ...string) {
	op, port, _ := strings.Cut(op, " ")
	for _, way := range []struct {
		odd      bool
		arg, at  string
		ourPlace string
	}{
		{false, "-D", i.entrance.Route().String(), fmt.Sprintf("dr(%q)", i.entrance.Route())},
		{true, "-L", fmt.Sprint(i.entrance.LID()), fmt.Sprint(i.entrance.LID())},
	} {
		if way.odd != i.odd && !i.all {
			continue
		}
		q := question{tool: []string{"smpquery", way.arg, op, way.at}, check: check}
		if port != "" {
			q.tool = append(q.tool, port)
		}
		for _, r := range records {
			attr, rest, ok := strings.Cut(r, ",")
			if ok {
				rest = "," + rest
			}
			q.exprs = append(q.exprs, fmt.Sprintf("smp_get(%q, %s%s)", attr, way.ourPlace, rest))
		}
		i.questions = append(i.questions, q)
	}
	i.odd = !i.odd
}

// numbersIn are all numbers of a text.
func numbersIn(text string) []uint64 {
	var list []uint64
	for _, digits := range number.FindAllString(text, -1) {
		n, err := strconv.ParseUint(digits, 0, 64)
		if err != nil {
			panic(err)
		}
		list = append(list, n)
	}
	return list
}

var number = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// checkTable compares a table that is shown in lines "index: entries", and its
// capacity, with entries.
func checkTable(out string, entries []uint64) (capacity int, problems []string) {
	var theirs []uint64
	for line := range strings.Lines(out) {
		if index, rest, ok := strings.Cut(line, ":"); ok && numbersIn(index)[0] == uint64(len(theirs)) {
			theirs = append(theirs, numbersIn(rest)...)
		} else if n := numbersIn(line); len(n) == 1 && !ok {
			capacity = int(n[0])
		} else {
			problems = append(problems, "what is "+line)
		}
	}
	if capacity == 0 || len(theirs) < capacity {
		problems = append(problems, fmt.Sprintf("%d entries of %d in\n%s", len(theirs), capacity, out))
	}
	if capacity <= len(theirs) && capacity <= len(entries) && !slices.Equal(theirs[:capacity], entries[:capacity]) {
		problems = append(problems, fmt.Sprintf("the tool has %#x, we %#x", theirs[:capacity], entries[:capacity]))
	}
	return capacity, problems
}

func checkGUIDs(out string, ours []attributes) []string {
	var entries []uint64
	for _, block := range ours[1:] {
		entries = append(entries, block.uints("guid_block")...)
	}
	capacity, problems := checkTable(out, entries)
	if uint64(capacity) != ours[0].Uint("guid_cap") {
		problems = append(problems, fmt.Sprintf("capacity is %d, our guid_cap %s", capacity, ours[0].text("guid_cap")))
	}
	return problems
}

func checkPKeys(out string, ours []attributes) []string {
	var entries []uint64
	for _, block := range ours {
		entries = append(entries, block.uints("p_key_block")...)
	}
	_, problems := checkTable(out, entries)
	return problems
}

// checkLanes compares lines "ports: in 1, out 2: | 0| 1|...".
func checkLanes(out string, ours []attributes) (problems []string) {
	var theirs [][]uint64
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ports:") {
			theirs = append(theirs, numbersIn(line)[2:])
		}
	}
	if len(theirs) != len(ours) {
		return []string{fmt.Sprintf("%d input ports, want %d, in\n%s", len(theirs), len(ours), out)}
	}
	for i, a := range ours {
		if lanes := a.uints("sl_to_vl"); !slices.Equal(theirs[i], lanes) {
			problems = append(problems, fmt.Sprintf("input port %d: the tool has %d, we %d", i, theirs[i], lanes))
		}
	}
	return problems
}

// checkArbitration compares rows of lanes and of weights, of the low-priority
// table, then of the high-priority one.
func checkArbitration(out string, ours []attributes) (problems []string) {
	info, blocks := ours[0], ours[1:]
	var tables [2][2][]uint64 // low, high; lane, weight
	table := -1
	for line := range strings.Lines(out) {
		switch name, rest, _ := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "# "+[]string{"Low", "High"}[min(table+1, 1)]+" priority"):
			table++
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(name) == "VL":
			tables[table][0] = append(tables[table][0], numbersIn(rest)...)
		case strings.TrimSpace(name) == "WEIGHT":
			tables[table][1] = append(tables[table][1], numbersIn(rest)...)
		default:
			problems = append(problems, "what is "+line)
		}
	}
	for i, name := range []string{"vl_arbitration_low_cap", "vl_arbitration_high_cap"} {
		capacity := int(info.Uint(name))
		for j, field := range []string{"vl", "weight"} {
			entries := blocks[i].uints(field)[:capacity]
			if !slices.Equal(tables[i][j], entries) {
				problems = append(problems, fmt.Sprintf("%s, %s: the tool has %d, we %d", name, field, tables[i][j], entries))
			}
		}
	}
	return problems
}

// checkNoArbitration: of base ports 0 the tool shows nothing.
func checkNoArbitration(out string, _ []attributes) []string {
	if !strings.HasPrefix(out, "# No VLArbitration tables (BSP0): ") {
		return []string{"what is " + out}
	}
	return nil
}
