package datagrams

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// SL2VLKind is the value sl2vl, the SLtoVLMappingTables (IBA 14.2.5.8) of a node or of an
// output port. A row has the VL of each SL; its key is the pair of input and output
// port.
var SL2VLKind = &tableKind{
	table: device.SL2VLKind,
	port:  anyPortsTable,
	index: func(v *wholeTable, key starlark.Value) (int, error) {
		pair, err := portPair(key, v.t.IsSwitch())
		if err != nil {
			return 0, err
		}
		rows := pair.rows(v.t)
		if len(rows) == 0 {
			return 0, fmt.Errorf("the table has no row %s", pair)
		}
		return rows[0], nil
	},
	size:  func(t *device.Table) int { return len(t.Modifiers) },
	entry: func(t *device.Table, i int) starlark.Value { return lanesValue(device.Lanes(t, i)) },
	key:   func(t *device.Table, i int) starlark.Value { return pairValue(device.LanePorts(t, i)) },
	bytes: func(t *device.Table) []byte {
		b := slices.Clone(t.Data)
		for _, m := range t.Modifiers {
			b = append(b, byte(m>>8), byte(m))
		}
		return b
	},
	repr: func(v *wholeTable) string { return plural.Count(v.Len(), "row", "rows") },
	display: func(v *wholeTable) string {
		var b strings.Builder
		b.WriteString("in out sl")
		for sl := range mad.ServiceLevels {
			fmt.Fprintf(&b, " %2d", sl)
		}
		b.WriteByte('\n')
		for i := range v.Len() {
			p := device.LanePorts(v.t, i)
			fmt.Fprintf(&b, "%2d %3d   ", p.In, p.Out)
			for _, vl := range device.Lanes(v.t, i) {
				if vl == mad.DropVL {
					b.WriteString("  -")
				} else {
					fmt.Fprintf(&b, " %2d", vl)
				}
			}
			b.WriteByte('\n')
		}
		return b.String()
	},
}

func init() {
	SL2VLKind.Type = lang.NewType("sl2vl", "A mapping of service levels to virtual lanes: sl2vl[in_port, out_port] is a tuple of the lanes of service levels 0 to 15, None if packets are dropped. Nodes other than switches have one row, sl2vl[0, 0]. It iterates over the pairs of ports.",
		lang.Member[*wholeTable]{Name: "rows", Type: "list of dict", Column: true, Doc: "a list of dicts, one for each pair of ports: in_port, out_port, and vls, by service level", Get: func(v *wholeTable) starlark.Value {
			var rows []starlark.Value
			for i := range v.Len() {
				p := device.LanePorts(v.t, i)
				rows = append(rows, lang.DictOf("in_port", starlark.MakeInt(int(p.In)), "out_port", starlark.MakeInt(int(p.Out)), "vls", lanesValue(device.Lanes(v.t, i))))
			}
			return starlark.NewList(rows)
		}},
	)
}

// pairValue returns (in_port, out_port).
func pairValue(p device.PortPair) starlark.Value {
	return starlark.Tuple{starlark.MakeInt(int(p.In)), starlark.MakeInt(int(p.Out))}
}

// lanesValue returns a tuple of VLs by SL, None if packets are dropped (VL 15, IBA
// 7.6.6).
func lanesValue(lanes [mad.ServiceLevels]uint8) starlark.Value {
	t := make(starlark.Tuple, len(lanes))
	for sl, vl := range lanes {
		if t[sl] = starlark.None; vl != mad.DropVL {
			t[sl] = starlark.MakeInt(int(vl))
		}
	}
	return t
}

// pairKey selects rows; -1 stands for any port.
type pairKey struct{ in, out int }

func (k pairKey) String() string {
	word := func(n int) string {
		if n < 0 {
			return "any port"
		}
		return fmt.Sprintf("port %d", n)
	}
	return "from " + word(k.in) + " to " + word(k.out)
}

// rows returns the numbers of the selected rows.
func (k pairKey) rows(t *device.Table) (rows []int) {
	for i := range t.Modifiers {
		p := device.LanePorts(t, i)
		if (k.in < 0 || k.in == int(p.In)) && (k.out < 0 || k.out == int(p.Out)) {
			rows = append(rows, i)
		}
	}
	return rows
}

// portPair converts (in_port, out_port). exact means that neither may be None, any port.
func portPair(v starlark.Value, exact bool) (k pairKey, err error) {
	t, ok := v.(starlark.Tuple)
	if !ok || len(t) != 2 {
		return k, fmt.Errorf("got %s, want a pair of ports, (in_port, out_port)", v.Type())
	}
	for i, n := range []*int{&k.in, &k.out} {
		if *n = -1; t[i] == starlark.None && !exact {
			continue
		}
		if *n, err = lang.ToInt(t[i]); err == nil && (*n < 0 || *n >= mad.NoPort) {
			err = fmt.Errorf("port %d is out of range, 0..254", *n)
		}
		if err != nil {
			return k, err
		}
	}
	return k, nil
}

// laneWords is the help of the parameter table of set_sl2vl.
const laneWords = "a dict, which is merged into the table: (in_port, out_port) to 16 lanes or to a dict of service level to lane, with None for any port; or service level to lane, for all rows. Or a whole table, an sl2vl or the 16 lanes of all rows, which replaces it. Lane None drops packets"

