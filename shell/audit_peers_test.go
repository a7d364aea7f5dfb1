//go:build linux

package shell

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// managerActive is a note of a run beside OpenSM, which sweeps when links change, now or a little
// later.
var managerActive = regexp.MustCompile(`note +the subnet manager was active during the run .*\n`)

// TestAuditUnderOpenSM: on a fabric that OpenSM has brought up, what ibsim breaks
// is found where it is, and nothing else, tables included. ibsim's ports are
// told once to have less enabled than they support, and the baseline has that.
func TestAuditUnderOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, RMPP: true})
	base := filepath.Join(t.TempDir(), "base.fab")
	if got := outcome(on(t, f, "-q", "snapshot", base)); !strings.HasSuffix(got, "[exit status 0]\n") {
		t.Fatal(got)
	}
	f.Console(t, `Unlink "leaf-1"[5]`)
	f.Console(t, `Unlink "leaf-2"[1]`)
	got := outcome(on(t, f, "--state", t.TempDir(), "audit", "links", "identity", "config", "topology", "sm", "--baseline", base))
	got = managerActive.ReplaceAllString(got, "")
	want := `fabric    21 nodes (6 switches, 15 CAs), 22 links, complete
audits    links identity config topology sm
coverage  100 % of 83 requests
findings  1 critical, 1 error; 1 also in the baseline

critical  link.down:0x0002c903000000a0/5  leaf-1/5 - spine-0/2: the link is down at both ends
error     link.down:0x0002c903000000f0/1  leaf-2/1 - host-2-0 HCA-1/1: the link is down: host-2-0 HCA-1 is gone
[exit status 1]
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// ibsimFaults are faults that ibsim's console makes on ibsimtest.FatTree(4, 2, 4), what the audits
// report of each, and the line of iblinkinfo or ibqueryerrors that shows it; "": neither does.
var ibsimFaults = []struct {
	name, console string
	finding       string // check and subject
	tool, line    string
}{
	{"a cable between switches", `Unlink "leaf-0"[5]`, "link.down leaf-0/5 - spine-0/1", "iblinkinfo", `" leaf-0" 10 5[ ] ==( Down/ Polling)`},
	{"a cable of a host", `Unlink "host-0-3"`, "link.down leaf-0/4", "iblinkinfo", `" leaf-0" 10 4[ ] ==( Down/ Polling)`},
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

// partitionsFile is one that OpenSM reads: all kinds of members, flags, groups
// and comments; %s are two port GUIDs.
const partitionsFile = `# partitions of the test
Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full, SELF=full ;
storage=0x8005, ipoib, mtu=4, rate=3, defmember=full :
	ALL_CAS=limited,	# but these
	%[1]s, %[2]s=full,
	mgid=ff12:401b::0707:0707, sl=0 ;
0x0006 : %[1]s=limited, %[2]s=full ;
unnumbered, defmember=full : ALL ;
empty=0x0007 : NONE ;
`

// TestPartitionsUnderOpenSM: what OpenSM makes of a partitions.conf is what the
// audit expects of it; with another file the difference is told. Whole tables
// are as they should be.
func TestPartitionsUnderOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Parallel()
	const first, second = "0x2c90300000011", "0x0002c90300000021"
	dir := t.TempDir()
	file, other := filepath.Join(dir, "partitions.conf"), filepath.Join(dir, "other.conf")
	for path, text := range map[string]string{
		file:  fmt.Sprintf(partitionsFile, first, second),
		other: fmt.Sprintf("Default=0x7fff : ALL=full;\n# %s\nmore=0x9 : %[2]s=full, %[2]s;\n5 : ALL_CAS=limited, %[1]s=full, %[2]s=full;\n0x6 : %[1]s=both, %[2]s=both;\nstays=1 : ALL=full;\n", first, second),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, SMConf: "partition_config_file " + file, RMPP: true})
	run := func(args ...string) string {
		return managerActive.ReplaceAllString(outcome(on(t, f, append([]string{"-q", "--state", t.TempDir(), "audit"}, args...)...)), "")
	}
	got := run("identity", "links", "multicast", "partitions", "routing", "sm", "topology", "--deep", "--partitions", file) + run("partitions", "--partitions", other)
	want := `fabric    22 nodes (6 switches, 16 CAs), 24 links, complete
audits    identity links multicast partitions routing sm topology
coverage  84 of 87 checks; 100 % of 121 requests
not judged  mc.empty mc.missing mft.member (the names of members)
findings  2 info

