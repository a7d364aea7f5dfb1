//go:build linux

package builtins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

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
