package fabric

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"fabsh/mad"
)

const (
	// LFTBlock is the number of entries in a block of a linear forwarding
	// table (IBA 14.2.5.10).
	LFTBlock = 64
	// NoPort is the entry of a LID that the switch drops.
	NoPort = 255
	// maxCalls is how many calls are made ready at once: 32k LIDs of a
	// thousand switches would be half a million.
	maxCalls = 8192
)

// LFT is the linear forwarding table of a switch, or why it could not be read.
type LFT struct {
	// Entries are the ports by LID, from 0 to LinearFDBTop, or to the last
	// unicast LID where a switch says nonsense.
	Entries []byte
	Err     error
}

// ReadLFTs reads the whole tables of many switches at once. The error is the
// end of ctx.
func ReadLFTs(ctx context.Context, e *mad.Engine, dests []Dest) ([]LFT, error) {
	tables := make([]LFT, len(dests))
	calls := make([]mad.Call, len(dests))
	open := make([]*mad.Call, len(dests))
	for i, d := range dests {
		open[i] = smp(&calls[i], d, mad.MethodGet, mad.AttrSwitchInfo, 0, nil)
	}
	if err := e.Do(ctx, open...); err != nil {
		return nil, err
	}
	r := blockReader{e: e, method: mad.MethodGet}
	for i := range tables {
		t := &tables[i]
		if t.Err = calls[i].Err; t.Err != nil {
			continue
		}
		var si mad.SwitchInfo
		si.Decode(calls[i].Data())
		t.Entries = make([]byte, int(min(si.LinearFDBTop, uint16(mad.MaxUnicastLID)))+1)
		for block := 0; block*LFTBlock < len(t.Entries); block++ {
			if err := r.add(ctx, dests[i], block, t.Entries[block*LFTBlock:], &t.Err); err != nil {
				return nil, err
			}
		}
	}
	return tables, r.flush(ctx)
}

// blockReader gets or sets blocks, many at a time.
type blockReader struct {
	e      *mad.Engine
	method mad.Method
	calls  []blockCall
}

type blockCall struct {
	mad.Call
	entries []byte // of a Get: where the answer goes
	err     *error // the first failure of the table
}

// add asks for a block, or sets it to entries.
func (r *blockReader) add(ctx context.Context, d Dest, block int, entries []byte, failed *error) error {
	entries = entries[:min(LFTBlock, len(entries))]
	r.calls = append(r.calls, blockCall{entries: entries, err: failed})
	var data []byte
	if r.method == mad.MethodSet {
		data = entries
	}
	smp(&r.calls[len(r.calls)-1].Call, d, r.method, mad.AttrLinearForwardingTable, uint32(block), data)
	if len(r.calls) == maxCalls {
		return r.flush(ctx)
	}
	return nil
}

func (r *blockReader) flush(ctx context.Context) error {
	open := make([]*mad.Call, len(r.calls))
	for i := range r.calls {
		open[i] = &r.calls[i].Call
	}
	if err := r.e.Do(ctx, open...); err != nil {
		return err
	}
	for i := range r.calls {
		c := &r.calls[i]
		switch {
		case *c.err != nil:
		case c.Err != nil:
			*c.err = c.Err
		case r.method == mad.MethodGet:
			copy(c.entries, c.Data())
		}
	}
	r.calls = r.calls[:0]
	return nil
}

// LFTChange is a change of a switch's linear forwarding table.
type LFTChange struct {
	Dest Dest
	// GUID is the node GUID that the switch must have; 0: whatever it has.
	GUID mad.GUID
	// Entries are merged into the table, or replace all of it.
	Entries map[mad.LID]uint8
	Replace bool

	// Table is the table as it was read back, and Written the blocks that
	// were written, in order.
	Table   []byte
	Written []int
}

