package audits

import (
	"context"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/tenant"
)

// ReadFabric returns the latest fabric, or the fabric of a sweep if no fabric was read yet.
func ReadFabric(ctx context.Context, r *lang.Runtime) (*fabric.Fabric, error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	f, err := topology.CurrentFabric(t)
	if err != nil {
		return nil, err
	}
	return f.Fabric, nil
}

// ReadRates reads the counters of ports of the latest fabric once, and compares with the previous
// read of p. It prints no warnings; requests without an answer are counted.
func ReadRates(ctx context.Context, r *lang.Runtime, p *Poller, ports []*fabric.Port) (rates []audit.PortRates, err error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: r, Context: ctx, Sink: lang.Discard{}, Account: &r.Account}, "command")
	defer release()
	err = lang.Operate(t, "", func(c *lang.Call) (err error) {
		rates, err = p.Read(c, ports)
		return err
	})
	return rates, err
}

// ReadRoutes reads the tables of all switches of a fabric; with adaptive, also the tables of
// adaptive routing where it is on.
func ReadRoutes(ctx context.Context, r *lang.Runtime, f *fabric.Fabric, adaptive bool) (*routes.Routes, error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	return values.ReadRoutes(t, f, adaptive)
}

// ReadLanes gives r, tables that were just read, the virtual lanes of the switches, or of the snapshot
// that the session reads.
func ReadLanes(ctx context.Context, rt *lang.Runtime, r *routes.Routes) error {
	t, release := rt.Thread(ctx, "command")
	defer release()
	return lang.Operate(t, "", func(c *lang.Call) error { return values.ReadSL2VL(c, r) })
}

// VerifyInLanes returns the verdict on tables that were just read, with their virtual lanes if v, the verdict
// on the tables alone, has a credit loop.
func VerifyInLanes(ctx context.Context, rt *lang.Runtime, r *routes.Routes, o verify.Options, v *verify.Verdict) (judged *verify.Verdict, err error) {
	t, release := rt.Thread(ctx, "command")
	defer release()
	err = lang.Operate(t, "", func(c *lang.Call) (err error) {
		judged, err = values.InLanes(c, r, o, v)
		return err
	})
	return judged, err
}

// ReadPKeys reads the P_Key tables of ports. Ports without an answer are missing.
func ReadPKeys(ctx context.Context, rt *lang.Runtime, ports []*fabric.Port) (tables map[*fabric.Port][]uint16, err error) {
	t, release := rt.Thread(ctx, "command")
	defer release()
	err = lang.Operate(t, "", func(c *lang.Call) error {
		tables, err = datagrams.ReadPKeys(c, ports)
		return err
	})
	return tables, err
}

// ReadTenantFacts reads what decides whether tenants of f are isolated: P_Key tables, and with r the paths of these
// tables. Multicast groups and virtual ports are unknown.
func ReadTenantFacts(ctx context.Context, rt *lang.Runtime, f *fabric.Fabric, r *routes.Routes) (*tenant.Facts, error) {
	t, release := rt.Thread(ctx, "command")
	defer release()
	facts := &tenant.Facts{Routes: r}
	err := lang.Operate(t, "", func(c *lang.Call) (err error) {
		facts.Tables, err = datagrams.ReadPKeys(c, tenant.Ports(f))
		return err
	})
	return facts, err
}

// maxWarned is the largest number of requests without an answer that warnings name.
const maxWarned = 8

// ReadAnswers returns f with the other data that audits read, by device.ReadAnswers,
// device.ReadExtended and device.ReadRegisters. Requests without an answer are among the fabric's problems and in
// warnings.
func ReadAnswers(ctx context.Context, rt *lang.Runtime, f *fabric.Fabric) (*fabric.Fabric, error) {
	t, release := rt.Thread(ctx, "command")
	defer release()
	var r fabric.Reading
	err := lang.Operate(t, "", func(c *lang.Call) (err error) {
		err = c.Block(func(ctx context.Context) (err error) {
			client := topology.EnvOf(rt).SA
			if r, err = device.ReadAnswers(ctx, client, f, rt.Clock.Now); err != nil {
				return err
			}
			more, err := device.ReadExtended(ctx, client.Engine, f.With(r))
			more.Problems = append(r.Problems, more.Problems...)
			if r = more; err != nil {
				return err
			}
			registers, err := device.ReadRegisters(ctx, client, f)
			r.Answers, r.Problems = append(r.Answers, registers.Answers...), append(r.Problems, registers.Problems...)
			return err
		})
		for i, p := range r.Problems {
			if i == maxWarned {
				c.Fiber().Warn("and %s of the same kind", plural.Count(len(r.Problems)-i, "more", "more"))
				break
			}
			c.Fiber().Warn("%s", p.Text)
		}
		return err
	})
	return f.With(r), err
}

// ReadLabels returns f with the registers that have firmware, part and serial numbers of its devices, if
// the session is of a live fabric and they have LIDs. Problems are no warnings: what is unknown stays so.
func ReadLabels(ctx context.Context, rt *lang.Runtime, f *fabric.Fabric) (*fabric.Fabric, error) {
	env := topology.EnvOf(rt)
	if env.Engine == nil || env.SA == nil {
		return f, nil
	}
	r, err := device.ReadLabels(ctx, env.SA, f)
	if err != nil {
		return nil, err
	}
	return f.With(fabric.Reading{Answers: r.Answers}), nil
}
