package shell

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRemedyCron: without an answer of Slurm the line for cron makes no plan, in which no host
// would be busy.
func TestRemedyCron(t *testing.T) {
	text, err := os.ReadFile("../examples/remedy/cron")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var line string
	for l := range strings.Lines(string(text)) {
		if _, command, found := strings.Cut(l, " root  squeue"); found {
			line = strings.NewReplacer(`\%`, "%", "/var/lib/fabsh", dir).Replace("squeue" + command)
		}
	}
	for status, want := range map[string]string{"0": "remedy --over last --busy " + dir + "/busy", "1": ""} {
		for name, script := range map[string]string{"squeue": "exit " + status, "fabsh": `echo "$@"`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command("/bin/sh", "-c", line)
		c.Env = []string{"PATH=" + dir}
		out, _ := c.Output()
		if got := string(out); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("squeue with status %s: fabsh gets %q, want %q", status, got, want)
		}
	}
}

// TestRemedyWithoutLog: on a live fabric no plan is written without a log, in which budgets and
// isolated ports are kept.
func TestRemedyWithoutLog(t *testing.T) {
	dir := t.TempDir()
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(t, name, "fattree:k=4", "--no-sm")
	run := func(words ...string) (string, int) {
		c := exec.Command("fabsh", append([]string{"-F", "ibsim:" + name, "--state=state", "-q", "remedy", "isolate", "--audits", "links", "--out", "x.plan"}, words...)...)
		c.Env, c.Dir = testEnv(t), dir
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	const want = "remedy: --out: the log is kept by subnet, and this one is unknown: it has neither a prefix nor a subnet manager; give --subnet NAME\n"
	if out, status := run(); out != want || status != 2 {
		t.Errorf("status %d, %s", status, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.plan")); err == nil {
		t.Error("a plan was written")
	}
	if out, status := run("--subnet", "lab"); status != 0 {
		t.Errorf("--subnet: status %d, %s", status, out)
	}
}

// TestRemedyBesideManager: beside a running subnet manager a link is isolated and restored by
// the plans of a remedy. It is isolated once its journal has confirmed that, also if the next
// change has replaced that journal.
func TestRemedyBesideManager(t *testing.T) {
	if testing.Short() {
		t.Skip("20 s, in which the subnet manager settles")
	}
	t.Parallel()
	x := newRemedyBench(t, "fattree:k=4", `def remedy(fabric, findings, *, to = "isolate"):
    p = [n for n in fabric.nodes if n.name == "leaf-2"][0].ports[3]
    return [isolate(p, "bad") if to == "isolate" else restore(p, "repaired")]
`)
	x.remedy("planned   isolate  leaf-2/3 - spine-1/2: bad", "--out", "isolate.plan")
	refused, _ := x.fabsh("--state", "other", "--write", "--override-sm", "change", "apply", "isolate.plan").CombinedOutput()
	if want := "change apply: no log of remedies below other has port 0x0002c90300100040/2 as planned in the last 24 h; make the plan again with fabsh remedy --out, and apply it with the same --state\n"; string(refused) != want {
		t.Errorf("with another state: %s", refused)
	}
	x.change("isolate.plan")
	x.remedy("declined  isolate  leaf-2/3: bad")
	x.remedy("planned   restore  spine-1/2: repaired", "--to=restore", "--out", "restore.plan")
	x.change("restore.plan")
	x.remedy("kept      restore  leaf-2/3 - spine-1/2: repaired", "--to=restore", "--out", "kept.plan")
	x.remedy("declined  restore  leaf-2/3 - spine-1/2: repaired", "--to=restore")
	out, err := x.fabsh("-o", "csv", "remedy", "log").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?m)^[^,]*,`).ReplaceAllString(string(out), "")
	const want = `decision,action,step,subject,remedy,by,reason,rule,why,port,cost
planned,isolate,,leaf-2/3 - spine-1/2,mine,,bad,,,0x0002c90300100040/2,
applied,isolate,,leaf-2/3 - spine-1/2,mine,,,,,0x0002c90300100040/2,
planned,restore,,spine-1/2,mine,,repaired,,,0x0002c90300100040/2,
applied,restore,,leaf-2/3 - spine-1/2,mine,,,,,0x0002c90300100040/2,
kept,restore,,leaf-2/3 - spine-1/2,mine,,repaired,,,0x0002c90300100040/2,
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestRemedyHostLink: the link of a host that keeps another adapter is isolated beside a running subnet
// manager, and reverted; isolated again, it is restored. The last one of the host never goes down, also if
// the other one went down by an earlier plan, and a plan whose host lost the other one since is refused.
func TestRemedyHostLink(t *testing.T) {
	if testing.Short() {
		t.Skip("30 s, in which the subnet manager settles")
	}
	t.Parallel()
	x := newRemedyBench(t, "fattree:k=4,rails=2", `def remedy(fabric, findings, *, ports = "leaf-1/2", to = "isolate"):
    out = []
    for name in ports.split(","):
        leaf, _, num = name.partition("/")
        p = [n for n in fabric.nodes if n.name == leaf][0].ports[int(num)]
        out.append(isolate(p, "bad") if to == "isolate" else restore(p, "repaired"))
    return out
`)
	const first, second = "leaf-1/2 - node-0002 HCA-1/1", "leaf-2/2 - node-0002 HCA-2/1"
	x.remedy("planned   isolate  "+first+": bad", "--out", "isolate.plan")
	x.remedy("planned   isolate  "+second+": bad", "--ports=leaf-2/2", "--state", "other", "--out", "other.plan")
	out, _ := x.fabsh("remedy", "mine.star", "--audits", "links", "--ports=leaf-1/2,leaf-2/2").CombinedOutput()
	if want := "declined  isolate  " + second + ": bad\n                   rule host: it is the last link of \"node-0002 HCA-2\" (0x0002c90310000030); no other port of the host keeps its paths: node-0002 HCA-1/1 goes down too\n"; !strings.Contains(string(out), want) {
		t.Errorf("both links: %s", out)
	}
	x.change("isolate.plan")
	x.remedy("declined  isolate  "+second+": bad", "--ports=leaf-2/2")
	out, _ = x.fabsh("--state", "other", "--write", "--override-sm", "change", "apply", "other.plan").CombinedOutput()
	if !strings.Contains(string(out), "stale") {
		t.Errorf("the other plan: %s", out)
	}
	if out, err := x.fabsh("--write", "--override-sm", "change", "revert").CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "reverted: the fabric is as before the change\n") {
		t.Errorf("revert: %v\n%s", err, out)
	}
	x.remedy("planned   isolate  "+first+": bad", "--out", "isolate.plan")
	x.change("isolate.plan")
	x.remedy("planned   restore  leaf-1/2: repaired", "--to=restore", "--out", "restore.plan")
	x.change("restore.plan")
	x.remedy("kept      restore  "+first+": repaired", "--to=restore")
	out, err := x.fabsh("verify").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "unreachable  0\n") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// remedyBench is a served subnet with a subnet manager, and the remedy mine.star.
type remedyBench struct {
	t         *testing.T
	dir, name string
}

func newRemedyBench(t *testing.T, spec, script string) *remedyBench {
	t.Helper()
	x := &remedyBench{t, t.TempDir(), fmt.Sprintf("fabsh-%016x", rand.Uint64())}
	if err := os.WriteFile(filepath.Join(x.dir, "mine.star"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	serveSim(t, x.name, spec)
	return x
}

func (x *remedyBench) fabsh(words ...string) *exec.Cmd {
	c := exec.Command("fabsh", append([]string{"-F", "ibsim:" + x.name, "--state", "state"}, words...)...)
	c.Env, c.Dir = testEnv(x.t), x.dir
	return c
}

// remedy runs the remedy, and compares its first line.
func (x *remedyBench) remedy(want string, words ...string) {
	x.t.Helper()
	out, _ := x.fabsh(append([]string{"remedy", "mine.star", "--audits", "links"}, words...)...).CombinedOutput()
	if first, _, _ := strings.Cut(string(out), "\n"); first != want {
		x.t.Fatalf("%q: got\n%s\nwant\n%s", words, out, want)
	}
}

// change applies a plan, and confirms it.
func (x *remedyBench) change(plan string) {
	x.t.Helper()
	c := x.fabsh("--write", "--override-sm", "change", "apply", plan, "--confirm-within", "60s")
	out, err := c.StdoutPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		x.t.Fatal(err)
	}
	var log strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&log, lines.Text())
		if strings.Contains(lines.Text(), "unless confirmed") { // not earlier: both take the change's lock
			if out, err := x.fabsh("change", "confirm").CombinedOutput(); err != nil {
				x.t.Errorf("%v\n%s", err, out)
			}
		}
	}
	if err := c.Wait(); err != nil {
		x.t.Fatalf("%v\n%s", err, log.String())
	}
}

