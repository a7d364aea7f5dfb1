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
	port:  optionalTablePort,
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

// priorities are the keys of the two tables of a port.
var priorities = [2]string{"low", "high"}

// VLArbKind is the value vlarb, the VLArbitrationTable of a port (IBA 14.2.5.9, 7.6.9):
// two rows, by priority.
var VLArbKind = &tableKind{
	table: device.VLArbKind,
	port:  requiredTablePort,
	index: func(v *wholeTable, key starlark.Value) (int, error) { return priority(key) },
	size:  func(*device.Table) int { return len(priorities) },
	entry: func(t *device.Table, i int) starlark.Value { return arbitrationValue(entriesOf(t)[i]) },
	key:   func(_ *device.Table, i int) starlark.Value { return starlark.String(priorities[i]) },
	bytes: func(t *device.Table) (b []byte) {
		for _, list := range entriesOf(t) {
			for _, a := range list {
				b = append(b, a.VL, a.Weight)
			}
			b = append(b, 0xff)
		}
		return b
	},
	repr: func(v *wholeTable) string {
		e := entriesOf(v.t)
		return fmt.Sprintf("low=%d, high=%d", len(e[0]), len(e[1]))
	},
	display: func(v *wholeTable) string {
		e := entriesOf(v.t)
		var rows [][]lang.Fact
		for i := range max(len(e[0]), len(e[1])) {
			row := []lang.Fact{{Name: "entry", Value: starlark.MakeInt(i)}}
			for h, name := range priorities {
				if i < len(e[h]) {
					row = append(row, lang.Fact{Name: name, Value: starlark.String(fmt.Sprintf("%d:%d", e[h][i].VL, e[h][i].Weight))})
				}
			}
			rows = append(rows, row)
		}
		return lang.TableText("", []string{"entry", "low", "high"}, rows)
	},
}

func init() {
	VLArbKind.Type = lang.NewType("vlarb", `The VL arbitration tables of a port: vlarb["low"] and vlarb["high"] are tuples of entries (vl, weight), with weights in units of 64 bytes; weight 0 skips the entry. PortInfo.VLHighLimit limits the high-priority table. It iterates over "low" and "high".`,
		lang.Member[*wholeTable]{Name: "low", Column: true, Doc: "the entries of the low-priority table", Get: func(v *wholeTable) starlark.Value { return v.kind.entry(v.t, 0) }},
		lang.Member[*wholeTable]{Name: "high", Column: true, Doc: "the entries of the high-priority table", Get: func(v *wholeTable) starlark.Value { return v.kind.entry(v.t, 1) }},
	)
}

// priority returns the row of a key.
func priority(key starlark.Value) (int, error) {
	for i, name := range priorities {
		if key == starlark.String(name) {
			return i, nil
		}
	}
	return 0, fmt.Errorf(`got %s, want "low" or "high"`, lang.Brief(key))
}

// entriesOf returns the entries by priority, up to the capacity of the port.
func entriesOf(t *device.Table) [2][]device.VLWeight {
	low, high := device.VLArbEntries(t)
	return [2][]device.VLWeight{low, high}
}

// arbitrationValue returns a tuple of (vl, weight), with weights in units of 64 bytes.
func arbitrationValue(list []device.VLWeight) starlark.Value {
	t := make(starlark.Tuple, len(list))
	for i, a := range list {
		t[i] = starlark.Tuple{starlark.MakeInt(int(a.VL)), starlark.MakeInt(int(a.Weight))}
	}
	return t
}

// GetVLArb is get_vlarb, which reads the vlarb of each port.
var GetVLArb = lang.Builtin{
	Name:    "get_vlarb",
	Returns: "vlarb",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a port, or an iterable of them; for a node that is not a switch, the port that receives the request"},
		portOfTable,
	},
	Doc: `Reads the VL arbitration tables of a port.
It returns both, a vlarb, or a list of them for a list of targets. Their lengths are those in PortInfo.`,
	Example: `
> t = get_vlarb(discover().switches[0].ports[1])
> t.low[:2], len(t.high)
(((0, 32), (1, 32)), 8)
`,
	Run: lang.Do(func(c *lang.Call, a *portArgs) (starlark.Value, error) { return VLArbKind.get(c, a) }),
}

