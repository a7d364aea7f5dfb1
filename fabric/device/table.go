package device

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

// Table is a table of a node or of one of its ports that is longer than a MAD:
// it is read and written in blocks.
type Table struct {
	Kind *TableKind
	Dest fabric.Dest
	// GUID is the node GUID that must answer; 0: any.
	GUID mad.GUID
	// Port is the port whose table it is; NoPortNumber: the table of the node, or of the CA
	// port where the request comes in.
	Port int
	// Edit changes Data, as read, to the new content.
	Edit func(t *Table) error
	// Rows is the number of rows that Edit needs. They are read even if the node uses fewer.
	Rows int
	// Whole reports that Edit replaces all rows: blocks that the node does not use yet
	// are written without being read, and instead of reading them back the answer to
	// the Set is compared, which has the resulting block (OpenSM takes it for the
	// switch's table, too: opensm osm_lin_fwd_rcv.c osm_lft_rcv_process).
	Whole bool

	// Node and Switch are the node's NodeInfo and SwitchInfo, which is zero unless the node is
	// a switch. They are read, unless Known: then a sweep has just read them. PortInfo is
	// read where the table's size depends on it.
	Known    bool
	Node     mad.NodeInfo
	Switch   mad.SwitchInfo
	PortInfo mad.PortInfo
	// Modifiers are the modifiers of the blocks, and Data their bytes in this order.
	Modifiers []uint32
	Data      []byte
	// Written are the modifiers of the Sets that were sent, in order.
	Written []uint32
	// Changed are the first rows that WriteTables changed, and ChangedRows the number of all.
	Changed     []RowChange
	ChangedRows int
	Err         error
}

// RowChange is a row of a table before and after a change, in words.
type RowChange struct{ Row, Before, After string }

// maxRowChanges is the maximum number of rows of a table that are described.
const maxRowChanges = 8

// NoPortNumber is the number of a port that is not named.
const NoPortNumber = -1

// TableKind describes a kind of table.
type TableKind struct {
	Attr     *mad.Attribute
	onSwitch bool // only switches have it
	ofPort   bool // every port of a switch has its own
	byPort   bool // its size depends on PortInfo
	byReply  bool // a CA answers with the table of the port where the request comes in
	// layout returns the modifiers of the blocks.
	layout func(t *Table) ([]uint32, error)
	blank  byte // of an unused row
	// used returns how many bytes of the table are in use. Nil: all.
	used func(t *Table) int
	// row returns the row that contains byte i: its name in messages, and its bytes.
	row func(t *Table, i int) (name string, first, size int)
	// text describes a row in messages.
	text func(row []byte) string
	// writes returns the Sets that write the changed blocks. Nil: one for each.
	writes func(t *Table, changed []int) []tableWrite
	// after returns what must be set when the blocks are written. Nil: nothing.
	after func(t *Table) *Set
}

// ReadTables reads whole tables, all at once; the outcome of each is in its
// Err. The error is the end of ctx.
func ReadTables(ctx context.Context, e *engine.Engine, tables ...*Table) error {
	if err := readNodes(ctx, e, tables); err != nil {
		return err
	}
	all := make([][]int, len(tables))
	for i, t := range tables {
		if t.Err != nil {
			continue
		}
		if t.Modifiers, t.Err = t.Kind.layout(t); t.Err == nil {
			t.Data = make([]byte, len(t.Modifiers)*t.Kind.Attr.Size)
			all[i] = slices.DeleteFunc(t.blocks(), t.unused)
		}
	}
	return getBlocks(ctx, e, tables, all)
}

// unused reports whether the node does not use block b and Edit does not need its content.
func (t *Table) unused(b int) bool {
	return t.Whole && t.Kind.used != nil && b*t.Kind.Attr.Size >= t.Kind.used(t)
}

