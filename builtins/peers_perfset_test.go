//go:build linux

package builtins

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

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

// TestPerfClearAllPorts clears those of all ports at once; and what ibsim does
// not do is told: it clears whatever is written.
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
