//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestSAKeyUnderOpenSM: the SM_Key opens what OpenSM shows to who is trusted,
// its P_KeyTableRecords (osm_sa_pkey_record.c), and a wrong one closes all
// (osm_sa_mad_ctrl.c).
func TestSAKeyUnderOpenSM(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(2, 1, 2), ibsimtest.FixtureOptions{SM: "host-1-1", SMArgs: []string{"-s", "0"}, SMConf: "sa_key 0x5ec2e7\n"})
	keys := func(text string) string {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const ask = `[hex(k) for k in sa_get("P_KeyTableRecord", lid=smp_get("PortInfo", dr("0"), 1).lid, block_num=0).p_key_block[:2]]`
	right, wrong := keys("sa_key 0x5ec2e7\n"), keys("sa_key 0x5ec2e8\n")
	for _, test := range []struct {
		name string
		args []string
		want string // stdout and stderr begin so
		end  string
	}{
		{"none", nil, "sa_get: P_KeyTableRecord of the subnet administrator: SubnAdmGet(P_KeyTableRecord) to LID ",
			": request invalid (status 0x0200); the request may require the SM_Key; give it with --keys FILE, in a line sa_key\n"},
		{"right", []string{"--keys", right}, `["0x`, ""},
		{"wrong", []string{"--keys", wrong, "-t", "100"}, "sa_get: P_KeyTableRecord of the subnet administrator: SubnAdmGet(P_KeyTableRecord) to LID ",
			": timed out after 3 attempts in 300ms; check that the subnet manager runs and that sa_key in --keys is its key, or increase --timeout and --retries\n"},
	} {
		got := outcome(on(t, f, append(test.args, "-c", ask)...))
		if !strings.HasPrefix(got, test.want) || !strings.Contains(got, test.end) {
			t.Errorf("%s: %s", test.name, got)
		}
		if strings.Contains(strings.ToLower(got), "5ec2e") {
			t.Errorf("%s: the key is shown: %s", test.name, got)
		}
	}
}
