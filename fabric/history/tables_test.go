package history_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// withPort returns f with forwarding tables that send all LIDs to a port; 0: without tables.
func withPort(f *fabric.Fabric, port byte) *fabric.Fabric {
	if port == 0 {
		return f
	}
	rows := make([][]byte, len(f.Nodes()))
	for id := range f.Nodes() {
		if n := &f.Nodes()[id]; n.IsSwitch() {
			rows[id] = slices.Repeat([]byte{port}, 64)
		}
	}
	return f.With(fabric.Reading{LFTs: rows})
}

// TestTables: the fabric of a cycle has the forwarding tables that were read then, and none if none were
// read; what did not change is kept once.
func TestTables(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	var times []time.Time
	read := []byte{0, 3, 3, 0, 3, 4, 3}
	for i, port := range read {
		if i == 2 { // another fabric with the same tables
			host := s.f.OfType(mad.NodeTypeCA)[5]
			if err := s.Cables.Unlink(host.GUID(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if i == 4 { // another recorder goes on
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r = s.recorder(path)
		}
		s.now = s.now.Add(5 * time.Minute)
		f := s.sweep()
		if _, err := r.Record(t.Context(), history.Cycle{Time: s.now, Every: 5 * time.Minute, Source: "test", Fabric: f, Routes: withPort(f, port)}); err != nil {
			t.Fatal(err)
		}
		times = append(times, s.now)
	}
	whole := 0
	for _, row := range r.Rows(t, "routes", "") {
		if len(row[1].([]byte)) > 8 {
			whole++
		}
	}
	if whole != 3 {
		t.Errorf("tables are kept %d times, want 3", whole)
	}
	r.Close()
	h, err := history.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for i, port := range read {
		f, _, err := h.At(t.Context(), times[i])
		if err != nil {
			t.Fatal(err)
		}
		if f.HasLFTs() != (port > 0) {
			t.Errorf("cycle %d has tables: %v", i, f.HasLFTs())
		}
		for id := range f.Nodes() {
			n := &f.Nodes()[id]
			if want := n.IsSwitch() && port > 0; (n.LFT() != nil) != want || want && (len(n.LFT()) < 64 || n.LFT()[5] != port) {
				t.Errorf("cycle %d: table of %s: %v", i, n.Name(), n.LFT())
			}
		}
	}
	sound(t, path)
}
