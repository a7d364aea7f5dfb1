//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminalHostile: what a node calls itself does nothing to the terminal,
// wherever it is shown: in values, tables, print, errors, completion.
func TestTerminalHostile(t *testing.T) {
	const evil = "\x1b]0;owned\a\u009b31m\u202eevil"
	home := t.TempDir()
	file := filepath.Join(home, "net.topo")
	net := "switchguid=0x10(10)\nSwitch\t2 \"S-0000000000000010\"\t\t# \"" + evil + "\" base port 0 lid 1 lmc 0\n" +
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"host\" lid 2 4xHDR\n\n" +
		"caguid=0x20\nCa\t1 \"H-0000000000000020\"\t\t# \"host\"\n[1](21) \t\"S-0000000000000010\"[1]\t\t# lid 2 lmc 0 \"" + evil + "\" lid 1 4xHDR\n"
	if err := os.WriteFile(file, []byte(net), 0o644); err != nil {
		t.Fatal(err)
	}
	s := startTerminal(t, home, "-F", "file:"+file)
	all := s.expect("> ")
	s.send("f = discover()\r")
	s.expect(" 2n ro> ")
	for _, line := range []string{"f.switches[0]", "f.switches", "print(f.switches[0].name)", "fail(f.switches[0].name)", "f.switches[0].name"} {
		s.send(line + "\r")
		all += s.expect(`u202eevil`)
		all += s.expect(" 2n ro> ") // the next prompt: no line goes into this one's
	}
	s.send("smp_get(\"NodeInfo\", \"\\\t")
	all += s.expect("evil")
	for _, bad := range []string{"\x1b]0", "\a\u009b", "\u009b", "\u202e"} {
		if strings.Contains(all, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
	s.send("\x03")
	s.expect("> ")
	s.send("exit\r")
	s.exit(0)
}

// TestTerminalHostileHelp: nor does a docstring, by way of the pager.
func TestTerminalHostileHelp(t *testing.T) {
	home := t.TempDir()
	src := "def mine():\n    \"\"\"Is mine.\n" + strings.Repeat("    more\n", 30) + "    \x1b]0;owned\a\u202eevil\n    \"\"\"\n"
	if err := os.WriteFile(filepath.Join(home, "lib.star"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	s := startTerminalOf(t, terminalOf{home: home, columns: 80, pager: "cat"}, "-F", "sim:ring:n=2")
	s.expect("> ")
	s.send("load(\"lib.star\", \"mine\")\r")
	s.expect("> ")
	s.send("mine?\r")
	all := s.expect("evil")
	for _, bad := range []string{"\x1b]0", "\a", "\u202e"} {
		if strings.Contains(all, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
	s.send(ctrlD)
	s.exit(0)
}
