package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// hostile are names that a shell, scontrol or Slurm would take for something else.
var hostile = []string{"", "-x", "--help", "a b", "a;touch pwned", "$(touch pwned)", "`touch pwned`", "a\ntouch pwned", "a'b", `a"b`, `a\`, "n[1-9]", "n1,n2", "ALL", "all", "*", "~", "ü", "nоde-1", "n\u202e1", strings.Repeat("n", 10000) + ";touch pwned", "a\x00b", "a\tb", "a#b", "a=b", "a/b"}

// hostileTexts are reasons that try to end the quotes, or to begin a command.
var hostileTexts = []string{"'; touch pwned; '", "$(touch pwned)", "`touch pwned`", "x\ntouch pwned\n", "\x1b[31mred", `"`, `\'`, "ends with '", "none", "a;b|c&d>e<f", "é", "!!", ";; esac; touch pwned; case x in"}

// slurm is a folder with a sinfo that prints the reasons in files of the names of nodes, and a
// scontrol that logs its arguments, a line each.
func slurm(t *testing.T, reasons map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("sinfo", "#!/bin/sh\n[ \"$1 $2 $3 $5 $6\" = '-a -h -n -o %E' ] && [ -f \"reason.$4\" ] && cat \"reason.$4\"\n")
	write("scontrol", "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\" >>log; done\n")
	for node, reason := range reasons {
		write("reason."+node, reason+"\n")
	}
	return dir
}

// run runs a text in a shell of its own, and returns what scontrol has logged.
func run(t *testing.T, dir, text string) string {
	t.Helper()
	c := exec.Command("sh")
	c.Dir, c.Stdin = dir, strings.NewReader(text)
	c.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("sh: %v: %s\n%s", err, out, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Errorf("a command from a name or a reason ran:\n%s", text)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	return string(log)
}

func slurmFormat(t *testing.T) *SchedulerFormat {
	f, err := SchedulerFormatByName("slurm")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSlurmWhich: which hosts are drained, and which drains of this and of fabsh_health.sh are lifted.
func TestSlurmWhich(t *testing.T) {
	r := &HealthReport{Judged: []string{"link.init", "link.width"}, Hosts: []HostHealth{
		{Name: "n1", State: Unhealthy, Reasons: []Reason{{State: Unhealthy, Text: "x"}}},
		{Name: "n2", State: Degraded, Reasons: []Reason{{State: Degraded, Text: "x"}}},
		{Name: "n3", State: Down, Absent: true, Reasons: []Reason{{State: Down, Text: "x"}}},
		{Name: "n4", State: Unknown, Absent: true, Reasons: []Reason{{State: Unknown, Text: "x"}}},
		{Name: "n5", State: Unknown, Reasons: []Reason{{State: Unknown, Text: "x"}}},
	}}
	nodes := func(text string) string {
		var list []string
		for _, m := range regexp.MustCompile(`NodeName=(\w+) State=(\w+)`).FindAllStringSubmatch(text, -1) {
			list = append(list, m[1]+" "+m[2])
		}
		return strings.Join(list, ", ")
	}
	for _, test := range []struct {
		o    Output
		cut  string
		want string
	}{
		{Output{}, "", "n1 DRAIN, n3 DRAIN"},
		{Output{Degraded: true}, "", "n1 DRAIN, n2 DRAIN, n3 DRAIN"},
		{Output{Absent: true}, "", "n1 DRAIN, n3 DRAIN, n4 DRAIN"},
		{Output{Absent: true}, "a switch did not answer", "n1 DRAIN, n3 DRAIN"},
	} {
		r.Incomplete = test.cut
		text, _ := slurmFormat(t).Write(r, test.o)
		if got := nodes(text); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.o, got, test.want)
		}
	}
	ok := &HealthReport{Judged: r.Judged}
	var drained []Drained
	for i, reason := range []string{"fabsh: host.init:0x1/1  mlx5_0/1: not active", "fabsh: host.pcie:0x1  narrow", "fabsh: link.width leaf-1/1: 1x", "fabsh: not in the fabric; no link at leaf-1/2", "fabsh: link.flap x", "not in the fabric", "maintenance"} {
		name := fmt.Sprintf("n%d", i+1)
		ok.Hosts = append(ok.Hosts, HostHealth{Name: name, State: OK})
		drained = append(drained, Drained{name, reason})
	}
	text, _ := slurmFormat(t).Write(ok, Output{Drained: drained})
	if got, want := nodes(text), "n1 UNDRAIN, n3 UNDRAIN, n4 UNDRAIN"; got != want {
		t.Errorf("got %s, want %s\n%s", got, want, text)
	}
}

// TestSlurmHostile: hosts of hostile names are refused by name, and reasons arrive as one
// argument, whatever is in them.
func TestSlurmHostile(t *testing.T) {
	r := &HealthReport{}
	for _, name := range hostile {
		r.Hosts = append(r.Hosts, HostHealth{Name: name, State: Unhealthy, Reasons: []Reason{{Text: "x"}}})
	}
	free := map[string]string{}
	var want strings.Builder
	for i, text := range hostileTexts {
		name := "n" + string(rune('a'+i))
		r.Hosts = append(r.Hosts, HostHealth{Name: name, State: Unhealthy, Reasons: []Reason{{Text: text}}})
		free[name] = "none"
		clean := strings.Map(func(c rune) rune {
			if c < ' ' || c > '~' {
				return '?'
			}
			return c
		}, text)
		want.WriteString("update\nNodeName=" + name + "\nState=DRAIN\nReason=fabsh: " + clean + "\n")
	}
	text, refused := slurmFormat(t).Write(r, Output{})
	if diff := cmp.Diff(want.String(), run(t, slurm(t, free), text)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var names []string
	for _, x := range refused {
		names = append(names, x.Name)
	}
	if diff := cmp.Diff(hostile, names); diff != "" {
		t.Errorf("refused: -want +got\n%s", diff)
	}
}

// TestSlurmDrains: only nodes without a reason, or with one of fabsh, are drained; only drains of
// fabsh are lifted, of hosts that are ok, if the run did the check of the reason, and the node
// still has it.
func TestSlurmDrains(t *testing.T) {
	r := &HealthReport{Judged: []string{"x.y", "x.z", "site"}}
	for name, s := range map[string]Health{"bad": Unhealthy, "bad-ours": Unhealthy, "bad-theirs": Unhealthy, "bad-absent": Unhealthy, "bad-none": Unhealthy, "slow": Degraded, "silent": Unknown, "ok": OK, "ok-theirs": OK, "ok-changed": OK, "ok-twice": OK, "ok-other": OK, "ok-later": OK, "ok-host": OK, "ok-bare": OK, "ok-site": OK, "silent-ours": Unknown, "slow-ours": Degraded} {
		r.Hosts = append(r.Hosts, HostHealth{Name: name, State: s, Reasons: []Reason{{Text: "why"}}})
	}
	before := []Drained{
		{"ok", "fabsh: x.y why"}, {"ok", "fabsh: x.y why"}, {"ok-theirs", "RMA: fabsh: x.y why"}, {"ok-changed", "fabsh: x.y why"}, {"silent-ours", "fabsh: x.y why"}, {"slow-ours", "fabsh: x.y why"}, {"bad-ours", "fabsh: old"},
		{"ok-twice", "fabsh: x.y a"}, {"ok-twice", "disk"}, {"ok-other", "fabsh: ctr.ber why"}, {"ok-later", "fabsh: x.y why"}, {"ok-host", "fabsh: host.down:0x1/1 mlx5_0/1: why"}, {"ok-bare", "fabsh: "}, {"ok-site", "fabsh: site.bad why"},
	}
	now := map[string]string{
		"bad": "none", "bad-ours": "fabsh: old", "bad-theirs": "bad DIMM", "bad-none": "none of your business",
		"slow": "none", "silent": "none", "ok": "fabsh: x.y why", "ok-theirs": "RMA: fabsh: x.y why", "ok-changed": "RMA", "silent-ours": "fabsh: x.y why", "slow-ours": "fabsh: x.y why", "ok-twice": "fabsh: x.y a",
		"ok-other": "fabsh: ctr.ber why", "ok-later": "fabsh: x.z why", "ok-host": "fabsh: host.down:0x1/1 mlx5_0/1: why", "ok-bare": "fabsh: ", "ok-site": "fabsh: site.bad why",
	}
	text, refused := slurmFormat(t).Write(r, Output{Drained: before})
	log := run(t, slurm(t, now), text)
	var got []string
	for entry := range strings.SplitSeq(strings.TrimSpace(log), "update\n") {
		if entry != "" {
			got = append(got, strings.Join(strings.Fields(entry), " "))
		}
	}
	want := map[string]bool{"NodeName=bad State=DRAIN Reason=fabsh: why": true, "NodeName=bad-ours State=DRAIN Reason=fabsh: why": true, "NodeName=ok State=UNDRAIN": true, "NodeName=ok-site State=UNDRAIN": true}
	for _, line := range got {
		if !want[line] {
			t.Errorf("ran %s", line)
		}
		delete(want, line)
	}
	if len(want) > 0 || refused != nil {
		t.Errorf("did not run: %v; refused %v\n%s", want, refused, text)
	}
	if text, _ := slurmFormat(t).Write(r, Output{}); strings.Contains(text, "UNDRAIN") {
		t.Errorf("lifted without a list of nodes:\n%s", text)
	}
}

// TestSlurmSubnets: a run of one subnet neither lifts nor replaces the drains of another.
func TestSlurmSubnets(t *testing.T) {
	r := &HealthReport{Judged: []string{"link.ber"}, Hosts: []HostHealth{
		{Name: "bad", State: Unhealthy, Reasons: []Reason{{State: Unhealthy, Check: "link.ber", ID: "x", Text: "too many errors"}}},
		{Name: "good", State: OK},
	}}
	const own, other, unnamed = "fabsh[rail1]: link.ber x", "fabsh[rail2]: link.ber x", "fabsh: link.ber x"
	for _, x := range []struct{ subnet, reason, want string }{
		{"rail1", own, "[bad drain][good undrain]"},
		{"rail1", other, ""},
		{"rail1", unnamed, ""},
		{"rail1", "none", "[bad drain]"},
		{"", unnamed, "[bad drain][good undrain]"},
		{"", own, ""},
		{"", "none", "[bad drain]"},
	} {
		text, refused := slurmFormat(t).Write(r, Output{Subnet: x.subnet, Drained: []Drained{{"good", x.reason}}})
		if len(refused) > 0 {
			t.Fatal(refused)
		}
		dir := slurm(t, map[string]string{"bad": x.reason, "good": x.reason})
		got := ""
		for line := range strings.Lines(run(t, dir, text)) {
			if name, ok := strings.CutPrefix(line, "NodeName="); ok {
				got += "[" + strings.TrimSpace(name)
			} else if state, ok := strings.CutPrefix(line, "State="); ok {
				got += " " + strings.ToLower(strings.TrimSpace(state)) + "]"
			}
		}
		if got != x.want {
			t.Errorf("%q, a node with %q: got %s, want %s", x.subnet, x.reason, got, x.want)
		}
	}
}

func TestReadDrained(t *testing.T) {
	list := []Drained{{"n1", "fabsh: link.width x"}, {"n2", "none"}, {"n-3", "bad DIMM"}}
	for _, test := range []struct {
		text string
		want []Drained
		err  string
	}{
		{"n1 fabsh: link.width x\nn2  none\nn-3 bad DIMM\n", list, ""},
		{`{"meta": {}, "nodes": [{"name": "n1", "reason": "fabsh: link.width x", "state": ["IDLE", "DRAIN"]}, {"name": "n2", "reason": "none"}, {"name": "n-3", "reason": "bad DIMM"}]}`, list, ""},
		{`{"nodes": []}`, nil, ""},
		{"", nil, ""},
		{"n[1-3] none\n", nil, `line 1: want NODE REASON, got "n[1-3] none"; use sinfo -a -h -N -o '%N %E', or scontrol show node --json`},
		{strings.Repeat("n", 2<<20), nil, `line 1: want NODE REASON, got "` + strings.Repeat("n", 60) + `"; use sinfo -a -h -N -o '%N %E', or scontrol show node --json`},
		{"n1 none\nREASON\n", nil, `line 2: want NODE REASON, got "REASON"; use sinfo -a -h -N -o '%N %E', or scontrol show node --json`},
		{`{"jobs": []}`, nil, `JSON without "nodes"; use scontrol show node --json`},
		{`{"nodes": [`, nil, "invalid JSON: unexpected end of JSON input"},
	} {
		got, err := ReadDrained([]byte(test.text))
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%q: %v, want %s; -want +got\n%s", test.text, err, test.err, diff)
		}
	}
}

// FuzzReadDrained: no list makes a line for a node that is not among the hosts, and none breaks
// out of its quotes.
func FuzzReadDrained(f *testing.F) {
	f.Add("n1 fabsh: x\n", "n1", "why")
	f.Add(`{"nodes": [{"name": "n1", "reason": "fabsh: x"}]}`, "$(x)", "'")
	f.Fuzz(func(t *testing.T, text, name, why string) {
		list, err := ReadDrained([]byte(text))
		if err != nil {
			return
		}
		r := &HealthReport{Judged: []string{"x"}, Hosts: []HostHealth{{Name: name, State: OK}, {Name: "n2", State: Unhealthy, Reasons: []Reason{{Text: why}}}}}
		out, _ := slurmFormat(t).Write(r, Output{Drained: list})
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, `case "$(sinfo -a -h -n `) || !strings.HasSuffix(line, " ;; esac\n") || strings.Count(line, "'")%2 != 0 && !strings.Contains(line, `\'`) {
				t.Errorf("%q", out)
			}
		}
	})
}