// SetVLArb is set_vlarb, which changes entries of VL arbitration tables.
var SetVLArb = lang.Builtin{
	Name:    "set_vlarb",
	Returns: "vlarb",
	Group:   topology.GroupTable,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: "a port, or an iterable of them; for a node that is not a switch, the port that receives the request"},
		{Name: "table", Kind: lang.KindAny, Doc: `a dict of "low" or "high" or both to a list of entries (vl, weight), which replaces that table, or to a dict of number to entry, which is merged into it; or a vlarb, which replaces both. None is an entry that is skipped`},
		portOfTable,
	},
	Doc: `Changes the VL arbitration tables of a port.
It returns them, read back. Only blocks that change are written. The same requests are refused as with smp_set.`,
	Example: `
> p = discover().switches[0].ports[1]
> t = set_vlarb(p, {"high": [(0, 128)], "low": {2: (1, 255), 7: None}})
> t.high[:2], t.low[2], t.low[7]
(((0, 128), (0, 0)), (1, 255), (0, 0))
`,
	Run: lang.Do(func(c *lang.Call, a *portTableArgs) (starlark.Value, error) {
		edits, err := arbitrationEdits(a.Table)
		if err != nil {
			return nil, lang.ParamError("table", "%w", err)
		}
		return VLArbKind.set(c, &a.portArgs, func(t *device.Table) {
			device.EditVLArb(t, func(low, high []device.VLWeight) error {
				for i, list := range [][]device.VLWeight{low, high} {
					if err := edits[i].apply(list); err != nil {
						return fmt.Errorf("%s: %w", priorities[i], err)
					}
				}
				return nil
			})
		})
	}),
}

// arbitrationEdit changes the table of one priority.
type arbitrationEdit struct {
	replace bool  // entries that are not given are cleared
	numbers []int // of the entries, as given
	entries []device.VLWeight
}

// apply applies the change. An entry beyond the table is an error unless its weight is 0.
func (e *arbitrationEdit) apply(list []device.VLWeight) error {
	if e.replace {
		clear(list)
	}
	for k, i := range e.numbers {
		switch {
		case i < len(list):
			list[i] = e.entries[k]
		case e.entries[k].Weight > 0:
			return &device.UnsupportedError{Reason: fmt.Sprintf("entry %d is out of range; the table has %s", i, plural.Count(len(list), "entry", "entries"))}
		}
	}
	return nil
}

// add adds an entry: (vl, weight), or None for weight 0.
func (e *arbitrationEdit) add(i int, v starlark.Value) error {
	if i < 0 {
		return fmt.Errorf("entry %d is out of range; entries count from 0", i)
	}
	var a device.VLWeight
	if v != starlark.None {
		t, ok := v.(starlark.Iterable)
		pair := []starlark.Value(nil)
		if ok {
			pair = lang.Collect(t)
		}
		if len(pair) != 2 {
			return fmt.Errorf("entry %d: got %s, want (vl, weight), or None", i, lang.Brief(v))
		}
		vl, err := lang.ToInt(pair[0])
		if err == nil && (vl < 0 || vl >= mad.DropVL) {
			err = fmt.Errorf("lane %d is out of range, 0..14", vl)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		weight, err := lang.ToInt(pair[1])
		if err == nil && (weight < 0 || weight > 255) {
			err = fmt.Errorf("weight %d is out of range, 0..255", weight)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		a = device.VLWeight{VL: uint8(vl), Weight: uint8(weight)}
	}
	e.numbers, e.entries = append(e.numbers, i), append(e.entries, a)
	return nil
}

// arbitrationEdits converts the argument table of set_vlarb, by priority.
func arbitrationEdits(v starlark.Value) (edits [2]arbitrationEdit, err error) {
	switch v := v.(type) {
	case *wholeTable:
		if v.kind != VLArbKind {
			return edits, fmt.Errorf("got %s, want vlarb", v.Type())
		}
		for i, list := range entriesOf(v.t) {
			edits[i].replace = true
			for k, a := range list {
				edits[i].numbers, edits[i].entries = append(edits[i].numbers, k), append(edits[i].entries, a)
			}
		}
		return edits, nil
	case *starlark.Dict:
		for _, kv := range v.Items() {
			i, err := priority(kv[0])
			if err != nil {
				return edits, err
			}
			if err := edits[i].read(kv[1]); err != nil {
				return edits, fmt.Errorf("%s: %w", priorities[i], err)
			}
		}
		return edits, nil
	}
	return edits, lang.WantType(v, `a dict of "low" and "high", or a vlarb`)
}

// read converts the entries of one table, all or some.
func (e *arbitrationEdit) read(v starlark.Value) error {
	switch v := v.(type) {
	case *starlark.Dict:
		for _, kv := range v.Items() {
			i, err := lang.ToInt(kv[0])
			if err != nil {
				return fmt.Errorf("a number: %w", err)
			}
			if err := e.add(i, kv[1]); err != nil {
				return err
			}
		}
		return nil
	case starlark.Iterable:
		e.replace = true
		for i, x := range lang.Collect(v) {
			if err := e.add(i, x); err != nil {
				return err
			}
		}
		return nil
	}
	return lang.WantType(v, "a list of entries, or a dict of number to entry")
}
