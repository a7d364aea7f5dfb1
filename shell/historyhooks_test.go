package shell

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// fileLimit is how large files can be for fabsh-full, in bytes: a history is larger.
const fileLimit = 16 << 10

// mainOnFullDisk is fabsh that cannot write more than fileLimit bytes of a file, as on a full disk.
func mainOnFullDisk() int {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: fileLimit, Max: fileLimit}); err != nil {
		return 2
	}
	return mainOfTests()
}

// hooks are the commands that add to a history, with what says that they did.
var hooks = []struct {
	name string
	args []string
	want string // in the answer of history changes
}{
	{"audit", []string{"audit", "bad.star", "links", "--job", "nightly"}, `finding.open .*mine.bad`},
	{"ack", []string{"audit", "ack", "link.width:leaf-1/1", "--reason", "ordered", "--until", time.Now().AddDate(0, 3, 0).Format(time.DateOnly)}, `ack.begin .*ordered`},
	{"cabling", []string{"cabling", "plan.csv"}, `change.cabling .*16 of 16 cables`},
	{"remedy", []string{"remedy", "mine.star", "--out", "again.plan"}, `change.remedy .*isolate`},
	{"change", []string{"--write", "change", "apply", "r.plan", "--override-sm", "--confirm-within", "1s"}, `change.apply .*`},
}

// TestHistoryHooks: what commands add to a history is in it, and a history that is missing, damaged, on a full
// disk or locked changes neither their results nor their exit status; but for a missing one it is said.
func TestHistoryHooks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs many commands")
	}
	dir := t.TempDir()
	env := testEnv(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.star", "def audit(fabric):\n    finding(\"mine.bad\", fabric.switches[0], \"bad\")\n")
	write("mine.star", "def remedy(fabric, findings):\n    p = [n for n in fabric.nodes if n.name == \"leaf-1\"][0].ports[3]\n    return [isolate(p.link, \"bit errors\")]\n")
	// run returns standard output without times, standard error, and the exit status.
	run := func(program, state string, args ...string) (out, failed string, status int) {
		args = append([]string{"--state", state}, args...)
		if args[2] == "--write" { // a change of a fabric that stays
			program, args = "fabsh", append([]string{"-q", "sim", "fattree:k=4", "--log", os.DevNull, "--run", program}, args...)
		} else {
			args = append([]string{"-F", "sim:fattree:k=4"}, args...)
		}
		c := exec.Command(program, args...)
		var stdout, stderr bytes.Buffer
		c.Dir, c.Env, c.Stdout, c.Stderr = dir, env, &stdout, &stderr
		var exit *exec.ExitError
		if err := c.Run(); errors.As(err, &exit) {
			status = exit.ExitCode()
		} else if err != nil {
			t.Error(err)
		}
		out = strings.ReplaceAll(stdout.String(), state, "STATE")
		return regexp.MustCompile(`\d+(\.\d+)? ?m?s\b|\d\d:\d\d:\d\d|[0-9a-f]{8}T?`).ReplaceAllString(out, "T"), stderr.String(), status
	}
	prepare := func(args ...string) string {
		t.Helper()
		out, failed, status := run("fabsh", "prepared", args...)
		if status > 1 {
			t.Fatalf("%q: %d, %s", args, status, failed)
		}
		return out
	}
	table := exec.Command("fabsh", "-q", "-F", "sim:fattree:k=4", "-c", `print(discover().dump("cables"))`)
	table.Env = env
	plan, err := table.Output()
	if err != nil {
		t.Fatal(err)
	}
	write("plan.csv", string(plan))
	prepare("remedy", "mine.star", "--out", "r.plan")
	prepare("history", "record", "--once")
	folders, err := filepath.Glob(filepath.Join(dir, "prepared", "*", "history.db"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%v, %v", folders, err)
	}
	subnet := filepath.Base(filepath.Dir(folders[0]))
	history := func(state string) string { return filepath.Join(dir, state, subnet, "history.db") }
	spoil := map[string]func(path string) error{
		"whole":   func(string) error { return nil },
		"missing": os.Remove,
		"damaged": func(path string) error { return os.Truncate(path, 5000) },
		"text":    func(path string) error { return os.WriteFile(path, []byte("text"), 0o600) },
		"full":    func(string) error { return nil },
		"locked": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			t.Cleanup(func() { db.Close() })
			c, err := db.Conn(context.Background())
			if err == nil {
				_, err = c.ExecContext(context.Background(), "begin immediate")
			}
			return err
		},
	}
	type result struct {
		out, failed string
		status      int
	}
	var mu sync.Mutex
	results := map[[2]string]result{}
	var wait sync.WaitGroup
	places := make(chan struct{}, 4) // of those that do not wait for a lock
	for name, f := range spoil {
		for _, h := range hooks {
			state := name + "-" + h.name
			if err := os.CopyFS(filepath.Join(dir, state), os.DirFS(filepath.Join(dir, "prepared"))); err != nil {
				t.Fatal(err)
			}
			if err := f(history(state)); err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				if name != "locked" {
					places <- struct{}{}
					defer func() { <-places }()
				}
				program := "fabsh"
				if name == "full" {
					program = "fabsh-full"
				}
				args := append([]string(nil), h.args...)
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "again.plan", state+".plan")
				}
				var r result
				r.out, r.failed, r.status = run(program, state, args...)
				r.out = strings.ReplaceAll(r.out, state, "STATE")
				mu.Lock()
				defer mu.Unlock()
				results[[2]string{name, h.name}] = r
			})
		}
	}
	wait.Wait()
	for k, r := range results {
		whole := results[[2]string{"whole", k[1]}]
		said := strings.Contains(r.failed, "history")
		if r.status != whole.status || r.out != whole.out || said != (k[0] != "whole" && k[0] != "missing") {
			t.Errorf("%s, history %s: exit status %d, want %d; want the same as with one\n%s%s\nwith one:\n%s%s", k[1], k[0], r.status, whole.status, r.out, r.failed, whole.out, whole.failed)
		}
	}
	for _, h := range hooks {
		state := "whole-" + h.name
		out, failed, _ := run("fabsh", state, "history", "changes", "--kind", "change,ack,finding")
		if !regexp.MustCompile(h.want).MatchString(out) {
			t.Errorf("%s: history changes: %s%s", h.name, out, failed)
		}
	}
}

