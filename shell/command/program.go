package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/shell/session"
)

// Words are the words that name commands, not scripts.
var Words = []string{"audit", "report", "route", "verify", "snapshot", "diff", "exporter", "change", "topology", "graph", "top", "tour", "sim", "decode", "ports", "test", "check", "fmt", "version", "doc", "examples", "help", "completion"}

// CheckScript fails if there is no such script, before a fabric is opened.
func CheckScript(path string) error {
	if strings.HasPrefix(path, "@") {
		return nil // a shipped one
	}
	st, err := os.Stat(path)
	if err == nil {
		if st.IsDir() {
			return fmt.Errorf("%s: is a folder", path)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return format.FileError(err)
	}
	if !strings.ContainsAny(path, "./") {
		if script.IsReport(path) {
			return fmt.Errorf("%s: no such command or file; its report is: fabsh report %[1]s", path)
		}
		if n := fabric.Nearest(path, Words); n != "" {
			return fmt.Errorf("%s: no such command or file (did you mean %s?)", path, n)
		}
		return fmt.Errorf(`%s: no such command or file (see "fabsh --help")`, path)
	}
	if n := fabric.Nearest(filepath.Base(path), filesIn(filepath.Dir(path))); n != "" {
		return fmt.Errorf("%s: no such file (did you mean %s?)", path, filepath.Join(filepath.Dir(path), n))
	}
	return fmt.Errorf("%s: no such file", path)
}

// filesIn are the names in a folder, sorted; none if it cannot be read.
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

// policyProgram is what a routing policy says of itself.
func policyProgram(name string) script.Program {
	path, err := script.Policies.Locate(name)
	if err != nil {
		return script.Program{}
	}
	return programAt(path)
}

// programAt reads what the script at path says of itself; nothing where it is no
// plain file, for a pipe can be read only once.
func programAt(path string) script.Program {
	for _, p := range script.Programs() {
		if p.Name == path {
			return p
		}
	}
	return script.ProgramOf(path, sourceAt(path))
}

// sourceAt is the text of a script, "" where it cannot be read at once.
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

// CompleteScript proposes the embedded programs, and the options of the script
// that is named; other words it leaves to the shell: files.
func CompleteScript(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	// Bash takes @ for the end of a word, unless it is told otherwise.
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
