package session

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"fabsh/fabric/audit"
)

// systemState is where root keeps what one run needs of the run before (Filesystem
// Hierarchy Standard, /var/lib).
const systemState = "/var/lib/fabsh"

// StateDir returns the folder for what one run needs of the run before: --state, else
// that of the system for root, and of the user for others. Empty: there is none.
func (s *Settings) StateDir() string {
	switch {
	case s.State != "":
		return s.State
	case os.Geteuid() == 0:
		return systemState
	}
	return StateFile("")
}

// StateFile and ConfigFile return where the XDG base directory specification
// wants a program's files; empty: there is no home directory.
func StateFile(name string) string { return xdgFile("XDG_STATE_HOME", ".local/state", name) }

func ConfigFile(name string) string { return xdgFile("XDG_CONFIG_HOME", ".config", name) }

func xdgFile(variable, fallback, name string) string {
	dir := os.Getenv(variable)
	if !filepath.IsAbs(dir) { // relative ones are to be ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, fallback)
	}
	return filepath.Join(dir, "fabsh", name)
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

// Login returns who runs the program; empty if nobody knows.
func Login() string {
	for _, name := range []string{"SUDO_USER", "LOGNAME", "USER"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