info      link.enabled:fabric  fabric: width up to 4x enabled; supported: 12x, at 48 of 48 ports
info      mc.untold:fabric  fabric: the subnet administrator does not name the members of 3 groups; give its SM_Key with --keys
[exit status 0]
fabric    22 nodes (6 switches, 16 CAs), 24 links, complete
audits    partitions
coverage  100 % of 104 requests
findings  3 errors

error     pkey.file:0x0002c90300000010/1  host-0-0 HCA-1/1: has P_Key 0x7fff (Default) as a limited member (file: full); 0x0006 as a limited member (file: both)
error     pkey.file:0x0002c90300000020/1  host-0-1 HCA-1/1: missing P_Key 0x0009 (more); has P_Key 0x7fff (Default) as a limited member (file: full)
error     pkey.file:fabric  fabric: has P_Key 0x7fff (Default) as a limited member (file: full): 13 ports, such as host-0-2 HCA-1/1, host-0-3 HCA-1/1, host-1-0 HCA-1/1
[exit status 1]
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestTenantsUnderOpenSM: what OpenSM makes of a partitions.conf isolates its partitions as tenants;
// another file differs from it.
func TestTenantsUnderOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Parallel()
	dir := t.TempDir()
	file, other := filepath.Join(dir, "partitions.conf"), filepath.Join(dir, "other.conf")
	const text = `Default=0x7fff, ipoib : ALL=limited, SELF=full ;
red=0x0012, defmember=full : 0x2c90300000011, 0x2c90300000021 ;
blue=0x0013, ipoib : 0x2c90300000031=full, 0x2c90300000041=full ;
`
	for path, text := range map[string]string{file: text, other: strings.Replace(text, "blue=0x0013, ipoib : 0x2c90300000031=full", "blue=0x0014 : 0x2c90300000031=full", 1)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, SMConf: "partition_config_file " + file, RMPP: true})
	run := func(args ...string) string {
		return outcome(on(t, f, append([]string{"-q", "--state", t.TempDir()}, args...)...))
	}
	got := run("verify", "--tenants", file) + run("audit", "tenants", "--tenants", file) + run("audit", "tenants", "--tenants", other)
	want := `2 ordered pairs of 2 tenants: 2 isolated
red cannot reach blue: no common key with a full member on any of 2 x 2 ports; both are limited members of 0x7fff
blue cannot reach red: no common key with a full member on any of 2 x 2 ports; both are limited members of 0x7fff
isolated except from full members of 0x7fff, which are of no tenant: host-3-3 HCA-1/1
[exit status 0]
fabric    22 nodes (6 switches, 16 CAs), 24 links, complete
audits    tenants
coverage  9 of 12 checks; 100 % of 111 requests
not judged  tenant.gmp (keys of management classes are read with --deep)
not judged  tenant.traps (whether the subnet manager resists traps of tenants is in its options; give --opensm FILE)
not judged  tenant.profile (no --profile was given)
findings  1 error, 1 warning, 2 info

error     tenant.mkey:fabric  fabric: no M_Key is set: any client can write the P_Key table: 10 ports, such as leaf-0/0, leaf-1/0, leaf-2/0
warning   tenant.enforce:fabric  fabric: no switch port checks P_Keys in both directions in front of 4 ports of tenants, such as host-0-0 HCA-1/1, host-0-1 HCA-1/1, host-0-2 HCA-1/1 and 1 more: only their own adapters isolate them
info      tenant.default:fabric  fabric: partition 0x7fff: tenants are isolated except from 1 full member of no tenant: host-3-3 HCA-1/1
info      tenant.sm:fabric  fabric: IsSMdisabled is not set at 4 ports of tenants, such as host-0-0 HCA-1/1, host-0-1 HCA-1/1, host-0-2 HCA-1/1 and 1 more: a subnet manager could run there
[exit status 1]
fabric    22 nodes (6 switches, 16 CAs), 24 links, complete
audits    tenants
coverage  9 of 12 checks; 100 % of 111 requests
not judged  tenant.gmp (keys of management classes are read with --deep)
not judged  tenant.traps (whether the subnet manager resists traps of tenants is in its options; give --opensm FILE)
not judged  tenant.profile (no --profile was given)
findings  3 errors, 1 warning, 2 info

error     tenant.keys:0x0002c90300000030/1  host-0-2 HCA-1/1: unlike those of tenant blue: missing P_Key 0x0014=full; other P_Keys: 0x0013=full
error     tenant.keys:0x0002c90300000040/1  host-0-3 HCA-1/1: unlike those of tenant blue: missing P_Key 0x0014=full; other P_Keys: 0x0013=full
error     tenant.mkey:fabric  fabric: no M_Key is set: any client can write the P_Key table: 10 ports, such as leaf-0/0, leaf-1/0, leaf-2/0
warning   tenant.enforce:fabric  fabric: no switch port checks P_Keys in both directions in front of 4 ports of tenants, such as host-0-0 HCA-1/1, host-0-1 HCA-1/1, host-0-2 HCA-1/1 and 1 more: only their own adapters isolate them
info      tenant.default:fabric  fabric: partition 0x7fff: tenants are isolated except from 1 full member of no tenant: host-3-3 HCA-1/1
info      tenant.sm:fabric  fabric: IsSMdisabled is not set at 4 ports of tenants, such as host-0-0 HCA-1/1, host-0-1 HCA-1/1, host-0-2 HCA-1/1 and 1 more: a subnet manager could run there
[exit status 1]
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAuditOutage: a run that finds less than half of the switches of earlier runs reports what
// is missing, and a finding that compares with those runs is acknowledged with its count. That
// there is no such finding is printed only if its check was done.
func TestAuditOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("findings are re-read after 10 s")
	}
	t.Parallel()
	name, dir := fmt.Sprintf("fabsh-%016x", rand.Uint64()), t.TempDir()
	serveSim(t, name, "fattree:k=4,levels=2")
	varying := regexp.MustCompile(`until [0-9-]+|up [0-9hms]+ ago`)
	ack := func(id, reason string) []string {
		return []string{"audit", "ack", id, "--by", "me", "--reason", reason}
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{ack("node.gone:0x2c90300100010", "no runs"), "node.gone:0x0002c90300100010: acknowledged X (DIR/sm-0x0002c90310000001/acks)\n[exit status 0]\n"},
		{ack("link.width:0x2c90300100010/1", "spare"), "link.width:0x0002c90300100010/1: acknowledged X (DIR/sm-0x0002c90310000001/acks); there is no such finding now\n[exit status 0]\n"},
		{[]string{"audit", "links", "sm", "topology"}, `fabric    14 nodes (6 switches, 8 CAs), 16 links, complete
