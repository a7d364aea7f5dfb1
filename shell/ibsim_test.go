//go:build linux

package shell

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// twoSwitches is a net file: two channel adapters, each on a switch.
const twoSwitches = `Switch 4 "S1"
[1] "H1"[1]
[2] "S2"[2]

Switch 4 "S2"
[1] "H2"[1]
[2] "S1"[2]

Hca 1 "H1"
[1] "S1"[1]

Hca 1 "H2"
[1] "S2"[1]
`

// fabsh makes ready a fabsh, which waits for ibsim as long as a busy machine takes,
// unless it is told otherwise.
func fabsh(t *testing.T, env []string, args ...string) *exec.Cmd {
	if len(args) > 1 && strings.HasPrefix(args[1], "ibsim") && !slices.Contains(args, "-t") {
		args = append([]string{"-t", "5s"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), "fabsh", args...)
	cmd.Env = append(testEnv(t), env...)
	return cmd
}

// outcome is all that a command wrote, and its exit status.
func outcome(cmd *exec.Cmd) string {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Run()
	return fmt.Sprintf("%s[exit status %d]\n", out.String(), cmd.ProcessState.ExitCode())
}

func TestIbsim(t *testing.T) {
	f := ibsimtest.Start(t, twoSwitches, ibsimtest.FixtureOptions{})
	const local = `smp_get("NodeDescription", dr("0")).node_string`
	tests := []struct {
		env  []string
		args []string
		want string
	}{
		{nil, []string{"-F", "ibsim:" + f.Name, "-c", "len(discover().switches)"}, "2\n[exit status 0]\n"},
		{nil, []string{"-F", "ibsim:" + f.Name, "-C", "H2", "-c", local}, "\"H2\"\n[exit status 0]\n"},
		{nil, []string{"-F", "ibsim:" + f.Name, "-C", "S2", "-c", local}, "\"S2\"\n[exit status 0]\n"},
		{[]string{"IBSIM_SOCKNAME=" + f.Name, "SIM_HOST=H2"}, []string{"-F", "ibsim", "-c", local}, "\"H2\"\n[exit status 0]\n"},
		{[]string{"IBSIM_SOCKNAME=nobody", "SIM_HOST=S1"}, []string{"-F", "ibsim:" + f.Name, "-C", "H2", "-c", local}, "\"H2\"\n[exit status 0]\n"},
		{nil, []string{"-F", "ibsim:" + f.Name, "-P", "2", "-c", "1"}, "fabsh: -P 2: not supported by ibsim, which attaches programs to port 1 of an adapter, or to port 0 of a switch\n[exit status 2]\n"},
		{nil, []string{"-F", "ibsim:nobody-is-here", "-c", "1"}, `fabsh: ibsim at "nobody-is-here": no server has this socket in this network namespace; start one with IBSIM_SOCKNAME=nobody-is-here ibsim -s -n NETFILE, or name the socket of a running one (-F ibsim:NAME)` + "\n[exit status 3]\n"},
		{nil, []string{"-F", "ibsim:" + f.Name, "-C", "H9", "-c", "1"}, fmt.Sprintf("fabsh: ibsim at %q: node \"H9\" is not in its net file\n[exit status 3]\n", f.Name)},
	}
	for _, tt := range tests {
		if got := outcome(fabsh(t, tt.env, tt.args...)); got != tt.want {
			t.Errorf("%v %q: got %s, want %s", tt.env, tt.args, got, tt.want)
		}
	}
	if left := f.Attached(t); len(left) > 0 {
		t.Errorf("still attached: %q", left)
	}
}

// However fabsh ends, it says goodbye: ibsim has ten places, and gives none
// back by itself.
func TestIbsimGoodbye(t *testing.T) {
	f := ibsimtest.Start(t, twoSwitches, ibsimtest.FixtureOptions{})
	const endless = `
print("begin")
while True:
    smp_get("NodeInfo", dr("0,1"))
    print("again")
`
	tests := []struct {
		name   string
		signal syscall.Signal // 0: the reader of its output goes away
		status int
	}{
		{"interrupt", syscall.SIGINT, 130},
		{"terminate", syscall.SIGTERM, 143},
		{"hang up", syscall.SIGHUP, 129},
		{"broken pipe", 0, 141},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := fabsh(t, nil, "-F", "ibsim:"+f.Name, "-c", endless)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(out)
			if _, err := r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if tt.signal != 0 {
				cmd.Process.Signal(tt.signal)
				io.Copy(io.Discard, r)
			}
			out.Close()
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tt.status {
				t.Errorf("exit status %d, want %d", got, tt.status)
			}
			if left := f.Attached(t); len(left) > 0 {
				t.Errorf("still attached: %q", left)
			}
		})
	}
}

// An ibsim that dies is the end of the script, soon, and the host's fault.
func TestIbsimKilled(t *testing.T) {
	f := ibsimtest.Start(t, twoSwitches, ibsimtest.FixtureOptions{})
	cmd := fabsh(t, nil, "-F", "ibsim:"+f.Name, "-c", "print('begin')\nwhile True: discover()")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	f.Kill(t)
	killed := time.Now()
	cmd.Wait()
	if took := time.Since(killed); took > time.Minute {
		t.Errorf("it went on for %v", took)
	}
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
	want := regexp.MustCompile(`^discover: (the sweep ended after \d+ nodes?|the node at route 0 did not answer): SubnGet\(\w+( \d+)?\) to route [0-9,]+: ` +
		regexp.QuoteMeta(fmt.Sprintf("ibsim at %q: it has ended or crashed; start it and attach again", f.Name)) +
		`\n  <command>:2:13: in <toplevel>\n    while True: discover\(\)\n +\^\n$`)
	if !want.MatchString(errs.String()) {
		t.Errorf("stderr: %s\nwant %v", errs.String(), want)
	}
}

// TestIbsimHangs: a deadline also ends what waits for a fabric to be opened.
func TestIbsimHangs(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, twoSwitches, ibsimtest.FixtureOptions{})
	resume := f.Freeze(t)
	defer resume()
	got := outcome(fabsh(t, nil, "-F", "ibsim:"+f.Name, "--deadline", "1", "-c", "1"))
	if want := "fabsh: deadline of 1s passed\n[exit status 3]\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
