//go:build linux

package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"fabsh/fabric/hermetic"
)

// TestMain runs the tests, or as fabsh, the program that tests start.
func TestMain(m *testing.M) {
	testscript.Main(hermetic.Tests(m), map[string]func(){"fabsh": func() { os.Exit(mainOfTests()) }, "fabsh-full": func() { os.Exit(mainOnFullDisk()) }})
}

// mainOfTests is Main in the environment of a test, which it requires: otherwise fabsh
// would use files of the user who runs the tests.
func mainOfTests() int {
	root := os.Getenv(hermetic.RootVariable)
	if root == "" {
		fmt.Fprintln(os.Stderr, "fabsh: started by a test without testEnv")
		return 2
	}
	return mainBelow(root)
}

// screen is a fabsh at a terminal, and what it wrote that no test has looked
// at yet.
type screen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	chunks chan string
	text   string
	home   string
	before unix.Termios // of the terminal, when nobody was at it
}

// mode is the mode of the terminal.
func (s *screen) mode() unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.master.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *m
}

// startTerminal runs fabsh on a terminal of its own, in an empty home.
func startTerminal(t *testing.T, home string, args ...string) *screen {
	t.Helper()
	return startTerminalOf(t, terminalOf{home: home, columns: 100, pager: "sleep 1; cat -n"}, args...)
}

// terminalOf is what a test's terminal is like.
type terminalOf struct {
	home    string
	columns uint16
	pager   string
}

