package run

import (
	"context"
	"io"

	"fabsh/builtins/lang"
	"fabsh/builtins/read"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change/effect"
	"fabsh/fabric/change/plan"
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
	var predictor *effect.Predictor
	c.Effect = func(ctx context.Context, ports []*fabric.Port) (refusal, cost string, err error) {
		if predictor == nil {
			if predictor, err = newPredictor(ctx, r, c, managed); err != nil {
				return "", "", err
			}
		}
		e, err := predictor.Without(ctx, ports)
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

// newPredictor reads the tables in force.
func newPredictor(ctx context.Context, r *lang.Runtime, c *remedy.Case, managed bool) (*effect.Predictor, error) {
	live, err := read.Routes(ctx, r, c.Fabric, false)
	if err != nil {
		return nil, err
	}
	env := topology.EnvOf(r)
	o := effect.Options{Managed: managed}
	for _, p := range []*fabric.Port{c.Host, c.Manager} {
		if p != nil && p.LID() != 0 {
			o.Needed = append(o.Needed, p.LID())
		}
	}
	if env.Engine != nil {
		t := plan.Tables{Live: live}
		levels := plan.Levels{Client: env.SA, File: env.Levels, Open: func(path string) (io.ReadCloser, error) { return r.Files.OpenNamed(ctx, path) }}
		levels.InForce(&t, env.Engine)
		o.Lanes = func(ctx context.Context, live *routes.Routes) error { return t.Lanes(ctx, live) }
	}
	return effect.NewPredictor(ctx, live, o)
}
