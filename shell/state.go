package shell

import (
	"os"
	"path/filepath"
	"strings"

	"fabsh/fabric/audit"
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
	if script == "" || name == "" {
		return "shell"
	}
	return audit.JobOf(name)
}
