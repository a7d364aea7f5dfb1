//go:build linux

package builtins

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// The fields that perfquery shows, and ours.

var portCountersColumns = []column{
	{"PortSelect", "port_select", plainly},
	{"CounterSelect", "counter_select", asHex(4)},
	{"SymbolErrorCounter", "symbol_error_counter", plainly},
	{"LinkErrorRecoveryCounter", "link_error_recovery_counter", plainly},
	{"LinkDownedCounter", "link_downed_counter", plainly},
	{"PortRcvErrors", "port_rcv_errors", plainly},
	{"PortRcvRemotePhysicalErrors", "port_rcv_remote_physical_errors", plainly},
	{"PortRcvSwitchRelayErrors", "port_rcv_switch_relay_errors", plainly},
	{"PortXmitDiscards", "port_xmit_discards", plainly},
	{"PortXmitConstraintErrors", "port_xmit_constraint_errors", plainly},
	{"PortRcvConstraintErrors", "port_rcv_constraint_errors", plainly},
	{"CounterSelect2", "counter_select2", asHex(2)},
	{"LocalLinkIntegrityErrors", "local_link_integrity_errors", plainly},
	{"ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors", plainly},
	// The tool reads QP1Dropped where VL15Dropped is (libibmad/fields.c
	// has a bit offset of 160 that lacks BITSOFFS).
	{"QP1Dropped", "qp1_dropped", func(a attributes, _ string) string { return a.text("vl15_dropped") }},
	{"VL15Dropped", "vl15_dropped", plainly},
	{"PortXmitData", "port_xmit_data", plainly},
	{"PortRcvData", "port_rcv_data", plainly},
	{"PortXmitPkts", "port_xmit_pkts", plainly},
	{"PortRcvPkts", "port_rcv_pkts", plainly},
	{"PortXmitWait", "port_xmit_wait", plainly},
}

var portCountersExtendedColumns = []column{
	{"PortSelect", "port_select", plainly},
	{"CounterSelect", "counter_select", asHex(4)},
	{"PortXmitData", "port_xmit_data", plainly},
	{"PortRcvData", "port_rcv_data", plainly},
	{"PortXmitPkts", "port_xmit_pkts", plainly},
	{"PortRcvPkts", "port_rcv_pkts", plainly},
	{"PortUnicastXmitPkts", "port_unicast_xmit_pkts", plainly},
	{"PortUnicastRcvPkts", "port_unicast_rcv_pkts", plainly},
	{"PortMulticastXmitPkts", "port_multicast_xmit_pkts", plainly},
	{"PortMulticastRcvPkts", "port_multicast_rcv_pkts", plainly},
	// The tool shows the others only where CapabilityMask2 has them.
	{"", "counter_select2", nil},
	{"", "symbol_error_counter", nil},
	{"", "link_error_recovery_counter", nil},
	{"", "link_downed_counter", nil},
	{"", "port_rcv_errors", nil},
	{"", "port_rcv_remote_physical_errors", nil},
	{"", "port_rcv_switch_relay_errors", nil},
	{"", "port_xmit_discards", nil},
	{"", "port_xmit_constraint_errors", nil},
	{"", "port_rcv_constraint_errors", nil},
	{"", "local_link_integrity_errors", nil},
	{"", "excessive_buffer_overrun_errors", nil},
	{"", "vl15_dropped", nil},
	{"", "port_xmit_wait", nil},
	{"", "qp1_dropped", nil},
}

// moving are the counters that grow with each request.
var moving = []string{"port_xmit_data", "port_rcv_data", "port_xmit_pkts", "port_rcv_pkts"}

// seedable are the counters that ibsim's console sets, and their widths. It
// has no QP1Dropped, and what it is told of PortMultiCastRcvPkts is lost.
var seedable = map[string]map[string]int{
	"PortCounters": {
		"SymbolErrorCounter": 16, "LinkErrorRecoveryCounter": 8, "LinkDownedCounter": 8, "PortRcvErrors": 16,
		"PortRcvRemotePhysicalErrors": 16, "PortRcvSwitchRelayErrors": 16, "PortXmitDiscards": 16,
		"PortXmitConstraintErrors": 8, "PortRcvConstraintErrors": 8, "LocalLinkIntegrityErrors": 4,
		"ExcessiveBufferOverrunErrors": 4, "VL15Dropped": 16, "PortXmitData": 32, "PortRcvData": 32,
		"PortXmitPkts": 32, "PortRcvPkts": 32, "PortXmitWait": 32,
	},
	"PortCountersExtended": {
		"PortXmitData": 64, "PortRcvData": 64, "PortXmitPkts": 64, "PortRcvPkts": 64, "PortUnicastXmitPkts": 64,
		"PortUnicastRcvPkts": 64, "PortMultiCastXmitPkts": 64,
	},
}