// TestRemedyUnits: the commands of the examples for cron and systemd run.
func TestRemedyUnits(t *testing.T) {
	for _, name := range []string{"cron", "fabsh-remedy.service"} {
		data, err := os.ReadFile(filepath.Join("..", "examples", "remedy", name))
		if err != nil {
			t.Fatal(err)
		}
		commands := regexp.MustCompile(`(?m)(fabsh -q.* remedy .*remedy\.plan)`).FindAllString(string(data), -1)
		if len(commands) == 0 {
			t.Errorf("%s has no command", name)
		}
		dir := t.TempDir()
		for _, command := range commands {
			command = strings.ReplaceAll(command[strings.LastIndex(command, "fabsh -q"):], "/var/lib/fabsh", dir)
			command = strings.Replace(command, "fabsh ", "fabsh -F sim:ring:n=3 --state "+dir+"/state ", 1)
			command = strings.Replace(command, "--state "+dir+" ", "", 1)
			if err := os.WriteFile(dir+"/busy", []byte("node-0001\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exec.Command("sh", "-c", command)
			c.Env = testEnv(t)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			if _, err := os.Stat(dir + "/remedy.plan"); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRemedyMetrics: the exporter has the metrics of the log of remedies, and none of a log that
// is missing or damaged.
func TestRemedyMetrics(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "mine.star")
	if err := os.WriteFile(script, []byte("def remedy(fabric, findings):\n    return [isolate(fabric.cas[2].ports[1], \"x\")]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-F", "sim:ring:n=3", "--state", filepath.Join(dir, "state")}
	metrics := func() (isolated, refused bool, n float64) {
		m := startExporter(t, append([]string{}, flags...)).metrics(t)
		return m["fabsh_isolated_ports"] != nil, m["fabsh_remedy_refused_total"] != nil, value(m, "fabsh_remedy_refused_total")
	}
	if isolated, refused, _ := metrics(); isolated || refused {
		t.Error("metrics of a log that does not exist")
	}
	c := exec.Command("fabsh", append(append([]string{}, flags...), "remedy", script, "--audits", "links", "--out", filepath.Join(dir, "plan"))...)
	c.Env = testEnv(t)
	if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	if isolated, refused, n := metrics(); !isolated || !refused || n != 1 {
		t.Errorf("isolated %t, refused %t: %g", isolated, refused, n)
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "state", "*", "remedies"))
	if len(logs) != 1 || os.WriteFile(logs[0], []byte("damaged\n"), 0o600) != nil {
		t.Fatal(logs)
	}
	if isolated, refused, _ := metrics(); isolated || refused {
		t.Error("metrics of a damaged log")
	}
}
