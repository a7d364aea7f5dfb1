package command

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/shell/session"
)

// starters are scripts to begin with, and their tests. NAME in them is the new name.
//
//go:embed starter/*.star
var starters embed.FS

// starterKinds are the kinds of scripts, and how to run one.
var starterKinds = []struct{ name, run string }{
	{"audit", "fabsh -F sim audit %s"},
	{"report", "fabsh -F sim report %s"},
	{"policy", "fabsh -F sim route %s --verify"},
	{"topology", "fabsh -F sim topology %s"},
}

// newCommand writes a script to begin with.
func newCommand(p *session.Program) *cobra.Command {
	var kinds []string
	for _, k := range starterKinds {
		kinds = append(kinds, k.name)
	}
	return &cobra.Command{
		Use:   "new {" + strings.Join(kinds, " | ") + "} NAME",
		Short: "Write a working script to begin with, and its test",
		Long: `Write NAME.star, a working script of the kind, with comments, and its test
NAME_test.star, in the working directory. Existing files are not overwritten. The kinds
are audit (fabsh audit), report (fabsh report), policy for routing (fabsh route), and
topology, a file for a job scheduler (fabsh topology).`,
		Example: `  fabsh new audit rack_names
  fabsh new policy mine`,
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(words) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return kinds, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("new: missing kind; supported: " + strings.Join(kinds, ", "))
			case !slices.Contains(kinds, words[0]):
				return fmt.Errorf("new: unknown kind %q%s; supported: %s", words[0], fabric.DidYouMean(words[0], kinds), strings.Join(kinds, ", "))
			case len(words) == 1:
				return fmt.Errorf("new %s: missing NAME", words[0])
			case len(words) > 2:
				return fmt.Errorf("new %s: unexpected argument %q; want one NAME", words[0], words[2])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			name, err := starterName(words[1])
			if err != nil {
				return fmt.Errorf("new %s: %w", words[0], err)
			}
			if err := writeStarter(words[0], name); err != nil {
				return fmt.Errorf("new %s: %w", words[0], format.FileError(err))
			}
			i := slices.Index(kinds, words[0])
			_, err = fmt.Fprintf(p.Console.Out(), "%[1]s.star, %[1]s_test.star\ntry: %s; fabsh test %[1]s_test.star\n", name, fmt.Sprintf(starterKinds[i].run, name+".star"))
			return err
		},
	}
}

// starterName returns the name of a script, without its suffix.
func starterName(text string) (string, error) {
	name := strings.TrimSuffix(text, ".star")
	if !regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`).MatchString(name) || strings.HasSuffix(name, "_test") {
		return "", fmt.Errorf("invalid name %q; use letters, digits, - and _, and not _test at the end", lang.OneLine(text))
	}
	return name, nil
}

// writeStarter writes a script and its test; both, or none.
func writeStarter(kind, name string) error {
	var written []string
	for _, suffix := range []string{"", "_test"} {
		text, err := starters.ReadFile("starter/" + kind + suffix + ".star")
		if err != nil {
			return err
		}
		path := name + suffix + ".star"
		if err := writeNew(path, strings.ReplaceAll(string(text), "NAME", name)); err != nil {
			for _, path := range written {
				os.Remove(path)
			}
			return err
		}
		written = append(written, path)
	}
	return nil
}

// writeNew writes a file that must not exist: under its name, it is complete.
func writeNew(path, text string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = io.WriteString(temp, text)
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); errors.Is(err, os.ErrExist) { // unlike os.Rename, it replaces nothing
		return fmt.Errorf("%s exists, and is not overwritten; choose another name", path)
	} else if err != nil {
		return err
	}
	return nil
}
