package device

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// AR is the adaptive routing of a switch, as the switch has it.
type AR struct {
	Dest fabric.Dest
	GUID mad.GUID // of the node that must answer; 0: any

	// Node and Switch are the node's NodeInfo and SwitchInfo. They are read, unless Known;
	// SwitchInfo only where adaptive routing is on.
	Known  bool
	Node   mad.NodeInfo
	Switch mad.SwitchInfo

	Info *mad.AdaptiveRoutingInfo // nil: the switch does not announce adaptive routing
	PFRN *mad.PFRNConfig          // nil: without pFRN
	PLFT *PLFT                    // nil: the switch does not announce private LFTs
	// Tables are what packets follow; nil where only Info was to be read. Where the switch
	// does not announce adaptive routing, or it is off, they are not Active.
	Tables *adaptive.Switch
	Err    error
}

// on reports whether the switch follows AdaptiveRoutingLFT.
func (a *AR) on() bool { return a.Info != nil && (a.Info.E || a.Info.HBFEn) }

// ReadARInfo reads AdaptiveRoutingInfo of switches that announce it: the engine asks them
// once, by GeneralInfo. The outcome of each is in its Err. The error is the end of ctx.
func ReadARInfo(ctx context.Context, e *engine.Engine, list ...*AR) error {
	r := arReader{batch: batch{ctx: ctx, e: e}}
	return r.info(list)
}

// ReadAR reads the adaptive routing of switches: AdaptiveRoutingInfo, and where it is on,
// the tables: a request for 16 LIDs, and one for two sub-groups. announce gets the number of
// these requests before the first is sent; it may be nil. The outcome of each switch is in
// its Err. The error is the end of ctx.
//
// A subnet manager that writes meanwhile does so first to the entries, then to their groups
// (vendor's release notes 5.14). So AdaptiveRoutingInfo and SwitchInfo are read again
// afterwards; where they have changed, or entries and groups disagree, so are the tables.
func ReadAR(ctx context.Context, e *engine.Engine, announce func(requests int), list ...*AR) error {
	r := arReader{batch: batch{ctx: ctx, e: e}}
	if err := r.info(list); err != nil {
		return err
	}
	open := list
	for again := range arAttempts {
		requests := 0
		if err := r.private(open); err != nil {
			return err
		}
		for _, a := range open {
			requests += a.requests()
		}
		if again == 0 && announce != nil {
			announce(requests)
		}
		if err := r.tables(open); err != nil {
			return err
		}
		var err error
		if open, err = r.changed(open, again == arAttempts-1); len(open) == 0 || err != nil {
			return err
		}
	}
	return nil
}

// arAttempts limits how often tables are read that change meanwhile.
const arAttempts = 3

// arChunk is how many switches are read at once: it bounds the memory of raw tables.
const arChunk = 64

// errChanging reports that tables changed each time that they were read.
var errChanging = errors.New("its adaptive routing changed while it was read, " + plural.Count(arAttempts, "time", "times") + " in a row; try again when the subnet manager has finished")

type arReader struct{ batch }

// one requests an attribute of each switch for which modifier is 0 or more.
func (r *arReader) one(list []*AR, attr *mad.Attribute, modifier func(*AR) int, take func(a *AR, data []byte)) error {
	for _, a := range list {
		m := -1
		if a.Err == nil {
			m = modifier(a)
		}
		if m < 0 {
			continue
		}
		if err := r.add(a.Dest, &a.Err, mad.MethodGet, attr, uint32(m), nil, func(c *engine.Call) { take(a, c.Data()) }); err != nil {
			return err
		}
	}
	return r.flush()
}

// only is the modifier 0 where want, else none.
func only(want bool) int {
	if want {
		return 0
	}
	return -1
}

// info reads what the switches announce, AdaptiveRoutingInfo, and SwitchInfo where it is on.
func (r *arReader) info(list []*AR) error {
	if err := r.nodes(list); err != nil {
		return err
	}
	if err := r.again(list); err != nil {
		return err
	}
	return r.one(list, mad.AttrSwitchInfo, func(a *AR) int { return only(!a.Known && a.on()) }, func(a *AR, data []byte) { a.Switch.Decode(data) })
}

