package datagrams

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// priorities are the keys of the two tables of a port.
var priorities = [2]string{"low", "high"}

// VLArbKind is the value vlarb, the VLArbitrationTable of a port (IBA 14.2.5.9, 7.6.9):
// two rows, by priority.
var VLArbKind = &tableKind{
	table: device.VLArbKind,
	port:  portsTable,
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
