package command

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/fabric/trial"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// tool writes a program.
func tool(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRunTool: a tool has nothing of this process' environment, and its output and time are
// limited, those of its children too.
func TestRunTool(t *testing.T) {
	t.Setenv("FABSHTEST_SECRET", "1")
	t.Setenv("LD_PRELOAD_X", "1")
	if out, ok := runFile(t.Context(), tool(t, "env | sort; pwd"), time.Minute); !ok || out != "HOME=/\nLC_ALL=C\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/\n/\n" {
		t.Errorf("%v, %q", ok, out)
	}
	if out, ok := runFile(t.Context(), tool(t, "while :; do echo 0123456789012345678901234567890123456789; done"), time.Minute); ok {
		t.Errorf("%d bytes without a limit", len(out))
	}
	began := time.Now()
	if _, ok := runFile(t.Context(), tool(t, "sleep 1000 & sleep 1000"), 50*time.Millisecond); ok || time.Since(began) > time.Minute {
		t.Errorf("ended %v, after %v", ok, time.Since(began))
	}
	if _, ok := runFile(t.Context(), tool(t, "echo half; exit 1"), time.Minute); ok {
		t.Error("a tool that failed has an output")
	}
}

// TestFindTool: only a program that only root can change is run.
func TestFindTool(t *testing.T) {
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good": 0o755, "writable": 0o777, "plain": 0o644} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for _, name := range []string{"good", "writable", "plain", "missing"} {
		if path, ok := findTool(name, folder); ok {
			found = append(found, strings.TrimPrefix(path, folder))
		}
	}
	want := "/good"
	if os.Geteuid() != 0 {
		want = "" // the file is not root's
	}
	if got := strings.Join(found, " "); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestIbdiagnet: the nodes of a file of ibdiagnet are compared whole, by GUID; without the
// file, or with one that is not of ibdiagnet, nothing is.
func TestIbdiagnet(t *testing.T) {
	report := func(file *fabric.Fabric) *trial.Report {
		f, o, err := sim.Parse("ring:n=3")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(conn, engine.Options{})
		defer e.Close()
		tools := &hostTools{budget: trial.NewBudget(conn, 100), dbCSV: file, run: func(context.Context, string, ...string) (string, bool) { return "", false }}
		r, err := trial.Run(t.Context(), trial.RunOptions{Client: &sa.Client{Engine: e}, Foreign: tools.foreign, Chosen: func(f *fabric.Fabric, _ []*trial.Device) {
			if file == nil {
				tools.dbCSV = f // the sweep itself
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	same := report(nil)
	if n := len(same.Host); n != 3*2+3*3 || !same.Clean() {
		t.Errorf("%d comparisons, clean %v\n%s", n, same.Clean(), same)
	}
	other, _, err := sim.Parse("ring:n=3,hosts=2") // other numbers of ports
	if err != nil {
		t.Fatal(err)
	}
	if differs := report(other); differs.Clean() || len(differs.Host) == 0 {
		t.Errorf("another fabric agrees:\n%s", differs)
	}
	folder := t.TempDir()
	if readDBCSV(folder) != nil || readDBCSV(filepath.Join(folder, "missing")) != nil || readDBCSV("/dev/zero") != nil {
		t.Error("a fabric was read from a file that is not of ibdiagnet")
	}
}

var updateTrial = flag.Bool("update-trial", false, "rewrite testdata/trial-ibsim.txt")

// TestTrialPeers: on ibsim with OpenSM the report is correct about what they lack, smpquery
// agrees field by field, and the recording, with other names and GUIDs, replays to the same
// report.
func TestTrialPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits 10 s for answers that do not come")
	}
	// The subnet manager is at a host that is read.
	f := ibsimtest.Start(t, ibsimtest.FatTree(1, 1, 2), ibsimtest.FixtureOptions{SM: "host-0-1", RMPP: true})
	conn, err := ibsim.Attach(ibsim.Options{Socket: f.Name})
	if err != nil {
		t.Fatal(err)
	}
	budget := trial.NewBudget(conn, 10000)
	var file memoryFile
	tr, err := capture.Record(budget, &file)
	if err != nil {
		t.Fatal(err)
	}
	run := func(tr engine.Transport, foreign func(context.Context, *trial.Device) []trial.Foreign) *trial.Report {
		t.Helper()
		e := engine.New(tr, engine.Options{Timeout: 150 * time.Millisecond, Retries: 3})
		defer e.Close()
		sleep := func(context.Context, time.Duration) error { return nil }
		o := trial.RunOptions{Client: &sa.Client{Engine: e}, Events: time.Second, Sleep: sleep, Foreign: foreign}
		if e.Traits().Recorded {
			o.Recorded = func() []mad.Notice { return nil }
		}
		r, err := trial.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tools := &hostTools{budget: budget, device: "ibsim0", run: func(_ context.Context, name string, args ...string) (string, bool) {
		out, err := f.Command(t, "", name, append([]string{"-t", "10000"}, args...)...).Output()
		return string(out), err == nil
	}}
	tools.local.Num = 1
	r := run(tr, tools.foreign)
	const golden = "testdata/trial-ibsim.txt"
	if *updateTrial {
		if err := os.WriteFile(golden, []byte(r.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if d := cmp.Diff(string(want), r.String()); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if len(r.Host) == 0 {
		t.Error("nothing was compared with smpquery")
	}
	r.Host = nil // not in a recording
	anonymous, err := capture.Anonymize(file.bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range [][]byte{file.bytes(), anonymous.Recording} {
		recording, err := capture.Load(bytes.NewReader(file), "trial.pcap")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r.String(), run(capture.NewReplay(recording), nil).String()); d != "" {
			t.Errorf("replayed (-want +got):\n%s", d)
		}
	}
}
