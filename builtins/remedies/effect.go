package remedies

import (
	"context"
	"io"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/remedy"
	"fabsh/fabric/routing/routes"
)

// newCase returns what actions on f, as it was just swept or read from a file, are judged by.
// The forwarding tables are read when an action needs them.
func newCase(ctx context.Context, r *lang.Runtime, f *fabric.Fabric, state *remedy.State) (*remedy.Case, error) {
	env := topology.EnvOf(r)
	c := &remedy.Case{Fabric: f, State: state, Manager: managerOf(f)}
	managed := c.Manager != nil
	if env.Engine != nil {
		c.Host = f.From()
		sm, err := env.SA.FindSM(ctx, f)
		if err != nil {
			return nil, err
		}
		if managed = sm != nil; managed && sm.Info != nil {
			if ports := f.PortByGUID(sm.Info.GUID); len(ports) > 0 {
				c.Manager = ports[0]
			}
		}
	}
	if env.Engine == nil && !f.HasLFTs() {
		return c, nil // the effect is unknown
	}
	p := predictors{runtime: r, managed: managed, needed: []*fabric.Port{c.Host, c.Manager}}
	c.Effect = func(ctx context.Context, ports []*fabric.Port) (refusal, cost string, err error) {
		e, err := p.predict(ctx, f, ports)
		if err != nil {
			return "", "", err
		}
		return e.Refusal(), e.String(), nil
	}
	return c, nil
}

// managerOf returns the port of the master subnet manager, by the PortInfo of the first port
// that names it; nil: unknown.
func managerOf(f *fabric.Fabric) *fabric.Port {
	for i := range f.Ports() {
		if info := f.Ports()[i].Info(); info != nil && info.MasterSMLID != 0 {
			if p := f.PortByLID(info.MasterSMLID); p != nil {
				return p
			}
		}
	}
	return nil
}

// predictors predict effects. They read the tables in force when the first is needed.
type predictors struct {
	runtime *lang.Runtime
	managed bool
	needed  []*fabric.Port // whose links must stay; some may be nil

	live            *routes.Routes
	likely, minimal *change.Predictor
}

// predict predicts the effect on f. If the engine of the subnet manager is unknown, its tables
// may be others than the repaired ones, and those of the shortest paths must not have a credit
// loop either.
func (p *predictors) predict(ctx context.Context, f *fabric.Fabric, ports []*fabric.Port) (e *change.Effect, err error) {
	if p.live == nil {
		if p.live, err = audits.ReadRoutes(ctx, p.runtime, f, false); err != nil {
			return nil, err
		}
	}
	if p.likely, err = p.with(ctx, p.likely, ""); err != nil {
		return nil, err
	}
	e, err = p.likely.Without(ctx, ports)
	if err != nil || !p.managed || e.Engine != "" || e.Refusal() != "" {
		return e, err
	}
	if p.minimal, err = p.with(ctx, p.minimal, "minhop"); err != nil {
		return nil, err
	}
	other, err := p.minimal.Without(ctx, ports)
	if err == nil && other.Refusal() != "" {
		return other, nil
	}
	return e, err
}

// with returns x, or a new predictor for an engine; "": that of the tables in force.
func (p *predictors) with(ctx context.Context, x *change.Predictor, engine string) (*change.Predictor, error) {
	if x != nil {
		return x, nil
	}
	o := change.PredictOptions{Managed: p.managed, Engine: engine}
	for _, port := range p.needed {
		if port != nil && port.LID() != 0 {
			o.Needed = append(o.Needed, port.LID())
		}
	}
	if env := topology.EnvOf(p.runtime); env.Engine != nil {
		t := change.Tables{Live: p.live}
		levels := change.Levels{Client: env.SA, File: env.Levels, Open: func(path string) (io.ReadCloser, error) { return p.runtime.Files.OpenNamed(ctx, path) }}
		levels.InForce(&t, env.Engine)
		o.Lanes = t.InLanes
	}
	return change.NewPredictor(ctx, p.live, o)
}
