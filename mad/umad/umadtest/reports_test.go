//go:build kernelibtest

package umadtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// command runs a command of fabsh on our adapter, and returns its stdout, with its
// stderr where the exit status is not status.
func command(t *testing.T, status int, words ...string) string {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("%.2f s: fabsh %s", time.Since(began).Seconds(), strings.Join(words, " ")) }()
	var out, errs bytes.Buffer
	c := exec.CommandContext(t.Context(), "fabsh", append([]string{"-q", "-C", "vib1", "--state", t.TempDir()}, words...)...)
	c.Stdout, c.Stderr = &out, &errs
	c.Run()
	if got := c.ProcessState.ExitCode(); got != status {
		t.Errorf("fabsh %s: exit status %d, want %d\n%s%s", strings.Join(words, " "), got, status, out.String(), errs.String())
	}
	return out.String()
}

// report runs a report, and returns its rows.
func report(t *testing.T, status int, words ...string) (rows []map[string]any) {
	t.Helper()
	out := command(t, status, append([]string{"-o", "json", "report"}, words...)...)
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Errorf("report %q: %v in %s", words, err, out)
	}
	return rows
}

// testReports runs each report once beside the tool of its name.
func testReports(t *testing.T, s *subnet) {
	done := map[string]bool{"congestion": true, "inventory": true, "jobs": true, "suspects": true, "keys": true, "impact": true, "ibdiagnet": true} // which no tool has; the last reads files
	report := func(t *testing.T, status int, words ...string) []map[string]any {
		done[words[0]] = true
		return report(t, status, words...)
	}
	defer func() {
		for line := range strings.Lines(command(t, 0, "report", "--list")) {
			if name, _, _ := strings.Cut(line, " "); !done[name] {
				t.Errorf("the report %s did not run", name)
			}
		}
	}()
	const links = hosts + 9*9
	for name, want := range map[string]int{"iblinkinfo": links, "ibhosts": hosts, "ibswitches": switches} {
		is(t, name, fmt.Sprint(len(report(t, 0, name))), fmt.Sprint(want))
	}
	ends := strings.Count(diag(t, "iblinkinfo", "-l"), "Active/  LinkUp")
	is(t, "the tool's iblinkinfo", fmt.Sprint(ends), fmt.Sprint(2*links))

	s.sim.Console(t, `PerformanceSet "leaf-3"[2] PortCounters.SymbolErrorCounter=77`)
	rows := report(t, 1, "ibqueryerrors", "--threshold", "70", "--suppress", "PortXmitWait")
	out, _ := ibsimtest.Command(t, "ibqueryerrors", "-C", "vib1", "-P", "1", "-t", "10000").Output() // its status is 1
	if len(rows) != 1 || rows[0]["port"] != "leaf-3/2" || rows[0]["count"] != 77.0 || !strings.Contains(string(out), " port 2: [SymbolErrorCounter == 77]") {
		t.Errorf("ibqueryerrors: %v, the tool\n%s", rows, out)
	}
	top := report(t, 0, "perfquery", "--top", "1", "--by", "SymbolErrorCounter")
	if len(top) != 1 || top[0]["symbol_error_counter"] != 77.0 {
		t.Errorf("perfquery --top: %v", top)
	}
	s.sim.Console(t, `PerformanceSet "leaf-3"[2] PortCounters.SymbolErrorCounter=0`)

	lid := strings.TrimSpace(fabsh(t.Context(), `smp_get("PortInfo", dr("0,1"), 0).lid`))
	m := regexp.MustCompile(`(\d+) valid lids dumped`).FindStringSubmatch(diag(t, "ibroute", lid))
	if rows := report(t, 0, "ibroute", lid); m == nil || m[1] != fmt.Sprint(len(rows)) {
		t.Errorf("ibroute: %d LIDs, the tool %q", len(rows), m)
	}

	lids := strings.Fields(fabsh(t.Context(), `f = discover(); print(f.cas[0].lid, f.cas[-1].lid)`))
	hops := func(rows []map[string]any) (list []string) {
		for _, r := range rows {
			list = append(list, fmt.Sprint(r["from_num"], " ", r["to_num"]))
		}
		return list
	}
	var theirs []string
	for _, m := range regexp.MustCompile(`(?m)^\[(\d+)\] -> .*\}\[(\d+)\]`).FindAllStringSubmatch(diag(t, "ibtracert", lids...), -1) {
		theirs = append(theirs, m[1]+" "+m[2])
	}
	for _, name := range []string{"ibtracert", "path"} {
		if ours := hops(report(t, 0, append([]string{name}, lids...)...)); !slices.Equal(ours, theirs) || len(ours) < 2 {
			t.Errorf("%s: %q, the tool %q", name, ours, theirs)
		}
	}
	if rows := report(t, 0, "find", lids[0]); len(rows) != 1 || fmt.Sprint(rows[0]["lid"]) != lids[0] {
		t.Errorf("find: %v", rows)
	}

	sm := regexp.MustCompile(`sm lid (\d+) .* SMINFO_MASTER`).FindStringSubmatch(diag(t, "sminfo"))
	rows = report(t, 0, "sminfo")
	if len(rows) != 1 || sm == nil || fmt.Sprint(rows[0]["lid"]) != sm[1] || rows[0]["state"] != "master" {
		t.Errorf("sminfo: %v, the tool %q", rows, sm)
	}

	before, _ := strconv.Atoi(field(t, diag(t, "perfquery", lid, "9"), "PortXmitPkts"))
	after := fabshInt(t, command(t, 0, "-o", "csv", "report", "perfquery", lid, "9"))
	if after < before || before == 0 {
		t.Errorf("perfquery: %d packets, before that the tool %d", after, before)
	}
	is(t, "saquery", fmt.Sprint(len(report(t, 0, "saquery", "NR"))), fmt.Sprint(hosts+switches))
}

