//go:build linux

package builtins

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
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

// counterOptions are the options of perfquery that ibsim answers.
var counterOptions = []struct {
	option string
	attr   *mad.Attribute
}{
	{"-L", mad.AttrPortCounters},
	{"-x", mad.AttrPortCountersExtended},
	{"-D", mad.AttrPortXmitDiscardDetails},
	{"-E", mad.AttrPortRcvErrorDetails},
	{"--oprcvcounters", mad.AttrPortOpRcvCounters},
	{"--flowctlcounters", mad.AttrPortFlowCtlCounters},
	{"--vloppackets", mad.AttrPortVLOpPackets},
	{"--vlopdata", mad.AttrPortVLOpData},
	{"--vlxmitflowctlerrors", mad.AttrPortVLXmitFlowCtlUpdateErrors},
	{"--vlxmitcounters", mad.AttrPortVLXmitWaitCounters},
}

// ibsimNames are what ibsim's console calls fields otherwise.
var ibsimNames = map[string]string{
	"PortVLXmitWait":        "PortVLXmitWaitCounters",
	"PortMulticastXmitPkts": "PortMultiCastXmitPkts",
}

// perfqueryNames are what perfquery calls fields otherwise.
var perfqueryNames = map[string]string{"PortMalformedPacketErrors": "PortMalformedPktErrors"}

// unseedable: ibsim's console does not know them, or loses them; perfquery
// reads QP1Dropped in another's place; traffic moves by itself.
var unseedable = []string{
	"QP1Dropped", "PortMulticastRcvPkts", "PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortUnicastXmitPkts", "PortUnicastRcvPkts",
}

// TestPerfClear has ibsim count, and clears half of it: all attributes that
// ibsim has, field for field beside perfquery.
func TestPerfClear(t *testing.T) {
	f := onIbsim(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet}, func(o *SessionOptions) { o.Write = true })
	sw := f.sweep(t).OfType(mad.NodeTypeSwitch)[0]
	for _, o := range counterOptions {
		t.Run(o.attr.Name, func(t *testing.T) {
			names := datagrams.CounterNames(o.attr)
			var counters []*mad.Field
			for _, name := range names {
				field := o.attr.Field(name)
				if field.Offset/8 < 72 || o.attr != mad.AttrPortCountersExtended { // ibsim has the old ones only
					counters = append(counters, field)
				}
			}
			id := nodeIDs(t, f)[sw.GUID()]
			seed := func() {
				n := uint64(0)
				for _, c := range counters {
					if slices.Contains(unseedable, c.Name) {
						continue
					}
					name := c.Name
					if other, ok := ibsimNames[name]; ok {
						name = other
					}
					for e := range c.Count {
						if n++; c.Count > 1 {
							f.peer.Console(t, `PerformanceSet "%s"[1] %s.%s%d=%d`, id, o.attr.Name, name, e, n%c.Max()+1)
						} else {
							f.peer.Console(t, `PerformanceSet "%s"[1] %s.%s=%d`, id, o.attr.Name, name, n%c.Max()+1)
						}
					}
				}
			}
			lid := sw.Port(0).LID()
			theirs := func() map[string]uint64 {
				values := map[string]uint64{}
				for line := range strings.Lines(f.peer.Run(t, "perfquery", o.option, "-l", fmt.Sprint(lid), "1")) {
					if m := dots.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
						values[m[1]], _ = strconv.ParseUint(m[3], 0, 64)
					}
				}
				return values
			}
			compareAll := func(what string, ours attributes) (values map[string]uint64) {
				t.Helper()
				values = map[string]uint64{}
				shown := theirs()
				for _, c := range counters {
					if slices.Contains(unseedable, c.Name) {
						continue
					}
					name := c.Name
					if other, ok := perfqueryNames[name]; ok {
						name = other
					}
					if c.Count == 1 {
						values[c.Script] = ours.Uint(c.Script)
						if got, ok := shown[name]; !ok || got != ours.Uint(c.Script) {
							t.Errorf("%s: %s is %d, perfquery has %d", what, c.Script, ours.Uint(c.Script), got)
						}
						continue
					}
					for e, v := range ours.uints(c.Script) {
						key := fmt.Sprint(name, e)
						values[c.Script] += v
						if got, ok := shown[key]; !ok || got != v {
							t.Errorf("%s: %s[%d] is %d, perfquery has %d", what, c.Script, e, v, got)
						}
					}
				}
				return values
			}
			seed()
			var ours attributes
			f.eval(t, &ours, `perf_get(%q, %d, 1)`, o.attr.Name, lid)
			full := compareAll("seeded", ours)
			for name, v := range full {
				if v == 0 {
					t.Fatalf("%s is 0: nothing is tested", name)
				}
			}
			// Every other counter; or all.
			var chosen []string
			for i, name := range names {
				if i%2 == 0 {
					chosen = append(chosen, strconv.Quote(name))
				}
			}
			for _, some := range []bool{true, false} {
				arg := ""
				if some {
					arg = ", counters=[" + strings.Join(chosen, ", ") + "]"
				}
				f.eval(t, &ours, `perf_clear(%q, %d, 1%s)`, o.attr.Name, lid, arg)
				for name, v := range compareAll("cleared", ours) {
					want := full[name]
					if !some || slices.Contains(chosen, strconv.Quote(name)) {
						want = 0
					}
					if v != want {
						t.Errorf("%s is %d, want %d", name, v, want)
					}
				}
			}
		})
	}
}

