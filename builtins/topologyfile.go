package builtins

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	values "fabsh/builtins/hosts"
	"fabsh/builtins/lang"
	"fabsh/fabric/hosts"
)

// TopologyKind is a script that writes files for a scheduler: it defines
// topology(groups, *, ...), which returns a text, and read(text), which returns what
// such a text says.
type TopologyKind struct {
	// Help is what the script says of itself. It is set if the options ask for it;
	// then there is nothing to write.
	Help string
	// DNS: its hosts are nodes of Kubernetes.
	DNS bool

	s           *Session
	script      string
	write, read *starlark.Function
	kwargs      []starlark.Tuple
}

// topologyEntry is the function of a kind of topology that writes.
const topologyEntry = "topology"

// TopologyOf is what a kind of topology says of itself, which has that text.
func TopologyOf(name, src string) Program { return ProgramOf(name, src, topologyEntry) }

// ShippedTopologies are those of @std//topology/, by name.
func ShippedTopologies() []ShippedDoc { return shipped(topologyFolder) }

// TopologyPath is the script of a kind.
func TopologyPath(name string) (string, error) {
	return shippedPath(topologyFolder, "kind of topology", name)
}

// LoadTopology runs the top level of a script and reads the words of its options. name
// is a .star file or the name of a shipped one. flags are those of the command that
// runs it: of a misspelt one the error names the nearest.
func (s *Session) LoadTopology(ctx context.Context, name string, words, flags []string) (*TopologyKind, error) {
	script, err := TopologyPath(name)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	src, err := s.readScript(ctx, script)
	if err != nil {
		return nil, err
	}
	k := &TopologyKind{s: s, script: script}
	t, release := s.mainThread(ctx, script)
	defer release()
	return k, finish(ctx, script, func() error {
		fn, file, globals, err := s.function(t, script, src, topologyEntry)
		if err != nil {
			return k.notExit(err)
		}
		read, _ := globals["read"].(*starlark.Function)
		if fn == nil || read == nil {
			return fmt.Errorf("%s is no kind of topology: it must define topology(groups, *, ...), which returns a text, and read(text), which returns a dict of host to its groups", script)
		}
		k.write, k.read, k.DNS = fn, read, globals["dns"] == starlark.True
		return k.parse(docstring(file), words, flags)
	})
}

// parse reads the options.
func (k *TopologyKind) parse(doc string, words, flags []string) error {
	e := newEntry(k.name(), k.write)
	if doc != "" {
		e.doc = doc
	}
	e.own, e.before = flags, k.s.flags
	if len(e.words) != 1 || e.words[0].name != "groups" || e.rest != "" {
		return fmt.Errorf("%s: topology() takes groups, and options behind a *: def topology(groups, *, name = \"\")", k.script)
	}
	e.words = nil
	_, kwargs, help, err := e.parse(words)
	if err != nil {
		return fmt.Errorf("topology %s: %w\nusage: %s", k.name(), err, e.usage())
	}
	if help {
		k.Help = e.Help()
	}
	k.kwargs = kwargs
	k.s.allow(nil, kwargs)
	return nil
}

func (k *TopologyKind) name() string { return strings.TrimSuffix(path.Base(k.script), ".star") }

// Write is the text for groups, and what it says, which has been read from it again
// and compared with them.
func (k *TopologyKind) Write(ctx context.Context, g *hosts.Groups) (string, *values.File, error) {
	v, err := k.call(ctx, k.write, starlark.Tuple{values.Wrap(g)}, k.kwargs)
	if err != nil {
		return "", nil, err
	}
	text, ok := starlark.AsString(v)
	if !ok {
		return "", nil, fmt.Errorf("%s: topology() returned %s, want string", k.script, v.Type())
	}
	file, err := k.Read(ctx, text)
	if err == nil {
		err = file.Check(g)
	}
	if err != nil {
		return "", nil, fmt.Errorf("topology %s: what was made does not read back as what it was made of: %w", k.name(), err)
	}
	return text, file, nil
}

// Read is what a text says. One that is none of the kind is no fault of a shipped script.
func (k *TopologyKind) Read(ctx context.Context, text string) (*values.File, error) {
	v, err := k.call(ctx, k.read, starlark.Tuple{starlark.String(text)}, nil)
	var ee *starlark.EvalError
	if errors.As(err, &ee) && strings.HasPrefix(k.script, "@") {
		return nil, fmt.Errorf("topology %s: no file of this kind: %s", k.name(), ee.Msg)
	}
	if err != nil {
		return nil, err
	}
	file, err := values.FileOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.script, err)
	}
	return file, nil
}

func (k *TopologyKind) call(ctx context.Context, fn *starlark.Function, args starlark.Tuple, kwargs []starlark.Tuple) (v starlark.Value, err error) {
	t, release := k.s.mainThread(ctx, k.script)
	defer release()
	err = finish(ctx, k.script, func() (err error) {
		v, err = starlark.Call(t, fn, args, slices.Clone(kwargs))
		return plainFailure(k.script, "topology "+k.name(), k.notExit(err))
	})
	return v, err
}

// notExit is err of the kind's code.
func (k *TopologyKind) notExit(err error) error {
	return lang.NotExit(err, "and "+k.script+" gives no topology: fail(TEXT) says why there is none")
}