// TestExporterHistory: an exporter serves whatever becomes of its history, and logs it; and what it adds is
// in the history.
func TestExporterHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	x := startExporter(t, []string{"-F", "sim:fattree:k=4,registers=ber@leaf-1/2", "--state", dir}, "--history="+whole, "--every", "1s")
	ibsimtest.Poll(t, "two cycles", func() bool { return value(x.metrics(t), "fabsh_exporter_cycles_total", "outcome=whole") >= 2 })
	if err := x.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.Wait()
	c := exec.Command("fabsh", "history", "check", "--file", whole)
	c.Env = testEnv(t)
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "no damage") {
		t.Errorf("%v: %s", err, out)
	}
	// The second cycle read registers: modules, and the bit error rate that is too high.
	for _, table := range []string{"cable", "ber"} {
		c := exec.Command("fabsh", "-o", "csv", "history", "sql", "select count(*) as n from "+table, "--file", whole)
		c.Env = testEnv(t)
		if out, err := c.CombinedOutput(); err != nil || regexp.MustCompile(`(?m)^[1-9]`).Find(out) == nil {
			t.Errorf("%s: %v: %s", table, err, out)
		}
	}
	bad := filepath.Join(dir, "bad.db")
	if err := os.WriteFile(bad, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	x = launchExporter(t, []string{"-F", "sim:fattree:k=4", "--state", dir}, "--history="+bad)
	x.wait(t, "history: ")
	x.wait(t, "ready: ")
	// A server that is away is logged in the next cycle, and the file goes on.
	x = launchExporter(t, []string{"-F", "sim:fattree:k=4", "--state", dir}, "--history=postgres://nobody@127.0.0.1:1/x", "--every", "1s")
	x.wait(t, "ready: ")
	x.wait(t, "not copied to PostgreSQL, which the next sweep tries again: postgres://nobody@127.0.0.1:1/x: ")
	if list, err := filepath.Glob(filepath.Join(dir, "*", "history.db")); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