// TestPerfClearAllPorts clears the counters of all ports at once. ibsim clears all counters,
// whatever is written, which is reported.
func TestPerfClearAllPorts(t *testing.T) {
	f := onIbsim(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet}, func(o *SessionOptions) { o.Write = true })
	sw := f.sweep(t).OfType(mad.NodeTypeSwitch)[0]
	lid := sw.Port(0).LID()
	for port := 1; port <= 3; port++ {
		f.peer.Console(t, `PerformanceSet "%s"[%d] PortCounters.SymbolErrorCounter=5`, nodeIDs(t, f)[sw.GUID()], port)
	}
	var sums []uint64
	f.eval(t, &sums, `([perf_get("PortCounters", %d, 255).symbol_error_counter, perf_clear("PortCounters", %[1]d, 255, counters="symbol_error_counter").symbol_error_counter] +
		[perf_get("PortCounters", %[1]d, p).symbol_error_counter for p in [1, 2, 3]])`, lid)
	if !slices.Equal(sums, []uint64{15, 0, 0, 0, 0}) {
		t.Errorf("%d", sums)
	}
	_, explained, status := f.run(fmt.Sprintf(`perf_set("PortCounters", %d, 1, symbol_error_counter=9)`, lid))
	want := fmt.Sprintf("perf_set: LID %d: the Set was sent, but symbol_error_counter is 0, not 9", lid)
	if firstLines(explained, want) != want || status != lang.StatusFabric {
		t.Errorf("%s, status %d", explained, status)
	}
}

// TestPerfRatesPerfQuery: on ibsim, what counted between two reads is what
// perfquery shows more of after than before; what stands at its maximum is
// not known.
func TestPerfRatesPerfQuery(t *testing.T) {
	state := t.TempDir()
	f := onIbsim(t, ibsimtest.FatTree(3, 2, 2), ibsimtest.FixtureOptions{SM: "host-0-0", SMArgs: quiet}, func(o *SessionOptions) { o.State, o.Job = state, "test" })
	fab := f.sweep(t)
	random := rand.New(rand.NewPCG(3, 4))
	var counters []string // but traffic, which moves by itself
	for name := range seedable["PortCounters"] {
		if !strings.HasSuffix(name, "Data") && !strings.HasSuffix(name, "Pkts") && name != "VL15Dropped" {
			counters = append(counters, name)
		}
	}
	slices.Sort(counters)
	// perfquery is the counters of all ports, by port name and counter.
	perfquery := func() map[string]map[string]uint64 {
		all := map[string]map[string]uint64{}
		for i := range fab.Nodes() {
			n := &fab.Nodes()[i]
			for p := range n.Ports() {
				if p.Num() == 0 {
					continue
				}
				values := map[string]uint64{}
				for line := range strings.Lines(f.peer.Run(t, "perfquery", fmt.Sprint(p.LID()), fmt.Sprint(p.Num()))) {
					if m := dots.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
						values[mad.SnakeName(m[1])], _ = strconv.ParseUint(m[3], 0, 64)
					}
				}
				all[p.Name()] = values
			}
		}
		return all
	}
	// count raises counters at random ports.
	count := func(shown map[string]map[string]uint64) {
		for range 100 {
			n := &fab.Nodes()[random.IntN(len(fab.Nodes()))]
			num := 1 + random.IntN(n.NumPorts())
			name := counters[random.IntN(len(counters))]
			most := uint64(1)<<seedable["PortCounters"][name] - 1
			v := min(most, shown[n.Port(num).Name()][mad.SnakeName(name)]+random.Uint64N(most/2))
			f.peer.Console(t, `PerformanceSet "%s"[%d] PortCounters.%s=%d`, strings.TrimSuffix(n.Name(), " HCA-1"), num, name, v)
		}
	}
	type rates struct {
		Port    string
		Counts  map[string]uint64
		Unknown map[string][]string
	}
	var first, second []rates
	count(perfquery())
	f.eval(t, &first, `perf_rates(discover().ports, over="last")`)
	before := perfquery()
	count(before)
	f.peer.Console(t, `PerformanceSet "leaf-1"[1] PortCounters.LinkDownedCounter=255`)
	f.eval(t, &second, `[sleep("1s"), perf_rates(discover().ports, over="last")][1]`)
	after := perfquery()
	compared, saturated := 0, 0
	for _, r := range second {
		for _, counter := range counters {
			name := mad.SnakeName(counter)
			was, is := before[r.Port][name], after[r.Port][name]
			got, known := r.Counts[name]
			switch {
			case slices.Contains(r.Unknown["not_supported"], name):
			case slices.Contains(r.Unknown["saturated"], name):
				if saturated++; is != 1<<seedable["PortCounters"][counter]-1 {
					t.Errorf("%s: %s is told to be saturated, perfquery has %d", r.Port, name, is)
				}
			case !known || got != is-was:
				t.Errorf("%s: %s counted %d (known: %t), perfquery has %d, then %d", r.Port, name, got, known, was, is)
			case is > was:
				compared++
			}
		}
	}
	if compared < 20 || saturated == 0 || len(second) != len(first) {
		t.Errorf("%d counters that moved were compared, %d ports", compared, len(second))
	}
	t.Logf("%d ports, %d counters that moved, %d saturated", len(second), compared, saturated)
}

