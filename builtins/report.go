package builtins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/topology"
	"fabsh/scripts"
)

// ShippedReports are those of @std//report/, by name.
func ShippedReports() []ShippedDoc { return shipped(reportFolder) }

// ReportPath is the script of a report.
func ReportPath(name string) (string, error) {
	return shippedPath(reportFolder, "report", name)
}

// IsReport: a shipped report has that name.
func IsReport(name string) bool {
	_, err := fs.Stat(scripts.FS, path.Join(reportFolder, name+".star"))
	return err == nil && !isScript(name)
}

// RunReport runs a report, a .star file that defines main() or a shipped one, with
// the options and words of a command line.
func (s *Session) RunReport(ctx context.Context, name string, words []string) error {
	script, err := ReportPath(name)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	src, err := s.readScript(ctx, script)
	if err != nil {
		return err
	}
	s.subject = strings.TrimSuffix(path.Base(script), ".star")
	t, release := s.mainThread(ctx, script)
	defer release()
	return finish(ctx, script, func() error {
		fn, file, _, err := s.function(t, script, src, "main")
		if err != nil {
			return err
		}
		if fn == nil {
			return fmt.Errorf("%s is no report: it defines no main()", script)
		}
		e := newEntry(strings.TrimSuffix(path.Base(script), ".star"), fn)
		if doc := docstring(file); doc != "" {
			e.doc = doc
		}
		return plainFailure(script, e.script, s.runEntry(t, e, words))
	})
}

// plainFailure is err without its place in the script, where a function that a
// shipped report called failed: for what it was given on the command line, or what
// does not answer. That is no fault of the script's.
func plainFailure(script, name string, err error) error {
	var ee *starlark.EvalError
	var te *topology.TargetError
	switch {
	case !strings.HasPrefix(script, "@") || !errors.As(err, &ee) || ee.CallStack.At(0).Pos.Filename() != "<builtin>":
		return err
	case ee.CallStack.At(0).Name == "fail":
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(ee.Msg, "fail: "))
	case errors.As(err, &te):
		return fmt.Errorf("%s: %w", name, te)
	case ee.Unwrap() == nil:
		return err
	}
	return fmt.Errorf("%s: %w", name, ee.Unwrap())
}
