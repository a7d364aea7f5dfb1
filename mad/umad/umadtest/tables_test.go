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

// Tables are what the tools of infiniband-diags read after they were set.
func testWholeTables(t *testing.T, s *subnet) {
	got := fabsh(t.Context(), `
sw = discover().switches[0]
set_mft(sw, {0xc005: [2, 17]})
print(sw.lid, get_mft(sw)[0xc005], hex(set_pkeys(sw.ports[2], {1: 0x8123})[1]), set_sl2vl(sw.ports[2], {3: 1})[1, 2][3], set_vlarb(sw.ports[2], {"high": [(1, 77)]}).high[0])
`, "--write", "--override-sm")
	lid, rest, _ := strings.Cut(got, " ")
	is(t, "fabsh", rest, "(2, 17) 0x8123 1 (1, 77)\n")
	for _, c := range []struct {
		tool []string
		want string
	}{
		{[]string{"ibroute", "-M", "-n", lid}, `(?m)^0xc005\s+00040002`},
		{[]string{"smpquery", "-L", "PKeys", lid, "2"}, `0x8123`},
		{[]string{"smpquery", "-L", "SL2VL", lid, "2"}, `in  1, out  2: \| 0\| 1\| 2\| 1\|`},
		{[]string{"smpquery", "-L", "VLArb", lid, "2"}, `WEIGHT: \|0x4D`},
	} {
		if out := diag(t, c.tool[0], c.tool[1:]...); !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%v knows nothing of it:\n%s", c.tool, out)
		}
	}
}

// A host's link goes down, which smpquery sees; ours stays up.
func testLinks(t *testing.T, s *subnet) {
	got := fabsh(t.Context(), `
f = discover()
i = smp_get("PortInfo", dr("0"), 1)
leaf = [c for c in f.cas if c.lid == i.lid][0].ports[1].peer
own = catch(port_disable, leaf)
p = [c for c in f.cas if c.lid != i.master_sm_lid and c.ports[1].peer.node != leaf.node][0].ports[1].peer
print(p.node.route, p.num, port_set(p, width=["1x"]).link_width_enabled, port_disable(p).port_physical_state)
print(own.message if not own else own)
`, "--write", "--override-sm")
	at, own, _ := strings.Cut(got, "\n")
	words := strings.Fields(at)
	if len(words) != 4 || words[3] != "disabled" || !strings.Contains(own, "not taken down: this session reaches the node through it") {
		t.Fatalf("fabsh says %q", got)
	}
	out := diag(t, "smpquery", "-D", "PortInfo", words[0], words[1])
	is(t, "PhysLinkState", field(t, out, "PhysLinkState"), "Disabled")
	is(t, "LinkWidthEnabled", field(t, out, "LinkWidthEnabled"), "1X")
}

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
// trusted: P_Keys are reported to no other requester.
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

// trusted asks saquery with the SM_Key that OpenSM has by default.
func trusted(t *testing.T, args ...string) string {
	t.Helper()
	return diag(t, "saquery", append([]string{"--smkey", "1"}, args...)...)
}

