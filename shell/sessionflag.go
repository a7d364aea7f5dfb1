package shell

import (
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/shell/session"
)

// takeSession gives the session flags among words, which stand behind a command
// that parses its own flags, to set, and returns the other words. own says
// which flags are the command's, whatever the session's are called.
func takeSession(s *session.Settings, words []string, own func(flag string) bool, set func(name, value string) error) (rest []string, err error) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return append(rest, words[i:]...), nil
		}
		flag, value, hasValue := strings.Cut(w, "=")
		f := sessionFlag(s, flag)
		if f == nil || own(flag) {
			rest = append(rest, w)
			continue
		}
		if !strings.HasPrefix(w, "--") && len(w) > 2 && f.NoOptDefVal == "" { // -ojson
			value, hasValue = strings.TrimPrefix(w[2:], "="), true
		}
		switch {
		case hasValue:
		case f.NoOptDefVal != "":
			value = f.NoOptDefVal
		case i+1 < len(words):
			i++
			value = words[i]
		}
		if err := set(f.Name, value); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// sessionFlag is the session flag that a word begins; nil: none.
func sessionFlag(s *session.Settings, word string) *pflag.Flag {
	for _, g := range s.Groups() {
		if name, ok := strings.CutPrefix(word, "--"); ok {
			if f := g.Lookup(name); f != nil {
				return f
			}
		} else if len(word) > 1 && word[0] == '-' {
			f := g.ShorthandLookup(word[1:2])
			if f != nil && (len(word) == 2 || f.NoOptDefVal == "") {
				return f
			}
		}
	}
	return nil
}

// takeAudit takes the session flags out of the words behind audit: those that neither
// the command nor an audit has, be it a shipped one or a file among the words.
func takeAudit(p *session.Program, words []string) ([]string, error) {
	programs := sync.OnceValue(func() []script.Program {
		list := script.Programs()
		list = slices.DeleteFunc(list, func(p script.Program) bool { return !strings.HasPrefix(p.Name, "@std//audit/") })
		for _, w := range words {
			if strings.HasSuffix(w, ".star") {
				list = append(list, programAt(w))
			}
		}
		return list
	})
	own := func(flag string) bool {
		return slices.Contains(auditFlags, flag) || slices.Contains(ackFlags, flag) ||
			slices.ContainsFunc(programs(), func(p script.Program) bool { return !p.Entry || slices.Contains(p.Options, flag) })
	}
	return takeSession(p.Settings, words, own, p.Settings.Set)
}

// takeRoute takes the session flags out of the words behind route: those that
// neither route nor the policy has. What options a policy has is read in its
// text; where that does not tell, all are the policy's.
func takeRoute(p *session.Program, words []string) ([]string, error) {
	isOwn := func(flag string) bool { return slices.Contains(routeFlags, flag) }
	words0, _ := takeSession(p.Settings, words, isOwn, func(string, string) error { return nil })
	o, _ := parseRoute(words0)
	own := isOwn
	if o.policy != "" {
		p := policyProgram(o.policy)
		own = func(flag string) bool { return !p.Entry || isOwn(flag) || slices.Contains(p.Options, flag) }
	}
	return takeSession(p.Settings, words, own, p.Settings.Set)
}
