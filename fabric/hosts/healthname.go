package hosts

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"fabsh/fabric"
)

// plainName matches names that need no quotes in a shell and are not options.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._-]*$`) })

// checkName returns an error for a name that is not written where a shell or Slurm reads it.
func checkName(name string) error {
	switch {
	case !plainName().MatchString(name):
		return errors.New("invalid host name; want letters, digits, . _ and -, and no - at the beginning")
	case strings.EqualFold(name, "all"): // scontrol(1), NodeName
		return errors.New("invalid host name: Slurm takes it for all nodes")
	}
	return nil
}

// checkDNSName returns an error for a name that no node of Kubernetes has.
func checkDNSName(name string) error {
	if !fabric.IsDNSName(name) {
		return errors.New("invalid name of a Kubernetes node; want lower-case letters, digits, . and -")
	}
	return nil
}

// plain returns text in printable ASCII, at most n bytes.
func plain(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > n {
		text = strings.TrimRight(text[:n-3], " ") + "..."
	}
	return text
}

// quoted returns text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
