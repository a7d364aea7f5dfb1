package shell

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestJobLocked: of two runs of a job at a time the second says so, and ends with 3.
func TestJobLocked(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "sm-0x0002c90310000001")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	held, err := format.AcquireLock(filepath.Join(folder, "counters.state.lock"))
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"counters", "mine"} {
		c := exec.Command("fabsh", "-F", "sim:ring:n=2", "-t", "1m", "--state", dir, "audit", "counters", "--over", "last", "--job", job)
		c.Env = testEnv(t)
		out, err := c.CombinedOutput()
		locked := fmt.Sprintf("another run is in progress: process %d holds %s/counters.state.lock", os.Getpid(), folder)
		status := c.ProcessState.ExitCode()
		if job == "counters" && (status != 3 || !strings.Contains(string(out), locked)) || job != "counters" && status != 0 {
			t.Errorf("job %s: status %d, %v\n%s", job, status, err, out)
		}
	}
	held.Release()
}

// TestJobsAtOneTime: while a run is under way on a live fabric another job runs, and the same
// one is refused.
func TestJobsAtOneTime(t *testing.T) {
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(t, name, "ring:n=2")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "wait.star"), []byte("def audit(fabric):\n    sleep('5m')\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(words ...string) *exec.Cmd {
		c := exec.Command("fabsh", append([]string{"-q", "-F", "ibsim:" + name, "--state", dir, "audit"}, words...)...)
		c.Env = testEnv(t)
		return c
	}
	first := run(filepath.Join(dir, "wait.star"), "--job", "a")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { first.Process.Kill(); first.Wait() }()
	ibsimtest.Poll(t, "the lock of the first run", func() bool { // written once it is held
		holder, _ := os.ReadFile(filepath.Join(dir, "sm-0x0002c90310000001", "a.run.lock"))
		return string(holder) == fmt.Sprintln(first.Process.Pid)
	})
	for job, want := range map[string]int{"a": 3, "b": 0} {
		out, _ := run("links", "--job", job).CombinedOutput()
		held := fmt.Sprintf("audit: another run is in progress: process %d holds %s/sm-0x0002c90310000001/a.run.lock\n", first.Process.Pid, dir)
		if want == 3 && string(out) != held || !strings.Contains(string(out), "another run") != (want == 0) {
			t.Errorf("job %s: status is to be %d\n%s", job, want, out)
		}
	}
}

// TestAckIDs: an ID is told as findings have it, however it is spelled, and what no finding
// can have is refused.
func TestAckIDs(t *testing.T) {
	dir, day := t.TempDir(), time.Now().AddDate(0, 0, 2).Format(time.DateOnly)
	for _, x := range []struct {
		id, want string
		status   int
	}{
		{"link.width:0x0002C90310000000/1", "link.width:0x0002c90310000000/1: acknowledged", 0},
		{"link.width:0x2c90310000000/01", "link.width:0x0002c90310000000/1: acknowledged", 0},
		{"link.width:0x2c90310000001/1", "link.width:0x0002c90310000000/1: acknowledged", 0}, // GUID of the port
		{"link.width:0x2c90310000001", "link.width:0x0002c90310000000: acknowledged", 0},
		{"link.width:node-0001 HCA-1/1", "link.width:0x0002c90310000000/1: acknowledged", 0},
		{"node.gone:0xAB/9", "node.gone:0x00000000000000ab/9: acknowledged", 0},
		{"link.*:0x0002c9*/7", "link.*:0x0002c9*/7: acknowledged", 0},
		{"link.*:fab*", "link.*:fab*: acknowledged", 0},
		{"link.width:switch*", `audit ack: invalid ID "link.width:switch*"; use CHECK:GUID/PORT, * for any text`, 2},
		{"link.width:0x0002C9*", `audit ack: invalid ID "link.width:0x0002C9*"; use CHECK:GUID/PORT, * for any text`, 2},
		{"Link.Width:*", `audit ack: invalid ID "Link.Width:*"; use CHECK:GUID/PORT, * for any text`, 2},
		{"link.width:0x2c90310000000/x", "audit ack: unknown node", 2},
	} {
		c := exec.Command("fabsh", "-F", "sim:ring:n=2", "--state", dir, "audit", "ack", x.id, "--until", day, "--reason", "x")
		c.Env = testEnv(t)
		if out, _ := c.CombinedOutput(); !strings.HasPrefix(string(out), x.want) || c.ProcessState.ExitCode() != x.status {
			t.Errorf("%s: status %d, %s", x.id, c.ProcessState.ExitCode(), out)
		}
	}
}

