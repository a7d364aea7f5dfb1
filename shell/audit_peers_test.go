//go:build linux

package shell

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// managerActive is a note of a run beside OpenSM, which sweeps when links change, now or a little
// later.
var managerActive = regexp.MustCompile(`note +the subnet manager was active during the run .*\n`)

// TestAuditUnderOpenSM: on a fabric that OpenSM has brought up, what ibsim breaks
// is found where it is, and nothing else, tables included. ibsim's ports are
// told once to have less enabled than they support, and the baseline has that.
func TestAuditUnderOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, RMPP: true})
	base := filepath.Join(t.TempDir(), "base.fab")
	if got := outcome(on(t, f, "-q", "snapshot", base)); !strings.HasSuffix(got, "[exit status 0]\n") {
		t.Fatal(got)
	}
	f.Console(t, `Unlink "leaf-1"[5]`)
	f.Console(t, `Unlink "leaf-2"[1]`)
	got := outcome(on(t, f, "--state", t.TempDir(), "audit", "links", "identity", "config", "topology", "sm", "--baseline", base))
	got = managerActive.ReplaceAllString(got, "")
	want := `fabric    21 nodes (6 switches, 15 CAs), 22 links, complete
audits    links identity config topology sm
coverage  100 % of 83 requests
findings  1 critical, 1 error, 1 warning; 1 also in the baseline

critical  link.down:0x0002c903000000a0/5  leaf-1/5 - spine-0/2: the link is down at both ends
error     node.gone:0x0002c903000000b0  host-2-0 HCA-1: the CA was not found: it is gone, or did not answer
  warning   link.down:0x0002c903000000f0/1  leaf-2/1 - host-2-0 HCA-1/1: the link is down: a node is gone
[exit status 1]
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