// TestPerfQuery compares perf_get with perfquery, and both with what ibsim was
// told to count: every port, and the sum of a switch's.
func TestPerfQuery(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		fab := f.sweep(t)
		ids := nodeIDs(t, f)
		random := rand.New(rand.NewPCG(1, 2))
		for _, p := range entrances(fab) {
			var ports []string // of the node, as perf_get takes them
			n := p.Node()
			if n.IsSwitch() {
				for num := range n.NumPorts() + 1 {
					ports = append(ports, fmt.Sprint(num))
				}
				ports = append(ports, "255")
			} else {
				ports = append(ports, fmt.Sprint(p.Num()))
			}
			seeds := map[string]attributes{}
			for _, num := range ports {
				if num == "255" || num == "0" && !n.SwitchInfo().EnhancedPort0 {
					continue
				}
				seeds[num] = f.seed(t, random, ids[n.GUID()], num)
			}
			f.compareCounters(t, p, ports, seeds)
			f.compareClassPortInfo(t, p)
		}
	})
}

// nodeIDs are the names that ibsim's console has for nodes.
func nodeIDs(t *testing.T, f *peerFixture) map[mad.GUID]string {
	t.Helper()
	ids := map[mad.GUID]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:ca|switch|rt)guid=0x([0-9a-f]+)\n\w+\s+\d+ "([^"]+)"`).FindAllStringSubmatch(f.net, -1) {
		guid, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids[mad.GUID(guid)] = m[2]
	}
	return ids
}

// seed has ibsim count what it has not, and returns what that is.
func (f *peerFixture) seed(t *testing.T, random *rand.Rand, node, port string) attributes {
	t.Helper()
	seeds := attributes{"PortCounters.qp1_dropped": uint64(0)}
	for attr, counters := range seedable {
		for name, width := range counters {
			// Traffic needs room to grow.
			v := random.Uint64() >> (65 - width)
			f.peer.Console(t, `PerformanceSet "%s"[%s] %s.%s=%d`, node, port, attr, name, v)
			seeds[attr+"."+mad.SnakeName(strings.ReplaceAll(name, "MultiCast", "Multicast"))] = v
		}
	}
	return seeds
}

// compareCounters compares the counters of all ports of a node.
func (f *peerFixture) compareCounters(t *testing.T, p *fabric.Port, ports []string, seeds map[string]attributes) {
	t.Helper()
	for _, kind := range []struct {
		attr, flag string
		columns    []column
	}{
		{"PortCounters", "-L", portCountersColumns},
		{"PortCountersExtended", "-x", portCountersExtendedColumns},
	} {
		read := fmt.Sprintf("[perf_get(%q, %d, p) for p in [%s]]", kind.attr, p.LID(), strings.Join(ports, ", "))
		var before, after []attributes
		f.eval(t, &before, "%s", read)
		out := f.peer.Run(t, "perfquery", kind.flag, "-l", fmt.Sprint(p.LID()), strings.Join(ports, ","))
		f.eval(t, &after, "%s", read)
		shown := strings.SplitAfter(out, "# Port ")[1:]
		if len(shown) != len(ports) {
			t.Fatalf("%d ports, want %d, in\n%s", len(shown), len(ports), out)
		}
		for i, num := range ports {
			what := fmt.Sprintf("%s of port %s of LID %d", kind.attr, num, p.LID())
			_, lines, _ := strings.Cut(shown[i], "\n")
			theirs, err := parseDump(strings.TrimSuffix(lines, "# Port "))
			if err != nil {
				t.Fatal(err)
			}
			settle(kind.columns, moving, theirs, before[i], after[i])
			for _, problem := range compare(kind.columns, theirs, before[i]) {
				t.Errorf("%s: %s", what, problem)
			}
			for name, want := range seeds[num] {
				counter, ok := strings.CutPrefix(name, kind.attr+".")
				if !ok {
					continue
				}
				// Traffic goes on from the seed.
				got, want := after[i].Uint(counter), want.(uint64)
				if got < want || got > want && !slices.Contains(moving, counter) {
					t.Errorf("%s: %s is %d, want %d", what, counter, got, want)
				}
			}
		}
	}
}

// compareClassPortInfo compares what perfquery shows of it: masks.
func (f *peerFixture) compareClassPortInfo(t *testing.T, p *fabric.Port) {
	t.Helper()
	out := f.peer.Run(t, "perfquery", "-x", fmt.Sprint(p.LID()), fmt.Sprint(p.Num()))
	var info attributes
	f.eval(t, &info, `perf_get("ClassPortInfo", %d)`, p.LID())
	title, _, _ := strings.Cut(out, "\n")
	want := fmt.Sprintf("# Port extended counters: Lid %d port %d (CapMask: 0x%02X CapMask2: 0x%07X)", p.LID(), p.Num(), info.Uint("capability_mask"), info.Uint("capability_mask2"))
	if title != want {
		t.Errorf("perfquery has %q, we %q", title, want)
	}
}