// TestKillAnyMoment: an audit that is killed at any moment leaves the state of its
// job whole, as it was or as it is to be, and no report or one that is whole; the
// next run finds nothing amiss.
func TestKillAnyMoment(t *testing.T) {
	kills := 50
	if os.Getenv("FABSH_SOAK") != "" {
		kills = 200
	}
	dir := t.TempDir()
	run := func() (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		c := exec.Command("fabsh", "-F", "sim:fattree:k=4,levels=2", "-t", "1m", "--state", dir, "audit", "counters", "links", "--over", "last", "--job", "cron", "--out", filepath.Join(dir, "report"))
		c.Env = testEnv(t)
		c.Stdout, c.Stderr = &out, &out
		return c, &out
	}
	report := regexp.MustCompile(`^fabric    .*, complete
audits    counters links
coverage  (?:\d+ of \d+ checks; )?100 % of \d+ requests
(?:not judged  .*
)*(note      counters were not judged: .*
)?findings  none
$`)
	whole := func(when string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "report"))
		if err != nil || !report.Match(text) {
			t.Fatalf("%s: the report is %q, %v", when, text, err)
		}
		paths, _ := filepath.Glob(filepath.Join(dir, "*", "cron.state"))
		if len(paths) != 1 {
			t.Fatalf("%s: states %q", when, paths)
		}
		given := filepath.Base(filepath.Dir(paths[0]))
		var guid uint64
		if _, err := fmt.Sscanf(given, "sm-0x%x", &guid); err != nil {
			t.Fatal(given)
		}
		st, err := audit.OpenState(dir, fabric.Subnet{Given: given}, "cron")
		if err != nil {
			t.Fatal(err)
		}
		if st.Read(); st.Reset != nil || st.Last() == nil || st.Last().Len() != 32 {
			t.Fatalf("%s: the state is lost, or half: %v", when, st.Reset)
		}
	}
	began := time.Now()
	c, out := run()
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	whole("the first run")
	r := rand.New(rand.NewPCG(9, 0))
	for range kills {
		c, _ := run()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		moment := time.Duration(r.Int64N(int64(took * 5 / 4)))
		killed := time.AfterFunc(moment, func() { c.Process.Kill() })
		c.Wait()
		killed.Stop()
		if ended := c.ProcessState.Sys().(syscall.WaitStatus); ended.Signaled() && ended.Signal() != syscall.SIGKILL || ended.Exited() && ended.ExitStatus() != 0 {
			t.Errorf("killed after %v: %v", moment, c.ProcessState)
		}
		whole(fmt.Sprint("killed after ", moment))
	}
	folders, _ := filepath.Glob(filepath.Join(dir, "*", "cron.state"))
	folder := filepath.Dir(folders[0])
	files, _ := os.ReadDir(folder)
	for _, file := range files { // temporary files go when they are old
		if strings.HasPrefix(file.Name(), ".") {
			os.Chtimes(filepath.Join(folder, file.Name()), time.Time{}, time.Now().Add(-time.Hour))
		}
	}
	c, out = run()
	if err := c.Run(); err != nil || out.Len() > 0 {
		t.Errorf("the run after: %v\n%s", err, out)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "report")); strings.Contains(string(text), "no run of this job") {
		t.Errorf("the run after knows nothing of those before:\n%s", text)
	}
	if files, _ := os.ReadDir(folder); len(files) != 3 { // with the lock, and of which subnet it is
		t.Errorf("beside the state are %v", files)
	}
}
