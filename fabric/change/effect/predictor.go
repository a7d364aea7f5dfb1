package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing/engine"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/routing/walk"
)

// Predictor predicts the effects of different links that go down in one fabric. It is
// immutable.
type Predictor struct {
	options Options
	live    *routes.Routes // in force, without choices of adaptive routing
	load    int64
	loop    bool   // live has a credit loop
	engine  string // of the subnet manager; "": unknown
	basis   string // of predictions: Effect.Basis
	notes   []string
}

// NewPredictor returns the predictor for the tables in force.
func NewPredictor(ctx context.Context, live *routes.Routes, o Options) (*Predictor, error) {
	p := &Predictor{options: o, live: live.StaticPart()}
	if live.HasChoices() {
		p.notes = append(p.notes, "the choices of adaptive routing are not predicted, only the forwarding tables")
	}
	v, err := verify.Tables(ctx, p.live, verify.Options{})
	if err == nil && !v.Acyclic && p.live.SL2VL == nil {
		v, err = p.inLanes(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	p.loop = !v.Acyclic
	if p.load, err = largest(ctx, p.live); err != nil || !o.Managed {
		return p, err
	}
	if o.Engine != "" {
		p.engine, p.basis = o.Engine, "by "+o.Engine
		return p, nil
	}
	return p, p.recognise(ctx)
}

// inLanes judges the tables in force again, with their virtual lanes.
func (p *Predictor) inLanes(ctx context.Context, v *verify.Verdict) (*verify.Verdict, error) {
	const unknown = "credit loops are judged as if all packets were on one virtual lane"
	if p.options.Lanes == nil {
		p.notes = append(p.notes, unknown)
		return v, nil
	}
	live := *p.live
	if err := p.options.Lanes(ctx, &live); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: %v", unknown, err))
		return v, nil
	}
	p.live = &live
	return verify.Tables(ctx, p.live, verify.Options{})
}

// Without predicts the effect of taking down the links of ports, either end of each.
func (p *Predictor) Without(ctx context.Context, ports []*fabric.Port) (*Effect, error) {
	e := &Effect{Managed: p.options.Managed, LoadBefore: p.load, LoopBefore: p.loop, Notes: slices.Clone(p.notes)}
	down := map[*fabric.Port]bool{}
	for _, port := range ports {
		peer := port.Peer()
		if peer == nil || down[port] {
			continue
		}
		down[port], down[peer] = true, true
		e.Links = append(e.Links, port.Name()+" - "+peer.Name())
	}
	f := p.live.Graph().Fabric()
	e.Split, e.LastPath, e.Needed = CutOff(f, down), lastPath(f, down), p.needed(down)
	g, err := p.live.Graph().Part(func(port *fabric.Port) bool { return !down[port] })
	if err != nil {
		return nil, err
	}
	cut := p.live.SeenOn(g)
	v, err := p.judge(ctx, cut)
	if err != nil {
		return nil, err
	}
	e.Through = v.Unreachable
	after := cut
	if p.options.Managed {
		if after, err = p.predict(ctx, g, e); err != nil {
			return nil, err
		}
		if v, err = p.judge(ctx, after); err != nil {
			return nil, err
		}
		paths, err := traffic.CountRerouted(ctx, after, p.live, func(port *fabric.Port) *fabric.Port { return port })
		if err != nil {
			return nil, err
		}
		e.Rerouted = paths.Pairs - paths.Broken
	}
	e.Lost = v.Unreachable
	if !v.Acyclic {
		e.CreditLoop = fmt.Sprintf("a credit loop of %d links, such as %s -> %s", len(v.Cycle), v.Cycle[0].Port.Name(), v.Cycle[0].Port.Peer().Name())
	}
	e.LoadAfter, err = largest(ctx, after)
	return e, err
}

// predict returns the tables that the subnet manager is expected to make for g, the graph
// without the links.
func (p *Predictor) predict(ctx context.Context, g *graph.Graph, e *Effect) (*routes.Routes, error) {
	if p.engine != "" {
		after, err := engine.Compute(ctx, g, p.engine, engine.Options{})
		if inapplicable := new(engine.Precondition); !errors.As(err, &inapplicable) {
			e.Engine, e.Basis = p.engine, p.basis
			return after, err
		}
		e.Notes = append(e.Notes, fmt.Sprintf("%v without these links", err))
	}
	if e.Basis = "by a repair of the tables in force"; p.engine == "" {
		e.Basis = p.basis
	}
	return repair.Tables(ctx, p.live, g)
}

// judge verifies tables. Unreachable are those pairs that the tables in force connect.
func (p *Predictor) judge(ctx context.Context, r *routes.Routes) (*verify.Verdict, error) {
	return verify.Tables(ctx, r, verify.Options{Require: func(src, dst *graph.Terminal) bool {
		path, err := p.live.Trace(src.LID, dst.LID)
		return err == nil && path.Broken == ""
	}})
}

// needed names a port of the needed LIDs that is down; "": none is.
func (p *Predictor) needed(down map[*fabric.Port]bool) string {
	g := p.live.Graph()
	for _, lid := range p.options.Needed {
		if t := g.TerminalByLID(lid); t >= 0 && down[g.Terminals()[t].Port] {
			return g.Terminals()[t].Port.Name()
		}
	}
	return ""
}

// largest is the largest number of pairs on a link.
func largest(ctx context.Context, r *routes.Routes) (int64, error) {
	load, err := walk.CountAllRoutes(ctx, r)
	return traffic.DistributionOf(load).Max, err
}
