package shell

import (
	"os"
	"path/filepath"
	"strings"
)

// systemState is where root keeps what one run needs of the run before (Filesystem
// Hierarchy Standard, /var/lib).
const systemState = "/var/lib/fabsh"

// stateDir is the folder for what one run needs of the run before: --state, else
// that of the system for root, and of the user for others. Empty: there is none.
func (s *settings) stateDir() string {
	switch {
	case s.state != "":
		return s.state
	case os.Geteuid() == 0:
		return systemState
	}
	return stateFile("")
}

// jobOf names what a script keeps: it is the script's name, "shell" of what is
// none.
func jobOf(script string) string {
	name := strings.TrimSuffix(filepath.Base(script), ".star")
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
	if script == "" || name == "" {
		return "shell"
	}
	return name[:min(len(name), 100)]
}
