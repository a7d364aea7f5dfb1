package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// Sim is the value `sim`: operations on a simulated fabric.
type Sim struct {
	*sim.Subnet // nil: another process serves it, and Remote reaches it
	// Remote calls a method of the subnet that another process serves. Its arguments and
	// result are JSON.
	Remote func(method string, args []byte) (result []byte, err error)
	// Acted receives each change that a method has made or tried since a time, with its
	// arguments. Nil: it is discarded.
	Acted func(since time.Time, method string, args map[string]any, err error)

	names map[string][]mad.GUID // nodes by name; nil: names are looked up in the subnet
}

// SimType declares the methods of the value sim.
var SimType *lang.Type[*Sim]

func init() {
	SimType = lang.NewType("sim", "Operations on a simulated fabric, such as pulling a cable. The global sim exists with -F sim, and with -F ibsim for a fabric that fabsh sim --listen of the same user serves. The subnet manager of the fabric sweeps at once after a change. With --read-only changes are refused.",
		lang.Member[*Sim]{Method: &unlinkMethod},
		lang.Member[*Sim]{Method: &linkMethod},
		lang.Member[*Sim]{Method: &swapMethod},
		lang.Member[*Sim]{Method: &recoverMethod},
		lang.Member[*Sim]{Method: &speedMethod},
		lang.Member[*Sim]{Method: &killMethod},
		lang.Member[*Sim]{Method: &rebootMethod},
		lang.Member[*Sim]{Method: &renameMethod},
		lang.Member[*Sim]{Method: &restartSMMethod},
		lang.Member[*Sim]{Method: &setCountersMethod},
		lang.Member[*Sim]{Method: &errorsMethod},
		lang.Member[*Sim]{Method: &trafficMethod},
		lang.Member[*Sim]{Method: &flowsMethod},
		lang.Member[*Sim]{Method: &lossMethod},
		lang.Member[*Sim]{Method: &delayMethod},
		lang.Member[*Sim]{Method: &busyMethod},
		lang.Member[*Sim]{Method: &mkeyMethod},
		lang.Member[*Sim]{Method: &arMethod},
		lang.Member[*Sim]{Method: &arFaultMethod},
		lang.Member[*Sim]{Method: &trapMethod},
		lang.Member[*Sim]{Method: &temperatureMethod},
		lang.Member[*Sim]{Method: &fanMethod},
		lang.Member[*Sim]{Method: &supplyMethod},
		lang.Member[*Sim]{Method: &firmwareMethod},
		lang.Member[*Sim]{Method: &moduleMethod},
		lang.Member[*Sim]{Method: &downReasonMethod},
		lang.Member[*Sim]{Method: &guidMethod},
		lang.Member[*Sim]{Method: &ethernetMethod},
		lang.Member[*Sim]{Method: &virtualPortMethod},
		lang.Member[*Sim]{Method: &secondSMMethod},
	)
}

func (s *Sim) String() string        { return "sim" }
func (s *Sim) Type() string          { return "sim" }
func (s *Sim) Freeze()               {}
func (s *Sim) Truth() starlark.Bool  { return true }
func (s *Sim) Hash() (uint32, error) { return 0, lang.Unhashable(s) }
func (s *Sim) TypeDoc() lang.TypeDoc { return SimType.TypeDoc() }

// AttrNames returns the names of the methods, without those that are refused because another
// process serves the subnet.
func (s *Sim) AttrNames() []string {
	if s.Remote == nil {
		return SimType.Names
	}
	return slices.DeleteFunc(slices.Clone(SimType.Names), isLocal)
}

func (s *Sim) Attr(name string) (starlark.Value, error) {
	v, err := SimType.Attr(s, name)
	if f, ok := v.(*lang.Function); ok && s.Remote != nil {
		return &lang.Function{Builtin: remoteMethod(f.Builtin), Recv: s}, nil
	}
	return v, err
}

