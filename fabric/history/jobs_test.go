package history_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// TestReleased: the state that version 0.9.0 wrote of a job becomes that of the job in a history, once. Its
// file stays as it is, so that 0.9.0 goes on with it; what that writes later is used again.
func TestReleased(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	released := fabric.Subnet{Given: "released"}
	dir := t.TempDir()
	file := filepath.Join(released.Folder(dir), "nightly.state")
	old, err := os.ReadFile("testdata/state-0.9.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(data []byte, when time.Time) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
	}
	write(old, time.Now().Add(-time.Hour))
	state := func() *audit.State {
		t.Helper()
		st, err := audit.OpenState(dir, released, "nightly")
		if err != nil {
			t.Fatal(err)
		}
		st.UseStore(history.JobStates(t.Context(), dir, released))
		if st.Read(); st.Reset != nil || st.Unstored != nil {
			t.Fatal(st.Reset, st.Unstored)
		}
		return st
	}
	if history.JobStates(t.Context(), dir, released) != nil {
		t.Error("a store without a history")
	}
	path := filepath.Join(released.Folder(dir), history.FileName)
	r, err := history.NewRecorder(t.Context(), path, released, s.now)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.record(r)

	st := state()
	found, _ := st.LastRun()
	begin := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	port := s.f.OfType(mad.NodeTypeSwitch)[0].Port(1)
	if len(st.Reads()) != 2 || len(found) != 1 || found[0].Check != "link.width" || !found[0].Since.Equal(begin) || found[0].Subject.Key() != audit.OfPort(port).Key() {
		t.Fatalf("%d reads, %+v", len(st.Reads()), found)
	}
	if n := st.Reads()[0].Len(); n != 2*s.f.Links() {
		t.Errorf("counters of %d ports, want %d", n, 2*s.f.Links())
	}
	s.Cables.Unlink(port.Node().GUID(), 1)
	now := begin.AddDate(0, 0, 3)
	if down := st.History().Down(s.sweep(), now); len(down) != 1 || down[0].For != 24*time.Hour {
		t.Errorf("ports that were up: %+v", down)
	}
	run := func(st *audit.State, now time.Time) {
		t.Helper()
		st.Align(audit.Moment{Time: now})
		again := []audit.Finding{finding(port, "link.width")}
		st.SetFindings(again, true, nil, now)
		if err := st.Save(); err != nil || st.Unstored != nil {
			t.Fatal(err, st.Unstored)
		}
	}
	run(st, now)
	if data, err := os.ReadFile(file); err != nil || string(data) != string(old) {
		t.Errorf("the file was changed: %v", err)
	}
	st = state()
	if found, at := st.LastRun(); len(found) != 1 || !found[0].Since.Equal(begin) || !at.Equal(now) {
		t.Errorf("in the history: %+v, %v", found, at)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if list := audit.States(dir, released, history.JobStates(t.Context(), dir, released)); len(list) != 1 || list[0].Job() != "nightly" {
		t.Errorf("jobs: %v", list)
	}

	// A version without the history wrote its file later: by the clock, and by the time of the run.
	later, err := audit.OpenState(dir, released, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	run(later, now.Add(time.Hour))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(data, time.Now().Add(time.Hour))
	if _, at := state().LastRun(); !at.Equal(now.Add(time.Hour)) {
		t.Errorf("the later state is not used: %v", at)
	}
	write(old, time.Now().Add(time.Hour)) // only copied later
	if _, at := state().LastRun(); !at.Equal(now) {
		t.Errorf("an old file is used: %v", at)
	}
	sound(t, path)
}

// TestStoreFails: a history that cannot be used never loses the state of a job: the file has it, and the error
// is there to be reported.
func TestStoreFails(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	subnet := fabric.Subnet{Given: "x"}
	for name, spoil := range map[string]func(path string) error{
		"not a history": func(path string) error { return os.WriteFile(path, []byte("text"), 0o600) },
		"damaged":       func(path string) error { return os.Truncate(path, 5000) },
		"of a later version": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec("update meta set value = '99' where key = 'schema'")
			return err
		},
	} {
		dir := t.TempDir()
		path := filepath.Join(subnet.Folder(dir), history.FileName)
		r, err := history.NewRecorder(t.Context(), path, subnet, s.now)
		if err != nil {
			t.Fatal(err)
		}
		s.record(r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		os.Remove(path + "-wal")
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		st, err := audit.OpenState(dir, subnet, "job")
		if err != nil {
			t.Fatal(err)
		}
		st.UseStore(history.JobStates(t.Context(), dir, subnet))
		if st.Read(); st.Reset != nil || st.Unstored == nil {
			t.Errorf("%s: read: %v, %v", name, st.Reset, st.Unstored)
		}
		st.Align(audit.Moment{Time: s.now})
		if err := st.Save(); err != nil || st.Unstored == nil || !strings.Contains(st.Unstored.Error(), path) {
			t.Errorf("%s: save: %v, %v", name, err, st.Unstored)
		}
		if name == "of a later version" && !strings.Contains(st.Unstored.Error(), "of schema 99, of a later fabsh; this one reads up to 1") {
			t.Errorf("%s: %v", name, st.Unstored)
		}
		if _, err := os.Stat(filepath.Join(subnet.Folder(dir), "job.state")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinksSeen: ports whose link a recorder saw, and when; findings, since when any job has them.
func TestLinksSeen(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	host := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	_, sum := s.record(r)
	begin := sum.Time
	s.now = begin.Add(time.Hour)
	s.Cables.Unlink(host.Node().GUID(), 1)
	s.record(r)
	f, sum := s.record(r)
	s.now = sum.Time
	seen, err := r.LinksSeen(t.Context(), s.now.Add(-audit.PastAge))
	if err != nil || len(seen) != 2*s.f.Links() {
		t.Fatalf("%d ports, want %d, %v", len(seen), 2*s.f.Links(), err)
	}
	peer := host.Peer()
	x := seen[history.End{Node: host.Node().GUID(), Port: 1}]
	if !x.Up.Equal(begin) || x.Peer != peer.Node().GUID() || x.PeerNum != peer.Num() || !x.ToSwitch {
		t.Errorf("%+v", x)
	}
	if y := seen[history.End{Node: peer.Node().GUID(), Port: peer.Num()}]; !y.Up.Equal(begin) || y.Peer != host.Node().GUID() || y.ToSwitch {
		t.Errorf("%+v", y)
	}
	// The first run of a job knows of the link.
	h := new(audit.History)
	h.Merge(f, func(p *fabric.Port) (audit.Seen, bool) {
		x, ok := seen[history.End{Node: p.Node().GUID(), Port: p.Num()}]
		return x, ok
	})
	if down := h.Down(f, s.now); len(down) != 1 || down[0].Port.Name() != peer.Name() || down[0].Peer != host.Node().GUID() || down[0].For != s.now.Sub(begin) {
		t.Errorf("%+v", down)
	}
	if seen, err := r.LinksSeen(t.Context(), begin.AddDate(0, 0, 9)); err != nil || len(seen) > 0 {
		t.Errorf("later: %v, %v", seen, err)
	}
	for i, job := range []string{"a", "b"} {
		err := history.Contribute(t.Context(), path, begin.Add(time.Duration(i)*time.Hour), func(c *history.Contributor) {
			c.Findings(job, []audit.Finding{finding(peer, "link.width")}, func(string, string) bool { return true })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	one := finding(peer, "link.width")
	if since, err := r.FoundSince(context.Background(), begin); err != nil || !since[one.ID()].Equal(begin) || len(since) != 1 {
		t.Errorf("since: %v, %v", since, err)
	}
	if since, err := r.FoundSince(t.Context(), begin.Add(time.Minute)); err != nil || !since[one.ID()].Equal(begin.Add(time.Hour)) {
		t.Errorf("judged since: %v, %v", since, err)
	}
}