// nodes reads NodeInfo, and notes whose it is for the engine, which asks each device once
// what it announces.
func (r *arReader) nodes(list []*AR) error {
	if err := r.one(list, mad.AttrNodeInfo, func(a *AR) int { return only(!a.Known) }, func(a *AR, data []byte) { a.Node.Decode(data) }); err != nil {
		return err
	}
	var known []*mad.NodeInfo
	for _, a := range list {
		if a.Err == nil {
			a.Err = a.checkNode()
		}
		if a.Err == nil {
			known = append(known, &a.Node)
			a.Dest.Guard = guardOf(a.Dest, &a.Node)
		}
	}
	r.e.KnowNodes(slices.Values(known))
	return nil
}

// guardOf is the guard of d, which leads to a node: that of the node, if it has none. The
// engine knows devices by it.
func guardOf(d fabric.Dest, n *mad.NodeInfo) engine.Guard {
	if d.Guard.Node == 0 {
		return engine.Guard{Port: n.PortGUID, Node: n.NodeGUID}
	}
	return d.Guard
}

// again reads AdaptiveRoutingInfo, where it is announced.
func (r *arReader) again(list []*AR) error {
	err := r.one(list, mad.AttrAdaptiveRoutingInfo, func(*AR) int { return 0 }, func(a *AR, data []byte) {
		a.Info = new(mad.AdaptiveRoutingInfo)
		a.Info.Decode(data)
	})
	for _, a := range list {
		if errors.Is(a.Err, engine.ErrUnsupported) {
			a.Info, a.Err = nil, nil
		}
	}
	return err
}

// checkNode returns an error unless the node is the one to read, and a switch.
func (a *AR) checkNode() error {
	if err := checkGUID(a.Dest, a.GUID, a.Node.NodeGUID); err != nil {
		return err
	}
	return LinearKind.Fits(a.Node.NodeType)
}

// private reads the private LFTs of switches whose adaptive routing is on, and pFRNConfig.
func (r *arReader) private(list []*AR) error {
	var plfts []*PLFT
	var of []*AR
	for _, a := range list {
		if a.Err == nil && a.on() {
			p := &PLFT{Dest: a.Dest, GUID: a.GUID, Known: true, Node: a.Node}
			plfts, of = append(plfts, p), append(of, a)
		}
	}
	if err := readPLFTs(&r.batch, false, plfts); err != nil {
		return err
	}
	for i, p := range plfts {
		if of[i].Err = p.Err; p.Info != nil {
			of[i].PLFT = p
		}
	}
	return r.one(list, mad.AttrPFRNConfig, func(a *AR) int { return only(a.on() && a.Info.PFRNSup) }, func(a *AR, data []byte) {
		a.PFRN = new(mad.PFRNConfig)
		a.PFRN.Decode(data)
	})
}

// Sizes of the blocks of tables.
const (
	arBlock      = 16 // LIDs
	arEntry      = 4  // bytes
	arGroupBlock = 2  // sub-groups
)

// top is the highest LID of the table.
func (a *AR) top() int {
	top := a.Switch.LinearFDBTop
	if a.PLFT != nil {
		if t, ok := a.PLFT.Top(0); ok {
			top = uint16(t)
		}
	}
	return int(min(top, uint16(mad.MaxUnicastLID)))
}

// subGroups is the number of sub-groups in use in each group.
func (a *AR) subGroups() int { return max(int(a.Info.SubGrpsActive), 1) }

// blocks are the numbers of blocks of both tables.
func (a *AR) blocks() (lft, groups int) {
	if a.Err != nil || !a.on() {
		return 0, 0
	}
	return a.top()/arBlock + 1, ((int(a.Info.GroupTop)+1)*a.subGroups() + arGroupBlock - 1) / arGroupBlock
}

// requests is the number of requests that read the tables.
func (a *AR) requests() int {
	lft, groups := a.blocks()
	return lft + groups
}

