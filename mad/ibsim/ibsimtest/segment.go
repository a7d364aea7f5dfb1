package ibsimtest

import (
	"bytes"
	_ "embed"
	"os/exec"
	"path/filepath"
	"testing"
)

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
