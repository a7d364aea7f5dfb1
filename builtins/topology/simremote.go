package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// isLocal reports whether a method needs files of this process, or the state of its session.
func isLocal(method string) bool { return method == "play" || method == "actions" }

// remoteMethod returns a method of sim that the process that serves the subnet executes.
func remoteMethod(b *lang.Builtin) *lang.Builtin {
	remote := *b
	remote.Run = lang.Do(func(c *lang.Call, a *struct{ lang.Others }) (starlark.Value, error) {
		if isLocal(c.Name) {
			return nil, lang.Errorf("not supported on a fabric that another process serves; serve it with fabsh sim --listen NAME --scenario FILE")
		}
		if err := MayNotPlan(c); err != nil {
			return nil, err
		}
		if loads := c.Fiber().Loads; len(loads) > 0 {
			return nil, c.Refuse("refused: a module cannot change the fabric while it is being loaded (%s); change it in a function that the script calls", loads[len(loads)-1])
		}
		if EnvOf(c.Runtime()).ReadOnly {
			return nil, c.Refuse("%s", EnvOf(c.Runtime()).Refusal(true))
		}
		args, err := json.Marshal(argumentsBy(a.Others, placeByGUID))
		if unsupported := (*json.MarshalerError)(nil); errors.As(err, &unsupported) {
			err = unsupported.Unwrap()
		}
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		var result []byte
		err = c.Block(func(context.Context) error {
			result, err = c.Recv.(*Sim).Remote(c.Name, args)
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		v, err := lang.DecodeJSON(c.Thread, result)
		if err == nil && c.Name == flowsMethod.Name {
			return decodeFlows(v)
		}
		return v, err
	})
	return &remote
}

// Execute calls a method of sim with arguments in JSON, for another process. Acted also
// receives a call that fails before it changes anything.
func (s *Sim) Execute(t *starlark.Thread, method string, args []byte) (starlark.Value, error) {
	since, acted := lang.FiberOf(t).Runtime.Clock.Now(), false
	report := func(_ time.Time, method string, args map[string]any, err error) {
		if acted = true; s.Acted != nil {
			s.Acted(since, method, placesByName(args, sync.OnceValue(s.NodeNames)).(map[string]any), err)
		}
	}
	fn, err := SimType.Attr(&Sim{Subnet: s.Subnet, Acted: report}, method)
	f, ok := fn.(*lang.Function)
	if err != nil || !ok {
		return nil, fmt.Errorf("sim.%s: unknown method; both programs must be of the same version", method)
	}
	v, err := lang.DecodeJSON(t, args)
	if err != nil {
		return nil, err
	}
	given, ok := v.(*starlark.Dict)
	if !ok {
		return nil, errors.New("invalid arguments; want an object")
	}
	v, err = starlark.Call(t, f, nil, given.Items())
	if err != nil && !acted {
		args := lang.Others{}
		for _, kv := range given.Items() {
			args[string(kv[0].(starlark.String))] = kv[1]
		}
		report(since, method, actionArguments(args), errors.New(strings.TrimPrefix(err.Error(), method+": ")))
	}
	return v, err
}

// placesByName returns arguments with names in place of the GUIDs of placeByGUID.
func placesByName(v any, names func() map[mad.GUID]string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for param, arg := range v {
			out[param] = placesByName(arg, names)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = placesByName(item, names)
		}
		return out
	case string:
		node, port, isPort := strings.Cut(v, "/")
		guid, err := strconv.ParseUint(node, 0, 64)
		if err != nil {
			return v
		}
		name := names()[mad.GUID(guid)]
		switch {
		case name == "":
			return v
		case isPort:
			return name + "/" + port
		}
		return name
	}
	return v
}

// actionArguments returns the arguments of a method for a log. Keys are not shown.
func actionArguments(given lang.Others) map[string]any {
	args := argumentsBy(given, placeByName)
	if _, ok := args["key"]; ok {
		args["key"] = "..."
	}
	return args
}

func placeByName(n Node, port int) string { return place(n.Name(), port) }

// placeByGUID names a place so that another process finds the same, whatever the names of
// this session are.
func placeByGUID(n Node, port int) string { return place(n.GUID().String(), port) }

// place names a port, or with a negative number a node.
func place(node string, port int) string {
	if port < 0 {
		return node
	}
	return fmt.Sprintf("%s/%d", node, port)
}

// argumentsBy returns arguments as values for JSON; name names nodes and ports.
func argumentsBy(given lang.Others, name func(n Node, port int) string) map[string]any {
	args := map[string]any{}
	for param, v := range given {
		if fields, ok := v.([]starlark.Tuple); ok {
			for _, kv := range fields {
				args[string(kv[0].(starlark.String))] = plainValue(kv[1], name)
			}
			continue
		}
		args[param] = plainValue(v, name)
	}
	return args
}

// plainValue returns an argument as a value for JSON. One that has no such form becomes an
// unsupported value, which json.Marshal reports.
func plainValue(v any, name func(n Node, port int) string) any {
	list := func(items []starlark.Value) any {
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = plainValue(item, name)
		}
		return out
	}
	switch v := v.(type) {
	case time.Duration:
		return v.Seconds()
	case Port:
		return name(NodeOf(v.Node()), v.Num())
	case Node:
		return name(v, -1)
	case starlark.String:
		return string(v)
	case starlark.Int:
		return json.Number(v.String())
	case starlark.Float:
		return float64(v)
	case starlark.Bool:
		return bool(v)
	case []starlark.Value:
		return list(v)
	case starlark.Sequence:
		return list(lang.Collect(v))
	case starlark.Value:
		if v == starlark.None {
			return nil
		}
		return unsupported{v.Type()}
	}
	return v // a string, bool or number of Go
}

// unsupported is an argument that has no form in JSON.
type unsupported struct{ kind string }

// MarshalJSON returns the error.
func (u unsupported) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("an argument of type %s cannot be sent to the process that serves the subnet", u.kind)
}
