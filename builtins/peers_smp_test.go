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
	"fabsh/mad/ibsim/ibsimtest"
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
	i.odd = !i.odd // or all requests would have one form
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

// The fields that smpquery shows, and ours.

var nodeInfoColumns = []column{
	{"BaseVers", "base_version", plainly},
	{"ClassVers", "class_version", plainly},
	{"NodeType", "node_type", word(nodeTypeWords)},
	{"NumPorts", "num_ports", plainly},
	{"SystemGuid", "system_image_guid", plainly},
	{"Guid", "node_guid", plainly},
	{"PortGuid", "port_guid", plainly},
	{"PartCap", "partition_cap", plainly},
	{"DevId", "device_id", asHex(4)},
	{"Revision", "revision", asHex(8)},
	{"LocalPort", "local_port_num", plainly},
	{"VendorId", "vendor_id", asHex(6)},
}

var nodeDescriptionColumns = []column{
	{"Node Description", "node_string", mangled},
}

// mangled is what smpquery leaves of a name: bytes that are not ASCII become
// blanks, the last of 64 is cut off.
func mangled(a attributes, field string) string {
	var b strings.Builder
	name := a.text(field)
	for i := range min(len(name), 63) {
		if c := name[i]; c < ' ' || c > '~' {
			b.WriteByte(' ')
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

var switchInfoColumns = []column{
	{"LinearFdbCap", "linear_fdb_cap", plainly},
	{"RandomFdbCap", "random_fdb_cap", plainly},
	{"McastFdbCap", "multicast_fdb_cap", plainly},
	{"LinearFdbTop", "linear_fdb_top", plainly},
	{"DefPort", "default_port", plainly},
	{"DefMcastPrimPort", "default_multicast_primary_port", plainly},
	{"DefMcastNotPrimPort", "default_multicast_not_primary_port", plainly},
	{"LifeTime", "life_time_value", plainly},
	{"StateChange", "port_state_change", plainly},
	{"OptSLtoVLMapping", "optimized_sl_to_vl_mapping_programming", plainly},
	{"LidsPerPort", "lids_per_port", plainly},
	{"PartEnforceCap", "partition_enforcement_cap", plainly},
	{"InboundPartEnf", "inbound_enforcement_cap", plainly},
	{"OutboundPartEnf", "outbound_enforcement_cap", plainly},
	{"FilterRawInbound", "filter_raw_packet_inbound_cap", plainly},
	{"FilterRawOutbound", "filter_raw_packet_outbound_cap", plainly},
	{"EnhancedPort0", "enhanced_port0", plainly},
	{"MulticastFDBTop", "multicast_fdb_top", asHex(4)},
}

var portInfoColumns = []column{
	{"Mkey", "m_key", word(map[string]string{"none": "<not displayed>", "hidden": "<not displayed>"})},
	{"GidPrefix", "gid_prefix", asHex(16)},
	{"Lid", "lid", plainly},
	{"SMLid", "master_sm_lid", plainly},
	{"CapMask", "capability_mask", maskAndWords(capabilityWords)},
	{"DiagCode", "diag_code", asHex(4)},
	{"MkeyLeasePeriod", "m_key_lease_period", plainly},
	{"LocalPort", "local_port_num", plainly},
	{"LinkWidthEnabled", "link_width_enabled", wordsOr("0", widthWords)},
	{"LinkWidthSupported", "link_width_supported", wordsOr("0", widthWords)},
	{"LinkWidthActive", "link_width_active", word(widthWords)},
	{"LinkSpeedSupported", "link_speed_supported", wordsOr("0", speedWords)},
	{"LinkState", "port_state", word(stateWords)},
	{"PhysLinkState", "port_physical_state", word(physicalWords)},
	{"LinkDownDefState", "link_down_default_state", word(physicalWords)},
	{"ProtectBits", "m_key_protect_bits", plainly},
	{"LMC", "lmc", plainly},
	{"LinkSpeedActive", "link_speed_active", word(speedWords)},
	{"LinkSpeedEnabled", "link_speed_enabled", wordsOr("0", speedWords)},
	{"NeighborMTU", "neighbor_mtu", plainly},
	{"SMSL", "master_sm_sl", plainly},
	{"VLCap", "vl_cap", word(lanesWords)},
	{"InitType", "init_type", asHex(2)},
	{"VLHighLimit", "vl_high_limit", plainly},
	{"VLArbHighCap", "vl_arbitration_high_cap", plainly},
	{"VLArbLowCap", "vl_arbitration_low_cap", plainly},
	{"InitReply", "init_type_reply", asHex(2)},
	{"MtuCap", "mtu_cap", plainly},
	{"VLStallCount", "vl_stall_count", plainly},
	{"HoqLife", "hoq_life", plainly},
	{"OperVLs", "operational_vls", word(lanesWords)},
	{"PartEnforceInb", "partition_enforcement_inbound", plainly},
	{"PartEnforceOutb", "partition_enforcement_outbound", plainly},
	{"FilterRawInb", "filter_raw_inbound", plainly},
	{"FilterRawOutb", "filter_raw_outbound", plainly},
	{"MkeyViolations", "m_key_violations", plainly},
	{"PkeyViolations", "p_key_violations", plainly},
	{"QkeyViolations", "q_key_violations", plainly},
	{"GuidCap", "guid_cap", plainly},
	{"ClientReregister", "client_reregister", plainly},
	{"McastPkeyTrapSuppressionEnabled", "multicast_p_key_trap_suppression_enabled", plainly},
	{"SubnetTimeout", "subnet_time_out", plainly},
	{"RespTimeVal", "resp_time_value", plainly},
	{"LocalPhysErr", "local_phy_errors", plainly},
	{"OverrunErr", "overrun_errors", plainly},
	{"MaxCreditHint", "max_credit_hint", plainly},
	{"RoundTrip", "link_round_trip_latency", plainly},
	{"CapabilityMask2", "capability_mask2", maskAndWords(capability2Words)},
	{"LinkSpeedExtActive", "link_speed_ext_active", word(speedExtWords)},
	{"LinkSpeedExtSupported", "link_speed_ext_supported", wordsOr("0", speedExtWords)},
	{"LinkSpeedExtEnabled", "link_speed_ext_enabled", wordsOr("0", speedExtWords)},
	// Speeds from XDR on are younger than the tool.
	{"", "link_speed_ext_active2", nil},
	{"", "link_speed_ext_supported2", nil},
	{"", "link_speed_ext_enabled2", nil},
}

// Our words, with the words of the tools for them.
var (
	nodeTypeWords = map[string]string{"ca": "Channel Adapter", "switch": "Switch", "router": "Router"}
	widthWords    = map[string]string{"1x": "1X", "2x": "2X", "4x": "4X", "8x": "8X", "12x": "12X"}
	speedWords    = map[string]string{"sdr": "2.5 Gbps", "ddr": "5.0 Gbps", "qdr": "10.0 Gbps"}
	speedExtWords = map[string]string{"none": "No Extended Speed", "fdr": "14.0625 Gbps", "edr": "25.78125 Gbps", "hdr": "53.125 Gbps"}
	lanesWords    = map[string]string{"none": "None", "vl0": "VL0", "vl0_1": "VL0-1", "vl0_3": "VL0-3", "vl0_7": "VL0-7", "vl0_14": "VL0-14"}
	stateWords    = map[string]string{"down": "Down", "init": "Initialize", "armed": "Armed", "active": "Active"}
	physicalWords = map[string]string{"sleep": "Sleep", "polling": "Polling", "disabled": "Disabled", "link_up": "LinkUp"}

	capabilityWords = map[string]string{
		"is_sm":                               "IsSM",
		"is_trap_supported":                   "IsTrapSupported",
		"is_sl_mapping_supported":             "IsSLMappingSupported",
		"is_extended_speeds_supported":        "IsExtendedSpeedsSupported",
		"is_capability_mask2_supported":       "IsCapabilityMask2Supported",
		"is_vendor_class_supported":           "IsVendorClassSupported",
		"is_capability_mask_notice_supported": "IsCapabilityMaskNoticeSupported",
	}
	capability2Words = map[string]string{
		"is_link_width2x_supported":   "IsLinkWidth2xSupported",
		"is_link_speed_hdr_supported": "IsLinkSpeedHDRSupported",
	}
)

// TestIbportstate: ibportstate sees what port_disable and the others did, and
// these see what it did. In ibsim a disabled link stays up and speeds take
// effect at once, but what is asked for is kept.
func TestIbportstate(t *testing.T) {
	f := onIbsim(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: quiet}, func(o *SessionOptions) { o.Write, o.OverrideSM = true, true })
	fab := f.sweep(t)
	host := fab.NodeByName("host-2-1 HCA-1")
	if len(host) != 1 {
		t.Fatal("no such host")
	}
	p := host[0].Port(1).Peer()
	at := fmt.Sprintf("%d, %d", p.LID(), p.Num())
	state := func() map[string]string {
		fields := map[string]string{}
		// It fails when it cannot ask the neighbour, after it has told of the port.
		out, _ := f.peer.Command(t, "", "ibportstate", "-D", p.Route().String(), fmt.Sprint(p.Num()), "query").Output()
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "Peer PortInfo:") {
				break
			}
			// The fields of Mellanox, which follow, repeat these names.
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && fields[name] == "" {
				fields[name] = strings.TrimLeft(value, ".")
			}
		}
		return fields
	}
	compare := func(what string, want map[string]string) {
		t.Helper()
		got := state()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: ibportstate has %s %q, want %q", what, name, got[name], value)
			}
		}
	}
	var i attributes
	f.eval(t, &i, "[discover(), smp_get('PortInfo', %s)][1]", at)
	before := state()
	if before["LinkState"] != "Active" || before["PhysLinkState"] != "LinkUp" || before["LinkWidthEnabled"] != "1X or 4X" {
		t.Fatalf("ibportstate has %q", before)
	}
	f.eval(t, &i, "port_disable(%q)", p.Name())
	compare("disabled", map[string]string{"PhysLinkState": "Disabled"})
	if i.text("port_physical_state") != "disabled" {
		t.Errorf("after port_disable: %v", i)
	}
	f.eval(t, &i, "port_enable(%q, wait='50ms')", p.Name())
	compare("enabled", map[string]string{"PhysLinkState": "Polling"})
	f.eval(t, &i, "port_set(%q, speed='edr', width='1x')", p.Name())
	compare("set", map[string]string{"LinkWidthEnabled": "1X", "LinkSpeedEnabled": "2.5 Gbps or 5.0 Gbps or 10.0 Gbps", "LinkSpeedExtEnabled": "14.0625 Gbps or 25.78125 Gbps"})
	f.eval(t, &i, "port_set(%q, width=['1x', '4x'], speed='hdr')", p.Name())
	compare("set back", map[string]string{"LinkWidthEnabled": "1X or 4X", "LinkSpeedExtEnabled": before["LinkSpeedExtEnabled"]})

	f.peer.Run(t, "ibportstate", "-D", p.Route().String(), fmt.Sprint(p.Num()), "disable")
	f.eval(t, &i, "port_disable(%q)", p.Name())
	if i.text("port_physical_state") != "disabled" {
		t.Errorf("after ibportstate's disable: %v", i)
	}
	f.eval(t, &i, "port_enable(%q, wait='50ms')", p.Name())
	f.peer.Run(t, "ibportstate", "-D", p.Route().String(), fmt.Sprint(p.Num()), "width", "1")
	f.eval(t, &i, "smp_get('PortInfo', %q)", p.Name())
	if fmt.Sprint(i["link_width_enabled"]) != "[1x]" {
		t.Errorf("after ibportstate's width: %v", i)
	}
}
