package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// answerBatch is how many nodes are read at once: it bounds memory.
const answerBatch = 128

// ReadAnswers reads what audits need beyond a sweep and forwarding tables: the
// P_Key, SLtoVL and VL arbitration tables and the multicast forwarding tables of all
// nodes, the counters of all ports with a link, congestion control, SMInfo of the subnet
// managers, and nodes, links, groups and services of the subnet administrator, where one
// answers. What a node does not have, or refuses, is left out; what got no answer is in
// Problems, and an Answer without data. now returns the time. The error is the end of ctx.
func ReadAnswers(ctx context.Context, c *sa.Client, f *fabric.Fabric, now func() time.Time) (fabric.Reading, error) {
	r := answerReader{ctx: ctx, client: c, f: f}
	for first := 0; first < len(f.Nodes()); first += answerBatch {
		nodes := f.Nodes()[first:min(first+answerBatch, len(f.Nodes()))]
		if err := r.tables(nodes); err != nil {
			return fabric.Reading{}, err
		}
	}
	r.CountersRead = now()
	for _, read := range []func() error{r.counters, r.congestion, r.managers} {
		if err := read(); err != nil {
			return fabric.Reading{}, err
		}
	}
	return r.Reading, nil
}

type answerReader struct {
	fabric.Reading
	ctx    context.Context
	client *sa.Client
	f      *fabric.Fabric
}

// tables reads the tables of nodes.
func (r *answerReader) tables(nodes []fabric.Node) error {
	var tables []*Table
	var of []fabric.Answer // whose each is
	add := func(k *TableKind, n *fabric.Node, p *fabric.Port, route mad.DirectedRoute) {
		if route == nil && n.LID() == 0 {
			return
		}
		t := &Table{Kind: k, Dest: fabric.Dest{Route: route, LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Port: NoPortNumber}
		a := fabric.Answer{Node: int32(n.ID()), Port: fabric.NoPort, Class: k.Attr.Class, ID: k.Attr.ID}
		if p != nil {
			if a.Port = int16(p.Num()); n.IsSwitch() {
				t.Port = p.Num()
			} else if p.LID() != 0 {
				t.Dest.LID = p.LID()
			}
		}
		tables, of = append(tables, t), append(of, a)
	}
	for i := range nodes {
		n := &nodes[i]
		if !n.IsSwitch() {
			for p := range n.Ports() {
				if p.Peer() != nil {
					add(PKeyKind, n, p, p.Route())
					add(SL2VLKind, n, p, p.Route())
					add(VLArbKind, n, p, p.Route())
				}
			}
			continue
		}
		add(PKeyKind, n, n.Port(0), n.Route())
		add(SL2VLKind, n, nil, n.Route())
		add(MulticastKind, n, nil, n.Route())
		enforces := n.SwitchInfo() != nil && n.SwitchInfo().PartitionEnforcementCap > 0
		for p := range n.Ports() {
			if enforces {
				add(PKeyKind, n, p, n.Route())
			}
			if p.Peer() != nil {
				add(VLArbKind, n, p, n.Route())
			}
		}
	}
	if err := ReadTables(r.ctx, r.client.Engine, tables...); err != nil {
		return err
	}
	for i, t := range tables {
		if t.Err != nil {
			a := of[i]
			if a.Modifier = uint32(max(t.Port, 0)) << 16; len(t.Modifiers) > 0 {
				a.Modifier = t.Modifiers[0]
			}
			r.failed(a, t.Kind.Attr.Name, t.Err)
			continue
		}
		for b, modifier := range t.Modifiers {
			a := of[i]
			a.Modifier, a.Data = modifier, t.block(t.Data, b)
			r.Answers = append(r.Answers, a)
		}
	}
	return nil
}

// failed notes that the request for a got no answer. An unsupported attribute counts as
// answered.
func (r *answerReader) failed(a fabric.Answer, what string, err error) {
	var e *engine.Error
	var unsupported *UnsupportedError
	switch {
	case errors.As(err, &unsupported), errors.As(err, &e) && e.Err == nil:
	case errors.Is(err, engine.ErrTimeout):
		if a.Class != 0 {
			r.Answers = append(r.Answers, a)
		}
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemTimedOut, Text: fmt.Sprintf("%s is unknown: %v", what, err)})
	default:
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemFailed, Text: fmt.Sprintf("%s is unknown: %v", what, err)})
	}
}

