package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLatestJob: the job that found what is acknowledged has its past, else the latest one.
// Files that are no states are ignored.
func TestLatestJob(t *testing.T) {
	dir := t.TempDir()
	gone := Finding{Check: "node.gone", Subject: OfGUID(0x40, NoPort, "")}
	for i, job := range []struct {
		name  string
		found []Finding
	}{{"a", nil}, {"b", []Finding{gone}}, {"c", []Finding{gone}}, {"d", nil}, {"e", nil}} {
		want := map[string][2]string{"a": {"", ""}, "b": {"a", "a"}, "c": {"b", "b"}, "d": {"c", "c"}, "e": {"c", "d"}}[job.name]
		for k, pattern := range []string{"node.gone:0x0000000000000040", "link.down:*"} {
			if got := LatestJob(dir, rail, &Ack{Pattern: pattern}); got != want[k] {
				t.Errorf("%s before job %s: got %q, want %q", pattern, job.name, got, want[k])
			}
		}
		now := noon.Add(time.Duration(i) * time.Minute)
		st, err := OpenState(dir, rail, job.name)
		if err != nil {
			t.Fatal(err)
		}
		st.Align(Moment{Time: now})
		st.SetFindings(job.found, true, nil, now)
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(rail.Folder(dir), "x.state"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
