package session

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"fabsh/fabric/audit"
)

// systemState is where root keeps state between runs, below / (Filesystem Hierarchy
// Standard, /var/lib).
const systemState = "var/lib/fabsh"

// stateDir returns the directory for state kept between runs of a fabric that c opens:
// --state; else "" for a fabric that is simulated or replayed, which is another one each
// time.
func (s *Settings) stateDir(c *Connection) string {
	if c.transport != nil && s.State == "" {
		if t := c.transport.Traits(); t.Simulated || t.Recorded {
			return ""
		}
	}
	return s.StateDir()
}

// StateDir returns the directory for state kept between runs: --state, else that of the
// system for root, and of the user for others. It is empty without one.
func (s *Settings) StateDir() string {
	switch {
	case s.State != "":
		return s.State
	case os.Geteuid() == 0:
		return filepath.Join(cmp.Or(s.Root, "/"), systemState)
	}
	return StateFile("")
}

// StateFile and ConfigFile return the paths of the XDG base directory specification for
// a program's files; empty without a home directory.
func StateFile(name string) string { return xdgFile("XDG_STATE_HOME", ".local/state", name) }

func ConfigFile(name string) string { return xdgFile("XDG_CONFIG_HOME", ".config", name) }

func xdgFile(variable, fallback, name string) string {
	dir := os.Getenv(variable)
	if !filepath.IsAbs(dir) { // the specification ignores relative ones
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, fallback)
	}
	return filepath.Join(dir, "fabsh", name)
}

// jobOf returns the name for the state of a script: the script's name, or "shell"
// without one.
func jobOf(script string) string {
	name := strings.TrimSuffix(filepath.Base(script), ".star")
	if script == "" || name == "" {
		return "shell"
	}
	return audit.JobOf(name)
}

// Login returns the name of the user who runs the program; empty if unknown.
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