// TestSlurmController: Slurm's controller (22.05) takes the commands: it drains nodes without a
// reason or with one of fabsh, and lifts only these drains. NodeName=all would be all nodes.
func TestSlurmController(t *testing.T) {
	s := ibsimtest.StartSlurm(t, "SwitchName=leaf Nodes=n[1-6]\n", "n[1-6]")
	const reasons = "sinfo -a -h -N -o '%N %E|%T'"
	// Without slurmd, only nodes that were down take UNDRAIN without an error.
	s.Shell(t, `for n in n1 n4 n5; do scontrol update NodeName=$n State=DOWN Reason='fabsh: down'; done
scontrol update NodeName=n2 State=DRAIN Reason='bad DIMM'
scontrol update NodeName=n6 State=DRAIN Reason='RMA'`)
	bad := func(name string) HostHealth {
		return HostHealth{Name: name, State: Unhealthy, Reasons: []Reason{{ID: "x.y:0x1", Check: "x.y", Text: `it's "bad"; $(reboot)`}}}
	}
	r := &HealthReport{Judged: []string{"x.y"}, Hosts: []HostHealth{bad("n1"), bad("n2"), bad("n3"), bad("n4"), {Name: "n5", State: Degraded}, {Name: "n6"}, bad("n7"), bad("all")}}
	text, refused := slurmFormat(t).Write(r, Output{})
	if out := s.Shell(t, text); out != "" || len(refused) != 1 {
		t.Errorf("%s\nrefused %v", out, refused)
	}
	const why = `fabsh: x.y it's "bad"; $(reboot)`
	want := "n1 " + why + "|drained\nn2 bad DIMM|drained\nn3 " + why + "|drained\nn4 " + why + "|drained\nn5 fabsh: down|down\nn6 RMA|drained\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(s.Shell(t, reasons), "*", "")); diff != "" {
		t.Errorf("drained: -want +got\n%s", diff)
	}
	drained, err := ReadDrained([]byte(s.Shell(t, "sinfo -a -h -N -o '%N %E'")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Hosts {
		r.Hosts[i] = HostHealth{Name: r.Hosts[i].Name, State: OK}
	}
	r.Hosts[3] = bad("n4")
	text, _ = slurmFormat(t).Write(r, Output{Drained: drained})
	s.Shell(t, "scontrol update NodeName=n4 State=DRAIN Reason='mine now'") // after the list was made
	s.Shell(t, text)
	want = "n1 " + why + "|down\nn2 bad DIMM|drained\nn3 none|unknown\nn4 mine now|drained\nn5 fabsh: down|down\nn6 RMA|drained\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(s.Shell(t, reasons), "*", "")); diff != "" {
		t.Errorf("lifted: -want +got\n%s", diff)
	}
	if asJSON := s.Shell(t, "scontrol show node --json"); strings.HasPrefix(asJSON, "{") {
		again, err := ReadDrained([]byte(asJSON))
		if err != nil || len(again) != 6 || again[0].Node != "n1" || again[0].Reason != why || again[1].Reason != "bad DIMM" {
			t.Errorf("%v, %v of\n%s", again, err, asJSON)
		}
	} else {
		t.Logf("no JSON: %s", asJSON)
	}
}