audits    links sm topology
coverage  100 % of 61 requests
findings  none
[exit status 0]
`},
		{ack("node.gone:0x2c90300100010", "it is there"), "node.gone:0x0002c90300100010: acknowledged X (DIR/sm-0x0002c90310000001/acks); there is no such finding now\n[exit status 0]\n"},
		{[]string{"audit", "ack", "rm", "node.gone:0x2c90300100010"}, "node.gone:0x0002c90300100010: no longer acknowledged\n[exit status 0]\n"},
		{[]string{"-c", `discover(); [sim.kill(n) for n in ("leaf-2", "leaf-3", "leaf-4", "spine-2")] and None`}, "[exit status 0]\n"},
		{[]string{"audit", "links", "sm", "topology"}, `fabric    4 nodes (2 switches, 2 CAs), 3 links, complete
audits    links sm topology
coverage  100 % of 21 requests; PDDR of links: 8 not supported of 8
findings  8 critical

critical  node.gone:0x0002c90300100050  0x0002c90300100050: the node was at leaf-1/4, now down
  critical  link.down:0x0002c90300100000/4  leaf-1/4: the link is down; it was X
critical  node.gone:0x0002c90300100010  0x0002c90300100010: the node was at spine-1/2, now down
  critical  link.down:0x0002c90300100040/2  spine-1/2: the link is down; it was X
critical  node.gone:0x0002c90300100020  0x0002c90300100020: the node was at spine-1/3, now down
  critical  link.down:0x0002c90300100040/3  spine-1/3: the link is down; it was X
critical  node.gone:0x0002c90300100030  0x0002c90300100030: the node was at spine-1/4, now down
  critical  link.down:0x0002c90300100040/4  spine-1/4: the link is down; it was X
[exit status 1]
`},
		{ack("node.gone:0x2c90300100010", "dead"), "node.gone:0x0002c90300100010: acknowledged X (DIR/sm-0x0002c90310000001/acks)\n[exit status 0]\n"},
		{[]string{"audit", "ack", "list", "--columns", "id,count"}, `id                               count
link.width:0x0002c90300100010/1      -
node.gone:0x0002c90300100010         1
[exit status 0]
`},
	} {
		got := outcome(fabsh(t, nil, append([]string{"-q", "-F", "ibsim:" + name, "-t", "5s", "--state", dir}, step.args...)...))
		got = varying.ReplaceAllString(strings.ReplaceAll(got, dir, "DIR"), "X")
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", step.args, diff)
		}
	}
}
