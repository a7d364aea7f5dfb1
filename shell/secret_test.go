//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestAskKeys: keys that are typed are not shown, and are in no history.
func TestAskKeys(t *testing.T) {
	home := t.TempDir()
	s := startTerminal(t, home, "-F", "sim:ring:n=2,mkey=0x5ec2e75ec2e7,mkey_level=2", "--keys", "-")
	seen := s.expect("m_key (not displayed; Enter for none): ")
	s.send("0x5ec2e75ec2e7\r")
	for _, name := range []string{"sa", "sm", "cc", "b", "vendor"} {
		seen += s.expect(name + "_key (not displayed; Enter for none): ")
		s.send("\r")
	}
	seen += s.expect("rw> ")
	s.send("discover()\r")
	seen += s.expect("4 nodes (2 switches, 2 CAs), 3 links, complete")
	seen += s.expect("> ")
	if strings.Contains(strings.ToLower(seen), "5ec2e7") {
		t.Errorf("shown: %q", seen)
	}
	s.send(`smp_set("PortInfo", dr("0"), 1, m_key=0x5ec2e7).m_key` + "\r")
	s.expect("\"hidden\"\r\n")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
	history, err := os.ReadFile(filepath.Join(home, ".local/state/fabsh/history"))
	if want := "discover()\nsmp_set(\"PortInfo\", dr(\"0\"), 1, m_key=...).m_key\n"; err != nil || string(history) != want {
		t.Errorf("history: %q, %v", history, err)
	}
}

// TestAskKeysRefused: what is no key ends the program, and is not shown; after
// Ctrl-C the terminal shows what is typed again.
func TestAskKeysRefused(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim", "--keys", "-")
	s.expect("m_key (not displayed; Enter for none): ")
	s.send("5ec2e7\r")
	for range 5 {
		s.expect("none): ")
		s.send("\r")
	}
	s.expect("fabsh: --keys -:1: expected one key of at most 64 bits, as 0x0000000000000000, after m_key")
	s.exit(2)

	s = startTerminal(t, t.TempDir(), "-F", "sim", "--keys", "-")
	s.expect("none): ")
	s.send(ctrlC)
	s.exit(130)
}

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