// general reads an attribute by general packets to the LIDs of ports; of describes each
// answer, without its data. It returns the data, or nil.
func (r *answerReader) general(local *engine.Port, attr *mad.Attribute, ports []*fabric.Port, modifier uint32) ([][]byte, error) {
	calls, open := make([]engine.Call, len(ports)), make([]*engine.Call, len(ports))
	for i, p := range ports {
		data := make([]byte, attr.Class.DataSize())
		if f := attr.Field("port_select"); f != nil {
			f.SetUint(data, uint64(p.Num()))
		}
		calls[i].PutMAD(mad.Header{Class: attr.Class, ClassVersion: attr.Class.Version(), Method: mad.MethodGet, Attribute: attr.ID, Modifier: modifier}, data)
		if err := r.client.PutGMP(&calls[i], local, p.LID()); err != nil {
			return nil, r.unlessEnded(attr.Name, err)
		}
		open[i] = &calls[i]
	}
	if err := r.client.Engine.Do(r.ctx, open...); err != nil {
		return nil, err
	}
	answers := make([][]byte, len(ports))
	for i := range calls {
		a := fabric.Answer{Node: int32(ports[i].Node().ID()), Port: int16(ports[i].Num()), Class: attr.Class, ID: attr.ID, Modifier: modifier}
		if calls[i].Err != nil {
			r.failed(a, attr.Name, calls[i].Err)
			continue
		}
		a.Data = slices.Clone(calls[i].Data()[:attr.Size])
		answers[i] = a.Data
		r.Answers = append(r.Answers, a)
	}
	return answers, nil
}

// agentPorts returns the ports that have the LIDs of nodes, and all ports that have counters,
// with the index of the agent of each.
func (r *answerReader) agentPorts() (agents, ports []*fabric.Port, of []int) {
	for i := range r.f.Nodes() {
		n := &r.f.Nodes()[i]
		agent := -1
		if n.IsSwitch() && n.LID() != 0 {
			agent, agents = len(agents), append(agents, n.Port(0))
		}
		for p := range n.Ports() {
			if p.LID() == 0 || p.Peer() == nil && p.PhysicalState() != mad.PortPhysicalStateLinkUp {
				continue
			}
			if !n.IsSwitch() {
				agent, agents = len(agents), append(agents, p)
			}
			ports, of = append(ports, p), append(of, agent)
		}
	}
	return agents, ports, of
}

// learn reads the local port, and learns the service levels of general packets to ports.
func (r *answerReader) learn(ports []*fabric.Port) (local engine.Port, err error) {
	if local, err = r.client.Engine.Port(); err != nil {
		return local, err
	}
	lids := make([]mad.LID, len(ports))
	for i, p := range ports {
		lids[i] = p.LID()
	}
	var path *sa.PathError
	if err := r.client.LearnPaths(r.ctx, &local, lids); err != nil && !errors.As(err, &path) {
		return local, err
	}
	return local, nil
}

// counters reads the counters of the ports that have a link: the counters that their agents
// announce, and the details of what has been counted.
func (r *answerReader) counters() error {
	agents, ports, of := r.agentPorts()
	local, err := r.learn(agents)
	if err != nil {
		return r.unlessEnded("counters", err)
	}
	infos, err := r.general(&local, mad.AttrPerfClassPortInfo, agents, 0)
	if err != nil || infos == nil {
		return err
	}
	counts := make([]map[string]bool, len(ports)) // that are not 0
	read := func(attr *mad.Attribute, wanted func(i int, caps mad.PerfCapabilityMask) bool) error {
		var list []*fabric.Port
		var index []int
		for i, p := range ports {
			var info mad.ClassPortInfo
			if data := infos[of[i]]; data != nil {
				info.Decode(data)
			}
			if wanted(i, mad.PerfCapabilityMask(info.CapabilityMask)) {
				list, index = append(list, p), append(index, i)
			}
		}
		answers, err := r.general(&local, attr, list, 0)
		for at, data := range answers {
			for _, name := range detailed {
				if f := attr.Field(name); f != nil && data != nil && f.Uint(data) > 0 {
					if counts[index[at]] == nil {
						counts[index[at]] = map[string]bool{}
					}
					counts[index[at]][name] = true
				}
			}
		}
		return err
	}
	all := func(int, mad.PerfCapabilityMask) bool { return true }
	wide := func(_ int, caps mad.PerfCapabilityMask) bool {
		return caps&(mad.PerfCapabilityMaskIsExtendedWidthSupported|mad.PerfCapabilityMaskIsExtendedWidthSupportedNoIETF) != 0
	}
	fec := func(_ int, caps mad.PerfCapabilityMask) bool {
		return caps&mad.PerfCapabilityMaskIsRSFECModeSupported != 0
	}
	for _, x := range []struct {
		attr   *mad.Attribute
		wanted func(int, mad.PerfCapabilityMask) bool
	}{
		{mad.AttrPortCounters, all}, {mad.AttrPortCountersExtended, wide}, {mad.AttrPortExtendedSpeedsCounters, fec},
		{mad.AttrPortRcvErrorDetails, func(i int, _ mad.PerfCapabilityMask) bool {
			return counts[i]["port_rcv_errors"] || counts[i]["port_rcv_switch_relay_errors"]
		}},
		{mad.AttrPortXmitDiscardDetails, func(i int, _ mad.PerfCapabilityMask) bool { return counts[i]["port_xmit_discards"] }},
	} {
		if err := read(x.attr, x.wanted); err != nil {
			return err
		}
	}
	var modes []*fabric.Port
	for i, p := range ports {
		var info mad.ClassPortInfo
		if data := infos[of[i]]; data != nil {
			info.Decode(data)
		}
		if fec(i, mad.PerfCapabilityMask(info.CapabilityMask)) {
			modes = append(modes, p)
		}
	}
	return r.management(mad.AttrPortInfoExtended, modes, func(p *fabric.Port) uint32 { return uint32(p.Num()) })
}

