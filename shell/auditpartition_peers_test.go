//go:build linux

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// partitionsFile is one that OpenSM reads: all kinds of members, flags, groups
// and comments; %s are two port GUIDs.
const partitionsFile = `# partitions of the test
Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full, SELF=full ;
storage=0x8005, ipoib, mtu=4, rate=3, defmember=full :
	ALL_CAS=limited,	# but these
	%[1]s, %[2]s=full,
	mgid=ff12:401b::0707:0707, sl=0 ;
0x0006 : %[1]s=limited, %[2]s=full ;
unnumbered, defmember=full : ALL ;
empty=0x0007 : NONE ;
`

// TestPartitionsUnderOpenSM: what OpenSM makes of a partitions.conf is what the
// audit expects of it; with another file the difference is told. Whole tables
// are as they should be.
func TestPartitionsUnderOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Parallel()
	const first, second = "0x2c90300000011", "0x0002c90300000021"
	dir := t.TempDir()
	file, other := filepath.Join(dir, "partitions.conf"), filepath.Join(dir, "other.conf")
	for path, text := range map[string]string{
		file:  fmt.Sprintf(partitionsFile, first, second),
		other: fmt.Sprintf("Default=0x7fff : ALL=full;\n# %s\nmore=0x9 : %[2]s=full, %[2]s;\n5 : ALL_CAS=limited, %[1]s=full, %[2]s=full;\n0x6 : %[1]s=both, %[2]s=both;\nstays=1 : ALL=full;\n", first, second),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, SMConf: "partition_config_file " + file, RMPP: true})
	run := func(args ...string) string {
		return managerActive.ReplaceAllString(outcome(on(t, f, append([]string{"-q", "--state", t.TempDir(), "audit"}, args...)...)), "")
	}
	got := run("identity", "links", "multicast", "partitions", "routing", "sm", "topology", "--deep", "--partitions", file) + run("partitions", "--partitions", other)
	want := `fabric    22 nodes (6 switches, 16 CAs), 24 links, complete
audits    identity links multicast partitions routing sm topology
coverage  75 of 78 checks; 100 % of 121 requests
not judged  mc.empty mc.missing mft.member (the names of members)
findings  2 info

info      link.enabled:fabric  fabric: width up to 4x enabled; supported: 12x, at 48 of 48 ports
info      mc.untold:fabric  fabric: the subnet administrator does not name the members of 3 groups; give its SM_Key with --keys
[exit status 0]
fabric    22 nodes (6 switches, 16 CAs), 24 links, complete
audits    partitions
coverage  100 % of 104 requests
findings  3 error

error     pkey.file:0x0002c90300000010/1  host-0-0 HCA-1/1: has P_Key 0x7fff (Default) as a limited member (file: full); 0x0006 as a limited member (file: both)
error     pkey.file:0x0002c90300000020/1  host-0-1 HCA-1/1: missing P_Key 0x0009 (more); has P_Key 0x7fff (Default) as a limited member (file: full)
error     pkey.file:fabric  fabric: has P_Key 0x7fff (Default) as a limited member (file: full): 13 ports, such as host-0-2 HCA-1/1, host-0-3 HCA-1/1, host-1-0 HCA-1/1
[exit status 1]
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
