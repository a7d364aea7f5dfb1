package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/shell/session"
)

// CheckScript returns an error if a script does not exist, before a fabric is opened.
// The error proposes the nearest of the commands.
func CheckScript(c *cobra.Command, path string) error {
	if strings.HasPrefix(path, "@") {
		return nil // a shipped one
	}
	st, err := os.Stat(path)
	if err == nil {
		if st.IsDir() {
			return fmt.Errorf("%s: is a directory", path)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return format.FileError(err)
	}
	if !strings.ContainsAny(path, "./") {
		if script.IsReport(path) {
			return fmt.Errorf("%s: unknown command or file; the report of this name: fabsh report %[1]s", path)
		}
		var commands []string
		for _, c := range c.Root().Commands() {
			commands = append(commands, c.Name())
		}
		if n := fabric.Nearest(path, commands); n != "" {
			return fmt.Errorf("%s: unknown command or file (did you mean %s?)", path, n)
		}
		return fmt.Errorf(`%s: unknown command or file (see "fabsh --help")`, path)
	}
	if n := fabric.Nearest(filepath.Base(path), filesIn(filepath.Dir(path))); n != "" {
		return fmt.Errorf("%s: no such file (did you mean %s?)", path, filepath.Join(filepath.Dir(path), n))
	}
	return fmt.Errorf("%s: no such file", path)
}

// filesIn returns the names in a directory, sorted; none if it cannot be read.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// FlagError adds the nearest flag to an unknown one.
func FlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if n := fabric.Nearest(unknown.GetSpecifiedName(), names); n != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, n)
	}
	return fmt.Errorf(`%w (see "fabsh --help")`, err)
}

// policyProgram returns what a routing policy declares in its text.
func policyProgram(name string) script.Program {
	path, err := script.Policies.Locate(name)
	if err != nil {
		return script.Program{}
	}
	return programAt(path)
}

// programAt reads the declarations of the script at path; none if it is not a regular
// file, because a pipe can be read only once.
func programAt(path string) script.Program {
	for _, p := range script.Programs() {
		if p.Name == path {
			return p
		}
	}
	return script.ProgramOf(path, sourceAt(path))
}

// sourceAt returns the text of a script, "" if it cannot be read at once.
func sourceAt(path string) string {
	const tooLong = 1 << 20 // bytes
	f, err := session.OpenRegular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, tooLong+1))
	if err != nil || len(src) > tooLong {
		return ""
	}
	return string(src)
}

// someFiles returns an error if a command that takes files has none.
func someFiles(c *cobra.Command, words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("%s: missing files; name them, or give - for standard input", c.Name())
	}
	return nil
}

// eachFile runs run on each file. An error in one does not stop the others; found
// reports whether run found anything in a file, which sets the exit status.
func eachFile(ctx context.Context, s *session.Session, files []string, run func(name string) (found bool, err error)) error {
	failed, some := false, false
	for _, name := range files {
		found, err := run(name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = true
			s.Console.Complain(s.Explain(err))
		}
		some = some || found
	}
	switch {
	case failed:
		return &lang.ExitError{Code: lang.StatusUsage}
	case some:
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// readSource reads a script that is not to run; - is standard input. shown is its name
// in messages.
func readSource(ctx context.Context, stdin *os.File, s *session.Session, name string) (shown string, src []byte, err error) {
	var in io.Reader = stdin
	if name == "-" {
		name = "<input>"
		defer context.AfterFunc(ctx, func() { stdin.Close() })()
	} else {
		f, err := lang.OpenNamed(ctx, name)
		if err != nil {
			return "", nil, format.FileError(err)
		}
		defer f.Close()
		in = f
	}
	if in, err = format.Bounded(in, name, session.MaxOwn); err != nil {
		return "", nil, err
	}
	if src, err = io.ReadAll(in); err != nil {
		return "", nil, err
	}
	s.Sources[name] = string(src)
	return name, src, nil
}

// CompleteScript proposes the embedded programs, and the options of the script that is
// named; other words are left to the shell: files.
func CompleteScript(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	// Bash takes @ as the end of a word by default.
	at := ""
	if len(words) > 0 && words[0] == "@" {
		words = words[1:]
		at = "@"
		if len(words) > 0 {
			words = append([]string{"@" + words[0]}, words[1:]...)
			at = ""
		}
	}
	var out []string
	if len(words) == 0 {
		for _, p := range script.Programs() {
			if rest, ok := strings.CutPrefix(p.Name, at+typed); ok {
				out = append(out, typed+rest+"\t"+p.Doc)
			}
		}
		return out, cobra.ShellCompDirectiveDefault
	}
	if strings.HasPrefix(typed, "-") {
		for _, flag := range programAt(words[0]).Options {
			if strings.HasPrefix(flag, typed) {
				out = append(out, flag)
			}
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}
