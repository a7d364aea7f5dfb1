package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// renameMethod is sim.rename().
var renameMethod = lang.Builtin{
	Name: "rename",
	Params: []lang.Param{
		{Name: "node", Kind: KindTarget, Doc: "a node of a fabric, or its name"},
		{Name: "name", Kind: lang.KindText, Doc: `the new description, of up to 64 bytes, such as "node-0099 HCA-1": the first word is the name of the host`},
	},
	Doc: `Renames a node, such as an adapter whose host has got its name: its NodeDescription changes.
Its agent sends trap 144. Afterwards methods of sim find the node by the new name.`,
	Example: `
> sim.rename("node-0007 HCA-1", "localhost mlx5_0")
> [n.name for n in discover().cas if n.name.startswith("localhost")]
["localhost mlx5_0"]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Node starlark.Value
		Name string
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		guid, err := s.nodeAt(a.Node)
		if err != nil {
			return nil, lang.ParamError("node", "%w", err)
		}
		if err := checkLength("name", &a.Name, state.SMPSize); err != nil {
			return nil, err
		}
		if strings.ContainsRune(a.Name, 0) {
			return nil, lang.ParamError("name", "got a zero byte, which ends a description")
		}
		return changeSim(c, func() error { return s.Edit.Name(guid, a.Name) })
	}),
}

// guidMethod is sim.guid().
var guidMethod = lang.Builtin{
	Name: "guid",
	Params: []lang.Param{
		{Name: "where", Kind: KindTarget, Doc: "a node, for its NodeGUID; or a port of an adapter, NAME/PORT, for its PortGUID"},
		{Name: "guid", Kind: lang.KindAny, Doc: "the new GUID; another node or port may have it too"},
	},
	Doc: `Gives a node or a port another GUID, such as that of another node.
A switch has one for the node and its ports. Methods of sim still find nodes with one GUID by their names.`,
	Example: `
> guid = discover().node("node-0001 HCA-1").guid
> sim.guid("node-0002 HCA-1", guid)
> [n.name for n in discover().cas if n.guid == guid]
["node-0001 HCA-1", "node-0002 HCA-1"]
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Where, GUID starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.placeAt(a.Where, 0)
		if err != nil {
			return nil, lang.ParamError("where", "%w", err)
		}
		guid, err := simGUID("guid", a.GUID)
		if err != nil {
			return nil, err
		}
		return changeSim(c, func() error { return s.Edit.NodeGUID(at.Node, at.Num, guid) })
	}),
}

