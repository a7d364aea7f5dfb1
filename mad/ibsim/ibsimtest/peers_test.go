package ibsimtest

import (
	"strings"
	"testing"
)

// Every peer that tests name starts with the environment of Command.
func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name, arg, want string // want is part of what it prints
	}{
		{"ibsim", "-V", "/ibsim 0."},
		{"opensm", "--version", "OpenSM 3."},
		{"ibnetdiscover", "--version", "ibnetdiscover BUILD VERSION: "},
		{"saquery", "--version", "saquery BUILD VERSION: "},
		{"smpquery", "--version", "smpquery BUILD VERSION: "},
		{"ibdmchk", "--help", "Verify: ibdmchk "},
		{"tshark", "--version", "TShark (Wireshark) "},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _ := Command(t, c.name, c.arg).CombinedOutput() // some exit 1
			if !strings.Contains(string(out), c.want) {
				t.Errorf("%s %s printed:\n%s\nwant %q in it", c.name, c.arg, out, c.want)
			}
		})
	}
}