// WriteTables reads tables, lets Edit change them, writes the blocks that differ, and reads
// these back, except blocks that were not in use (see Whole): it is an error if they differ
// from what was written. Each step is done for all tables at once.
func WriteTables(ctx context.Context, e *engine.Engine, tables ...*Table) error {
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
		changed[i] = slices.DeleteFunc(t.blocks(), func(b int) bool {
			return !t.unused(b) && bytes.Equal(t.block(old, b), t.block(t.Data, b))
		})
		t.describe(old, changed[i])
	}
	for i, t := range tables {
		wanted[i] = slices.Clone(t.Data)
	}
	if err := setBlocks(ctx, e, tables, changed); err != nil {
		return err
	}
	for i, t := range tables {
		changed[i] = slices.DeleteFunc(changed[i], t.unused)
	}
	if err := getBlocks(ctx, e, tables, changed); err != nil {
		return err
	}
	for i, t := range tables {
		if t.Err == nil {
			t.Err = t.compare(wanted[i])
		}
	}
	return setTops(ctx, e, tables)
}

// Fits returns an error if nodes of type t have no such table.
func (k *TableKind) Fits(t mad.NodeType) error {
	if k.onSwitch && t != mad.NodeTypeSwitch {
		return unsupported("it is a %v; only switches have forwarding tables", t)
	}
	return nil
}

// IsSwitch reports whether the table belongs to a switch.
func (t *Table) IsSwitch() bool { return t.Node.NodeType == mad.NodeTypeSwitch }

// describe describes the rows of changed blocks whose content was old.
func (t *Table) describe(old []byte, changed []int) {
	t.Changed, t.ChangedRows = nil, 0
	_, _, size := t.Kind.row(t, 0)
	for _, b := range changed {
		first := b * t.Kind.Attr.Size
		for i := first; i < first+t.Kind.Attr.Size; i += size {
			was, is := old[i:i+size], t.Data[i:i+size]
			if t.unused(b) && bytes.Count(is, []byte{t.Kind.blank}) == size || !t.unused(b) && bytes.Equal(was, is) {
				continue
			}
			if t.ChangedRows++; len(t.Changed) == maxRowChanges {
				continue
			}
			name, _, _ := t.Kind.row(t, i)
			before := "unused"
			if !t.unused(b) {
				before = t.Kind.text(was)
			}
			t.Changed = append(t.Changed, RowChange{name, before, t.Kind.text(is)})
		}
	}
}

