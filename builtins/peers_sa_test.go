//go:build linux

package builtins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
)

// TestSAQuery compares sa_get with saquery where the answer is one record: all
// that libumad2sim lets through of OpenSM's tables.
func TestSAQuery(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		fab := f.sweep(t)
		local := fab.From().LID()
		q := saInquiry{lids: 1 << fab.From().Info().LMC}
		q.ask("ClassPortInfo", "CPI", "", classPortInfoColumns)
		for _, p := range someEntrances(fab) {
			lid := p.LID()
			q.ask("NodeRecord", fmt.Sprintf("NR %d", lid), fmt.Sprintf("lid=%d", lid), nodeRecordColumns)
			if lid != local {
				q.ask("PathRecord", fmt.Sprintf("PR --slid %d --dlid %d", local, lid), fmt.Sprintf("slid=%d, dlid=%[2]d", local, lid), pathRecordColumns)
				q.ask("PathRecord", fmt.Sprintf("PR --slid %d --dlid %d", lid, local), fmt.Sprintf("slid=%d, dlid=%d", lid, local), pathRecordColumns)
			}
			q.askPorts(p)
			if p.Node().IsSwitch() {
				q.ask("SwitchInfoRecord", fmt.Sprintf("SWIR %d", lid), fmt.Sprintf("lid=%d", lid), switchInfoRecordColumns)
				top := int(p.Node().SwitchInfo().LinearFDBTop)
				for block := range top/64 + 1 {
					q.list = append(q.list, question{
						tool:  []string{"saquery", "LFTR", fmt.Sprintf("%d/%d", lid, block)},
						exprs: []string{fmt.Sprintf(`sa_get("LinearForwardingTableRecord", lid=%d, block_num=%d)`, lid, block)},
						check: checkForwarding,
					})
				}
			}
		}
		f.ask(t, q.list)
		f.compareSMInfoRecord(t)
	})
}

type saInquiry struct {
	lids int // of each port
	list []question
}

// ask has saquery asked for op ("NR 3"), and ours for the record that has
// components ("lid=3").
func (q *saInquiry) ask(record, op, components string, columns []column) {
	if components != "" {
		components = ", " + components
	}
	q.list = append(q.list, question{
		tool:  append([]string{"saquery"}, strings.Fields(op)...),
		exprs: []string{fmt.Sprintf("sa_get(%q%s)", record, components)},
		check: func(out string, ours []attributes) []string {
			return fields(columns)(untitled(out), ours)
		},
	})
}

// askPorts is about the ports of a switch, or the one port of another node.
func (q *saInquiry) askPorts(entrance *fabric.Port) {
	ports := []*fabric.Port{entrance}
	if n := entrance.Node(); n.IsSwitch() {
		ports = slices.AppendSeq(ports, n.Ports())
	}
	for _, p := range ports {
		lid, num := entrance.LID(), p.Num()
		if p.Peer() != nil || num == 0 { // of others OpenSM knows nothing
			q.ask("PortInfoRecord", fmt.Sprintf("PIR %d/%d", lid, num), fmt.Sprintf("endport_lid=%d, port_num=%d", lid, num), portInfoRecordColumns)
		}
		// OpenSM cuts the LMC off from LIDs, even off those of switches
		// that have but one, and then finds no links from there.
		if p.Peer() != nil && int(lid)%q.lids == 0 {
			q.ask("LinkRecord", fmt.Sprintf("LR %d/%d", lid, num), fmt.Sprintf("from_lid=%d, from_port=%d", lid, num), linkRecordColumns)
		}
	}
}

// untitled drops the titles of a record's parts.
func untitled(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); text != "RID" && !strings.HasSuffix(text, "dump:") && text != "SA ClassPortInfo:" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// checkForwarding compares lines of a LID and its port.
func checkForwarding(out string, ours []attributes) []string {
	head, table, ok := strings.Cut(out, "LID\tPort Number")
	if !ok {
		return []string{"no table in " + out}
	}
	theirs := numbersIn(head)
	want := []uint64{ours[0].Uint("lid"), ours[0].Uint("block_num")}
	if !slices.Equal(theirs, want) {
		return []string{fmt.Sprintf("LID and block are %d, ours %d", theirs, want)}
	}
	want = nil
	for i, port := range ours[0].uints("port_block") {
		want = append(want, 64*ours[0].Uint("block_num")+uint64(i), port)
	}
	if theirs := numbersIn(table); !slices.Equal(theirs, want) {
		return []string{fmt.Sprintf("LIDs and ports are %d, ours %d", theirs, want)}
	}
	return unknown([]column{{"", "lid", nil}, {"", "block_num", nil}, {"", "port_block", nil}}, ours[0])
}

