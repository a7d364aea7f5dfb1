//go:build linux

package shell

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// ibsimFaults are faults that ibsim's console makes on ibsimtest.FatTree(4, 2, 4), what the audits
// report of each, and the line of iblinkinfo or ibqueryerrors that shows it; "": neither does.
var ibsimFaults = []struct {
	name, console string
	finding       string // check and subject
	tool, line    string
}{
	{"a cable between switches", `Unlink "leaf-0"[5]`, "link.down leaf-0/5 - spine-0/1", "iblinkinfo", `" leaf-0" 10 5[ ] ==( Down/ Polling)`},
	{"a cable of a host", `Unlink "host-0-3"`, "node.gone host-0-3 HCA-1", "iblinkinfo", `" leaf-0" 10 4[ ] ==( Down/ Polling)`},
	{"a silent host", `Error "host-0-1"[1] 100`, "node.gone host-0-1 HCA-1", "", ""},
	{"an agent without PortInfo", `Error "host-0-2"[1] 100 21`, "port.unresponsive host-0-2 HCA-1/1", "", ""},
	{"symbol errors", `PerformanceSet "leaf-1"[2] PortCounters.SymbolErrorCounter=900`, "ctr.ber leaf-1/2 - host-1-1 HCA-1/1", "ibqueryerrors", "[SymbolErrorCounter == 900]"},
	{"error recoveries", `PerformanceSet "leaf-1"[3] PortCounters.LinkErrorRecoveryCounter=60`, "ctr.recovery leaf-1/3 - host-1-2 HCA-1/1", "ibqueryerrors", "[LinkErrorRecoveryCounter == 60]"},
	{"a link that went down", `PerformanceSet "leaf-1"[4] PortCounters.LinkDownedCounter=1`, "ctr.downed leaf-1/4 - host-1-3 HCA-1/1", "ibqueryerrors", "[LinkDownedCounter == 1]"},
	{"packets with errors", `PerformanceSet "leaf-2"[1] PortCounters.PortRcvErrors=500`, "ctr.rcv leaf-2/1 - host-2-0 HCA-1/1", "ibqueryerrors", "[PortRcvErrors == 500]"},
	{"discarded packets", `PerformanceSet "leaf-2"[2] PortCounters.PortXmitDiscards=501`, "ctr.discards leaf-2/2 - host-2-1 HCA-1/1", "ibqueryerrors", "[PortXmitDiscards == 501]"},
	{"P_Key violations", `PerformanceSet "leaf-2"[3] PortCounters.PortXmitConstraintErrors=20`, "ctr.constraint leaf-2/3 - host-2-2 HCA-1/1", "ibqueryerrors", "[PortXmitConstraintErrors == 20]"},
	{"integrity errors", `PerformanceSet "leaf-2"[4] PortCounters.LocalLinkIntegrityErrors=3`, "ctr.integrity leaf-2/4 - host-2-3 HCA-1/1", "ibqueryerrors", "[LocalLinkIntegrityErrors == 3]"},
	{"buffer overruns", `PerformanceSet "leaf-3"[1] PortCounters.ExcessiveBufferOverrunErrors=4`, "ctr.overrun leaf-3/1 - host-3-0 HCA-1/1", "ibqueryerrors", "[ExcessiveBufferOverrunErrors == 4]"},
	{"dropped SMPs", `PerformanceSet "leaf-3"[2] PortCounters.VL15Dropped=5`, "ctr.vl15 leaf-3/2", "ibqueryerrors", "[VL15Dropped == 5]"},
	{"a full counter", `PerformanceSet "spine-1"[3] PortCounters.LinkErrorRecoveryCounter=255`, "ctr.saturated spine-1/3", "ibqueryerrors", "[LinkErrorRecoveryCounter == 255]"},
	{"a LID twice", `Baselid "host-1-0"[1] %s`, "lid.dup host-3-0 HCA-1/1", "", ""}, // last: a sweep of OpenSM restores it
}

