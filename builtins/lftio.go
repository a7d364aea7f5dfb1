package builtins

import (
	"context"
	"fmt"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/mad"
)

var getLFTBuiltin = Builtin{
	Name:   "get_lft",
	Group:  groupTable,
	Params: []Param{{Name: "target", Kind: KindTarget, Doc: "a switch or an iterable of them"}},
	Doc: `Reads the forwarding table of a switch.
It returns the whole linear forwarding table, an lft, or a list of them for a list of switches. An entry is a port, or None for a LID that the switch drops.`,
	Example: `
> t = get_lft(discover().switches[0])
> t[1], t[40000]
(0, None)
`,
	fn: func(c *call) (starlark.Value, error) {
		e, err := c.engine()
		if err != nil {
			return nil, err
		}
		targets, many, err := (&resolver{c: c}).targets(c.Value("target"))
		if err != nil {
			return nil, err
		}
		values := make([]starlark.Value, len(targets))
		var dests []fabric.Dest
		var places []int
		for i := range targets {
			if err := targets[i].isSwitch(); err != nil {
				values[i] = newFailure(c.failed(&targets[i], err))
				continue
			}
			dests, places = append(dests, targets[i].dest()), append(places, i)
		}
		var tables []fabric.LFT
		err = c.wait(func(ctx context.Context) (err error) {
			tables, err = fabric.ReadLFTs(ctx, e, dests)
			return err
		})
		if err != nil {
			return nil, err
		}
		for k, i := range places {
			if err := tables[k].Err; err != nil {
				c.count(err)
				values[i] = newFailure(c.failed(&targets[i], err))
			} else {
				values[i] = &lft{entries: tables[k].Entries}
			}
		}
		return results(values, many)
	},
}

// isSwitch: t can be asked for a forwarding table.
func (t *target) isSwitch() error {
	if err := t.reachable(); err != nil {
		return err
	}
	if t.node != nil && !t.node.IsSwitch() {
		return &targetError{msg: fmt.Sprintf("it is a %v: only switches have forwarding tables", t.node.Type())}
	}
	return nil
}

var setLFTBuiltin = Builtin{
	Name:  "set_lft",
	Group: groupTable,
	Params: []Param{
		{Name: "target", Kind: KindTarget, Doc: "a switch or an iterable of them"},
		{Name: "table", Kind: KindAny, Doc: "a dict of LID to port, which is merged into the table; or a whole table, an lft or a list by LID, which replaces it; None drops a LID"},
	},
	Doc: `Changes the forwarding table of a switch.
It returns the table as it was read back. Only blocks that change are written. LinearFDBTop is raised after them where it must be, and never lowered. What is refused is as with smp_set.`,
	Example: `
> sw = discover().switches[0]
> before = get_lft(sw)
> set_lft(sw, {17: 5})[17]
5
> set_lft(sw, before) == before
True
`,
	fn: func(c *call) (starlark.Value, error) {
		entries, replace, err := c.lftEntries(c.Value("table"))
		if err != nil {
			return nil, err
		}
		targets, many, err := (&resolver{c: c}).targets(c.Value("target"))
		if err != nil {
			return nil, err
		}
		e, err := c.mayChange(mad.AttrLinearForwardingTable)
		if err != nil {
			return nil, err
		}
		changes := make([]fabric.LFTChange, len(targets))
		errs := make([]error, len(targets))
		err = c.wait(func(ctx context.Context) error {
			var all sync.WaitGroup
			for i := range targets {
				t := &targets[i]
				if errs[i] = t.isSwitch(); errs[i] == nil {
					changes[i] = fabric.LFTChange{Dest: t.dest(), GUID: t.guid(), Entries: entries, Replace: replace}
					all.Go(func() { errs[i] = changes[i].Apply(ctx, e) })
				}
			}
			all.Wait()
			return nil
		})
		if err != nil {
			return nil, err
		}
		values := make([]starlark.Value, len(targets))
		for i, err := range errs {
			if err != nil {
				c.count(err)
				values[i] = newFailure(c.failed(&targets[i], err))
			} else {
				values[i] = &lft{entries: changes[i].Table}
			}
		}
		return results(values, many)
	},
}

// lftEntries reads the argument `table`.
func (c *call) lftEntries(v starlark.Value) (entries map[mad.LID]uint8, replace bool, err error) {
	entries = map[mad.LID]uint8{}
	add := func(key, value starlark.Value) error {
		lid, err := toInt(key)
		if err != nil {
			return c.paramError("table", "a LID: %w", err)
		}
		if lid < 0 || lid > int(mad.MaxUnicastLID) || lid == 0 && !replace {
			return c.paramError("table", "LID %d is out of range, 1..%d", lid, mad.MaxUnicastLID)
		}
		port := unrouted
		if value != starlark.None {
			if port, err = toInt(value); err != nil {
				return c.paramError("table", "LID %d: %w", lid, err)
			}
			if port < 0 || port > unrouted {
				return c.paramError("table", "LID %d: port %d is out of range, 0..254, or None to drop", lid, port)
			}
		}
		entries[mad.LID(lid)] = uint8(port)
		return nil
	}
	switch v := v.(type) {
	case *starlark.Dict:
		for _, kv := range v.Items() {
			if err := add(kv[0], kv[1]); err != nil {
				return nil, false, err
			}
		}
		return entries, false, nil
	case starlark.Iterable:
		replace = true
		for lid, port := range collect(v) {
			if err := add(starlark.MakeInt(lid), port); err != nil {
				return nil, false, err
			}
		}
		return entries, true, nil
	}
	return nil, false, c.paramError("table", "got %s, want a dict of LID to port, or a whole table", v.Type())
}
