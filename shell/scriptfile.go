package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/format"
)

// commandWords are the words that name commands, not scripts.
var commandWords = []string{"audit", "report", "route", "verify", "snapshot", "diff", "exporter", "change", "topology", "graph", "top", "tour", "sim", "decode", "ports", "test", "check", "fmt", "version", "doc", "examples", "help", "completion"}

// checkScript fails if there is no such script, before a fabric is opened.
func checkScript(path string) error {
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
		if n := fabric.Nearest(path, commandWords); n != "" {
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

// flagError adds the nearest flag to an unknown one.
func flagError(c *cobra.Command, err error) error {
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