// TestIbsimFaults: what ibsim breaks on a fabric that OpenSM has brought up is one finding each,
// and nothing else of warning or above is reported. The tools of infiniband-diags show twelve of them.
func TestIbsimFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}})
	dir := t.TempDir()
	base := filepath.Join(dir, "base.fab")
	if got := outcome(on(t, f, "-q", "snapshot", base)); !strings.HasSuffix(got, "[exit status 0]\n") {
		t.Fatal(got)
	}
	audit := func() (r struct {
		Complete  bool
		Findings  []struct{ Severity, Check, Subject, Message, Cause string }
		NotJudged []struct{ Audit, Check, Lacked string } `json:"not_judged"`
		Coverage  []struct {
			Audit, Attribute string
			TimedOut         int `json:"timed_out"`
			Failed           int
		}
	}) {
		t.Helper()
		out, err := on(t, f, "-q", "-o", "json", "-t", "100", "--state", dir, "audit", "--job", "x", "--over", "last", "--baseline", base).Output()
		if json.Unmarshal(out, &r) != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return r
	}
	first := audit()
	for _, x := range first.Findings {
		if x.Severity != "info" {
			t.Errorf("before the faults: %v", x)
		}
	}
	for _, x := range first.Coverage {
		if x.TimedOut+x.Failed > 0 {
			t.Errorf("before the faults: no answer to %v", x)
		}
	}
	if !slices.ContainsFunc(first.NotJudged, func(x struct{ Audit, Check, Lacked string }) bool {
		return x.Check == "sm.records" && strings.Contains(x.Lacked, "truncates")
	}) {
		t.Errorf("no check names the tables that libumad2sim truncates: %v", first.NotJudged)
	}
	lid, _, _ := strings.Cut(outcome(on(t, f, "-q", "-c", `sleep("1.1s"); discover().node("host-3-0 HCA-1").lid`)), "\n")
	want := map[string]string{} // finding: name of the fault
	command := ""
	for _, x := range ibsimFaults {
		command = x.console
		if strings.Contains(command, "%s") {
			on(t, f, "-c", `sleep("2s")`).Run() // OpenSM sweeps at once when links change
			command = fmt.Sprintf(command, lid)
		}
		f.Console(t, "%s", command)
		want[x.finding] = x.name
	}
	audited := make(chan struct{})
	var again sync.WaitGroup
	again.Go(func() { // the last fault
		for tick := time.Tick(100 * time.Millisecond); ; {
			select {
			case <-tick:
				f.Console(t, "%s", command)
			case <-audited:
				return
			}
		}
	})
	r := audit()
	close(audited)
	again.Wait()
	var more []string
	for _, x := range r.Findings {
		key := x.Check + " " + x.Subject
		if _, ok := want[key]; ok {
			delete(want, key)
		} else if x.Severity != "info" && x.Cause == "" && x.Check != "audit.coverage" {
			more = append(more, fmt.Sprint(x))
		}
	}
	for finding, name := range want {
		t.Errorf("%s: no finding %s", name, finding)
	}
	for _, text := range more {
		t.Errorf("too many: %s", text)
	}
	shown := map[string]string{
		"iblinkinfo":    printed(f.Command(t, "", "iblinkinfo", "-l", "-t", "10000").Output()),
		"ibqueryerrors": printed(f.Command(t, "", "ibqueryerrors", "-t", "10000", "--skip-sl").Output()),
	}
	for _, x := range ibsimFaults {
		if x.tool != "" && !slices.ContainsFunc(strings.Split(shown[x.tool], "\n"), func(l string) bool { return strings.Contains(strings.Join(strings.Fields(l), " "), x.line) }) {
			t.Errorf("%s: %s does not show %q", x.name, x.tool, x.line)
		}
	}
}

// printed is the output of a tool, whose exit status may report faults.
func printed(out []byte, _ error) string { return string(out) }
