package format_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"fabsh/fabric/format"
)

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPacked: topologies and tables packed by gzip are read as if they were not; a damaged
// or cut one is an error, and never a smaller fabric.
func TestPacked(t *testing.T) {
	text := []byte("Switch 4 \"S1\"\n[1] \"H1\"[1]\n[2] \"S2\"[2]\n\nSwitch 4 \"S2\"\n[1] \"H2\"[1]\n[2] \"S1\"[2]\n\n" +
		"Hca 1 \"H1\"\n[1] \"S1\"[1]\n\nHca 1 \"H2\"\n[1] \"S2\"[1]\n")
	plain, err := format.Load(bytes.NewReader(text), "small.net", nil)
	if err != nil {
		t.Fatal(err)
	}
	z := gzipped(t, text)
	f, err := format.Load(bytes.NewReader(z), "small.net.gz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(f.Nodes()), len(plain.Nodes()); got != want || want == 0 {
		t.Errorf("%d nodes, want %d", got, want)
	}
	for cut := 2; cut < len(z); cut++ {
		if _, err := format.Load(bytes.NewReader(z[:cut]), "cut.gz", nil); err == nil || !strings.HasPrefix(err.Error(), "cut.gz:") {
			t.Fatalf("cut at %d of %d: %v", cut, len(z), err)
		}
	}
	for bit := range 8 * len(z) {
		damaged := bytes.Clone(z)
		damaged[bit/8] ^= 1 << (bit % 8)
		f, err := format.Load(bytes.NewReader(damaged), "bad.gz", nil)
		if err == nil && len(f.Nodes()) != len(plain.Nodes()) { // a flip in the time or name is harmless
			t.Fatalf("bit %d: %d nodes and no error", bit, len(f.Nodes()))
		}
	}
	twice := gzipped(t, z)
	if _, err := format.Load(bytes.NewReader(twice), "twice.gz", nil); err == nil {
		t.Error("packed twice: no error")
	}
}

// TestPackedBomb: a small file that unpacks to much is refused within bounded memory.
func TestPackedBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	bomb := gzipped(t, bytes.Repeat([]byte("# comment\n"), 30<<20))
	refused(t, "bomb.gz: expected at most 256 MB", func() error {
		_, err := format.Load(bytes.NewReader(bomb), "bomb.gz", nil)
		return err
	})
}
