//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