// changeSim runs a method of sim, if the session may change the fabric.
func changeSim(c *lang.Call, do func() error) (starlark.Value, error) {
	if err := MayNotPlan(c); err != nil {
		return nil, err
	}
	if _, err := MayChange(c, mad.AttrPortInfo); err != nil {
		return nil, err
	}
	since := c.Clock().Now()
	err := do()
	if s := c.Recv.(*Sim); s.Acted != nil {
		s.Acted(since, c.Name, actionArguments(c.Arguments()), err)
	}
	if err != nil {
		return nil, lang.Errorf("%w", err)
	}
	return starlark.None, nil
}

// portAt returns the port that a value names: a port of a fabric, or NAME/PORT.
func (s *Sim) portAt(v starlark.Value) (sim.Cable, error) {
	switch v := v.(type) {
	case Port:
		return sim.Cable{Node: v.Node().GUID(), Num: v.Num()}, nil
	case starlark.String:
		slash := strings.LastIndexByte(string(v), '/')
		num, err := strconv.ParseUint(string(v)[slash+1:], 10, 8)
		if slash < 0 || err != nil {
			return sim.Cable{}, fmt.Errorf("got %s, want NAME/PORT", v)
		}
		guid, err := s.named(string(v)[:slash])
		return sim.Cable{Node: guid, Num: int(num)}, err
	}
	return sim.Cable{}, fmt.Errorf("got %s, want a port, or NAME/PORT", v.Type())
}

// nodeAt returns the node that a value names: a node of a fabric, or its name or GUID.
func (s *Sim) nodeAt(v starlark.Value) (mad.GUID, error) {
	switch v := v.(type) {
	case Node:
		return v.GUID(), nil
	case starlark.String:
		return s.named(string(v))
	}
	return 0, fmt.Errorf("got %s, want a node, or its name", v.Type())
}

// placeAt returns the port or node that a value names; a node gets the port number none.
func (s *Sim) placeAt(v starlark.Value, none int) (sim.Cable, error) {
	guid, err := s.nodeAt(v)
	if err == nil {
		return sim.Cable{Node: guid, Num: none}, nil
	}
	switch v := v.(type) {
	case Port:
		return s.portAt(v)
	case starlark.String:
		if place, bad := s.portAt(v); bad == nil {
			return place, nil
		}
		return sim.Cable{}, err
	}
	return sim.Cable{}, fmt.Errorf("got %s, want a node or a port, NAME or NAME/PORT", v.Type())
}

// indexed returns s with an index of names, for many lookups.
func (s *Sim) indexed() *Sim { return &Sim{Subnet: s.Subnet, Acted: s.Acted, names: s.NodesByName()} }

// named returns the GUID of the node with a name, or the GUID that name contains.
func (s *Sim) named(name string) (mad.GUID, error) {
	guids := s.names[name]
	if s.names == nil {
		guids = s.NodeGUIDs(name)
	}
	switch len(guids) {
	case 1:
		return guids[0], nil
	case 0:
		if guid, err := strconv.ParseUint(name, 0, 64); err == nil && guid != 0 {
			return mad.GUID(guid), nil
		}
		return 0, fmt.Errorf("the simulated fabric has no node %q%s", name, fabric.DidYouMean(name, slices.Sorted(maps.Keys(s.NodesByName()))))
	default:
		return 0, fmt.Errorf("%q is the name of %d nodes; use a GUID, such as %v", name, len(guids), guids[0])
	}
}

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
		if err := refuseLoading(c); err != nil {
			return nil, err
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
	since, acted := lang.FiberOf(t).Clock().Now(), false
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
			if out[param] = arg; !strings.HasSuffix(param, "guid") { // which names no place
				out[param] = placesByName(arg, names)
			}
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

func placeByName(n Node, port int) string { return placeName(n.Name(), port) }

// placeByGUID names a place so that another process finds it, whatever the names of this
// session are.
func placeByGUID(n Node, port int) string { return placeName(n.GUID().String(), port) }

// placeName names a port, or with a negative number a node.
func placeName(node string, port int) string {
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
				args[string(kv[0].(starlark.String))] = jsonValue(kv[1], name)
			}
			continue
		}
		args[param] = jsonValue(v, name)
	}
	return args
}

// jsonValue returns an argument as a value for JSON. One that has no such form becomes an
// unsupported value, which json.Marshal reports.
func jsonValue(v any, name func(n Node, port int) string) any {
	list := func(items []starlark.Value) any {
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = jsonValue(item, name)
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
