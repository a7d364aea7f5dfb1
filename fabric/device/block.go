package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// tableWrite is one Set of a table.
type tableWrite struct {
	modifier uint32
	data     []byte // a part of Table.Data
	unused   bool   // the answer is what was written
}

// blocks are the numbers of all blocks of t.
func (t *Table) blocks() []int {
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
	var lost []lostSet
	for i, t := range tables {
		switch {
		case t.Err == nil:
		case done[i] > 0:
			t.Err = fmt.Errorf("%d of %d changed blocks are written, then: %w", done[i], count[i], t.Err)
		case count[i] > 0 && errors.Is(t.Err, engine.ErrTimeout):
			lost = append(lost, lostSet{t.Dest, &t.Err})
		}
	}
	return checkKeys(ctx, e, lost)
}

// eachBlock writes blocks one by one.
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
