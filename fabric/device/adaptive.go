package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
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

// Adaptivity is which switches of a fabric route adaptively, or by hashes: these do not
// follow their linear forwarding tables.
type Adaptivity struct {
	On []*fabric.Node
	// Undetermined are the switches that may route adaptively, by their vendor and by what
	// they announce, but did not answer whether they do.
	Undetermined []SwitchError
}

// ReadAdaptivity reads AdaptiveRoutingInfo of the switches of f that announce it: the engine
// asks each device of NVIDIA once, by GeneralInfo, and none of another vendor. The error is
// the end of ctx.
func ReadAdaptivity(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (*Adaptivity, error) {
	var list []*AR
	var of []*fabric.Node
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.IsSwitch() && (n.Route() != nil || n.LID() != 0) {
			list, of = append(list, arOf(n)), append(of, n)
		}
	}
	if err := ReadARInfo(ctx, e, list...); err != nil {
		return nil, err
	}
	a := new(Adaptivity)
	for i, r := range list {
		switch {
		case r.Err != nil:
			a.Undetermined = append(a.Undetermined, SwitchError{of[i], r.Err})
		case r.on():
			a.On = append(a.On, of[i])
		}
	}
	return a, nil
}

// StoredAdaptivity returns the adaptive routing that came with the fabric of live, as from a
// snapshot, in the form of ReadAdaptivity and ReadChoices; nil: nothing came with it. In a
// snapshot, the forwarding tables of switches where adaptive routing is on are its static
// ports.
func StoredAdaptivity(live *routes.Routes) (*Adaptivity, []*adaptive.Switch) {
	g := live.Graph()
	if !g.Fabric().HasAdaptive() {
		return nil, nil
	}
	a, choices := new(Adaptivity), make([]*adaptive.Switch, len(g.Switches()))
	for s, n := range g.Switches() {
		switch stored := n.Adaptive(); {
		case stored.Active():
			choices[s] = live.Adaptive(s)
			a.On = append(a.On, n)
		case stored == nil || stored.Unknown != "":
			reason := "the file does not have it"
			if stored != nil {
				reason = stored.Unknown
			}
			a.Undetermined = append(a.Undetermined, SwitchError{n, errors.New(reason)})
		}
	}
	return a, choices
}

// ReadChoices reads the tables of adaptive routing of switches where it is on, by number in
// the graph of live, which has the linear forwarding tables; nil: it is off. What is wrong
// with the tables of a switch is in its Unknown. The error is the end of ctx.
func ReadChoices(ctx context.Context, e *engine.Engine, live *routes.Routes, on []*fabric.Node) ([]*adaptive.Switch, error) {
	g := live.Graph()
	choices := make([]*adaptive.Switch, len(g.Switches()))
	if len(on) == 0 {
		return choices, nil
	}
	list := make([]*AR, len(on))
	for i, n := range on {
		list[i] = arOf(n)
	}
	if err := ReadAR(ctx, e, nil, list...); err != nil {
		return nil, err
	}
	static := live.Clone()
	for i, n := range on {
		s := g.SwitchOf(n)
		switch a := list[i]; {
		case a.Err != nil:
			choices[s] = &adaptive.Switch{Enabled: true, Unknown: fmt.Sprintf("adaptive routing could not be read: %v", a.Err)}
		case a.Tables.Active():
			choices[s] = a.Tables
			static.SetAdaptive(s, a.Tables)
		}
	}
	err := checkStatic(ctx, static, func(s int) *adaptive.Switch { return choices[s] })
	return choices, err
}

