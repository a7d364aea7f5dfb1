//go:build kernelibtest

package umadtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// saTables are what saquery shows of each kind of record, and how fabsh says
// the same of a record r: the values of saquery's lines, in their order.
var saTables = []struct {
	op, record string
	labels     string // of the lines; "": all, and the tables below them
	code       string
}{
	{"NR", "NodeRecord", "lid num_ports sys_guid node_guid port_guid partition_cap device_id revision port_num vendor_id",
		`[r.lid, r.num_ports, r.system_image_guid, r.node_guid, r.port_guid, r.partition_cap, r.device_id, r.revision, r.local_port_num, r.vendor_id]`},
	{"PIR", "PortInfoRecord", "EndPortLid PortNum Options Lid SMLid CapMask LocalPort",
		`[r.endport_lid, r.port_num, r.options, r.lid, r.master_sm_lid, r.capability_mask_code, r.local_port_num]`},
	{"LR", "LinkRecord", "", `[r.from_lid, r.from_port, r.to_port, r.to_lid]`},
	{"SWIR", "SwitchInfoRecord", "LID LinearFDBCap RandomFDBCap MulticastFDBCap LinearFDBTop DefaultPort LIDsPerPort PartitionEnforcementCap",
		`[r.lid, r.linear_fdb_cap, r.random_fdb_cap, r.multicast_fdb_cap, r.linear_fdb_top, r.default_port, r.lids_per_port, r.partition_enforcement_cap]`},
	{"SMIR", "SMInfoRecord", "LID GUID Priority SMState", `[r.lid, r.guid, r.priority, r.sm_state_code]`},
	{"LFTR", "LinearForwardingTableRecord", "",
		`[r.lid, r.block_num] + flat([(64 * r.block_num + i, p) for i, p in enumerate(r.port_block)])`},
	{"MFTR", "MulticastForwardingTableRecord", "",
		`[r.lid, r.position, r.block_num] + flat([(0xc000 + 32 * r.block_num + i, p) for i, p in enumerate(r.port_mask_block)])`},
	{"SL2VL", "SLtoVLMappingTableRecord", "", `[r.lid, r.input_port_num, r.output_port_num] + list(r.sl_to_vl)`},
	{"VLAR", "VLArbitrationTableRecord", "",
		`[r.lid, r.output_port_num, r.block_num] + list(r.vl[:16]) + list(r.weight[:16]) + list(r.vl[16:]) + list(r.weight[16:])`},
	// OpenSM sends BlockNum in its host's byte order, and saquery shows it so
	// (opensm osm_sa_pkey_record.c, sa_pkey_create).
	{"PKTR", "P_KeyTableRecord", "", `[r.lid, r.port_num, r.block_num // 256] + list(r.p_key_block)`},
	{"GIR", "GUIDInfoRecord", "", `[r.lid, r.block_num] + list(r.guid_block)`},
	{"IIR", "InformInfoRecord", "SubscriberGID SubscriberEnum trap_num", `[r.subscriber_gid, r.enum, r.trap_number]`},
	{"SR", "ServiceRecord", "ServiceID ServiceGID ServiceP_Key ServiceName", `[r.service_id, r.service_gid, r.service_p_key, r.service_name]`},
	{"MCMR", "MCMemberRecord", "MGID mlid TClass pkey SL FlowLabel HopLimit Scope",
		`[r.mgid, r.mlid, r.tclass, r.p_key, r.sl, r.flow_label, r.hop_limit, r.scope_code]`},
	{"PR", "PathRecord", "dgid sgid dlid slid pkey qos_class sl mtu rate pkt_life",
		`[r.dgid, r.sgid, r.dlid, r.slid, r.p_key, r.qos_class, r.sl, 64 * r.mtu_selector_code + r.mtu_code, 64 * r.rate_selector_code + r.rate_code, 64 * r.packet_life_time_selector_code + r.packet_life_time]`},
}

