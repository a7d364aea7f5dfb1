//go:build linux

package builtins

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
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
		// OpenSM clears the bits of the LMC in LIDs, also in LIDs of
		// switches that have only one, and then finds no links from there.
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

// TestSARecords compares records that hold tables with saquery's: each table's
// first blocks, of each node.
func TestSARecords(t *testing.T) {
	adapt := func(o *SessionOptions) { o.Write = true }
	onPeerNets(t, adapt, func(t *testing.T, f *peerFixture) {
		fab := f.sweep(t)
		var list []question
		for _, p := range entrances(fab) {
			n, lid, num := p.Node(), p.LID(), p.Num()
			ports := []int{num}
			if n.IsSwitch() {
				ports = nil
				for port := range n.Ports() {
					if port.Peer() != nil {
						ports = append(ports, port.Num())
					}
				}
			}
			list = append(list, saNumbers("GIR", fmt.Sprintf("%d/0", lid), "GUIDInfoRecord", fmt.Sprintf("lid=%d, block_num=0", lid), checkNumbers("lid", "block_num", "guid_block")))
			for _, port := range ports[:min(len(ports), 3)] {
				in := 0
				if n.IsSwitch() {
					in = ports[0]
				}
				list = append(list,
					saNumbers("SL2VL", fmt.Sprintf("%d/%d/%d", lid, in, port), "SLtoVLMappingTableRecord",
						fmt.Sprintf("lid=%d, input_port_num=%d, output_port_num=%d", lid, in, port), checkSALanes),
					saNumbers("VLAR", fmt.Sprintf("%d/%d/1", lid, port), "VLArbitrationTableRecord",
						fmt.Sprintf("lid=%d, output_port_num=%d, block_num=1", lid, port), checkSAArbitration))
			}
		}
		f.ask(t, list)
	})
}

// saNumbers has saquery asked for op, and ours for the one record.
func saNumbers(op, id, record, components string, check func(string, []attributes) []string) question {
	return question{
		tool:  []string{"saquery", op, id},
		exprs: []string{fmt.Sprintf("sa_get(%q, %s)", record, components)},
		check: check,
	}
}

// checkNumbers compares the numbers of lines "NAME....NUMBER" with fields.
func checkNumbers(names ...string) func(string, []attributes) []string {
	return func(out string, ours []attributes) []string {
		var theirs, want []uint64
		for line := range strings.Lines(out) {
			if m := dots.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				theirs = append(theirs, numbersIn(m[3])...)
			}
		}
		for _, name := range names {
			want = append(want, flat(ours[0], name)...)
		}
		return differ(theirs, want)
	}
}

// flat is a field's number, or its numbers.
func flat(a attributes, name string) []uint64 {
	if _, ok := a[name].([]any); ok {
		return a.uints(name)
	}
	return []uint64{a.Uint(name)}
}

func differ(theirs, ours []uint64) []string {
	if slices.Equal(theirs, ours) {
		return nil
	}
	return []string{fmt.Sprintf("saquery has %d, we %d", theirs, ours)}
}

// rows are the numbers of lines that begin with a title and a colon.
func rows(out, title string) (list []uint64) {
	for line := range strings.Lines(out) {
		if name, numbers, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == title {
			list = append(list, numbersIn(numbers)...)
		}
	}
	return list
}

func checkSALanes(out string, ours []attributes) []string {
	want := ours[0].uints("sl_to_vl")
	return append(differ(rows(out, "VL"), want), checkNumbers("lid", "input_port_num", "output_port_num")(out, ours)...)
}

func checkSAArbitration(out string, ours []attributes) []string {
	problems := checkNumbers("lid", "output_port_num", "block_num")(out, ours)
	problems = append(problems, differ(rows(out, "VL"), ours[0].uints("vl"))...)
	return append(problems, differ(rows(out, "Weight"), ours[0].uints("weight"))...)
}

