package program

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
)

// RunReport runs a report, a .star file that defines main() or a shipped one, with the options
// and words of a command line.
func RunReport(ctx context.Context, in *script.Interpreter, name string, words []string) error {
	path, err := script.Reports.Locate(name)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return in.Open(ctx, path, func(t *starlark.Thread, src string) error {
		audits.NameMetrics(in.Runtime, nameOf(path))
		s, err := in.Run(t, path, src)
		if err != nil {
			return err
		}
		fn := s.Function("main")
		if fn == nil {
			return fmt.Errorf("%s: not a report; it does not define main()", path)
		}
		e := script.NewEntry(nameOf(path), fn, s.Doc)
		return plainFailure(path, e.Name, callEntry(t, in, e, words))
	})
}

// plainFailure returns err without its position in the script, if a function that a shipped
// report called failed: the cause is the command line or the fabric, not the script.
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
