package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
		lang.Member[*Sim]{Method: &speedMethod},
		lang.Member[*Sim]{Method: &killMethod},
		lang.Member[*Sim]{Method: &rebootMethod},
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

// alter runs a method of sim, if the session may change the fabric.
func alter(c *lang.Call, do func() error) (starlark.Value, error) {
	if err := MayNotPlan(c); err != nil {
		return nil, err
	}
	if _, err := MayChange(c, mad.AttrPortInfo); err != nil {
		return nil, err
	}
	since := c.Runtime().Clock.Now()
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