// TestSAGroups compares what saquery shows of a multicast group and of a
// service, which were made here.
func TestSAGroups(t *testing.T) {
	f := onIbsim(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet}, func(o *SessionOptions) { o.Write = true })
	var made []attributes
	f.eval(t, &made, `[(sa_set("MCMemberRecord", mgid="ff12:1::7", port_gid=me, join_state="full_member", q_key=7, p_key=0xffff, sl=3,
		flow_label=0x54321, hop_limit=9, tclass=0x21, mtu_selector="exactly", mtu="1024", rate_selector="exactly", rate="10"),
		sa_set("ServiceRecord", service_id=0x1234, service_gid=me, service_p_key=0xffff, service_lease=600, service_name="a test",
		service_data8=list(range(16)), service_data16=list(range(8)), service_data32=list(range(4))))
		for me in [gid(discover().cas[0].ports[1].guid, prefix="0xfe80000000000000")]][0]`)
	group := question{
		tool:  []string{"saquery", "--mgid", "ff12:1::7", "MCMR"},
		exprs: []string{`sa_get("MCMemberRecord", mgid="ff12:1::7")`},
		check: func(out string, ours []attributes) []string { return fields(groupColumns)(untitled(out), ours) },
	}
	service := question{
		tool:  []string{"saquery", "SR"},
		exprs: []string{`sa_get("ServiceRecord", service_id=0x1234)`},
		check: func(out string, ours []attributes) []string {
			return differ(serviceNumbers(out), slices.Concat(ours[0].uints("service_data8"), ours[0].uints("service_data16"), ours[0].uints("service_data32")))
		},
	}
	f.ask(t, []question{group, service})
}

var groupColumns = []column{
	{"MGID", "mgid", plainly},
	{"PortGid", "port_gid", plainly},
	{"qkey", "q_key", asHex(0)},
	{"mlid", "mlid", asHex(0)},
	{"mtu", "mtu_selector", packedTo("mtu_selector:2 mtu:6", "0x%x")},
	{"", "mtu", nil},
	{"TClass", "tclass", asHex(0)},
	{"pkey", "p_key", asHex(0)},
	{"rate", "rate_selector", packedTo("rate_selector:2 rate:6", "0x%x")},
	{"", "rate", nil},
	{"pkt_life", "packet_life_time_selector", packedTo("packet_life_time_selector:2 packet_life_time:6", "0x%x")},
	{"", "packet_life_time", nil},
	{"SL", "sl", asHex(0)},
	{"FlowLabel", "flow_label", asHex(0)},
	{"HopLimit", "hop_limit", asHex(0)},
	{"Scope", "scope", asHex(0)},
	{"JoinState", "join_state", asHex(0)},
	{"ProxyJoin", "proxy_join", asHex(0)},
}

// serviceNumbers are a service's data, but for the last, which do not come
// through libumad2sim.
func serviceNumbers(out string) (list []uint64) {
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(line, "...0x"); ok && strings.Contains(name, "ServiceData") && !strings.Contains(name, "ServiceData64") {
			list = append(list, numbersIn("0x"+value)...)
		}
	}
	return list
}

// TestSAChangesOpenSM makes the changes of TestSAChanges beside OpenSM.
func TestSAChangesOpenSM(t *testing.T) {
	f := onIbsim(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet}, func(o *SessionOptions) { o.Write = true })
	want, err := os.ReadFile(saChangesWanted)
	if err != nil {
		t.Fatal(err)
	}
	// The end of a request of 256 bytes does not come through libumad2sim.
	end := regexp.MustCompile(`"service_data64":\[\d+,\d+\]`)
	lines := func(s string) []string {
		return strings.Split(end.ReplaceAllString(s, `"service_data64":[]`), "\n")
	}
	theirs, ours := lines(saAnswers(t, f.fixture)), lines(string(want))
	for i, step := range saChangeSteps {
		if diff := cmp.Diff(strings.Split(theirs[i], ","), strings.Split(ours[i], ",")); diff != "" {
			t.Errorf("%s (-OpenSM +wanted):\n%s", step, diff)
		}
	}
}

