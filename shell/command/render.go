package command

import (
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/metrics"
	"fabsh/fabric"
	"fabsh/shell/session"
)

// renderTable returns a table of a command that opens no fabric, in the format of -o, with
// the rows and columns of --where and --columns. name is the prefix of its metrics.
func renderTable(s *session.Settings, warnings io.Writer, v starlark.Value, name string) (string, error) {
	v, err := viewOf(s, warnings)(v)
	if err != nil {
		return "", err
	}
	return metrics.Render(v, s.Output(), name)
}

// viewOf returns the function that selects the rows and columns of --where and --columns.
func viewOf(s *session.Settings, warnings io.Writer) func(starlark.Value) (starlark.Value, error) {
	r := &lang.Runtime{View: s.View(), Format: s.Output(), DidYouMean: fabric.DidYouMean, Quiet: s.Quiet, Stderr: warnings, Activity: new(lang.Activity)}
	return func(v starlark.Value) (starlark.Value, error) { return r.ViewOf(nil, v, r.Format) }
}

// noTable returns an error if the command line selects rows or columns of a command that shows
// no table; why is the reason.
func noTable(p *session.Program, command, why string) error {
	for _, flag := range []string{"where", "columns"} {
		if p.Settings.Given(flag) {
			return fmt.Errorf("%s: --%s: not supported: %s", command, flag, why)
		}
	}
	return nil
}
