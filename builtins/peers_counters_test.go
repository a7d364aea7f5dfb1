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
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

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