// Apply reads the table, writes the blocks that change, reads them back, and
// then raises LinearFDBTop if it must; it never lowers it, for that would hide
// entries that are not in the change. A switch that answers with something
// else than was written is an error.
func (c *LFTChange) Apply(ctx context.Context, e *mad.Engine) error {
	ni, si, err := c.look(ctx, e)
	if err != nil {
		return err
	}
	highest, err := c.check(ni, si)
	if err != nil {
		return err
	}
	si.LinearFDBTop = min(si.LinearFDBTop, uint16(mad.MaxUnicastLID))
	size := max(int(si.LinearFDBTop), highest) + 1
	size = (size + LFTBlock - 1) / LFTBlock * LFTBlock
	old := make([]byte, size)
	if err := c.transfer(ctx, e, mad.MethodGet, old, blocksOf(old)); err != nil {
		return err
	}
	want := c.apply(old)
	var changed []int
	for _, b := range blocksOf(old) {
		if !bytes.Equal(old[b*LFTBlock:][:LFTBlock], want[b*LFTBlock:][:LFTBlock]) {
			changed = append(changed, b)
		}
	}
	if err := c.transfer(ctx, e, mad.MethodSet, want, changed); err != nil {
		return err
	}
	c.Written = changed
	if err := c.transfer(ctx, e, mad.MethodGet, old, changed); err != nil {
		return err
	}
	for lid := range want {
		if old[lid] != want[lid] && slices.Contains(changed, lid/LFTBlock) {
			return fmt.Errorf("LID %d reads back as %s, not %s as it was written", lid, portWord(old[lid]), portWord(want[lid]))
		}
	}
	top := int(si.LinearFDBTop)
	if highest > top {
		set := Change{Dest: c.Dest, Attr: mad.AttrSwitchInfo, Named: []string{"linear_fdb_top"}, Edit: func(data []byte) {
			mad.AttrSwitchInfo.Field("linear_fdb_top").SetUint(data, uint64(highest))
		}}
		if err := Apply(ctx, e, &set); err != nil {
			return err
		}
		if set.Err != nil {
			return fmt.Errorf("the entries are written, but LinearFDBTop stays %d: %w", top, set.Err)
		}
		top = highest
	}
	c.Table = old[:top+1]
	return nil
}

// look reads what the switch is, and sees to it that it is the right one.
func (c *LFTChange) look(ctx context.Context, e *mad.Engine) (ni mad.NodeInfo, si mad.SwitchInfo, err error) {
	var calls [2]mad.Call
	smp(&calls[0], c.Dest, mad.MethodGet, mad.AttrNodeInfo, 0, nil)
	smp(&calls[1], c.Dest, mad.MethodGet, mad.AttrSwitchInfo, 0, nil)
	if err := e.Do(ctx, &calls[0], &calls[1]); err != nil {
		return ni, si, err
	}
	if calls[0].Err != nil {
		return ni, si, calls[0].Err
	}
	ni.Decode(calls[0].Data())
	if err := checkGUID(c.Dest, c.GUID, ni.NodeGUID); err != nil {
		return ni, si, err
	}
	if ni.NodeType != mad.NodeTypeSwitch {
		return ni, si, fmt.Errorf("%s is a %v: only switches have forwarding tables", ni.NodeGUID, ni.NodeType)
	}
	if calls[1].Err != nil {
		return ni, si, calls[1].Err
	}
	si.Decode(calls[1].Data())
	return ni, si, nil
}

// check sees to it that the switch can take the entries; highest is the
// highest LID that has a port.
func (c *LFTChange) check(ni mad.NodeInfo, si mad.SwitchInfo) (highest int, err error) {
	for _, lid := range c.lids() {
		port := c.Entries[lid]
		switch {
		case port == NoPort:
			continue
		case port > ni.NumPorts:
			return 0, fmt.Errorf("LID %d: no port %d: the switch has ports 0..%d", lid, port, ni.NumPorts)
		case uint16(lid) >= si.LinearFDBCap:
			return 0, fmt.Errorf("LID %d: the switch's table holds LIDs up to %d", lid, int(si.LinearFDBCap)-1)
		}
		highest = int(lid)
	}
	return highest, nil
}

func (c *LFTChange) lids() []mad.LID {
	lids := make([]mad.LID, 0, len(c.Entries))
	for lid := range c.Entries {
		lids = append(lids, lid)
	}
	slices.Sort(lids)
	return lids
}

// apply makes the table that is wanted of the one that is there.
func (c *LFTChange) apply(old []byte) []byte {
	want := slices.Clone(old)
	if c.Replace {
		for i := range want {
			want[i] = NoPort
		}
	}
	for lid, port := range c.Entries {
		if int(lid) < len(want) {
			want[lid] = port
		}
	}
	return want
}

// transfer gets or sets some blocks of table.
func (c *LFTChange) transfer(ctx context.Context, e *mad.Engine, m mad.Method, table []byte, blocks []int) error {
	var failed error
	r := blockReader{e: e, method: m}
	for _, b := range blocks {
		if err := r.add(ctx, c.Dest, b, table[b*LFTBlock:], &failed); err != nil {
			return err
		}
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	return failed
}

// blocksOf numbers the blocks of a table.
func blocksOf(table []byte) []int {
	blocks := make([]int, len(table)/LFTBlock)
	for b := range blocks {
		blocks[b] = b
	}
	return blocks
}

func portWord(port byte) string {
	if port == NoPort {
		return "dropped"
	}
	return fmt.Sprintf("port %d", port)
}
