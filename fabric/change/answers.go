package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// answerBatch is how many nodes are read at once: it bounds memory.
const answerBatch = 128

// ReadAnswers reads what audits look at beyond a sweep and forwarding tables: the
// P_Key, SLtoVL and VL arbitration tables and the multicast forwarding tables of all
// nodes, the counters of all ports with a link, SMInfo of the subnet manager, and
// the groups and services of the subnet administrator, where one answers.
// What a node does not have, or refuses, is left out; what got no answer is in
// Problems. The error is the end of ctx.
func ReadAnswers(ctx context.Context, c *sa.Client, f *fabric.Fabric) (fabric.Reading, error) {
	r := answerReader{ctx: ctx, client: c, f: f}
	for first := 0; first < len(f.Nodes()); first += answerBatch {
		nodes := f.Nodes()[first:min(first+answerBatch, len(f.Nodes()))]
		if err := r.tables(nodes); err != nil {
			return fabric.Reading{}, err
		}
	}
	if err := r.counters(); err != nil {
		return fabric.Reading{}, err
	}
	if err := r.manager(); err != nil {
		return fabric.Reading{}, err
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
					add(PKeyTable, n, p, p.Route())
					add(SL2VLTable, n, p, p.Route())
					add(VLArbTable, n, p, p.Route())
				}
			}
			continue
		}
		add(PKeyTable, n, n.Port(0), n.Route())
		add(SL2VLTable, n, nil, n.Route())
		add(MulticastTable, n, nil, n.Route())
		enforces := n.SwitchInfo() != nil && n.SwitchInfo().PartitionEnforcementCap > 0
		for p := range n.Ports() {
			if enforces {
				add(PKeyTable, n, p, n.Route())
			}
			if p.Peer() != nil {
				add(VLArbTable, n, p, n.Route())
			}
		}
	}
	if err := ReadTables(r.ctx, r.client.Engine, tables...); err != nil {
		return err
	}
	for i, t := range tables {
		if t.Err != nil {
			r.failed(t.Kind.Attr.Name, t.Err)
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

// failed notes a request without an answer. That something is not supported is one.
func (r *answerReader) failed(what string, err error) {
	var e *engine.Error
	var unsupported *UnsupportedError
	switch {
	case errors.As(err, &unsupported), errors.As(err, &e) && e.Err == nil:
	case errors.Is(err, engine.ErrTimeout):
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemTimedOut, Text: fmt.Sprintf("%s is unknown: %v", what, err)})
	default:
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemFailed, Text: fmt.Sprintf("%s is unknown: %v", what, err)})
	}
}

// counters reads the counters of the ports that have a link.
func (r *answerReader) counters() error {
	local, err := r.client.Engine.Port()
	if err != nil {
		return r.unlessEnded("counters", err)
	}
	var ports []*fabric.Port
	var lids []mad.LID
	for i := range r.f.Ports() {
		if p := &r.f.Ports()[i]; p.Num() > 0 && p.Peer() != nil && p.LID() != 0 {
			ports, lids = append(ports, p), append(lids, p.LID())
		}
	}
	var path *sa.PathError
	if err := r.client.LearnPaths(r.ctx, &local, lids); err != nil && !errors.As(err, &path) {
		return r.unlessEnded("counters", err)
	}
	for _, attr := range []*mad.Attribute{mad.AttrPortCounters, mad.AttrPortCountersExtended} {
		calls, open := make([]engine.Call, len(ports)), make([]*engine.Call, len(ports))
		for i, p := range ports {
			data := make([]byte, mad.ClassPerf.DataSize())
			attr.Field("port_select").SetUint(data, uint64(p.Num()))
			calls[i].PutPerf(mad.MethodGet, attr.ID, 0, data)
			if err := r.client.PutGMP(&calls[i], &local, p.LID()); err != nil {
				return r.unlessEnded("counters", err)
			}
			open[i] = &calls[i]
		}
		if err := r.client.Engine.Do(r.ctx, open...); err != nil {
			return err
		}
		for i := range calls {
			if calls[i].Err != nil {
				r.failed(attr.Name, calls[i].Err)
				continue
			}
			r.Answers = append(r.Answers, fabric.Answer{Node: int32(ports[i].Node().ID()), Port: int16(ports[i].Num()), Class: attr.Class, ID: attr.ID, Data: slices.Clone(calls[i].Data()[:attr.Size])})
		}
	}
	return nil
}

// manager reads SMInfo of the subnet manager, and the records of the subnet
// administrator that no attribute of a node has.
func (r *answerReader) manager() error {
	local, err := r.client.Engine.Port()
	if err != nil {
		return r.unlessEnded("SMInfo", err)
	}
	if sm := r.f.PortByLID(local.SMLID); sm != nil {
		var call engine.Call
		fabric.Dest{LID: local.SMLID, Guard: sm.Guard()}.Put(&call, mad.MethodGet, mad.AttrSMInfo, 0, nil)
		if err := r.client.Engine.Do(r.ctx, &call); err != nil {
			return err
		}
		if call.Err != nil {
			r.failed(mad.AttrSMInfo.Name, call.Err)
		} else {
			r.Answers = append(r.Answers, fabric.Answer{Node: int32(sm.Node().ID()), Port: int16(sm.Num()), Class: mad.ClassSubn, ID: mad.AttrSMInfo.ID, Data: slices.Clone(call.Data()[:mad.AttrSMInfo.Size])})
		}
	}
	for _, attr := range []*mad.Attribute{mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord, mad.AttrSMInfoRecord} {
		records, err := r.client.Table(r.ctx, sa.NewRequest(mad.MethodGetTable, attr, nil))
		if errors.Is(err, sa.ErrNoSM) {
			return nil
		}
		if err != nil {
			if err := r.unlessEnded(attr.Name, err); err != nil {
				return err
			}
			continue
		}
		for data := range records {
			r.Answers = append(r.Answers, fabric.Answer{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: attr.ID, Data: slices.Clone(data[:attr.Size])})
		}
	}
	return nil
}

// unlessEnded notes err, unless it is the end of ctx.
func (r *answerReader) unlessEnded(what string, err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.failed(what, err)
	return nil
}