// readNodes reads the attributes that the tables' sizes depend on.
func readNodes(ctx context.Context, e *engine.Engine, tables []*Table) error {
	calls := make([]struct{ node, sw, port engine.Call }, len(tables))
	var open []*engine.Call
	for i, t := range tables {
		c := &calls[i]
		if t.Known {
			continue
		}
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
		if !t.Known {
			if t.Err = c.node.Err; t.Err != nil {
				continue
			}
			t.Node.Decode(c.node.Data())
		}
		if t.Err = t.checkNode(); t.Err != nil {
			continue
		}
		if t.IsSwitch() && !t.Kind.onSwitch && !t.Known {
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
		if t.Err == nil && t.IsSwitch() && !t.Known {
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

// checkNode returns an error unless the node is the one to read and has such a table.
func (t *Table) checkNode() error {
	guid := checkGUID(t.Dest, t.GUID, t.Node.NodeGUID)
	switch {
	case guid != nil:
		return guid
	case t.Kind.Fits(t.Node.NodeType) != nil:
		return t.Kind.Fits(t.Node.NodeType)
	case t.Kind.ofPort && t.IsSwitch() && t.Port == NoPortNumber:
		return unsupported("it is a switch; each of its ports has its own %s, so name a port", t.Kind.Attr.Name)
	case t.Port > int(t.Node.NumPorts):
		return unsupported("no port %d; the node has ports up to %d", t.Port, t.Node.NumPorts)
	case t.Kind.byReply && !t.IsSwitch() && t.Port > 0 && t.Port != int(t.Node.LocalPortNum):
		return unsupported("the request came in through port %d, and a %v shows its %s of that port only; reach port %d by its own LID or route", t.Node.LocalPortNum, t.Node.NodeType, t.Kind.Attr.Name, t.Port)
	}
	return nil
}

// compare returns an error unless the table reads back as written.
func (t *Table) compare(want []byte) error {
	for i := range want {
		if want[i] != t.Data[i] {
			name, first, size := t.Kind.row(t, i)
			return fmt.Errorf("%s reads back as %s, but %s was written", name, t.Kind.text(t.Data[first:][:size]), t.Kind.text(want[first:][:size]))
		}
	}
	return nil
}

// setTops sets what must be set when the blocks are written.
func setTops(ctx context.Context, e *engine.Engine, tables []*Table) error {
	var sets []*Set
	var of []*Table
	for _, t := range tables {
		if t.Err == nil && t.Kind.after != nil {
			if set := t.Kind.after(t); set != nil {
				sets, of = append(sets, set), append(of, t)
			}
		}
	}
	if err := SetAttributes(ctx, e, sets...); err != nil {
		return err
	}
	for i, set := range sets {
		if set.Err != nil {
			of[i].Err = fmt.Errorf("the entries are written, but %s is unchanged: %w", set.Attr.Field(set.Named[0]).Name, set.Err)
		} else {
			of[i].Switch.Decode(set.After)
		}
	}
	return nil
}

// raise raises the field of SwitchInfo for the highest LID for which a forwarding
// table is used.
func (t *Table) raise(field string, to int) *Set {
	return &Set{Dest: t.Dest, Attr: mad.AttrSwitchInfo, Named: []string{field}, Edit: func(data []byte) {
		mad.AttrSwitchInfo.Field(field).SetUint(data, uint64(to))
	}}
}

// tableWrite is one Set of a table.
type tableWrite struct {
	modifier uint32
	data     []byte // a part of Table.Data
	unused   bool   // the answer is what was written
}

// blocks returns the numbers of all blocks of t.
func (t *Table) blocks() []int {
	blocks := make([]int, len(t.Modifiers))
	for b := range blocks {
		blocks[b] = b
	}
	return blocks
}

// block returns block b of data.
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
			if err := b.add(t.Dest, &t.Err, mad.MethodGet, t.Kind.Attr, t.Modifiers[n], nil, func(c *engine.Call) { copy(t.block(t.Data, n), c.Data()) }); err != nil {
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
		if t.Kind.writes != nil && e.Interceptor() == nil { // a plan has each block by itself
			writes = t.Kind.writes(t, changed[i])
		} else {
			writes = t.eachBlock(changed[i])
		}
		count[i] = len(writes)
		b.calls = slices.Grow(b.calls, min(len(writes), maxCalls-len(b.calls)))
		for _, w := range writes {
			t.Written = append(t.Written, w.modifier)
			if err := b.add(t.Dest, &t.Err, mad.MethodSet, t.Kind.Attr, w.modifier, w.data, func(c *engine.Call) {
				done[i]++
				if w.unused {
					copy(w.data, c.Data())
				}
			}); err != nil {
				return err
			}
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	var lost []unansweredSet
	for i, t := range tables {
		switch {
		case t.Err == nil:
		case done[i] > 0:
			t.Err = fmt.Errorf("%d of %d changed blocks are written, then: %w", done[i], count[i], t.Err)
		case count[i] > 0 && errors.Is(t.Err, engine.ErrTimeout):
			lost = append(lost, unansweredSet{t.Dest, &t.Err})
		}
	}
	return checkKeys(ctx, e, lost)
}

// eachBlock returns a write for each block.
func (t *Table) eachBlock(blocks []int) []tableWrite {
	writes := make([]tableWrite, len(blocks))
	for i, n := range blocks {
		writes[i] = tableWrite{t.Modifiers[n], t.block(t.Data, n), t.unused(n)}
	}
	return writes
}

// maxCalls bounds the memory of calls: the linear forwarding tables of 1,000
// switches with 32k LIDs are half a million blocks.
const maxCalls = 8192

// batch sends calls, at most maxCalls at a time.
type batch struct {
	ctx   context.Context
	e     *engine.Engine
	calls []blockCall
}

type blockCall struct {
	engine.Call
	failed *error             // the first error of the calls that share it
	take   func(*engine.Call) // what to do with the answer
}

func (b *batch) add(to fabric.Dest, failed *error, m mad.Method, attr *mad.Attribute, modifier uint32, data []byte, take func(*engine.Call)) error {
	b.calls = append(b.calls, blockCall{failed: failed, take: take})
	to.Put(&b.calls[len(b.calls)-1].Call, m, attr, modifier, data)
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
		case *c.failed == nil:
			*c.failed = c.Err
		}
	}
	b.calls = b.calls[:0]
	return nil
}