func startTerminalOf(t *testing.T, o terminalOf, args ...string) *screen {
	t.Helper()
	home := o.home
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("no terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: o.columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	s := &screen{t: t, master: master, chunks: make(chan string, 1000), home: home}
	s.before = s.mode()
	s.cmd = exec.Command("fabsh", args...)
	s.cmd.Dir = home
	s.cmd.Env = append(testEnv(t), "HOME="+home, "TERM=xterm", "NO_COLOR=1", "PAGER="+o.pager)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	go func() {
		defer close(s.chunks)
		for {
			b := make([]byte, 4096)
			n, err := master.Read(b)
			if err != nil {
				return // EIO: the other end is gone
			}
			s.chunks <- string(b[:n])
		}
	}()
	return s
}

// expect waits for text and takes all up to its end off the screen.
func (s *screen) expect(text string) string {
	s.t.Helper()
	limit := time.After(time.Minute)
	for {
		if i := strings.Index(s.text, text); i >= 0 {
			seen := s.text[:i+len(text)]
			s.text = s.text[i+len(text):]
			return seen
		}
		select {
		case c, ok := <-s.chunks:
			if !ok {
				s.t.Fatalf("ended without %q; wrote %q", text, s.text)
			}
			s.text += c
		case <-limit:
			s.t.Fatalf("no %q in %q", text, s.text)
		}
	}
}

// interrupts sends Ctrl-C until it has an effect: before the command runs that the prompt has
// read, it has none.
func (s *screen) interrupts() {
	s.t.Helper()
	again := time.NewTicker(10 * time.Second)
	defer again.Stop()
	limit := time.After(time.Minute)
	for s.send(ctrlC); !strings.Contains(s.text, "interrupted\r\n"); {
		select {
		case c, ok := <-s.chunks:
			if !ok {
				s.t.Fatalf("ended by Ctrl-C; wrote %q", s.text)
			}
			s.text += c
		case <-again.C:
			s.send(ctrlC)
		case <-limit:
			s.t.Fatalf("Ctrl-C has no effect in %q", s.text)
		}
	}
	if seen := s.expect("interrupted\r\n"); strings.Contains(seen, "still busy") {
		s.t.Errorf("the first Ctrl-C had no effect: %q", seen)
	}
}

func (s *screen) send(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// exit waits for the end and checks the status.
func (s *screen) exit(status int) {
	s.t.Helper()
	limit := time.After(time.Minute)
	for open := true; open; {
		var c string
		select {
		case c, open = <-s.chunks:
			s.text += c
		case <-limit:
			s.t.Fatalf("it does not end; wrote %q", s.text)
		}
	}
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != status {
		s.t.Errorf("exit status %d, want %d; wrote %q", got, status, s.text)
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	up    = "\x1b[A"
)

func TestTerminal(t *testing.T) {
	home := t.TempDir()
	s := startTerminalOf(t, terminalOf{home: home, columns: 100, pager: "echo pages; sleep 1; cat -n"}, "-F", "sim:ring:n=2")
	s.expect("TAB completes")
	s.expect("sim ring rw> ")
	s.send("6*7\r")
	s.expect("\n42\r\n")
	s.expect("> ")
	s.send("_+1\r")
	s.expect("\n43\r\n")

	// A block ends with an empty line, and shows what it continues.
	s.expect("> ")
	s.send("def f(n):\r")
	s.expect("... ")
	s.send("return n + 1\r") // is indented
	s.expect("... ")
	s.send("\r")
	s.expect("rw> ")
	s.send("f(99)\r")
	s.expect("\n100\r\n")

	// What was typed comes back, and words are completed.
	s.expect("rw> ")
	s.send(up + "\r")
	s.expect("\n100\r\n")
	s.expect("rw> ")
	s.send("long_name = 7\r")
	s.expect("rw> ")
	s.send("long\t * 3\r")
	s.expect("\n21\r\n")

	// Errors say where, and the session goes on.
	s.expect("rw> ")
	s.send("f('a')\r")
	s.expect("unknown binary op: string + int")
	s.expect("<prompt>:")
	s.expect("return n + 1")

	// Ctrl-C drops what is typed, hints at an empty prompt, and stops code.
	s.expect("rw> ")
	s.send("1 +" + ctrlC)
	s.expect("rw> ")
	s.send("(1 +\r")
	s.expect("... ")
	s.send(ctrlC)
	s.expect("^C") // the unfinished statement is drawn with a prompt, too
	s.expect("rw> ")
	s.send(ctrlC)
	s.expect("Ctrl-D or exit ends fabsh")
	s.expect("rw> ")
	s.send("while True: _ = smp_get('NodeInfo', 1)\r")
	s.expect("... ")
	s.send("\r")
	s.expect("\r\n")
	s.expect("Ctrl-C stops") // the progress line: now it runs
	s.send(ctrlC)
	s.expect("interrupted") // perhaps with a MAD in flight
	s.expect("rw> ")
	s.send("smp_get('NodeInfo', 1) and sleep('1h')\r")
	s.expect("Ctrl-C stops")
	s.send(ctrlC)
	s.expect("interrupted\r\n")

	// What is longer than the screen goes to the pager: here it numbers lines.
	s.expect("rw> ")
	s.send("help\r")
	s.expect("pages\r\n")
	if seen := s.expect("     1\t"); strings.Contains(seen, "Ctrl-C stops") {
		t.Errorf("progress in the pager: %q", seen)
	}

	s.expect("rw> ")
	s.send(ctrlD)
	s.exit(0)

	st, err := os.Stat(filepath.Join(home, ".local/state/fabsh/history"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("history: %v, %v", st, err)
	}

	// The next session knows the last one's lines.
	s = startTerminal(t, home, "-F", "sim:ring:n=2")
	s.expect("rw> ")
	s.send(up + up + "\r") // help is the last, before it sleep
	s.expect("Ctrl-C stops")
	s.send(ctrlC)
	s.expect("interrupted\r\n")
	s.expect("rw> ")
	s.send("exit(3)\r")
	s.exit(3)
}

func TestTerminalFabric(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, ".config/fabsh")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	rc := "def leaf(n):\n    \"\"\"Is ours.\"\"\"\n    return f.switches[n]\n\nf = discover()\n"
	if err := os.WriteFile(filepath.Join(config, "rc.star"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startTerminal(t, home, "-F", "sim:ring:n=2", "--read-only")
	s.expect("sim ring 4n ro> ") // by the rc file

	s.send("leaf(0).n\x01x = \x05ame\rx\r")
	s.expect("\n\"switch-1\"\r\n")
	s.expect("> ")
	s.send("leaf(0).n\x1b[1~y = \x1b[4~ame\ry\r") // Home and End of tmux
	s.expect("\n\"switch-1\"\r\n")
	s.expect("> ")
	s.send("leaf(1).n\x1b[7~y = \x1b[8~ame\ry\r") // of rxvt
	s.expect("\n\"switch-2\"\r\n")

	// Ctrl-C drops the line, though proposals are on the screen, or a search.
	s.expect("> ")
	s.send("f.\t")
	s.expect("routers")
	s.send(ctrlC)
	s.expect("^C")
	s.expect("> ")
	s.send("x\r")
	s.expect("\n\"switch-1\"\r\n")
	s.expect("> ")
	s.send("\x12leaf")
	s.expect("bck-i-search: leaf")
	s.send(ctrlC)
	s.expect("> ")
	s.send("x\r")
	s.expect("\n\"switch-1\"\r\n")

	// Names of attributes and nodes, in strings.
	s.expect("> ")
	s.send("smp_get('NodeIn\t, 'sw\t1\t).num_ports\r")
	s.expect("smp_get('NodeInfo', 'switch-1').num_ports\r\n")
	s.expect("3\r\n")
	s.send("f.swi\t[0].gu\t\r")
	s.expect("\n\"0x")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}

func TestTerminalInterruptedSweep(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2,delay=1h", "-t", "1h")
	s.expect("rw> ")
	s.send("discover()\r")
	s.expect(" sent, 0 answered (")
	s.expect(" s, Ctrl-C stops)")
	s.send(ctrlC)
	s.expect("interrupted (in-flight MADs abandoned: 1)\r\n")
	s.expect("rw> ")
	s.send(ctrlD)
	s.exit(0)

	// A script ends with it.
	s = startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2,delay=1h", "-t", "1h", "-c", "catch(discover); catch(discover)")
	s.expect("Ctrl-C stops")
	s.send(ctrlC)
	s.expect("interrupted (in-flight MADs abandoned: 1)\r\n")
	s.exit(130)
}

// At the prompt each statement has its time, and the next one has all of it.
func TestTerminalDeadline(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2", "--deadline", "3")
	s.expect("rw> ")
	s.send("while True: smp_get('NodeInfo', 1)\r")
	s.expect("... ")
	s.send("\r")
	s.expect("smp_get: SubnGet(NodeInfo) to LID 1: deadline of 3s passed\r\n")
	s.expect("rw> ")
	s.send("catch(smp_get, 'NodeInfo', 1).base_version\r")
	s.expect("\n1\r\n")
	s.expect("rw> ")
	s.send(ctrlD)
	s.exit(0)
}

// Without a device, a simulated fabric is offered.
func TestTerminalNoDevice(t *testing.T) {
	if devices, _ := os.ReadDir(deviceFolder); len(devices) > 0 {
		t.Skip("this host has InfiniBand devices")
	}
	s := startTerminal(t, t.TempDir())
	s.expect("Open a simulated fabric (-F sim) now, or take the tour? [Y/n/tour] ")
	s.send("\r")
	s.expect("sim rw> ")
	s.send("len(discover().cas)\r")
	s.expect("\n")
	s.expect("n rw> ")
	s.send("quit\r")
	s.exit(0)

	s = startTerminal(t, t.TempDir())
	s.expect("[Y/n/tour] ")
	s.send("n\r")
	s.exit(3)

	s = startTerminal(t, t.TempDir())
	s.expect("[Y/n/tour] ")
	s.send("tour\r")
	s.expect("1/8  Discover the fabric")
	s.expect("tour rw> ")
	s.send("quit\r")
	s.exit(0)

	s = startTerminal(t, t.TempDir())
	s.expect("[Y/n/tour] ")
	s.send(ctrlC)
	s.exit(130)
}
