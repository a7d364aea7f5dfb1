package shell

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/builtins/lang"
)

// TestInterruptAnyMoment: Ctrl-C ends fabsh whatever its fibers are doing, from
// the first moment on, and what was printed is what a plain loop would have
// printed by then.
func TestInterruptAnyMoment(t *testing.T) {
	const code = `
def visit(i):
    guids = parallel(lambda lid: smp_get("NodeInfo", lid).node_guid, range(1, 20))
    smp_get("NodeInfo", [1, 2, 3] * 5)
    if i %% 3 == 0:
        sleep("%dms")
    print(i)
parallel(visit, range(1 << 20), width=256)`
	r := rand.New(rand.NewPCG(1, 0))
	var running sync.WaitGroup
	slots := make(chan bool, 2)
	for range 24 {
		moment := time.Duration(r.Int64N(int64(600 * time.Millisecond)))
		cmd := exec.Command("fabsh", "-F", "sim:fattree:k=4,levels=2,loss=0.01", "-c", fmt.Sprintf(code, r.IntN(3)))
		cmd.Env = testEnv(t)
		running.Go(func() {
			slots <- true
			defer func() { <-slots }()
			interruptAt(t, cmd, moment)
		})
	}
	running.Wait()
}

func interruptAt(t *testing.T, cmd *exec.Cmd, moment time.Duration) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	signal := time.AfterFunc(moment, func() { cmd.Process.Signal(os.Interrupt) })
	defer signal.Stop()
	hung := time.AfterFunc(moment+2*time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	cmd.Wait()
	ended := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ended.Signaled() && ended.Signal() == syscall.SIGINT: // it had not begun yet
	case ended.ExitStatus() != lang.StatusInterrupted || !interruptedLine.MatchString(stderr.String()):
		t.Errorf("Ctrl-C after %v: %v; stderr: %s", moment, cmd.ProcessState, stderr.String())
	}
	for i, line := range strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n") {
		if line != "" && line != fmt.Sprint(i) {
			t.Errorf("line %d is %q", i, line)
			break
		}
	}
}

// interruptedLine is all that stderr tells, and not even that if nothing ran yet.
var interruptedLine = regexp.MustCompile(`^(interrupted( \(in-flight MADs abandoned: \d+\))?\n)?$`)
