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
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.star", `def remedy(fabric, findings, *, to = "isolate"):
    p = [n for n in fabric.nodes if n.name == "leaf-2"][0].ports[3]
    return [isolate(p, "bad") if to == "isolate" else restore(p, "repaired")]
`)
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(t, name, "fattree:k=4")
	fabsh := func(words ...string) *exec.Cmd {
		c := exec.Command("fabsh", append([]string{"-F", "ibsim:" + name, "--state", "state"}, words...)...)
		c.Env, c.Dir = testEnv(t), dir
		return c
	}
	remedy := func(want string, words ...string) {
		t.Helper()
		out, _ := fabsh(append([]string{"remedy", "mine.star", "--audits", "links"}, words...)...).CombinedOutput()
		if first, _, _ := strings.Cut(string(out), "\n"); first != want {
			t.Fatalf("%q: got\n%s\nwant\n%s", words, out, want)
		}
	}
	change := func(plan string) {
		t.Helper()
		c := fabsh("--write", "--override-sm", "change", "apply", plan, "--confirm-within", "60s")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = c.Stdout
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&log, lines.Text())
			if strings.Contains(lines.Text(), "unless confirmed") { // not earlier: both take the change's lock
				if out, err := fabsh("change", "confirm").CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
		}
		if err := c.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, log.String())
		}
	}
	remedy("planned   isolate  leaf-2/3 - spine-1/2: bad", "--out", "isolate.plan")
	refused, _ := fabsh("--state", "other", "--write", "--override-sm", "change", "apply", "isolate.plan").CombinedOutput()
	if want := "change apply: no log of remedies below other has port 0x0002c90300100040/2 as planned in the last 24 h; make the plan again with fabsh remedy --out, and apply it with the same --state\n"; string(refused) != want {
		t.Errorf("with another state: %s", refused)
	}
	change("isolate.plan")
	remedy("declined  isolate  leaf-2/3: bad")
	remedy("planned   restore  spine-1/2: repaired", "--to=restore", "--out", "restore.plan")
	change("restore.plan")
	remedy("kept      restore  leaf-2/3 - spine-1/2: repaired", "--to=restore", "--out", "kept.plan")
	remedy("declined  restore  leaf-2/3 - spine-1/2: repaired", "--to=restore")
	out, err := fabsh("-o", "csv", "remedy", "log").Output()
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