// TestSAOptional sends OpenSM requests that are optional. The paths between sets of ports are the
// paths that it returns one by one; it does not support traces.
func TestSAOptional(t *testing.T) {
	f := onIbsimFor(t, 2*time.Second, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet, RMPP: true}, nil) // some of it is not answered
	f.Format = lang.FormatText
	const gids = `g = [gid(p.guid, prefix="0xfe80000000000000") for c in discover().cas for p in c.ports if p.peer]; `
	for _, test := range []struct {
		code, out, err string
		status         int
	}{
		{gids + `sa_getmulti(sgids=g[:2], dgids=g[2:]) == [sa_get("PathRecord", sgid=s, dgid=d) for s in g[:2] for d in g[2:]]`, "True\n", "", 0},
		{gids + `len(sa_getmulti(sgids=g, dgids=g[0], numb_path=2))`, "2\n", "", 0},
		{gids + `sa_getmulti(sgids=g, dgids=g[0], mtu_selector="greater_than", mtu="4096")`, "[]\n", "", 0},
		{`m = sa_get("PathRecord", slid=1, dlid=2).mtu; [[r.mtu for r in sa_gettable("PathRecord", slid=1, dlid=2, mtu=x)] for x in (m, "4096")] == [[m], []]`, "True\n", "", 0},
		{`sa_getmulti(sgids="fe80::1234", dgids="fe80::1234")`, "",
			"sa_getmulti: MultiPathRecord of the subnet administrator: SubnAdmGetMulti(PathRecord) to LID 1: invalid gid (status 0x0500); check that a port has this GID, which is the subnet prefix and the port GUID", 3},
		{`sa_gettrace(slid=1, dlid=2)`, "",
			"sa_gettrace: TraceRecord of the subnet administrator: SubnAdmGetTraceTable(TraceRecord) to LID 1: timed out after 3 attempts in 6s; method probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support)", 3},
		{`sa_gettable("RandomForwardingTableRecord")`, "",
			"sa_gettable: RandomForwardingTableRecord of the subnet administrator: SubnAdmGetTable(RandomForwardingTableRecord) to LID 1: timed out after 3 attempts in 6s; record probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support); or the answer takes long or was lost: increase --timeout and --retries", 3},
	} {
		out, explained, status := f.run(test.code)
		if explained = firstLines(explained, test.err); out != test.out || explained != test.err || status != test.status {
			t.Errorf("%s\n%s%s\nstatus %d", test.code, out, explained, status)
		}
	}
}

// TestCutTables: what libumad2sim cuts is an error, and what fits is whole.
func TestCutTables(t *testing.T) {
	f := onIbsim(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3"}, nil)
	fab := f.sweep(t)
	leaf := fab.From().Peer().Node()
	for _, test := range []struct {
		code   string
		want   string // all that is written to stdout
		err    string
		status int
	}{
		{`len(sa_gettable("NodeRecord", lid=1))`, "1\n", "", 0},
		{fmt.Sprintf(`len(sa_gettable("LinkRecord", from_lid=%d))`, leaf.LID()), "6\n", "", 0},
		{`len(sa_gettable("NodeRecord", lid=1000))`, "0\n", "", 0},
		{`print("first"); len(sa_gettable("NodeRecord")); print("second")`, "first\n", "sa_gettable: NodeRecord of the subnet administrator: " +
			"SubnAdmGetTable(NodeRecord) to LID 1: table cut by the transport, which cannot carry long tables; request fewer records", 3},
		{`catch(sa_gettable, "PathRecord", slid=1).status`, "\"table cut by the transport, which cannot carry long tables; request fewer records\"\n", "", 0},
		{`len(sa_gettable("PathRecord", slid=1, dlid=2))`, "1\n", "", 0},
	} {
		f.Format = lang.FormatText
		out, explained, status := f.run(test.code)
		if diff := cmp.Diff(test.want, out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.code, diff)
		}
		if diff := cmp.Diff(test.err, firstLines(explained, test.err)); diff != "" || status != test.status {
			t.Errorf("%s: status %d, want %d (-want +got):\n%s", test.code, status, test.status, diff)
		}
	}
}

