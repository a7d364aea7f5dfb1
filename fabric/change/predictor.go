package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// Predictor predicts the effects of different links that go down in one fabric. It is
// immutable.
type Predictor struct {
	*Baseline
	options PredictOptions
	load    int64
	engine  string // of the subnet manager; "": unknown
	basis   string // of predictions: Effect.Basis
}

// NewPredictor returns the predictor for the tables in force.
func NewPredictor(ctx context.Context, live *routes.Routes, o PredictOptions) (*Predictor, error) {
	b, err := NewBaseline(ctx, live, o.Lanes)
	if err != nil {
		return nil, err
	}
	p := &Predictor{Baseline: b, options: o}
	if p.load, err = largest(ctx, p.routes); err != nil || !o.Managed {
		return p, err
	}
	if o.Engine != "" {
		p.engine, p.basis = o.Engine, "by "+o.Engine
		return p, nil
	}
	return p, p.recognise(ctx)
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
	f := p.routes.Graph().Fabric()
	e.Split, e.LastPath, e.Needed = CutOff(f, down), lastPath(f, down), p.needed(down)
	g, err := p.routes.Graph().Part(func(port *fabric.Port) bool { return !down[port] })
	if err != nil {
		return nil, err
	}
	cut := p.routes.SeenOn(g)
	d, err := p.predicted(ctx, cut)
	if err != nil {
		return nil, err
	}
	e.Through = d.Lost
	after := cut
	if p.options.Managed {
		if after, err = p.predict(ctx, g, e); err != nil {
			return nil, err
		}
		if d, err = p.predicted(ctx, after); err != nil {
			return nil, err
		}
		paths, err := traffic.CountRerouted(ctx, after, p.routes, func(port *fabric.Port) *fabric.Port { return port })
		if err != nil {
			return nil, err
		}
		e.Rerouted = paths.Pairs - paths.Broken
	}
	e.Lost, e.CreditLoop = d.Lost, d.CreditLoop
	e.LoadAfter, err = largest(ctx, after)
	return e, err
}

// predict returns the tables that the subnet manager is expected to make for g, the graph
// without the links.
func (p *Predictor) predict(ctx context.Context, g *graph.Graph, e *Effect) (*routes.Routes, error) {
	if p.engine != "" {
		after, err := engines.Compute(ctx, g, p.engine, engines.Options{})
		if inapplicable := new(engines.Precondition); !errors.As(err, &inapplicable) {
			e.Engine, e.Basis = p.engine, p.basis
			return after, err
		}
		e.Notes = append(e.Notes, fmt.Sprintf("%v without these links", err))
	}
	if e.Basis = "by a repair of the tables in force"; p.engine == "" {
		e.Basis = p.basis
	}
	return repair.Tables(ctx, p.routes, g)
}

// predicted compares predicted tables with b. Lanes that are read are those in force.
func (b *Baseline) predicted(ctx context.Context, r *routes.Routes) (*EffectDifference, error) {
	alone := *b
	alone.lanes = nil
	return alone.Compare(ctx, r)
}

// needed names a port of the needed LIDs that is down; "": none is.
func (p *Predictor) needed(down map[*fabric.Port]bool) string {
	g := p.routes.Graph()
	for _, lid := range p.options.Needed {
		if t := g.TerminalByLID(lid); t >= 0 && down[g.Terminals()[t].Port] {
			return g.Terminals()[t].Port.Name()
		}
	}
	return ""
}

// largest is the largest number of pairs on a link.
func largest(ctx context.Context, r *routes.Routes) (int64, error) {
	load, err := verify.CountAllRoutes(ctx, r)
	return traffic.DistributionOf(load).Max, err
}
