package change

import (
	"context"
	"fmt"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Baseline are the paths of a fabric at some time, with which later tables are compared,
// predicted or read. It is immutable.
type Baseline struct {
	routes *routes.Routes // without choices of adaptive routing
	loop   bool           // a credit loop exists
	notes  []string       // what was not judged
	lanes  AddLanes
}

// AddLanes adds virtual lanes and service levels to tables of the current fabric.
type AddLanes func(ctx context.Context, r *routes.Routes) error

// EffectDifference is what later tables have instead of a baseline's paths.
type EffectDifference struct {
	// Lost are pairs that had a path and have none; Example is one of them.
	Lost    int64
	Example string
	// CreditLoop describes a credit loop; "": none exists. LoopBefore reports that the
	// baseline has one.
	CreditLoop string
	LoopBefore bool
}

// NewBaseline returns the paths of tables. lanes is called only where the tables have a
// credit loop on one lane; nil: lanes are unknown.
func NewBaseline(ctx context.Context, r *routes.Routes, lanes AddLanes) (*Baseline, error) {
	b := &Baseline{routes: r.StaticPart(), lanes: lanes}
	if r.HasChoices() {
		b.notes = append(b.notes, "only the forwarding tables are judged, not the choices of adaptive routing")
	}
	judged, v, note, err := judge(ctx, b.routes, verify.Options{}, lanes)
	if err != nil {
		return nil, err
	}
	if note != "" {
		b.notes = append(b.notes, note)
	}
	b.routes, b.loop = judged, !v.Acyclic
	return b, nil
}

// Compare compares the tables of the same subnet, perhaps of a later sweep, with b.
func (b *Baseline) Compare(ctx context.Context, r *routes.Routes) (*EffectDifference, error) {
	_, v, _, err := judge(ctx, r.StaticPart(), verify.Options{Require: func(src, dst *graph.Terminal) bool {
		return b.connects(src.LID, dst.LID)
	}}, b.lanes)
	if err != nil {
		return nil, err
	}
	d := &EffectDifference{Lost: v.Unreachable, LoopBefore: b.loop}
	if len(v.Broken) > 0 {
		d.Example = fmt.Sprintf("%s to LID %d: %s", v.Broken[0].From.Name(), v.Broken[0].LID, v.Broken[0].Why)
	}
	if !v.Acyclic {
		d.CreditLoop = fmt.Sprintf("a credit loop of %d links, such as %s -> %s", len(v.Cycle), v.Cycle[0].Port.Name(), v.Cycle[0].Port.Peer().Name())
	}
	b.vanished(r.Graph(), d)
	return d, nil
}

// judge verifies tables, with their lanes if they have a credit loop without.
func judge(ctx context.Context, r *routes.Routes, o verify.Options, lanes AddLanes) (judged *routes.Routes, v *verify.Verdict, note string, err error) {
	if v, err = verify.Tables(ctx, r, o); err != nil || v.Acyclic || r.SL2VL != nil {
		return r, v, "", err
	}
	const unknown = "credit loops are judged as if all packets were on one virtual lane"
	if lanes == nil {
		return r, v, unknown, nil
	}
	laned := *r
	if err := lanes(ctx, &laned); ctx.Err() != nil {
		return nil, nil, "", context.Cause(ctx)
	} else if err != nil {
		return r, v, fmt.Sprintf("%s: %v", unknown, err), nil
	}
	v, err = verify.Tables(ctx, &laned, o)
	return &laned, v, "", err
}

// connects reports whether the tables of b lead from one LID to the other.
func (b *Baseline) connects(src, dst mad.LID) bool {
	path, err := b.routes.Trace(src, dst)
	return err == nil && path.Broken == ""
}

// vanished adds to d the pairs of ports of CAs and routers that are not in g, or have
// another LID there.
func (b *Baseline) vanished(g *graph.Graph, d *EffectDifference) {
	before := b.routes.Graph().Terminals()
	gone := make([]bool, len(before))
	for i := range before {
		t := &before[i]
		if !t.IsEndpoint(0) {
			continue
		}
		now := g.TerminalByLID(t.LID)
		if now < 0 {
			gone[i] = true
			continue
		}
		port := g.Terminals()[now].Port
		gone[i] = port.Node().GUID() != t.Port.Node().GUID() || port.Num() != t.Port.Num()
	}
	for i := range before {
		for j := range before {
			if i == j || !gone[i] && !gone[j] || !before[i].IsEndpoint(0) || !before[j].IsEndpoint(0) {
				continue
			}
			if b.connects(before[i].LID, before[j].LID) {
				d.Lost += int64(before[j].Count)
			}
			if gone[i] && d.Example == "" {
				d.Example = fmt.Sprintf("%s with LID %d is gone", before[i].Port.Name(), before[i].LID)
			}
		}
	}
}
