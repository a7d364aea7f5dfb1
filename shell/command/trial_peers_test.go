package command

import (
	"bytes"
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sa"
	"fabsh/fabric/trial"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

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
	for _, file := range [][]byte{file.bytes(), anonymous} {
		recording, err := capture.Load(bytes.NewReader(file), "trial.pcap")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r.String(), run(capture.NewReplay(recording), nil).String()); d != "" {
			t.Errorf("replayed (-want +got):\n%s", d)
		}
	}
}
