package engines

import (
	"bytes"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad/ibsim/ibsimtest"
)

var collect = flag.Bool("opensm", false, "let OpenSM compute what its figures in testdata lack")

// TestOpenSMFigures lets OpenSM compute the tables whose figures are missing, or whose bandwidths
// are measured in another order of hosts than ours.
func TestOpenSMFigures(t *testing.T) {
	if !*collect {
		t.Skip("with -opensm: an hour, if all are missing")
	}
	list := readFigures(t, opensmFigures)
	for _, net := range benchNets() {
		var f *fabric.Fabric
		for _, engine := range []string{"minhop", "updn", "ftree", "dor", "sssp", "dfsssp", "lash", "nue", "torus-2QoS"} {
			at := slices.IndexFunc(list, func(x figure) bool { return x.Net == net && x.Engine == engine })
			dims := torusDims(t, net)
			if at >= 0 && (list[at].Order == orderOfGUIDs || list[at].Order == "") || engine == "torus-2QoS" && dims == nil {
				continue
			}
			t.Run(net+" "+engine, func(t *testing.T) {
				if f == nil {
					f = benchNet(t, net)
				}
				args := []string{"-Q", "-D", "0x47", "-R", engine}
				if engine == "torus-2QoS" {
					config, _ := torusConfig(t, f, dims)
					args = append(args, "--torus_config", config)
				}
				x := figure{Net: net, Engine: engine}
				x.fromOpenSM(t, f, args)
				t.Logf("%+v", x)
				if at < 0 {
					list = append(list, x)
				} else if was := &list[at]; x.Largest == was.Largest && x.Result == was.Result {
					was.Shift, was.Bisection, was.Order = x.Shift, x.Bisection, x.Order
				} else {
					t.Fatalf("the tables are not the same: %d routes on a channel, were %d; %s", x.Largest, was.Largest, x.Result)
				}
				writeFigures(t, opensmFigures, list)
			})
		}
	}
}

// torusDims are those of a whole torus of two or three, else nil.
func torusDims(t *testing.T, net string) (dims []int) {
	if !strings.HasPrefix(net, "torus:") || strings.Contains(net, "remove") {
		return nil
	}
	text := regexp.MustCompile(`dims=([0-9/]+)`).FindStringSubmatch(net)[1]
	for n := range strings.SplitSeq(text, "/") {
		d, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		dims = append(dims, d)
	}
	if len(dims) > 3 {
		return nil
	}
	return dims
}

// fromOpenSM sets the figure to that of OpenSM's tables. Where its engine refuses, it goes on to
// minhop.
func (f *figure) fromOpenSM(t *testing.T, net *fabric.Fabric, args []string) {
	t.Helper()
	var text bytes.Buffer
	if err := format.Dump(&text, net, "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	node := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(text.String())[1]
	sm := ibsimtest.Start(t, text.String(), ibsimtest.FixtureOptions{}).StartSM(t, ibsimtest.FixtureOptions{SM: node, SMArgs: args})
	defer sm.Kill()
	sm.WaitLong(t, "uilding routing with", 5*time.Minute)
	before := processTime(t, sm.PID())
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for f.CPU == 0 {
		<-tick.C
		used, log := processTime(t, sm.PID())-before, sm.Log()
		if _, after, found := strings.Cut(log, "anes needed: "); found {
			fmt.Sscan(after, &f.Lanes)
		}
		switch {
		case f.Engine != "minhop" && strings.Contains(log, "minhop tables configured on all switches"):
			f.Result = "refused"
			return
		case strings.Contains(log, "tables configured on all switches"):
			f.CPU = max(1, int(used.Milliseconds()))
		case used > openSMLimit:
			f.Result = fmt.Sprintf("not done after %v", openSMLimit)
			return
		}
	}
	sm.WaitLong(t, "SUBNET UP", 5*time.Minute)
	tables, _ := dumpedTables(t, sm.Dir)
	f.measure(t, tables)
}
