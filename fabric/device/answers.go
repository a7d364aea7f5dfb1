package device

import (
	"context"
	"errors"
	"fmt"
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
// answers.
// What a node does not have, or refuses, is left out; what got no answer is in
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

// failed notes a request without an answer, which a would be. An unsupported
// attribute counts as answered.
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