// detailed are the counters that there are details of (IBA 16.1.4.1, 16.1.4.2).
var detailed = []string{"port_rcv_errors", "port_rcv_switch_relay_errors", "port_xmit_discards"}

// management reads an attribute of subnet management of ports.
func (r *answerReader) management(attr *mad.Attribute, ports []*fabric.Port, modifier func(*fabric.Port) uint32) error {
	calls, open := make([]engine.Call, len(ports)), []*engine.Call{}
	for i, p := range ports {
		open = append(open, fabric.Dest{Route: p.Route(), LID: p.LID(), Guard: p.Guard()}.Put(&calls[i], mad.MethodGet, attr, modifier(p), nil))
	}
	if err := r.client.Engine.Do(r.ctx, open...); err != nil {
		return err
	}
	for i, p := range ports {
		a := fabric.Answer{Node: int32(p.Node().ID()), Port: int16(p.Num()), Class: mad.ClassSubn, ID: attr.ID, Modifier: modifier(p)}
		if calls[i].Err != nil {
			r.failed(a, attr.Name, calls[i].Err)
			continue
		}
		a.Data = slices.Clone(calls[i].Data()[:attr.Size])
		r.Answers = append(r.Answers, a)
	}
	return nil
}

// congestion reads congestion control of ports that have it.
func (r *answerReader) congestion() error {
	agents, _, _ := r.agentPorts()
	local, err := r.learn(agents)
	if err != nil {
		return r.unlessEnded("congestion control", err)
	}
	infos, err := r.general(&local, mad.AttrCongestionInfo, agents, 0)
	if err != nil || infos == nil {
		return err
	}
	var switches, cas []*fabric.Port
	var blocks []int
	for i, p := range agents {
		switch {
		case infos[i] == nil:
		case p.Node().IsSwitch():
			switches = append(switches, p)
		case p.Node().Type() == mad.NodeTypeCA:
			cas = append(cas, p)
			blocks = append(blocks, int(mad.AttrCongestionInfo.Field("control_table_cap").Uint(infos[i])))
		}
	}
	if _, err := r.general(&local, mad.AttrSwitchCongestionSetting, switches, 0); err != nil {
		return err
	}
	if _, err := r.general(&local, mad.AttrCACongestionSetting, cas, 0); err != nil {
		return err
	}
	for block := range slices.Max(append(blocks, 0)) {
		var more []*fabric.Port
		for i, p := range cas {
			if block < blocks[i] {
				more = append(more, p)
			}
		}
		if _, err := r.general(&local, mad.AttrCongestionControlTable, more, uint32(block)); err != nil {
			return err
		}
	}
	return nil
}

// managers reads SMInfo of all ports that report a subnet manager, or that other ports take
// for the port of the master, and the records of the subnet administrator.
func (r *answerReader) managers() error {
	local, err := r.client.Engine.Port()
	if err != nil {
		return r.unlessEnded("SMInfo", err)
	}
	taken := map[*fabric.Port]bool{}
	if p := r.f.PortByLID(local.SMLID); p != nil {
		taken[p] = true
	}
	agents, _, _ := r.agentPorts()
	for _, p := range agents {
		if p.Info() != nil && p.Info().PortState == mad.PortStateActive {
			if q := r.f.PortByLID(p.Info().MasterSMLID); q != nil {
				taken[q] = true
			}
		}
	}
	agents = slices.DeleteFunc(agents, func(p *fabric.Port) bool {
		return !taken[p] && (p.Info() == nil || p.Info().CapabilityMask&mad.CapabilityMaskIsSM == 0)
	})
	if err := r.management(mad.AttrSMInfo, agents, func(*fabric.Port) uint32 { return 0 }); err != nil {
		return err
	}
	data, err := r.client.Query(r.ctx, sa.NewRequest(mad.MethodGet, mad.AttrSubnAdmClassPortInfo, nil))
	a := fabric.Answer{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: mad.AttrSubnAdmClassPortInfo.ID}
	switch {
	case errors.Is(err, sa.ErrNoSM):
		return nil
	case err != nil && r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case err != nil:
		r.failed(a, "ClassPortInfo of the subnet administrator", err)
	default:
		a.Data = slices.Clone(data[:mad.AttrSubnAdmClassPortInfo.Size])
		r.Answers = append(r.Answers, a)
	}
	for _, attr := range StoredRecords {
		a.ID, a.Data = attr.ID, nil
		records, err := r.client.Table(r.ctx, sa.NewRequest(mad.MethodGetTable, attr, nil))
		if err != nil {
			if r.ctx.Err() != nil {
				return context.Cause(r.ctx)
			}
			r.failed(a, attr.Name, err)
			continue
		}
		for data := range records {
			a.Data = slices.Clone(data[:attr.Size])
			r.Answers = append(r.Answers, a)
		}
	}
	return nil
}

// unlessEnded notes err, unless it is the end of ctx.
func (r *answerReader) unlessEnded(what string, err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.failed(fabric.Answer{}, what, err)
	return nil
}
