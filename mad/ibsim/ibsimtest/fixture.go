package ibsimtest

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// FixtureOptions select what is started beside ibsim.
type FixtureOptions struct {
	// SM is the node that OpenSM runs on; "": no OpenSM.
	SM string
	// SMArgs are further arguments of OpenSM, SMConf lines of its file of options.
	SMArgs []string
	SMConf string
	// RMPP lets OpenSM send long tables in segments. The C tools trip over
	// them, and otherwise see the first record or so.
	RMPP bool
}

// Fixture is a private ibsim, perhaps with OpenSM. It ends with the test.
type Fixture struct {
	Name string // of ibsim's socket: what -F ibsim:NAME takes
	Dir  string // of its files

	env     []string
	console io.WriteCloser
	output  *os.File // of the console
	marks   int
	sim     *exec.Cmd
	sm      *SM
	sms     int // that StartSM has started
}

// peerTimeout is how long a peer may take for anything. The slowest is OpenSM
// with a big fabric under the race detector of several tests at once. It ends only
// what is hopeless: machines pause at times.
const peerTimeout = 3 * time.Minute

// Start brings up ibsim with the net file net, and waits until it, and OpenSM
// if there is to be one, are ready. Skips the test when there is no ibsim.
func Start(t testing.TB, net string, o FixtureOptions) *Fixture {
	t.Helper()
	f := &Fixture{Name: fmt.Sprintf("fabsh-%016x", rand.Uint64()), Dir: t.TempDir(), env: Env(t)}
	f.startSim(t, net)
	if o.SM != "" {
		f.sm = f.startSM(t, o, f.Dir)
	}
	return f
}

// On returns a fixture for peers on another simulator than ibsim, which the test runs
// itself: it has sockets of that name, reads console commands from one pipe and
// writes to the other; nil: it has no console.
func On(t testing.TB, name string, console io.WriteCloser, output *os.File) *Fixture {
	t.Helper()
	return &Fixture{Name: name, Dir: t.TempDir(), env: Env(t), console: console, output: output}
}

func (f *Fixture) startSim(t testing.TB, net string) {
	t.Helper()
	path := filepath.Join(f.Dir, "net")
	if err := os.WriteFile(path, []byte(net), 0o666); err != nil {
		t.Fatal(err)
	}
	stderr := f.create(t, "ibsim.err")
	// -s starts at once; the others raise limits for big nets.
	f.sim = exec.Command(Path(t, "ibsim"), "-s", "-N", "16384", "-S", "4096", "-P", "131072", path)
	f.sim.Env = append(f.env, "IBSIM_SOCKNAME="+f.Name)
	f.sim.Stderr = stderr
	var err error
	if f.console, err = f.sim.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := f.sim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f.output = stdout.(*os.File)
	start(t, f.sim, os.Kill)
	f.Console(t, "") // it answers once the sockets are there
}

// RestartSM ends OpenSM, and starts another with options o.
func (f *Fixture) RestartSM(t testing.TB, o FixtureOptions) {
	t.Helper()
	f.sm.Stop()
	if err := os.Remove(filepath.Join(f.Dir, "opensm.log")); err != nil {
		t.Fatal(err)
	}
	f.sm = f.startSM(t, o, f.Dir)
}

// SimPID returns the process of ibsim.
func (f *Fixture) SimPID() int { return f.sim.Process.Pid }

// SMPID returns the process of OpenSM.
func (f *Fixture) SMPID() int { return f.sm.cmd.Process.Pid }

// Command prepares a program of infiniband-diags ("smpquery") that attaches to node,
// or to the first of the net file if node is "".
func (f *Fixture) Command(t testing.TB, node, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), Path(t, name), args...)
	c.Dir = f.Dir // libumad2sim makes files in it
	c.Env = append(f.env, "IBSIM_SOCKNAME="+f.Name, "LD_PRELOAD="+shim(t))
	if node != "" {
		c.Env = append(c.Env, "SIM_HOST="+node)
	}
	return c
}

// Run runs a program of infiniband-diags on the first node of the net file,
// and returns what it writes to stdout. The test fails if it does. The program
// waits for answers as long as busy machines take.
func (f *Fixture) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return Output(t, f.Command(t, "", name, append([]string{"-t", "10000"}, args...)...))
}