// fabshInt is port_xmit_pkts of a CSV.
func fabshInt(t *testing.T, text string) int {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	i := slices.Index(strings.Split(lines[0], ","), "port_xmit_pkts")
	if i < 0 || len(lines) != 2 {
		t.Fatalf("no port_xmit_pkts in %s", text)
	}
	n, err := strconv.Atoi(strings.Split(lines[1], ",")[i])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// testAudits runs all shipped audits once, those of whole tables too. All is well,
// except for what exists only here: testWholeTables has written a table of VL
// arbitration, and no agent answers for congestion control, or registers. These only add
// details, so the findings set the exit status.
func testAudits(t *testing.T, s *subnet) {
	out := command(t, 1, "audit", "--deep")
	for line := range strings.Lines(command(t, 0, "audit", "--list")) {
		name, _, _ := strings.Cut(line, " ")
		line = strings.TrimSpace(line)
		if !strings.HasSuffix(line, "(alone)") && !strings.HasSuffix(line, "(only if named)") && !regexp.MustCompile(`(?m)^audits .* `+name+`( |$)`).MatchString(out) {
			t.Errorf("%s did not run", name)
		}
	}
	var bad []string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "critical" || f[0] == "error") {
			check, _, _ := strings.Cut(f[1], ":")
			bad = append(bad, check)
		}
	}
	silent := strings.Contains(out, "not judged  cc.uniform (CongestionInfo: no answer to 99 of 99 ports)\n") && strings.Contains(out, " (MGIR: no answer to 97 of 99 requests)\n")
	if !slices.Equal(bad, []string{"vlarb"}) || !silent || !strings.Contains(out, fmt.Sprintf(" %d links, complete\n", hosts+9*9)) {
		t.Errorf("audit --deep: %s", out)
	}
}

// testAuditHost judges the ports of this host by the kernel's files and by their own agents.
// The virtual adapters have no firmware and no counters. The first run reads the program
// from the disk, which takes seconds here; the second is judged.
func testAuditHost(t *testing.T, s *subnet) {
	const want = `fabric    host (none): 2 ports, 2 of InfiniBand
audits    host
coverage  10 of 16 checks; 100 % of 4 requests
not judged  host.gone host.flap host.downed host.errors (no earlier run of this job has read them)
not judged  host.pcie (the kernel shows no PCIe link of vib0, vib1)
not judged  host.fw (the kernel shows no firmware of vib0/1, vib1/1)
not judged  host.errors host.flap host.downed (vib0/1: /sys/class/infiniband/vib0/ports/1/counters: the kernel shows no counters of the port)
not judged  host.errors host.flap host.downed (vib1/1: /sys/class/infiniband/vib1/ports/1/counters: the kernel shows no counters of the port)
findings  none
`
	var out []byte
	for range 2 {
		var err error
		if out, err = exec.CommandContext(t.Context(), "fabsh", "-q", "--state", t.TempDir(), "audit", "host").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	is(t, "audit host", string(out), want)
}

// testAccept judges the fabric by the shipped profiles: what OpenSM and the agents show passes, and what no
// device answers is not judged, with the reason. OpenSM is alone, which the item of subnet managers does not
// accept.
func testAccept(t *testing.T, s *subnet) {
	for profile, want := range map[string]map[string]string{
		"nvidia-bringup": {
			"uplinks": "pass", "hosts": "pass", "sm": "fail", "identities": "pass", "names": "pass", "link-state": "pass", "link-rate": "pass",
			"topology": "not judged", "routing": "not judged", "firmware": "not judged", "module-firmware": "not judged", "software": "not judged", "sm-log": "not judged", "ber": "not judged", "link-downs": "not judged",
			"counters": "not judged", "transceivers": "not judged", "supplies": "not judged", "shield": "not judged", "performance": "not judged",
		},
		"site": {"complete": "not judged", "links": "pass", "manager": "fail", "stable": "not judged"},
	} {
		var a struct {
			Items []struct {
				Item, Outcome, Reason string
				Findings              []struct{ ID string }
			}
		}
		out := command(t, 3, "-o", "json", "accept", profile)
		if err := json.Unmarshal([]byte(out), &a); err != nil || len(a.Items) != len(want) {
			t.Errorf("%s: %v, %d items in %s", profile, err, len(a.Items), out)
			continue
		}
		for _, i := range a.Items {
			if i.Outcome != want[i.Item] || i.Outcome == "not judged" && i.Reason == "" || (i.Outcome == "fail") != (len(i.Findings) > 0) {
				t.Errorf("%s: %+v, want %s", profile, i, want[i.Item])
			}
		}
	}
}
