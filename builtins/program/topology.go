package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
)

// TopologyKind is a script that writes files for a scheduler: it defines
// topology(groups, *, ...), which returns a text, and read(text), which returns the hosts of
// such a text. With topology(groups, host, *, ...) and read(text, host) the text may be for one
// host.
type TopologyKind struct {
	// Help is the help of the script, set if the options request it; then there is nothing
	// to write.
	Help string
	// DNS reports that its hosts are nodes of Kubernetes.
	DNS bool

	in          *script.Interpreter
	script      string
	write, read *starlark.Function
	ofHost      bool   // both functions have the parameter host
	host        string // the only host; "": all hosts
	kwargs      []starlark.Tuple
}

// LoadTopology runs the top level of a script and reads the words of its options. name
// is a .star file or the name of a shipped one.
func LoadTopology(ctx context.Context, in *script.Interpreter, name string, words []string) (*TopologyKind, error) {
	path, err := script.Topologies.Locate(name)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	k := &TopologyKind{in: in, script: path}
	return k, in.Open(ctx, path, func(t *starlark.Thread, src string) error {
		s, err := in.Run(t, path, src)
		if err != nil {
			return k.notExit(err)
		}
		k.write, k.read, k.DNS = s.Function(script.TopologyEntry), s.Function("read"), s.Globals["dns"] == starlark.True
		if k.write == nil || k.read == nil {
			return fmt.Errorf("%s: not a kind of topology; it must define topology(groups, *, ...), which returns a text, and read(text), which returns a dict of host to its groups", path)
		}
		return k.parse(s.Doc, words)
	})
}

// parse reads the options.
func (k *TopologyKind) parse(doc string, words []string) error {
	e := script.NewEntry(nameOf(k.script), k.write, doc)
	e.ProgramFlags = k.in.Flags
	k.ofHost = len(e.Words) == 2 && e.Words[1].Name == hostParameter
	if len(e.Words) == 0 || len(e.Words) > 1 && !k.ofHost || e.Words[0].Name != "groups" || e.Rest != "" {
		return fmt.Errorf("%s: invalid parameters of topology(); want groups, perhaps host, and options after a *: def topology(groups, *, name = \"\")", k.script)
	}
	if read := script.NewEntry("", k.read, ""); k.ofHost && (len(read.Words) != 2 || read.Words[1].Name != hostParameter) {
		return fmt.Errorf("%s: invalid parameters of read(); topology() has the parameter host, so want def read(text, host)", k.script)
	}
	e.Words = e.Words[1:]
	args, err := e.Parse(words)
	if err != nil {
		return fmt.Errorf("%s: %w\nusage: %s", e.Name, err, e.Usage())
	}
	if args.Help {
		k.Help = e.Help()
	}
	k.kwargs = args.Keywords
	args.Allow(k.in.Runtime.Files)
	if len(args.Positional) > 0 {
		if k.host, _ = starlark.AsString(args.Positional[0]); k.host == "" { // an unset variable, not all hosts
			return fmt.Errorf("%s: the name of the host is empty; want a host, or no argument for all", e.Name)
		}
	}
	return nil
}

// hostParameter is the parameter for the only host of a text.
const hostParameter = "host"

// withHost returns the arguments of a function of the script: first, and the host if it takes one.
func (k *TopologyKind) withHost(first starlark.Value) starlark.Tuple {
	if !k.ofHost {
		return starlark.Tuple{first}
	}
	return starlark.Tuple{first, starlark.String(k.host)}
}

// Write returns the text for groups, and its content, which it has read back and compared with
// the groups.
func (k *TopologyKind) Write(ctx context.Context, g *hosts.Groups) (string, *values.HostsFile, error) {
	if names := g.Hosts(); k.host != "" && !slices.Contains(names, k.host) {
		name := hosts.NameIn(names, k.host)
		if name == "" {
			return "", nil, fmt.Errorf("%s: unknown host %.80q%s", nameOf(k.script), k.host, fabric.DidYouMean(k.host, names))
		}
		k.host = name
	}
	v, err := k.call(ctx, k.write, k.withHost(values.WrapHostGroups(g)), k.kwargs)
	if err != nil {
		return "", nil, err
	}
	text, ok := starlark.AsString(v)
	if !ok {
		return "", nil, fmt.Errorf("%s: topology() returned %s; want string", k.script, v.Type())
	}
	file, err := k.Read(ctx, text)
	if err == nil {
		err = file.Check(g, k.host)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: the output does not read back as the groups: %w", nameOf(k.script), err)
	}
	return text, file, nil
}

// Read returns the content of a text. An invalid text is not reported as an error of a shipped
// script.
func (k *TopologyKind) Read(ctx context.Context, text string) (*values.HostsFile, error) {
	v, err := k.call(ctx, k.read, k.withHost(starlark.String(text)), nil)
	var ee *starlark.EvalError
	if errors.As(err, &ee) && strings.HasPrefix(k.script, "@") {
		return nil, fmt.Errorf("%s: not a file of this kind: %s", nameOf(k.script), ee.Msg)
	}
	if err != nil {
		return nil, err
	}
	file, err := values.HostsFileOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.script, err)
	}
	return file, nil
}

// call calls a function of the script.
func (k *TopologyKind) call(ctx context.Context, fn *starlark.Function, args starlark.Tuple, kwargs []starlark.Tuple) (v starlark.Value, err error) {
	err = k.in.Runtime.Evaluate(ctx, k.script, func(t *starlark.Thread) (err error) {
		v, err = starlark.Call(t, fn, args, slices.Clone(kwargs))
		return plainFailure(k.script, nameOf(k.script), k.notExit(err))
	})
	return v, err
}

// notExit returns err of the kind's code.
func (k *TopologyKind) notExit(err error) error {
	return lang.NotExit(err, k.script+" must return a topology; use fail(TEXT) to report an error")
}