// tables reads the tables, chunk by chunk.
func (r *arReader) tables(list []*AR) error {
	size := mad.AttrAdaptiveRoutingLFT.Size
	var lfts, groups [arChunk][]byte
	for first := 0; first < len(list); first += arChunk {
		chunk := list[first:min(first+arChunk, len(list))]
		for i, a := range chunk {
			n, m := a.blocks()
			lfts[i], groups[i] = resized(lfts[i], n*size), resized(groups[i], m*size)
			for _, part := range []struct {
				attr *mad.Attribute
				data []byte
			}{{mad.AttrAdaptiveRoutingLFT, lfts[i]}, {mad.AttrAdaptiveRoutingGroupTable, groups[i]}} {
				for b := range len(part.data) / size {
					to := part.data[b*size:][:size]
					if err := r.add(a.Dest, &a.Err, mad.MethodGet, part.attr, uint32(b), nil, func(c *engine.Call) { copy(to, c.Data()) }); err != nil {
						return err
					}
				}
			}
		}
		if err := r.flush(); err != nil {
			return err
		}
		for i, a := range chunk {
			if a.Err == nil {
				a.Tables = a.decode(lfts[i], groups[i])
			}
		}
	}
	return nil
}

// resized is b, or a longer one, with n bytes.
func resized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// decode makes a value of both tables.
func (a *AR) decode(lft, groups []byte) *adaptive.Switch {
	if !a.on() {
		return &adaptive.Switch{}
	}
	i := a.Info
	s := &adaptive.Switch{Enabled: i.E, SLs: adaptive.AllSLs, HBF: i.HBFEn, HBFSLs: adaptive.SLs(i.EnableBySLMaskHBF), Weighted: i.WHBFEn, FastRecovery: i.FREnabled}
	if i.BySLEn {
		s.SLs = adaptive.SLs(i.EnableBySLMask)
	}
	if i.ByTranspCap {
		s.Static = staticTransports(i)
	}
	g := adaptive.NewGroups(a.subGroups())
	for n := range (int(i.GroupTop) + 1) * a.subGroups() {
		g.Set(n/a.subGroups(), n%a.subGroups(), adaptive.PortsOfMask([32]byte(groups[32*n:])))
	}
	t := adaptive.NewTable(mad.LID(a.top()), g)
	for lid := range a.top() + 1 {
		e := binary.BigEndian.Uint32(lft[arEntry*lid:])
		t.Set(mad.LID(lid), adaptive.Entry{State: adaptive.State(e >> 30), Port: uint8(e >> 16), Group: uint16(e)})
	}
	s.Tables = []*adaptive.Table{t}
	if a.PLFT != nil {
		s.Private = a.PLFT.Rows()
	}
	s.Unknown = a.check(s)
	return s
}

// staticTransports are the transports that do not route adaptively.
func staticTransports(i *mad.AdaptiveRoutingInfo) (s adaptive.Transports) {
	for _, x := range []struct {
		disabled  bool
		transport adaptive.Transport
	}{{i.DisRC, adaptive.RC}, {i.DisUC, adaptive.UC}, {i.DisUD, adaptive.UD}, {i.DisDC, adaptive.DC}} {
		if x.disabled {
			s |= adaptive.TransportSet(x.transport)
		}
	}
	return s
}

// changed reads AdaptiveRoutingInfo and SwitchInfo of switches whose tables were read again,
// and returns those to be read again: they have changed, or their tables are not consistent,
// which is left to the caller at the last attempt.
func (r *arReader) changed(list []*AR, last bool) (again []*AR, err error) {
	var open []*AR
	type before struct {
		info mad.AdaptiveRoutingInfo
		top  uint16
	}
	was := map[*AR]before{}
	for _, a := range list {
		if a.Err == nil && a.on() {
			open = append(open, a)
			was[a] = before{*a.Info, a.Switch.LinearFDBTop}
		}
	}
	if err := r.one(open, mad.AttrSwitchInfo, func(*AR) int { return 0 }, func(a *AR, data []byte) { a.Switch.Decode(data) }); err != nil {
		return nil, err
	}
	if err := r.again(open); err != nil {
		return nil, err
	}
	for _, a := range open {
		changed := was[a] != before{*a.Info, a.Switch.LinearFDBTop}
		switch {
		case a.Err != nil:
		case changed && last:
			a.Err = errChanging
		case changed, a.Tables.Unknown != "" && !last:
			again = append(again, a)
		}
	}
	return again, nil
}