// testSATables compares all tables that saquery gets of OpenSM, record for
// record, after services were announced, two ports far apart have joined a
// multicast group, and a script has subscribed. Both show that they may be
// trusted: P_Keys are told to nobody else.
func testSATables(t *testing.T, s *subnet) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("sa_key 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const prepare = `
cas = sa_gettable("NodeRecord", node_type="ca")
for n in cas[0], cas[-1]:
    g = gid(n.port_guid, prefix="0xfe80000000000000")
    sa_set("ServiceRecord", service_id=n.lid, service_gid=g, service_p_key=0xffff, service_lease=0xffffffff, service_name="fabsh")
    sa_set("MCMemberRecord", mgid="ff12:1::9", port_gid=g, join_state="full_member", q_key=7, p_key=0xffff, sl=0, flow_label=0, tclass=0)
for i in range(1000): # until OpenSM has set up the group's tree
    if sa_gettable("MulticastForwardingTableRecord"):
        break
    sleep("200ms")`
	const leave = `
cas = sa_gettable("NodeRecord", node_type="ca")
for n in cas[0], cas[-1]:
    g = gid(n.port_guid, prefix="0xfe80000000000000")
    sa_delete("MCMemberRecord", mgid="ff12:1::9", port_gid=g, join_state="full_member")`
	saquery := func(op string) string { return diag(t, "saquery", "--smkey", "1", "-t", "20000", op) }
	if out := fabsh(t.Context(), prepare, "--write", "--keys", keys); out != "" {
		t.Fatalf("services and members: %s", out)
	}
	defer func() {
		if out := fabsh(t.Context(), leave, "--write", "--keys", keys); out != "" {
			t.Errorf("leaving: %s", out)
		}
	}()
	r := runFabsh(t, `
sub = sa_subscribe(trap=[128, 64])
print("subscribed")
sub.next(timeout="1h")`)
	r.says("subscribed")
	defer func() {
		r.Process.Signal(os.Interrupt)
		r.Wait()
		is(t, "subscriptions of a script that was interrupted", fmt.Sprint(subscriptions(t)), "[]")
	}()
	for _, c := range saTables {
		t.Run(c.record, func(t *testing.T) {
			force := ""
			if c.record == "PathRecord" {
				force = ", force=True"
			}
			out := fabsh(t.Context(), `
flat = lambda pairs: [x for p in pairs for x in p]
for r in sa_gettable("`+c.record+`"`+force+`):
    print(*`+c.code+`)`, "-t", "20s", "--keys", keys)
			var ours []string
			for line := range strings.Lines(out) {
				ours = append(ours, plain(strings.Fields(line)))
			}
			theirs := saRecords(saquery(c.op), strings.Fields(c.labels))
			t.Logf("%d records", len(theirs))
			if len(theirs) == 0 {
				t.Error("saquery shows none")
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			is(t, "records", strconv.Itoa(len(ours)), strconv.Itoa(len(theirs)))
			for i := range min(len(ours), len(theirs)) {
				if ours[i] != theirs[i] {
					t.Fatalf("record %d\nfabsh   %s\nsaquery %s", i, ours[i], theirs[i])
				}
			}
		})
	}
}

var labelled = regexp.MustCompile(`^\s*(.*?):?\.\.+(.*)$`)

// saRecords are the records in saquery's output: of each the values of the
// lines with the labels, or of all lines.
func saRecords(out string, labels []string) (records []string) {
	var values []string
	end := func() {
		if values != nil {
			records = append(records, plain(values))
		}
	}
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		m := labelled.FindStringSubmatch(line)
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasSuffix(line, " dump:") && line[0] != '\t':
			end()
			values = []string{}
		case m != nil && (len(labels) == 0 || slices.Contains(labels, m[1])):
			values = append(values, m[2])
		case m != nil, len(labels) > 0, strings.HasPrefix(trimmed, "SL:"):
		case strings.HasPrefix(trimmed, "VL"), strings.HasPrefix(trimmed, "Weight"):
			_, list, _ := strings.Cut(trimmed, ":")
			values = append(values, strings.FieldsFunc(list, func(r rune) bool { return r == '|' || r == ' ' })...)
		case strings.ContainsAny(trimmed, "0123456789"):
			values = append(values, strings.Fields(trimmed)...)
		}
	}
	end()
	return records
}

// plain is the values in a line, their numbers in decimal.
func plain(values []string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v
		if n, err := strconv.ParseUint(v, 0, 64); err == nil {
			list[i] = strconv.FormatUint(n, 10)
		}
	}
	return strings.Join(list, " ")
}