// Output runs c, which must succeed, and returns what it writes to stdout.
func Output(t testing.TB, c *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	start(t, c, os.Kill)
	hung := time.AfterFunc(peerTimeout, func() { c.Process.Kill() })
	defer hung.Stop()
	if err := c.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// Console sends ibsim a command (`Unlink "sw1"[3]`) and returns its output, which is
// empty for most that succeed.
func (f *Fixture) Console(t testing.TB, format string, args ...any) string {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	if len(line) > 127 || strings.Contains(line, "\n") {
		t.Fatalf("ibsim's console takes a line of at most 127 bytes: %q", line)
	}
	f.marks++
	mark := fmt.Sprintf("# %d", f.marks) // a comment is echoed
	if _, err := fmt.Fprintf(f.console, "%s\n%s\n", line, mark); err != nil {
		f.fatal(t, "ibsim's console: %v", err)
	}
	f.output.SetReadDeadline(time.Now().Add(peerTimeout))
	var said []byte
	for !bytes.HasSuffix(said, []byte(mark+"sim> ")) {
		b := make([]byte, 4096)
		n, err := f.output.Read(b)
		if err != nil {
			f.fatal(t, "ibsim's console: %v; output %q", err, said)
		}
		said = append(said, b[:n]...)
	}
	return strings.ReplaceAll(strings.TrimSuffix(string(said), mark+"sim> "), "sim> ", "")
}

// Attached lists the clients that have a slot in ibsim.
func (f *Fixture) Attached(t testing.TB) []string {
	t.Helper()
	var clients []string
	for line := range strings.Lines(f.Console(t, "Attached")) {
		if strings.HasPrefix(line, "Client ") {
			clients = append(clients, strings.TrimSpace(line))
		}
	}
	return clients
}

// Kill ends ibsim at once, as if it had crashed.
func (f *Fixture) Kill(t testing.TB) {
	t.Helper()
	stop(f.sim, os.Kill)
}

// Freeze stops ibsim, so that it does not answer, until resume is called.
func (f *Fixture) Freeze(t testing.TB) (resume func()) {
	t.Helper()
	if err := f.sim.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.sim.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
}

// fatal fails the test and shows the output of ibsim.
func (f *Fixture) fatal(t testing.TB, format string, args ...any) {
	t.Helper()
	b, _ := os.ReadFile(filepath.Join(f.Dir, "ibsim.err"))
	t.Fatalf(format+"\n%s", append(args, b)...)
}

func (f *Fixture) create(t testing.TB, name string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(f.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// shim returns the library that makes C programs use ibsim as a device.
func shim(t testing.TB) string {
	t.Helper()
	return find(t, "libumad2sim.so", "usr/lib/*-linux-gnu*/umad2sim")
}

// start starts c, to end by sig with the test at the latest. Cleanups run in
// reverse: OpenSM, started after ibsim, ends before it, as it must to detach.
func start(t testing.TB, c *exec.Cmd, sig os.Signal) {
	t.Helper()
	dieWithParent(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(c, sig) })
}

// stop ends c: by sig, or by force if that has no effect.
func stop(c *exec.Cmd, sig os.Signal) {
	if c.ProcessState != nil {
		return
	}
	c.Process.Signal(sig)
	hung := time.AfterFunc(time.Minute, func() { c.Process.Kill() }) // killed, it would keep its place in ibsim
	defer hung.Stop()
	c.Wait()
}

// Poll waits until ready.
func Poll(t testing.TB, what string, ready func() bool) {
	t.Helper()
	poll(t, peerTimeout, what, ready)
}

func poll(t testing.TB, most time.Duration, what string, ready func() bool) {
	t.Helper()
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-timeout.C:
			t.Fatalf("waited %v for %s", most, what)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-tick.C:
		}
	}
}

//go:embed testdata/*.net
var nets embed.FS

// Nets returns the names of the irregular nets that Net knows.
func Nets() []string { return []string{"ring", "mesh", "names"} }

// Net returns the text of a net file: "ring", "mesh", "names". Its first node is
// always a CA.
func Net(t testing.TB, name string) string {
	t.Helper()
	b, err := nets.ReadFile("testdata/" + name + ".net")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FatTree returns the net file of a tree of two levels: hosts CAs ("host-LEAF-N")
// on each leaf ("leaf-N"), and a link from each leaf to each spine ("spine-N").
// FatTree(36, 18, 18) is 648 hosts on 54 switches of 36 ports, FatTree(4, 2, 4)
// 16 hosts.
func FatTree(leaves, spines, hosts int) string {
	var b strings.Builder
	guid := uint64(0x0002c90300000000)
	next := func() uint64 { guid += 0x10; return guid }
	for l := range leaves {
		for h := range hosts {
			fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0x101b\ncaguid=%#016x\nCa\t1 \"host-%d-%d\"\t# \"host-%[2]d-%[3]d HCA-1\"\n", next(), l, h)
			fmt.Fprintf(&b, "[1]\t\"leaf-%d\"[%d]\t# lid 0 lmc 0 \"leaf-%[1]d\" lid 0 4xHDR\n\n", l, h+1)
		}
		fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0xd2f0\nswitchguid=%#016x\nSwitch\t%d \"leaf-%d\"\t# \"leaf-%[3]d\" enhanced port 0 lid 0 lmc 0\n", next(), hosts+spines, l)
		for h := range hosts {
			fmt.Fprintf(&b, "[%d]\t\"host-%d-%d\"[1]\t# \"host-%[2]d-%[3]d HCA-1\" lid 0 4xHDR\n", h+1, l, h)
		}
		for s := range spines {
			fmt.Fprintf(&b, "[%d]\t\"spine-%d\"[%d]\t# \"spine-%[2]d\" lid 0 4xHDR\n", hosts+s+1, s, l+1)
		}
		b.WriteByte('\n')
	}
	for s := range spines {
		fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0xd2f0\nswitchguid=%#016x\nSwitch\t%d \"spine-%d\"\t# \"spine-%[3]d\" enhanced port 0 lid 0 lmc 0\n", next(), leaves, s)
		for l := range leaves {
			fmt.Fprintf(&b, "[%d]\t\"leaf-%d\"[%d]\t# \"leaf-%[2]d\" lid 0 4xHDR\n", l+1, l, hosts+s+1)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
