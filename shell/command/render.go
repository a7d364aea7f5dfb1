package command

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/metrics"
	"fabsh/fabric"
	"fabsh/shell/session"
)

// renderTable returns a table of a command that opens no fabric, in the format of -o, with
// the rows and columns of --where and --columns. name is the prefix of its metrics.
func renderTable(s *session.Settings, v starlark.Value, name string) (string, error) {
	r := &lang.Runtime{View: s.View(), Format: s.Output(), DidYouMean: fabric.DidYouMean, Quiet: true}
	v, err := r.ViewOf(nil, v)
	if err != nil {
		return "", err
	}
	return metrics.Render(v, s.Output(), name)
}
