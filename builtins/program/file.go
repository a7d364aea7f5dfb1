// Package program runs scripts as programs: a file with its entry function, a piece of
// code, a report, a routing policy, a kind of topology. Audits are in builtins/audits/run.
//
//	file.go      a script and its entry function
//	code.go      a piece of code, as with -c
//	report.go    a report: main()
//	policy.go    a routing policy: route()
//	topology.go  a kind of topology: topology() and read()
package program

import (
	"context"
	"fmt"
	"path/filepath"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
)

// RunFile runs a script and then, if it defines one, its entry function with the words of the
// command line.
func RunFile(ctx context.Context, in *script.Interpreter, path string, words []string) error {
	return in.Open(ctx, path, func(t *starlark.Thread, src string) error {
		audits.NameMetrics(in.Runtime, nameOf(path))
		file, prog, err := in.Compile(path, src)
		if err != nil {
			return err
		}
		// Checked before anything runs: with --dry-run, the user relies on it.
		if len(words) > 0 && !script.MayHaveEntry(file) {
			return noEntry(path)
		}
		// The globals are not frozen: an entry function may fill a table that
		// its script defines at top level.
		globals, err := prog.Init(t, in.Globals)
		if err != nil {
			return err
		}
		fn := script.FindEntry(globals)
		if fn == nil {
			if len(words) > 0 {
				return noEntry(path)
			}
			return nil
		}
		return callEntry(t, in, script.NewEntry(filepath.Base(path), fn, ""), words)
	})
}

func noEntry(path string) error {
	return fmt.Errorf("%s: takes no arguments; it does not define main(), audit() or route()", path)
}

// callEntry calls an entry function with the words of a command line.
func callEntry(t *starlark.Thread, in *script.Interpreter, e *script.Entry, words []string) error {
	e.ProgramFlags = in.Flags
	a, err := e.Parse(words)
	if err != nil {
		return fmt.Errorf("%s: %w\nusage: %s", e.Name, err, e.Usage())
	}
	if a.Help {
		return in.Runtime.Emit(lang.Stdout, e.Help())
	}
	a.Allow(in.Runtime.Files)
	if e.Fabric {
		f, err := topology.CurrentFabric(t)
		if err != nil {
			return err
		}
		a.Positional = append(starlark.Tuple{f}, a.Positional...)
	}
	audits.Take(in.Runtime)
	v, err := starlark.Call(t, e.Fn, a.Positional, a.Keywords)
	if found := audits.Take(in.Runtime); err == nil && len(found) > 0 {
		if err := lang.ShowValue(t, audits.Wrap(found)); err != nil {
			return err
		}
		return &lang.ExitError{Code: lang.StatusFindings}
	}
	if err == nil && e.Fn.Name() == "route" && v != starlark.None {
		err = lang.ShowValue(t, v) // the tables that `fabsh route` would verify and write
	}
	return err
}