// compareSMInfoRecord: OpenSM counts what it does in it.
func (f *peerFixture) compareSMInfoRecord(t *testing.T) {
	t.Helper()
	var before, after attributes
	f.eval(t, &before, `sa_get("SMInfoRecord")`)
	theirs, err := parseDump(untitled(f.peer.Run(t, "saquery", "SMIR")))
	if err != nil {
		t.Fatal(err)
	}
	f.eval(t, &after, `sa_get("SMInfoRecord")`)
	settle(smInfoRecordColumns, []string{"act_count"}, theirs, before, after)
	for _, problem := range compare(smInfoRecordColumns, theirs, before) {
		t.Error("SMInfoRecord: ", problem)
	}
}

// The fields that saquery shows, and ours.

var nodeRecordColumns = []column{
	{"lid", "lid", plainly},
	{"reserved", "", func(attributes, string) string { return "0x0" }},
	{"base_version", "base_version", asHex(0)},
	{"class_version", "class_version", asHex(0)},
	{"node_type", "node_type", word(nodeTypeWords)},
	{"num_ports", "num_ports", plainly},
	{"sys_guid", "system_image_guid", plainly},
	{"node_guid", "node_guid", plainly},
	{"port_guid", "port_guid", plainly},
	{"partition_cap", "partition_cap", asHex(0)},
	{"device_id", "device_id", asUpperHex(0)},
	{"revision", "revision", asUpperHex(0)},
	{"port_num", "local_port_num", plainly},
	{"vendor_id", "vendor_id", asUpperHex(0)},
	{"NodeDescription", "node_string", mangled},
}

var portInfoRecordColumns = append([]column{
	{"EndPortLid", "endport_lid", plainly},
	{"PortNum", "port_num", plainly},
	{"Options", "options", asHex(0)},
}, portInfoColumns...)

var switchInfoRecordColumns = []column{
	{"LID", "lid", plainly},
	{"LinearFDBCap", "linear_fdb_cap", asUpperHex(0)},
	{"RandomFDBCap", "random_fdb_cap", asUpperHex(0)},
	{"MulticastFDBCap", "multicast_fdb_cap", asUpperHex(0)},
	{"LinearFDBTop", "linear_fdb_top", asUpperHex(0)},
	{"DefaultPort", "default_port", plainly},
	{"DefaultMulticastPrimaryPort", "default_multicast_primary_port", plainly},
	{"DefaultMulticastNotPrimaryPort", "default_multicast_not_primary_port", plainly},
	{"LifeTimeValue/PortStateChange/OpSL2VL", "life_time_value", packed("life_time_value:5 port_state_change:1 optimized_sl_to_vl_mapping_programming:2")},
	{"", "port_state_change", nil},
	{"", "optimized_sl_to_vl_mapping_programming", nil},
	{"LIDsPerPort", "lids_per_port", asUpperHex(0)},
	{"PartitionEnforcementCap", "partition_enforcement_cap", asUpperHex(0)},
	{"flags", "inbound_enforcement_cap", packed("inbound_enforcement_cap:1 outbound_enforcement_cap:1 filter_raw_packet_inbound_cap:1 filter_raw_packet_outbound_cap:1 enhanced_port0:1 :3")},
	{"", "outbound_enforcement_cap", nil},
	{"", "filter_raw_packet_inbound_cap", nil},
	{"", "filter_raw_packet_outbound_cap", nil},
	{"", "enhanced_port0", nil},
	{"MulticastFDBTop", "multicast_fdb_top", asUpperHex(0)},
}

var linkRecordColumns = []column{
	{"FromLID", "from_lid", plainly},
	{"FromPort", "from_port", plainly},
	{"ToPort", "to_port", plainly},
	{"ToLID", "to_lid", plainly},
}

