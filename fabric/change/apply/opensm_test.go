//go:build linux

package apply

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fabsh/fabric/hermetic"
)

func TestMain(m *testing.M) {
	testscript.Main(hermetic.Tests(m), map[string]func(){"listener": listen})
}

// listen is a program that writes a line whenever it is signalled; deaf, it
// catches no SIGHUP.
func listen() {
	c := make(chan os.Signal, 1)
	if len(os.Args) == 1 {
		signal.Notify(c, syscall.SIGHUP)
	} else {
		signal.Ignore(syscall.SIGHUP)
	}
	fmt.Println("ready")
	for range c {
		fmt.Println("hup")
	}
}

// listener starts it, and waits until it is ready.
func listener(t *testing.T, args ...string) (cmd *exec.Cmd, lines *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command("listener", args...)
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); r.Close() })
	expect(t, r, "ready\n")
	return cmd, r
}

func expect(t *testing.T, r *os.File, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if n, err := r.Read(b); string(b[:n]) != want {
		t.Fatalf("read %q, %v, want %q", b[:n], err, want)
	}
}

func TestReload(t *testing.T) {
	cmd, lines := listener(t)
	pid := strconv.Itoa(cmd.Process.Pid)
	file := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(file, []byte(pid+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{pid, file} {
		r, err := FindOpenSM(arg)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			who, err := r.Reload()
			if want := "listener (process " + pid + ")"; who != want || err != nil {
				t.Errorf("%q, %v, want %q", who, err, want)
			}
			expect(t, lines, "hup\n")
		}
	}

	// What has become of it decides.
	byID, err1 := FindOpenSM(pid)
	byFile, err2 := FindOpenSM(file)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	byID.start += "0"
	if _, err := byID.Reload(); !errors.Is(err, ErrOpenSMEnded) || !strings.HasSuffix(err.Error(), "process "+pid+" is now listener, another process") {
		t.Errorf("another process of that ID: %v", err)
	}
	byFile.name = "opensm"
	if _, err := byFile.Reload(); err == nil || errors.Is(err, ErrOpenSMEnded) || !strings.HasSuffix(err.Error(), "is listener, not opensm") {
		t.Errorf("another program in the file: %v", err)
	}
	byID, _ = FindOpenSM(pid)
	byFile, _ = FindOpenSM(file)
	cmd.Process.Kill()
	cmd.Wait()
	if _, err := byID.Reload(); !errors.Is(err, ErrOpenSMEnded) {
		t.Errorf("no process: %v", err)
	}
	if _, err := byFile.Reload(); err == nil || !strings.Contains(err.Error(), "left from an earlier run") {
		t.Errorf("no process of the file's: %v", err)
	}
	other, lines := listener(t)
	if err := os.WriteFile(file, []byte(strconv.Itoa(other.Process.Pid)), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := byFile.Reload(); err != nil {
		t.Errorf("started anew: %v", err)
	}
	expect(t, lines, "hup\n")
}

func TestFindReader(t *testing.T) {
	dir := t.TempDir()
	deaf, _ := listener(t, "deaf")
	for name, text := range map[string]string{"empty": "", "text": "opensm", "one": "1\n", "gone": "4194305", "long": strings.Repeat("1", 1000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{
		"0":                            "process 0: cannot be signalled; give the ID of the subnet manager",
		"-5":                           "process -5: cannot be signalled; give the ID of the subnet manager",
		"1":                            "process 1: cannot be signalled; give the ID of the subnet manager",
		"4194305":                      "process 4194305 does not exist",
		filepath.Join(dir, "none"):     "no such file or directory",
		filepath.Join(dir, "empty"):    `invalid process ID ""`,
		filepath.Join(dir, "text"):     `invalid process ID "opensm"`,
		filepath.Join(dir, "one"):      "process 1: cannot be signalled; give the ID of the subnet manager",
		filepath.Join(dir, "gone"):     "process 4194305, named by the file, does not exist; the file may be left from an earlier run",
		filepath.Join(dir, "long"):     `invalid process ID "11111111111111111111"`,
		strconv.Itoa(deaf.Process.Pid): "does not handle SIGHUP, which would end it; is it the subnet manager?",
	} {
		if _, err := FindOpenSM(arg); err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), "--reload "+arg+": ") {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

func TestParseStat(t *testing.T) {
	tail := strings.Repeat(" 0", 18) + " 12345 0 0\n"
	for stat, want := range map[string]string{
		"7 (opensm) S" + tail:     "opensm 12345",
		"7 (a) b (c) d) R" + tail: "a) b (c) d 12345",
		"7 (opensm) S 1 2 3":      " ",
		"7 opensm S" + tail:       " ",
		") (" + tail:              " ",
		"":                        " ",
	} {
		name, start, err := parseStat(stat)
		if got := name + " " + start; got != want || (err == nil) != (want != " ") {
			t.Errorf("%q: %q, %v, want %q", stat, got, err, want)
		}
	}
}