// ReadAdaptiveRoutes is ReadRoutes with the adaptive routing of all switches. Where it is on, it
// replaces the forwarding tables: they are not read, because no packet follows them. announce
// gets the number of requests for the tables of adaptive routing, as in ReadAR.
//
// What was read by inferred modifiers is checked, also against the network. If a check fails,
// or the adaptive routing of a switch could not be read, the reason is in Unknown of the
// switch's adaptive.Switch.
func ReadAdaptiveRoutes(ctx context.Context, e *engine.Engine, f *fabric.Fabric, announce func(requests int)) (r *routes.Routes, failed []SwitchError, err error) {
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		return nil, nil, err
	}
	switches := g.Switches()
	var list []*AR
	of := make([]*AR, len(switches)) // nil: without an address
	for s, n := range switches {
		if n.Route() != nil || n.LID() != 0 {
			of[s] = &AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID()}
			list = append(list, of[s])
		}
	}
	if err := ReadAR(ctx, e, announce, list...); err != nil {
		return nil, nil, err
	}
	var static []*fabric.Node
	var at []int
	for s, n := range switches {
		if a := of[s]; a == nil || a.Err != nil || !a.on() {
			static, at = append(static, n), append(at, s)
		}
	}
	lfts, err := readSwitches(ctx, e, static)
	if err != nil {
		return nil, nil, err
	}
	top := 0
	for i := range lfts {
		top = max(top, len(lfts[i].Entries)-1)
	}
	for _, a := range list {
		if a.Tables.Active() {
			top = max(top, int(a.Tables.Top()))
		}
	}
	r = routes.New(g, mad.LID(top))
	r.Engine = routes.FromSwitches
	for i, s := range at {
		if err := lfts[i].Err; err != nil {
			failed = append(failed, SwitchError{switches[s], err})
			continue
		}
		copy(r.Row(s), lfts[i].Entries)
	}
	known := make([]*adaptive.Switch, len(switches))
	for s, a := range of {
		switch {
		case a == nil: // among failed
		case a.Err != nil:
			known[s] = &adaptive.Switch{Unknown: fmt.Sprintf("adaptive routing could not be read: %v", a.Err)}
		default:
			known[s] = a.Tables
		}
		r.SetAdaptive(s, known[s])
	}
	if err := checkStatic(ctx, r, func(s int) *adaptive.Switch { return known[s] }); err != nil {
		return nil, nil, err
	}
	for s, a := range known {
		if a.Active() && a.Unknown != "" {
			r.SetAdaptive(s, a)
		}
	}
	return r, failed, nil
}

// arOf returns the AR of a switch, for ReadAR and ReadARInfo.
func arOf(n *fabric.Node) *AR {
	a := &AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID()}
	if sw := n.SwitchInfo(); sw != nil {
		a.Known, a.Node, a.Switch = true, *n.Info(), *sw
	}
	return a
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

// modifierIf returns the modifier 0 if want is set, else -1: no request.
func modifierIf(want bool) int {
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
	return r.one(list, mad.AttrSwitchInfo, func(a *AR) int { return modifierIf(!a.Known && a.on()) }, func(a *AR, data []byte) { a.Switch.Decode(data) })
}

