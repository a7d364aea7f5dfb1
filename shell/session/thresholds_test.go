package session

import (
	"path/filepath"
	"testing"
)

// TestThresholdFile: ibqueryerrors reads the limits of the site, on fabrics of the site.
func TestThresholdFile(t *testing.T) {
	const name = "infiniband-diags/error_thresholds"
	etc := siteFiles(t, map[string]string{name: "SymbolErrorCounter=10\n"})
	for _, test := range []struct{ etc, spec, want string }{
		{etc, "umad:mlx5_0/1", filepath.Join(etc, name)},
		{etc, "ibsim", filepath.Join(etc, name)},
		{etc, "sim:fattree", ""},
		{etc, "file:x.topo", ""},
		{t.TempDir(), "umad", ""},
	} {
		p, _ := testProgram(t, "-F", test.spec)
		if got := thresholdFile(test.etc, p.Settings); got != test.want {
			t.Errorf("%s: got %q, want %q", test.spec, got, test.want)
		}
	}
}
