package routing

import (
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// ReadHopsMethod is fabric.read_hops(). Rows of one switch are side by side in the
// file.
var ReadHopsMethod = lang.Builtin{
	Name:   "read_hops",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file: opensm-lid-matrix.dump"}},
	Doc: `Reads the distances of LIDs from switches: a dict of switch to a dict of LID to hops.
The hops are a tuple by port number, None if a port does not lead there; element 0 is the smallest number.`,
	Example: `
> f = load_fabric("net.topo")
> f.read_hops("opensm-lid-matrix.dump")[f.switches[0]][2]
(1, None, 1)
`,
	Run: lang.Do(func(c *lang.Call, a *pathArg) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric).Fabric
		out := new(starlark.Dict)
		err := a.read(c, func(r io.Reader) error {
			var of mad.GUID
			var rows *starlark.Dict
			for row, err := range format.HopRows(&format.Capture{Reader: r, Note: func(text string) { c.Fiber().Warn("%s", text) }}, a.Path) {
				if err != nil {
					return err
				}
				if rows == nil || row.GUID != of {
					n, err := row.Find(f)
					if err != nil {
						return err
					}
					of, rows = row.GUID, new(starlark.Dict)
					out.SetKey(topology.NodeOf(n), rows)
				}
				rows.SetKey(starlark.MakeInt(int(row.LID)), hopsByPort(row.Hops))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	}),
}

// ReadGUIDsMethod is fabric.read_guids().
var ReadGUIDsMethod = lang.Builtin{
	Name:   "read_guids",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, in the format of OpenSM's root_guid_file, cn_guid_file, io_guid_file, guid_routing_order_file"}},
	Doc:    "Reads a list of GUIDs, one per line.",
	Example: `
> load_fabric("net.topo").read_guids("roots.guids")
["0x0002c90300000100"]
`,
	Run: lang.Do(func(c *lang.Call, a *pathArg) (starlark.Value, error) {
		var list []starlark.Value
		err := a.read(c, func(r io.Reader) error {
			guids, err := format.ReadGUIDs(r, a.Path)
			for _, g := range guids {
				list = append(list, topology.GUIDValue(g))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return starlark.NewList(list), nil
	}),
}

// ReadNumbersMethod is fabric.read_numbers().
var ReadNumbersMethod = lang.Builtin{
	Name:   "read_numbers",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, in the format of OpenSM's hop_weights_file, port_search_ordering_file, ids_guid_file, guid2lid"}},
	Doc:    "Reads lines of a GUID followed by numbers.",
	Example: `
> load_fabric("net.topo").read_numbers("weights.guids")
[("0x0002c90300000100", (1, 3))]
`,
	Run: lang.Do(func(c *lang.Call, a *pathArg) (starlark.Value, error) {
		var list []starlark.Value
		err := a.read(c, func(r io.Reader) error {
			for line, err := range format.GUIDLines(r, a.Path) {
				if err != nil {
					return err
				}
				numbers, err := line.Numbers(1<<31 - 1)
				if err != nil {
					return err
				}
				list = append(list, starlark.Tuple{topology.GUIDValue(line.GUID), starlark.Tuple(lang.Collect(lang.Integers(numbers)))})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return starlark.NewList(list), nil
	}),
}

// hopsByPort returns numbers of hops by port of a switch, None without a path. Element 0
// is the smallest number.
func hopsByPort(row []byte) starlark.Tuple {
	hops := make(starlark.Tuple, len(row))
	for i, h := range row {
		if hops[i] = starlark.MakeInt(int(h)); h == format.NoPath {
			hops[i] = starlark.None
		}
	}
	return hops
}

// pathArg is the argument of methods that read a file.
type pathArg struct{ Path string }

// read calls fn with the file.
func (a *pathArg) read(c *lang.Call, fn func(r io.Reader) error) error {
	defer c.Reads()()
	file, err := c.Runtime().Files.Open(c.Fiber().Context, a.Path)
	if err != nil {
		return lang.Errorf("%w", err)
	}
	defer file.Close()
	if err := fn(file); err != nil {
		return lang.Errorf("%w", err)
	}
	return nil
}