// ethernetMethod is sim.ethernet().
var ethernetMethod = lang.Builtin{
	Name: "ethernet",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of an adapter, or "NAME/PORT"`},
		{Name: "on", Kind: lang.KindBool, Default: "True", Doc: "False: the port is of InfiniBand again"},
	},
	Doc: `Moves a port of an adapter to Ethernet, as when the adapter is configured so.
Its link goes down, and the port at the other end polls. Programs of fabsh sim --run see the link layer Ethernet in the port's files.`,
	Example: `
> sim.ethernet("node-0007 HCA-1/1")
> discover()
fabric: 43 nodes (12 switches, 31 CAs), 63 links, complete
> sim.ethernet("node-0007 HCA-1/1", on=False)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port starlark.Value
		On   bool
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		return changeSim(c, func() error { return s.Cables.SetEthernet(at.Node, at.Num, a.On) })
	}),
}

// virtualPortMethod is sim.virtual_port().
var virtualPortMethod = lang.Builtin{
	Name: "virtual_port",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of an adapter, or "NAME/PORT"`},
		{Name: "index", Kind: lang.KindInt, Doc: "index of the virtual port, from 1; the port gets virtual ports up to it, if it lacks them"},
		{Name: "state", Kind: lang.KindText, Default: "None", Doc: `its state, a word of PortState, such as "down"; None: unchanged`},
		{Name: "guid", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "its PortGUID; None: unchanged"},
		{Name: "node_guid", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the NodeGUID of its virtual node; None: unchanged"},
	},
	Doc: `Sets what an agent reports of a virtual port, as of a virtual function for a virtual machine.
At first its state is that of the port. Only ports of adapters of Mellanox and NVIDIA have virtual ports.`,
	Example: `
> sim.virtual_port("node-0007 HCA-1/1", 2, "down", guid="0x0002c90300ff0001")
> smp_get("VPortInfo", discover().node("node-0007 HCA-1").ports[1], modifier=2).vport_state
"down"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port           starlark.Value
		Index          int
		State          *string
		GUID, NodeGUID starlark.Value
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		var guids [2]mad.GUID
		for i, v := range []starlark.Value{a.GUID, a.NodeGUID} {
			if v == nil {
				continue
			}
			if guids[i], err = simGUID([]string{"guid", "node_guid"}[i], v); err != nil {
				return nil, err
			}
		}
		code := uint64(0)
		if a.State != nil {
			if code, err = wordCode("state", *a.State, mad.WordsPortState, uint64(mad.PortStateDown)); err != nil {
				return nil, err
			}
		}
		return changeSim(c, func() error {
			return s.Edit.VirtualPort(at.Node, at.Num, a.Index, func(v *state.VirtualPort) {
				if code != 0 {
					v.State = mad.PortState(code)
				}
				if guids[0] != 0 {
					v.GUID = guids[0]
				}
				if guids[1] != 0 {
					v.Node = guids[1]
				}
			})
		})
	}),
}

// secondSMMethod is sim.second_sm().
var secondSMMethod = lang.Builtin{
	Name: "second_sm",
	Params: []lang.Param{
		{Name: "node", Kind: KindTarget, Doc: "a node of a fabric, or its name"},
		{Name: "state", Kind: lang.KindText, Default: `"standby"`, Doc: "its state, a word of SMState: not_active, discovering, standby, master"},
		{Name: "priority", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "its priority, from 0 to 15; that of the fabric's subnet manager is 14"},
		{Name: "on", Kind: lang.KindBool, Default: "True", Keyword: true, Doc: "False: it ends"},
	},
	Doc: `Runs a second subnet manager on a node, which answers others and does nothing else.
In state "master" the fabric has two masters. Several nodes may have one each. The port reports trap 144.`,
	Example: `
> sim.second_sm("node-0007 HCA-1", "master", priority=3)
> smp_get("SMInfo", discover().node("node-0007 HCA-1").ports[1]).sm_state
"master"
> sim.second_sm("node-0007 HCA-1", on=False)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Node     starlark.Value
		State    string
		Priority int
		On       bool
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		guid, err := s.nodeAt(a.Node)
		if err != nil {
			return nil, lang.ParamError("node", "%w", err)
		}
		if !a.On {
			return changeSim(c, func() error { return s.SM.StopOther(guid) })
		}
		code, err := wordCode("state", a.State, mad.WordsSMState, 0)
		if err != nil {
			return nil, err
		}
		if a.Priority < 0 || a.Priority > 15 {
			return nil, lang.ParamError("priority", "got %d, want 0 to 15", a.Priority)
		}
		return changeSim(c, func() error { return s.SM.RunOther(guid, mad.SMState(code), uint8(a.Priority)) })
	}),
}

// simGUID returns the GUID that a parameter has, which must not be 0.
func simGUID(param string, v starlark.Value) (mad.GUID, error) {
	guid, err := records.ParseGUID(v)
	if err == nil && guid == 0 {
		err = fmt.Errorf("got 0, which is not a GUID")
	}
	if err != nil {
		return 0, lang.ParamError(param, "%w", err)
	}
	return guid, nil
}

// wordCode returns the code of a word that a parameter has; codes below least are not permitted.
func wordCode(param, word string, of *mad.Words, least uint64) (uint64, error) {
	words := maps.Clone(of.Code())
	maps.DeleteFunc(words, func(_ string, code uint64) bool { return code < least })
	code, ok := words[word]
	if !ok {
		known := slices.SortedFunc(maps.Keys(words), func(a, b string) int { return int(words[a]) - int(words[b]) })
		return 0, lang.ParamError(param, "unknown %s %q%s; want one of %s", param, word, fabric.DidYouMean(word, known), strings.Join(known, ", "))
	}
	return code, nil
}