var pathRecordColumns = []column{
	{"service_id", "service_id", asHex(16)},
	{"dgid", "dgid", plainly},
	{"sgid", "sgid", plainly},
	{"dlid", "dlid", plainly},
	{"slid", "slid", plainly},
	{"hop_flow_raw", "raw_traffic", packed("raw_traffic:1 :3 flow_label:20 hop_limit:8")},
	{"", "flow_label", nil},
	{"", "hop_limit", nil},
	{"tclass", "tclass", asHex(0)},
	{"num_path_revers", "reversible", packed("reversible:1 numb_path:7")},
	{"", "numb_path", nil},
	{"pkey", "p_key", asUpperHex(0)},
	{"qos_class", "qos_class", asHex(0)},
	{"sl", "sl", asHex(0)},
	{"mtu", "mtu", packed("mtu_selector:2 mtu:6")},
	{"", "mtu_selector", nil},
	{"rate", "rate", packed("rate_selector:2 rate:6")},
	{"", "rate_selector", nil},
	{"pkt_life", "packet_life_time", packed("packet_life_time_selector:2 packet_life_time:6")},
	{"", "packet_life_time_selector", nil},
	{"preference", "preference", asHex(0)},
	{"resv2", "", func(attributes, string) string { return "0x000000000000" }},
}

var smInfoRecordColumns = []column{
	{"LID", "lid", plainly},
	{"GUID", "guid", plainly},
	{"SM_Key", "sm_key", func(a attributes, name string) string {
		if a.text(name) != "none" {
			return "a secret"
		}
		return "0x0000000000000000"
	}},
	{"ActCount", "act_count", plainly},
	{"Priority", "priority", plainly},
	{"SMState", "sm_state", func(a attributes, name string) string { return a.text(name + "_code") }},
}

var classPortInfoColumns = []column{
	{"Base version", "base_version", plainly},
	{"Class version", "class_version", plainly},
	{"Capability mask", "capability_mask", asUpperHex(4)},
	{"Capability mask 2", "capability_mask2", asUpperHex(8)},
	{"Response time value", "resp_time_value", asUpperHex(2)},
	{"Redirect GID", "redirect_gid", plainly},
	{"Redirect TC/SL/FL", "redirect_tc", packed8("redirect_tc:8 redirect_sl:4 redirect_fl:20")},
	{"", "redirect_sl", nil},
	{"", "redirect_fl", nil},
	{"Redirect LID", "redirect_lid", plainly},
	{"Redirect PKey", "redirect_p_key", asUpperHex(4)},
	{"Redirect QP", "redirect_qp", asUpperHex(8)},
	{"Redirect QKey", "redirect_q_key", asUpperHex(8)},
	{"Trap GID", "trap_gid", plainly},
	{"Trap TC/SL/FL", "trap_tc", packed8("trap_tc:8 trap_sl:4 trap_fl:20")},
	{"", "trap_sl", nil},
	{"", "trap_fl", nil},
	{"Trap LID", "trap_lid", plainly},
	{"Trap PKey", "trap_p_key", asUpperHex(4)},
	{"Trap HL/QP", "trap_hl", packed8("trap_hl:8 trap_qp:24")},
	{"", "trap_qp", nil},
	{"Trap QKey", "trap_q_key", asUpperHex(8)},
}

// packed are fields "NAME:BITS" in one number, from the top.
func packed(list string) func(attributes, string) string { return packedTo(list, "0x%X") }

func packed8(list string) func(attributes, string) string { return packedTo(list, "0x%08X") }

func packedTo(list, format string) func(attributes, string) string {
	return func(a attributes, _ string) string {
		var n uint64
		for f := range strings.FieldsSeq(list) {
			name, bits, _ := strings.Cut(f, ":")
			n <<= numbersIn(bits)[0]
			if name != "" {
				n |= a.Uint(name)
			}
		}
		return fmt.Sprintf(format, n)
	}
}

func asUpperHex(digits int) func(attributes, string) string {
	return func(a attributes, name string) string { return fmt.Sprintf("0x%0*X", digits, a.Uint(name)) }
}