// nodes reads NodeInfo, and passes it to the engine, which asks each device once what it
// announces.
func (r *arReader) nodes(list []*AR) error {
	if err := r.one(list, mad.AttrNodeInfo, func(a *AR) int { return modifierIf(!a.Known) }, func(a *AR, data []byte) { a.Node.Decode(data) }); err != nil {
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

// guardOf returns the guard of d, which leads to a node; if d has none, the guard of the node.
// The engine identifies devices by it.
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
	return r.one(list, mad.AttrPFRNConfig, func(a *AR) int { return modifierIf(a.on() && a.Info.PFRNSup) }, func(a *AR, data []byte) {
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

// top returns the highest LID of the table.
func (a *AR) top() int {
	top := a.Switch.LinearFDBTop
	if a.PLFT != nil {
		if t, ok := a.PLFT.Top(0); ok {
			top = uint16(t)
		}
	}
	return int(min(top, uint16(mad.MaxUnicastLID)))
}

// subGroups returns the number of sub-groups in use in each group.
func (a *AR) subGroups() int { return max(int(a.Info.SubGrpsActive), 1) }

// blocks returns the numbers of blocks of both tables.
func (a *AR) blocks() (lft, groups int) {
	if a.Err != nil || !a.on() {
		return 0, 0
	}
	return a.top()/arBlock + 1, ((int(a.Info.GroupTop)+1)*a.subGroups() + arGroupBlock - 1) / arGroupBlock
}

// requests returns the number of requests that read the tables.
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

// resized returns b, or a new slice if b is too short, with n bytes.
func resized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// decode decodes both tables.
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

// staticTransports returns the transports that do not route adaptively.
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

// check returns the reason why s cannot be the tables of the switch; "": no reason is known.
// The modifiers of AdaptiveRoutingLFT and AdaptiveRoutingGroupTable, by which s was read, are
// an inference: no public source has them. A switch whose tables fail has the reason in
// adaptive.Switch.Unknown.
func (a *AR) check(s *adaptive.Switch) string {
	for _, row := range s.Private {
		for _, id := range row {
			if id != 0 {
				return fmt.Sprintf("private LFT %d is in use; no public source has the modifier that reads its entries", id)
			}
		}
	}
	t := s.Tables[0]
	most := a.Node.NumPorts
	checked := make([]bool, t.Groups.Len())
	for lid := range t.Top() + 1 {
		e := t.Entry(lid)
		if e.Port > most && e.Port != mad.NoPort {
			return fmt.Sprintf("the entry of LID %d has port %d; the switch has ports 0..%d", lid, e.Port, most)
		}
		if e.State == adaptive.Static {
			continue
		}
		if int(e.Group) >= len(checked) {
			return fmt.Sprintf("the entry of LID %d has group %d; the last group is %d", lid, e.Group, len(checked)-1)
		}
		if checked[e.Group] {
			continue
		}
		checked[e.Group] = true
		for port := range t.Groups.All(int(e.Group)).All() {
			if port > most {
				return fmt.Sprintf("group %d of LID %d has port %d; the switch has ports 0..%d", e.Group, lid, port, most)
			}
		}
	}
	return ""
}

// checkStatic checks the static ports of switches that route adaptively against the network:
// each LID of a port has an entry, and the static ports lead to it. It sets Unknown of
// switches where packets are dropped, loop, or arrive at another port. Ports without a link
// are left out: they may be broken.
func checkStatic(ctx context.Context, r *routes.Routes, of func(s int) *adaptive.Switch) error {
	g := r.Graph()
	reasons := make([][]string, g.Workers()) // by worker and switch
	err := verify.EachDest(ctx, r, g.Workers(), nil, func(worker int, w *verify.Walk, lid mad.LID) {
		if reasons[worker] == nil {
			reasons[worker] = make([]string, len(g.Switches()))
		}
		t := int32(g.TerminalByLID(lid))
		ports := w.Column(lid)
		for s := range ports {
			w.From(int32(s), ports, t)
		}
		for s, port := range ports {
			if w.State[s] >= 0 || !of(s).Active() || reasons[worker][s] != "" {
				continue
			}
			reasons[worker][s] = staticFault(g, int32(s), port, lid, w.State[s] == verify.Looping)
		}
	})
	if err != nil {
		return err
	}
	for _, list := range reasons {
		for s, reason := range list {
			if reason != "" && of(s).Unknown == "" {
				of(s).Unknown = reason
			}
		}
	}
	return nil
}

// staticFault returns why an entry of a switch cannot be right; "": another switch is at
// fault, or a link.
func staticFault(g *graph.Graph, s int32, port uint8, lid mad.LID, loops bool) string {
	switch target := g.Target(s, port); {
	case port == mad.NoPort:
		return fmt.Sprintf("LID %d of a port has no entry", lid)
	case loops:
		return fmt.Sprintf("static port %d of LID %d leads into a loop", port, lid)
	case target.IsTerminal():
		return fmt.Sprintf("static port %d of LID %d leads to another port", port, lid)
	}
	return ""
}