// testRecords makes, changes and deletes records, which saquery sees.
func testRecords(t *testing.T, s *subnet) {
	const me = `p = smp_get("PortInfo", dr("0"), 1); me = gid(sa_get("NodeRecord", lid=p.lid).port_guid, prefix=p.gid_prefix); `
	gid := strings.TrimSpace(fabsh(t.Context(), me+"print(me)"))
	group := regexp.MustCompile(`MGID\.+ff12:1::7\n\s*Mlid\.+0xC001\n`)
	member := regexp.MustCompile(`MGID\.+ff12:1::7\n\s*Mlid\.+0xC001\n\s*PortGid\.+` + gid + `\n\s*ScopeState\.+(\S+)\n`)
	state := func() string { // "": there is no group
		if m := member.FindStringSubmatch(trusted(t, "-m")); m != nil && group.MatchString(diag(t, "saquery", "-g")) {
			return m[1]
		}
		return ""
	}
	const change = me + `print(sa_%s("MCMemberRecord", mgid="ff12:1::7", port_gid=me, join_state="%s_member"%s).join_state)`
	for _, step := range []struct {
		verb, state, more string
		out               string
		peer              string // ScopeState of the member; "": there is no group
	}{
		{"set", "full", ", q_key=7, p_key=0xffff, sl=0, flow_label=0, tclass=0", `("full_member",)`, "0x1"},
		{"set", "non", "", `("full_member", "non_member")`, "0x3"},
		{"delete", "non", "", `("full_member",)`, "0x1"},
		{"delete", "full", "", `()`, ""},
	} {
		is(t, step.verb+" "+step.state, fabsh(t.Context(), fmt.Sprintf(change, step.verb, step.state, step.more), "--write"), step.out+"\n")
		is(t, "ScopeState after "+step.verb+" "+step.state, state(), step.peer)
	}
	got := fabsh(t.Context(), fmt.Sprintf(change, "delete", "full", ""), "--write")
	if !strings.Contains(got, "request invalid (status 0x0200)") || !strings.HasSuffix(got, "[exit status 3]\n") {
		t.Errorf("who is no member leaves: %s", got)
	}
	got = fabsh(t.Context(), fmt.Sprintf(change, "set", "full", ""))
	if !strings.Contains(got, "refused: it would change the fabric; allow changes with --write") || !strings.HasSuffix(got, "[exit status 2]\n") {
		t.Errorf("without --write: %s", got)
	}

	const service = me + `s = sa_%s("ServiceRecord", service_id=0x77, service_gid=me, service_p_key=0xffff%s); print(s.service_name, s.service_data64, s.service_key)`
	is(t, "announced", fabsh(t.Context(), fmt.Sprintf(service, "set", `, service_name="a test", service_key="secret", service_data64=[1, 2]`), "--write"), "a test (1, 2) none\n")
	if out := diag(t, "saquery", "SR"); !strings.Contains(out, "ServiceName.............a test\n") {
		t.Errorf("saquery SR: %s", out)
	}
	is(t, "found", fabsh(t.Context(), `print([s.service_id for s in sa_gettable("ServiceRecord", service_data64=[1, 2])])`), "[119]\n")
	is(t, "taken back", fabsh(t.Context(), fmt.Sprintf(service, "delete", ""), "--write"), "a test (1, 2) none\n")
	if out := diag(t, "saquery", "SR"); strings.Contains(out, "ServiceName.............a test\n") {
		t.Errorf("saquery SR: %s", out)
	}
}

// testPaths asks for paths between sets of ports, which OpenSM knows, and for
// traces, which it does not.
func testPaths(t *testing.T, s *subnet) {
	is(t, "sa_getmulti", fabsh(t.Context(), `
prefix = smp_get("PortInfo", dr("0"), 1).gid_prefix
g = [gid(r.port_guid, prefix=prefix) for r in sa_gettable("NodeRecord", node_type="ca")]
paths = sa_getmulti(sgids=g[:3], dgids=g[3:7])
print(len(paths), paths == [sa_get("PathRecord", sgid=s, dgid=d) for s in g[:3] for d in g[3:7]])`), "12 True\n")
	// A request of two segments, of which OpenSM heeds 11 ports.
	is(t, "12 ports", fabsh(t.Context(), `
prefix = smp_get("PortInfo", dr("0"), 1).gid_prefix
g = [gid(r.port_guid, prefix=prefix) for r in sa_gettable("NodeRecord", node_type="ca")]
print(len(sa_getmulti(sgids=g[:6], dgids=g[6:12])))`), "30\n")
	got := fabsh(t.Context(), `sa_gettrace(slid=1, dlid=2)`, "-t", "1s")
	want := "timed out after 3 attempts in 3s; method probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support)\n"
	if !strings.Contains(got, want) || !strings.HasSuffix(got, "[exit status 3]\n") {
		t.Errorf("sa_gettrace: %s", got)
	}
}
