package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// maxCalls is how many calls are made ready at once: 32k LIDs of a thousand
// switches would be half a million blocks.
const maxCalls = 8192

// Table is a table that is read and written in blocks, for it is longer than
// a MAD: of a node or of one of its ports.
type Table struct {
	Kind *TableKind
	Dest fabric.Dest
	// GUID is the node GUID that must answer; 0: whatever does.
	GUID mad.GUID
	// Port is whose table it is; NoPortNumber: the node's, or that of the CA
	// port where the request comes in.
	Port int
	// Edit changes Data, as it was read, into what is wanted.
	Edit func(t *Table) error
	// Rows is how many rows Edit needs: so many are read even where the node
	// looks up less.
	Rows int

	// What the node says of itself. Switch is zero of other nodes, and
	// PortInfo is read where a table's size depends on it.
	Node     mad.NodeInfo
	Switch   mad.SwitchInfo
	PortInfo mad.PortInfo
	// Modifiers are the blocks, and Data their bytes, one after the other.
	Modifiers []uint32
	Data      []byte
	// Written are the modifiers of the Sets that went out, in order.
	Written []uint32
	Err     error
}

// NoPortNumber is no port's.
const NoPortNumber = -1

// TableKind is what one kind of table is like.
type TableKind struct {
	Attr     *mad.Attribute
	onSwitch bool // only switches have it
	ofPort   bool // every port of a switch has its own
	byPort   bool // its size depends on PortInfo
	byReply  bool // a CA shows it for the port where the request comes in
	// layout lists the modifiers of the blocks.
	layout func(t *Table) ([]uint32, error)
	// row is where in the table byte i is: what people call it, and its bytes.
	row func(t *Table, i int) (name string, first, size int)
	// text is a row's bytes in words.
	text func(row []byte) string
	// writes are the Sets that make the changed blocks what Data has; nil:
	// one for each.
	writes func(t *Table, changed []int) []tableWrite
	// after is what must change when the blocks are written; nil: nothing.
	after func(t *Table) *Set
}

type tableWrite struct {
	modifier uint32
	data     []byte
}

// ReadTables reads whole tables, all at once; what became of each is in its
// Err. The error is the end of ctx.
func ReadTables(ctx context.Context, e *engine.Engine, tables ...*Table) error {
	if err := look(ctx, e, tables); err != nil {
		return err
	}
	all := make([][]int, len(tables))
	for i, t := range tables {
		if t.Err != nil {
			continue
		}
		if t.Modifiers, t.Err = t.Kind.layout(t); t.Err == nil {
			t.Data = make([]byte, len(t.Modifiers)*t.Kind.Attr.Size)
			all[i] = blocksOf(t)
		}
	}
	return getBlocks(ctx, e, tables, all)
}

// ChangeTables reads tables, has Edit change them, writes the blocks that
// differ, and reads these back: a node that then says something else than was
// written is an error. The steps of all tables go on together.
func ChangeTables(ctx context.Context, e *engine.Engine, tables ...*Table) error {
	if err := ReadTables(ctx, e, tables...); err != nil {
		return err
	}
	changed, wanted := make([][]int, len(tables)), make([][]byte, len(tables))
	for i, t := range tables {
		if t.Err != nil {
			continue
		}
		old := slices.Clone(t.Data)
		if t.Err = t.Edit(t); t.Err != nil {
			t.Data = old
			continue
		}
		changed[i] = slices.DeleteFunc(blocksOf(t), func(b int) bool { return bytes.Equal(t.block(old, b), t.block(t.Data, b)) })
	}
	if err := setBlocks(ctx, e, tables, changed); err != nil {
		return err
	}
	for i, t := range tables {
		wanted[i] = slices.Clone(t.Data)
	}
	if err := getBlocks(ctx, e, tables, changed); err != nil {
		return err
	}
	for i, t := range tables {
		if t.Err == nil {
			t.Err = t.compare(wanted[i])
		}
	}
	return finish(ctx, e, tables)
}

