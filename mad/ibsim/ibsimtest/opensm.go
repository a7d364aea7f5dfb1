package ibsimtest

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// SM is an OpenSM.
type SM struct {
	Dir string // of its files
	cmd *exec.Cmd
}

// StartSM starts one more OpenSM, and does not wait.
func (f *Fixture) StartSM(t testing.TB, o FixtureOptions) *SM {
	t.Helper()
	f.sms++
	dir := filepath.Join(f.Dir, fmt.Sprintf("sm-%d", f.sms))
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return f.launchSM(t, o, dir)
}

// startSM starts OpenSM, and waits until it has brought the subnet up.
func (f *Fixture) startSM(t testing.TB, o FixtureOptions, dir string) *SM {
	t.Helper()
	sm := f.launchSM(t, o, dir)
	sm.Wait(t, "SUBNET UP")
	return sm
}

// launchSM starts OpenSM without its state of other fabrics.
func (f *Fixture) launchSM(t testing.TB, o FixtureOptions, dir string) *SM {
	t.Helper()
	// The first is for Wait; more SMPs than ibsim can hold wedge it; and what a busy
	// machine does not answer in 0.8 s, OpenSM takes for gone.
	conf := "force_log_flush TRUE\nmax_wire_smps 64\nmax_wire_smps2 64\ntransaction_timeout 2000\n" + o.SMConf
	if err := os.WriteFile(filepath.Join(dir, "opensm.conf"), []byte(conf), 0o666); err != nil {
		t.Fatal(err)
	}
	preload := shim(t)
	if o.RMPP {
		preload = segmenter(t) + " " + preload
	}
	args := append([]string{"-F", "opensm.conf", "-f", filepath.Join(dir, "opensm.log"), "-e", "--dump_files_dir", dir}, o.SMArgs...)
	sm := &SM{Dir: dir, cmd: exec.Command(Path(t, "opensm"), args...)}
	sm.cmd.Dir = dir
	sm.cmd.Env = append(f.env, "IBSIM_SOCKNAME="+f.Name, "SIM_HOST="+o.SM, "LD_PRELOAD="+preload,
		"OSM_TMP_DIR="+dir, "OSM_CACHE_DIR="+dir)
	out, err := os.Create(filepath.Join(dir, "opensm.out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	sm.cmd.Stdout, sm.cmd.Stderr = out, out
	start(t, sm.cmd, os.Interrupt)
	t.Cleanup(func() {
		if lines := slices.Collect(strings.Lines(sm.Log())); t.Failed() {
			t.Logf("the end of the log of OpenSM on %q:\n%s", o.SM, strings.Join(lines[max(0, len(lines)-100):], ""))
		}
	})
	return sm
}

// Log returns the log of OpenSM.
func (sm *SM) Log() string {
	b, _ := os.ReadFile(filepath.Join(sm.Dir, "opensm.log"))
	return string(b)
}

// Wait waits until OpenSM has logged text ("SUBNET UP").
func (sm *SM) Wait(t testing.TB, text string) {
	t.Helper()
	sm.WaitLong(t, text, peerTimeout)
}

// WaitLong is Wait for large fabrics.
func (sm *SM) WaitLong(t testing.TB, text string, most time.Duration) {
	t.Helper()
	poll(t, most, fmt.Sprintf("OpenSM to log %q; see %s", text, sm.Dir), func() bool { return strings.Contains(sm.Log(), text) })
}

// PID returns the process ID.
func (sm *SM) PID() int { return sm.cmd.Process.Pid }

// Stop ends OpenSM, which detaches; Kill ends it at once.
func (sm *SM) Stop() { stop(sm.cmd, os.Interrupt) }

// Kill ends OpenSM at once, as if its host had crashed.
func (sm *SM) Kill() { stop(sm.cmd, os.Kill) }

//go:embed testdata/segment.c
var segmentSource []byte

// segmenter compiles the library that lets OpenSM send tables in segments.
func segmenter(t testing.TB) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		Need(t, "gcc")
	}
	lib := filepath.Join(t.TempDir(), "libsegment.so")
	c := exec.CommandContext(t.Context(), gcc, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", lib, "-x", "c", "-")
	c.Stdin = bytes.NewReader(segmentSource)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c, err, out)
	}
	return lib
}