// TestCountersQueryErrors: on ibsim, whose counters begin at 0, the audit of counters
// with a file of thresholds tells what ibqueryerrors tells with it, value by value.
func TestCountersQueryErrors(t *testing.T) {
	dir := t.TempDir()
	f := onIbsim(t, ibsimtest.FatTree(3, 2, 2), ibsimtest.FixtureOptions{SM: "host-0-0", SMArgs: quiet}, func(o *SessionOptions) { o.State, o.Dir = dir, dir })
	fab := f.sweep(t)
	// VL15Dropped moves by itself, and its finding is of a port.
	limits := map[string]uint64{
		"SymbolErrorCounter": 10, "LinkErrorRecoveryCounter": 100, "LinkDownedCounter": 50, "PortRcvErrors": 0x100, "PortRcvRemotePhysicalErrors": 0, "PortRcvSwitchRelayErrors": 30_000,
		"PortXmitDiscards": 20_000, "PortXmitConstraintErrors": 10, "PortRcvConstraintErrors": 100, "LocalLinkIntegrityErrors": 3, "ExcessiveBufferOverrunErrors": 0, "PortXmitWait": 1 << 30,
	}
	names := slices.Sorted(maps.Keys(limits))
	file := "# of the test\n"
	for _, name := range names {
		file += fmt.Sprintf("%s=%d\n", name, limits[name])
	}
	path := filepath.Join(dir, "error_thresholds")
	if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	ran(t, f.fixture, audits.RunOptions{}, "counters", "--over", "last")
	f.run(`sleep("1s")`)
	random := rand.New(rand.NewPCG(7, 8))
	for range 150 {
		n := &fab.Nodes()[random.IntN(len(fab.Nodes()))]
		num := 1 + random.IntN(n.NumPorts())
		if n.Port(num).Peer() == nil {
			continue // without a link it is not read
		}
		name := names[random.IntN(len(names))]
		v := random.Uint64N(uint64(1)<<seedable["PortCounters"][name] - 1)
		f.peer.Console(t, `PerformanceSet "%s"[%d] PortCounters.%s=%d`, strings.TrimSuffix(n.Name(), " HCA-1"), num, name, v)
	}

	theirs := map[string]map[string]uint64{}
	out, _ := f.peer.Command(t, "", "ibqueryerrors", "--skip-sl", "--threshold-file", path).CombinedOutput() // exits 1: it has found some
	line := regexp.MustCompile(`GUID (0x[0-9a-f]+) port (\d+): (.*)`)
	value := regexp.MustCompile(`\[(\w+) == (\d+)`)
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		guid, _ := strconv.ParseUint(m[1], 0, 64)
		num, _ := strconv.Atoi(m[2])
		for i := range fab.Ports() {
			p := &fab.Ports()[i]
			if p.GUID() == mad.GUID(guid) && p.Num() == num {
				theirs[p.Name()] = map[string]uint64{}
				for _, v := range value.FindAllStringSubmatch(m[3], -1) {
					theirs[p.Name()][mad.SnakeName(v[1])], _ = strconv.ParseUint(v[2], 10, 64)
				}
			}
		}
	}
	ours := map[string]map[string]uint64{}
	for _, x := range ran(t, f.fixture, audits.RunOptions{}, "counters", "--over", "last", "--thresholds", path).Findings {
		for _, d := range x.Data {
			if d.Name != "counts" {
				continue
			}
			for _, port := range d.Value.(*starlark.Dict).Items() {
				name, _ := starlark.AsString(port[0])
				for _, counter := range port[1].(*starlark.Dict).Items() {
					if ours[name] == nil {
						ours[name] = map[string]uint64{}
					}
					key, _ := starlark.AsString(counter[0])
					ours[name][key], _ = counter[1].(starlark.Int).Uint64()
				}
			}
		}
	}
	told := 0
	for _, counters := range theirs {
		told += len(counters)
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || told < 30 {
		t.Errorf("ibqueryerrors tells %d: -ibqueryerrors +ours\n%s\n%s", told, diff, out)
	}
	t.Logf("%d counters of %d ports", told, len(theirs))
}