// TestWholeTables gets tables of thousands of records from an OpenSM that
// sends them in segments, as a kernel would.
func TestWholeTables(t *testing.T) {
	const leaves, spines, hosts = 36, 18, 18
	const cas, switches = leaves * hosts, leaves + spines
	f := onIbsim(t, ibsimtest.FatTree(leaves, spines, hosts), ibsimtest.FixtureOptions{SM: "host-35-17", RMPP: true}, nil)
	fab := f.sweep(t)
	if got := len(fab.Nodes()); got != cas+switches {
		t.Fatalf("%d nodes", got)
	}
	for _, test := range []struct {
		query string
		want  int
	}{
		{`"NodeRecord"`, cas + switches},
		{`"NodeRecord", node_type="switch"`, switches},
		{`"SwitchInfoRecord"`, switches},
		{`"LinkRecord"`, 2 * (cas + leaves*spines)},
		{`"LinearForwardingTableRecord"`, switches * ((cas+switches)/64 + 1)},
		{`"PortInfoRecord"`, cas + switches*(36+1)},
		{`"PortInfoRecord", port_state="active", port_num=1`, cas + switches},
		{fmt.Sprintf(`"PathRecord", slid=%d`, fab.From().LID()), cas + switches},
		{fmt.Sprintf(`"PathRecord", dlid=%d`, fab.From().LID()), cas + switches},
	} {
		var n int
		if f.eval(t, &n, "len(sa_gettable(%s))", test.query); n != test.want {
			t.Errorf("%s: %d records, want %d", test.query, n, test.want)
		}
	}
	compareNodeRecords(t, f, fab)
	comparePaths(t, f, fab)

	// Many tables at once come whole, too.
	var counts []int
	f.eval(t, &counts, `parallel(lambda i: len(sa_gettable("NodeRecord", node_type=["ca", "switch"][i %% 2])), range(8))`)
	if diff := cmp.Diff([]int{cas, switches, cas, switches, cas, switches, cas, switches}, counts); diff != "" {
		t.Errorf("in parallel (-want +got):\n%s", diff)
	}
}

// compareNodeRecords: OpenSM says of every node what the node says of itself.
func compareNodeRecords(t *testing.T, f *peerFixture, fab *fabric.Fabric) {
	t.Helper()
	type node struct {
		Name  string `json:"node_string"`
		GUID  string `json:"node_guid"`
		Ports int    `json:"num_ports"`
		Type  string `json:"node_type"`
	}
	var records []struct {
		LID mad.LID
		node
	}
	f.eval(t, &records, `sa_gettable("NodeRecord")`)
	got, want := map[mad.LID]node{}, map[mad.LID]node{}
	for _, r := range records {
		got[r.LID] = r.node
	}
	for i := range fab.Nodes() {
		n := &fab.Nodes()[i]
		want[n.LID()] = node{n.Name(), n.GUID().String(), n.NumPorts(), n.Type().String()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NodeRecords (-want +got):\n%s", diff)
	}
}

// comparePaths: there is one path to each LID.
func comparePaths(t *testing.T, f *peerFixture, fab *fabric.Fabric) {
	t.Helper()
	var lids []mad.LID
	f.eval(t, &lids, `[p.dlid for p in sa_gettable("PathRecord", slid=%d)]`, fab.From().LID())
	got, want := map[mad.LID]int{}, map[mad.LID]int{}
	for _, lid := range lids {
		got[lid]++
	}
	for i := range fab.Nodes() {
		want[fab.Nodes()[i].LID()] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths to each LID (-want +got):\n%s", diff)
	}
}
