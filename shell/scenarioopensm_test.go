package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestScenarioOpenSM: two OpenSMs see what the log of a scenario has. The master sweeps
// after a link is down and routes around it; when its node dies, by a call, the standby takes
// over.
func TestScenarioOpenSM(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	if testing.Short() {
		t.Skip("takes more than half a minute")
	}
	dir := t.TempDir()
	name, log, script := fmt.Sprintf("fabsh-%016x", rand.Uint64()), filepath.Join(dir, "log"), filepath.Join(dir, "x.star")
	err := os.WriteFile(script, []byte(`def scenario(sim):
    at("18s", lambda: sim.unlink("leaf-1/3"))
`), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	serveSim(t, name, "fattree:k=4,levels=2", "--bare", "--scenario", script, "--log", log)
	f := ibsimtest.On(t, name, nil, nil)
	const conf = "sminfo_polling_timeout 1000\npolling_retry_number 4\nsweep_interval 1\nsm_priority %d\n"
	master := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0001 HCA-1", SMConf: fmt.Sprintf(conf, 9)})
	master.Wait(t, "SUBNET UP")
	standby := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0005 HCA-1", SMConf: fmt.Sprintf(conf, 3)})
	standby.Wait(t, "Entering STANDBY state")

	action := func(n int, method, args string) time.Time {
		t.Helper()
		var list []logged
		ibsimtest.Poll(t, method+" in the log", func() bool { list = readLog(t, log); return len(list) >= n })
		a := list[n-1]
		if got := fmt.Sprint(a.Args); a.Action != method || got != args || a.Error != "" {
			t.Fatalf("the log has %+v", a)
		}
		return a.Time
	}
	printed := func(code string) string {
		return outcome(fabsh(t, nil, "-q", "-F", "ibsim:"+name, "-C", "node-0003 HCA-1", "-t", "2s", "-c", code))
	}
	shows := func(code, want string) {
		t.Helper()
		if diff := cmp.Diff(want+"[exit status 0]\n", printed(code)); diff != "" {
			t.Errorf("%s: -want +got\n%s", code, diff)
		}
	}
	used := `f = discover(); row = get_routes(f)[f.node("leaf-1")]; print(sorted({row[n.lid]: 1 for n in f.cas if n.name > "node-0003"}))`
	const both, one = "[3, 4]\n[exit status 0]\n", "[4]\n[exit status 0]\n"
	if got := printed(used); got != both && len(readLog(t, log)) == 0 { // before the link is down
		t.Errorf("with all links: %s", got)
	}
	down := action(1, "unlink", "map[port:leaf-1/3]")
	ibsimtest.Poll(t, "a sweep of the master after it", func() bool { return saysAfter(t, master.Log(), "SUBNET UP", down) })
	// That sweep may have begun before, or distribute the tables yet.
	ibsimtest.Poll(t, "the tables without the link", func() bool { return printed(used) == one })
	shows(`sim.kill("node-0001 HCA-1")`, "")
	dead := action(2, "kill", "map[node:node-0001 HCA-1]")
	ibsimtest.Poll(t, "the standby to become master after it", func() bool {
		return saysAfter(t, standby.Log(), "Entering MASTER state", dead) && saysAfter(t, standby.Log(), "SUBNET UP", dead)
	})
	for line := range strings.Lines(standby.Log()) {
		if strings.Contains(line, "Entering MASTER state") && !saysAfter(t, line, "Entering MASTER state", dead) {
			t.Errorf("it was master before the other died: %s", line)
		}
	}
	shows(`f = discover(); print([n.name for n in f.cas if n.lid == smp_get("PortInfo", f.node("leaf-2"), 0).master_sm_lid])`, "[\"node-0005 HCA-1\"]\n")
}

// saysAfter reports whether a log of OpenSM has a line with text of a time after at.
func saysAfter(t *testing.T, log, text string, at time.Time) bool {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.Contains(line, text) {
			continue
		}
		const form = "Jan _2 15:04:05 2006"
		fields := strings.SplitN(line, " [", 2)[0] // "Nov 25 20:34:56 123456"
		i := strings.LastIndexByte(fields, ' ')
		if i < 0 {
			continue
		}
		when, err := time.ParseInLocation(form, fmt.Sprint(fields[:i], " ", at.Local().Year()), time.Local)
		micros, bad := time.ParseDuration(fields[i+1:] + "us")
		if err != nil || bad != nil {
			t.Fatalf("%s: %v %v", line, err, bad)
		}
		if when.Add(micros).After(at) {
			return true
		}
	}
	return false
}