// look reads what the nodes say of themselves.
func look(ctx context.Context, e *engine.Engine, tables []*Table) error {
	calls := make([]struct{ node, sw, port engine.Call }, len(tables))
	var open []*engine.Call
	for i, t := range tables {
		c := &calls[i]
		open = append(open, t.Dest.Put(&c.node, mad.MethodGet, mad.AttrNodeInfo, 0, nil))
		if t.Kind.onSwitch {
			open = append(open, t.Dest.Put(&c.sw, mad.MethodGet, mad.AttrSwitchInfo, 0, nil))
		}
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	open = open[:0]
	for i, t := range tables {
		c := &calls[i]
		if t.Err = c.node.Err; t.Err != nil {
			continue
		}
		t.Node.Decode(c.node.Data())
		if t.Err = t.checkNode(); t.Err != nil {
			continue
		}
		if t.IsSwitch() && !t.Kind.onSwitch {
			open = append(open, t.Dest.Put(&c.sw, mad.MethodGet, mad.AttrSwitchInfo, 0, nil))
		}
		if t.Kind.byPort {
			open = append(open, t.Dest.Put(&c.port, mad.MethodGet, mad.AttrPortInfo, uint32(max(t.Port, 0)), nil))
		}
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	for i, t := range tables {
		c := &calls[i]
		if t.Err == nil && t.IsSwitch() {
			if t.Err = c.sw.Err; t.Err == nil {
				t.Switch.Decode(c.sw.Data())
			}
		}
		if t.Err == nil && t.Kind.byPort {
			if t.Err = c.port.Err; t.Err == nil {
				t.PortInfo.Decode(c.port.Data())
			}
		}
	}
	return nil
}

// checkNode: the node is the one that is meant, and has such a table.
func (t *Table) checkNode() error {
	guid := checkGUID(t.Dest, t.GUID, t.Node.NodeGUID)
	switch {
	case guid != nil:
		return guid
	case t.Kind.Fits(t.Node.NodeType) != nil:
		return t.Kind.Fits(t.Node.NodeType)
	case t.Kind.ofPort && t.IsSwitch() && t.Port == NoPortNumber:
		return unsupported("it is a switch, each of whose ports has its own %s: name one", t.Kind.Attr.Name)
	case t.Port > int(t.Node.NumPorts):
		return unsupported("no port %d: the node has ports up to %d", t.Port, t.Node.NumPorts)
	case t.Kind.byReply && !t.IsSwitch() && t.Port > 0 && t.Port != int(t.Node.LocalPortNum):
		return unsupported("the request came in through port %d, and a %v shows its %s of that port only: reach port %d by its own LID or route", t.Node.LocalPortNum, t.Node.NodeType, t.Kind.Attr.Name, t.Port)
	}
	return nil
}

// Fits: nodes of that type have such a table.
func (k *TableKind) Fits(t mad.NodeType) error {
	if k.onSwitch && t != mad.NodeTypeSwitch {
		return unsupported("it is a %v: only switches have forwarding tables", t)
	}
	return nil
}

// IsSwitch: the table is a switch's.
func (t *Table) IsSwitch() bool { return t.Node.NodeType == mad.NodeTypeSwitch }

// blocksOf numbers all blocks of a table.
func blocksOf(t *Table) []int {
	blocks := make([]int, len(t.Modifiers))
	for b := range blocks {
		blocks[b] = b
	}
	return blocks
}

// block is block b of data.
func (t *Table) block(data []byte, b int) []byte {
	return data[b*t.Kind.Attr.Size:][:t.Kind.Attr.Size]
}

// getBlocks reads blocks of each table into its Data.
func getBlocks(ctx context.Context, e *engine.Engine, tables []*Table, blocks [][]int) error {
	b := batch{ctx: ctx, e: e}
	for i, t := range tables {
		for _, n := range blocks[i] {
			if t.Err != nil {
				break
			}
			if err := b.add(t, mad.MethodGet, t.Modifiers[n], nil, func(c *engine.Call) { copy(t.block(t.Data, n), c.Data()) }); err != nil {
				return err
			}
		}
	}
	return b.flush()
}

// setBlocks writes the changed blocks of each table.
func setBlocks(ctx context.Context, e *engine.Engine, tables []*Table, changed [][]int) error {
	b := batch{ctx: ctx, e: e}
	count := make([]int, len(tables))
	done := make([]int, len(tables))
	for i, t := range tables {
		if t.Err != nil {
			continue
		}
		var writes []tableWrite
		if t.Kind.writes != nil {
			writes = t.Kind.writes(t, changed[i])
		} else {
			writes = t.eachBlock(changed[i])
		}
		count[i] = len(writes)
		for _, w := range writes {
			t.Written = append(t.Written, w.modifier)
			if err := b.add(t, mad.MethodSet, w.modifier, w.data, func(*engine.Call) { done[i]++ }); err != nil {
				return err
			}
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	var unheard []unheardSet
	for i, t := range tables {
		switch {
		case t.Err == nil:
		case done[i] > 0:
			t.Err = fmt.Errorf("%d of %d changed blocks are written, but: %w", done[i], count[i], t.Err)
		case count[i] > 0 && errors.Is(t.Err, engine.ErrTimeout):
			unheard = append(unheard, unheardSet{t.Dest, &t.Err})
		}
	}
	return doubtKeys(ctx, e, unheard)
}

// eachBlock writes blocks one by one.
func (t *Table) eachBlock(blocks []int) (writes []tableWrite) {
	for _, n := range blocks {
		writes = append(writes, tableWrite{t.Modifiers[n], t.block(t.Data, n)})
	}
	return writes
}

// batch makes calls, many at a time.
type batch struct {
	ctx   context.Context
	e     *engine.Engine
	calls []blockCall
}

type blockCall struct {
	engine.Call
	t    *Table
	take func(*engine.Call) // what to do with the answer
}

func (b *batch) add(t *Table, m mad.Method, modifier uint32, data []byte, take func(*engine.Call)) error {
	b.calls = append(b.calls, blockCall{t: t, take: take})
	t.Dest.Put(&b.calls[len(b.calls)-1].Call, m, t.Kind.Attr, modifier, data)
	if len(b.calls) == maxCalls {
		return b.flush()
	}
	return nil
}

func (b *batch) flush() error {
	open := make([]*engine.Call, len(b.calls))
	for i := range b.calls {
		open[i] = &b.calls[i].Call
	}
	if err := b.e.Do(b.ctx, open...); err != nil {
		return err
	}
	for i := range b.calls {
		switch c := &b.calls[i]; {
		case c.Err == nil:
			c.take(&c.Call)
		case c.t.Err == nil:
			c.t.Err = c.Err
		}
	}
	b.calls = b.calls[:0]
	return nil
}

// compare sees to it that the table reads back as it was written.
func (t *Table) compare(want []byte) error {
	for i := range want {
		if want[i] != t.Data[i] {
			name, first, size := t.Kind.row(t, i)
			return fmt.Errorf("%s reads back as %s, not %s as it was written", name, t.Kind.text(t.Data[first:][:size]), t.Kind.text(want[first:][:size]))
		}
	}
	return nil
}

// finish does what remains to do when the blocks are written.
func finish(ctx context.Context, e *engine.Engine, tables []*Table) error {
	var changes []*Set
	var of []*Table
	for _, t := range tables {
		if t.Err == nil && t.Kind.after != nil {
			if c := t.Kind.after(t); c != nil {
				changes, of = append(changes, c), append(of, t)
			}
		}
	}
	if err := Apply(ctx, e, changes...); err != nil {
		return err
	}
	for i, c := range changes {
		if c.Err != nil {
			of[i].Err = fmt.Errorf("the entries are written, but %s stays as it was: %w", c.Attr.Field(c.Named[0]).Name, c.Err)
		} else {
			of[i].Switch.Decode(c.After)
		}
	}
	return nil
}

// raise raises a field of SwitchInfo that says how far a table is looked at.
func (t *Table) raise(field string, to int) *Set {
	return &Set{Dest: t.Dest, Attr: mad.AttrSwitchInfo, Named: []string{field}, Edit: func(data []byte) {
		mad.AttrSwitchInfo.Field(field).SetUint(data, uint64(to))
	}}
}