// GetSL2VL is get_sl2vl, which reads the sl2vl of each node or port.
var GetSL2VL = lang.Builtin{
	Name:    "get_sl2vl",
	Returns: "sl2vl",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a node or port, or an iterable of them; for a port of a switch, the rows with this output port"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "output port, if the target is a switch (default: all)"},
	},
	Doc: `Reads the virtual lanes of outgoing packets, by service level.
It returns an sl2vl, or a list of them for a list of targets. A switch has a row for each pair of input port, including 0, and output port; other nodes have one row.`,
	Example: `
> f = discover()
> get_sl2vl(f.switches[0])[0, 1][:4]
(0, 1, 2, 3)
> get_sl2vl(f.cas[0])
in out sl  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
 0   0     0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7
`,
	Run: lang.Do(func(c *lang.Call, a *portArgs) (starlark.Value, error) { return SL2VLKind.get(c, a) }),
}

// SetSL2VL is set_sl2vl, which changes VLs of SLs.
var SetSL2VL = lang.Builtin{
	Name:    "set_sl2vl",
	Returns: "sl2vl",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a node or port, or an iterable of them; for a port of a switch, the rows with this output port"},
		{Name: "table", Kind: lang.KindAny, Doc: laneWords},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "output port, if the target is a switch (default: all)"},
	},
	Doc: `Changes the virtual lanes of outgoing packets, by service level.
It returns the table, read back. Only rows that change are written; equal rows are written together if the switch supports it. The same requests are refused as with smp_set.`,
	Example: `
> sw = discover().switches[0]
> set_sl2vl(sw.ports[1], {5: 0})[2, 1][4:7]
(4, 0, 6)
> set_sl2vl(sw, {(None, 2): [0] * 16, (3, 2): {7: None}})[3, 2][6:9]
(0, None, 0)
`,
	Run: lang.Do(func(c *lang.Call, a *portTableArgs) (starlark.Value, error) {
		edits, err := laneEdits(a.Table)
		if err != nil {
			return nil, lang.ParamError("table", "%w", err)
		}
		return SL2VLKind.set(c, &a.portArgs, func(t *device.Table) {
			device.EditLanes(t, func(t *device.Table, lanes [][mad.ServiceLevels]uint8) error {
				for _, e := range edits {
					rows := e.where.rows(t)
					if len(rows) == 0 {
						return &device.UnsupportedError{Reason: fmt.Sprintf("the table has no row %s", e.where)}
					}
					for _, row := range rows {
						for sl, vl := range e.lanes {
							lanes[row][sl] = vl
						}
					}
				}
				return nil
			})
		})
	}),
}

// laneEdit changes the VLs (lanes, by SL) of some SLs in some rows.
type laneEdit struct {
	where pairKey
	lanes map[int]uint8
}

// laneEdits converts the argument table of set_sl2vl to changes, in their order.
func laneEdits(v starlark.Value) (edits []laneEdit, err error) {
	all := pairKey{-1, -1}
	switch v := v.(type) {
	case *wholeTable:
		if v.kind != SL2VLKind {
			return nil, fmt.Errorf("got %s, want sl2vl", v.Type())
		}
		for i := range v.Len() {
			p := device.LanePorts(v.t, i)
			e := laneEdit{pairKey{int(p.In), int(p.Out)}, map[int]uint8{}}
			for sl, vl := range device.Lanes(v.t, i) {
				e.lanes[sl] = vl
			}
			edits = append(edits, e)
		}
		return edits, nil
	case *starlark.Dict:
		for _, kv := range v.Items() {
			e := laneEdit{where: all, lanes: map[int]uint8{}}
			if _, isLevel := kv[0].(starlark.Int); isLevel {
				err = e.add(kv[0], kv[1])
			} else if e.where, err = portPair(kv[0], false); err == nil {
				e.lanes, err = lanesOf(kv[1])
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lang.Brief(kv[0]), err)
			}
			edits = append(edits, e)
		}
		return edits, nil
	}
	lanes, err := lanesOf(v)
	return []laneEdit{{all, lanes}}, err
}

// lanesOf converts the VLs of all SLs, or a dict of SL to VL.
func lanesOf(v starlark.Value) (map[int]uint8, error) {
	e := laneEdit{lanes: map[int]uint8{}}
	switch v := v.(type) {
	case *starlark.Dict:
		for _, kv := range v.Items() {
			if err := e.add(kv[0], kv[1]); err != nil {
				return nil, err
			}
		}
		return e.lanes, nil
	case starlark.Iterable:
		list := lang.Collect(v)
		if len(list) != mad.ServiceLevels {
			return nil, fmt.Errorf("got %s, want the lanes of all %d service levels", plural.Count(len(list), "lane", "lanes"), mad.ServiceLevels)
		}
		for sl, vl := range list {
			if err := e.add(starlark.MakeInt(sl), vl); err != nil {
				return nil, err
			}
		}
		return e.lanes, nil
	}
	return nil, lang.WantType(v, "16 lanes, or a dict of service level to lane")
}

// add adds an SL and its VL; None drops packets.
func (e *laneEdit) add(level, lane starlark.Value) error {
	sl, err := lang.ToInt(level)
	if err == nil && (sl < 0 || sl >= mad.ServiceLevels) {
		err = errors.New("out of range, 0..15")
	}
	if err != nil {
		return fmt.Errorf("service level %s: %w", lang.Brief(level), err)
	}
	vl := mad.DropVL
	if lane != starlark.None {
		if vl, err = lang.ToInt(lane); err != nil {
			return fmt.Errorf("service level %d: %w", sl, err)
		}
		if vl < 0 || vl > mad.DropVL {
			return fmt.Errorf("service level %d: lane %d is out of range, 0..14, or None to drop", sl, vl)
		}
	}
	e.lanes[sl] = uint8(vl)
	return nil
}
