// Package read reads the fabric, its tables and its counters for commands written in Go: with
// the warnings, the counts of unanswered requests and the error texts that scripts get.
//
//	read.go      the fabric, rates, routes, lanes, and what audits read
//	adaptive.go  metrics of adaptive routing
package read

import (
	"context"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/table"
)

// Fabric returns the latest fabric, else that of a sweep.
func Fabric(ctx context.Context, r *lang.Runtime) (*fabric.Fabric, error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	f, err := topology.CurrentFabric(t)
	if err != nil {
		return nil, err
	}
	return f.Fabric, nil
}

// Rates reads the counters of ports of the latest fabric once, and compares with the previous
// read of p. It prints no warnings; requests without an answer are counted.
func Rates(ctx context.Context, r *lang.Runtime, p *audits.Poller, ports []*fabric.Port) (rates []audit.PortRates, err error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: r, Context: ctx, Sink: lang.Discard{}, Account: &r.Account}, "command")
	defer release()
	err = lang.Operate(t, "top", func(c *lang.Call) (err error) {
		rates, err = p.Read(c, ports)
		return err
	})
	return rates, err
}

// Routes reads the tables of all switches of a fabric; with adaptive, those of adaptive
// routing where it is on.
func Routes(ctx context.Context, r *lang.Runtime, f *fabric.Fabric, adaptive bool) (*routes.Routes, error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	return values.ReadRoutes(t, f, adaptive)
}

// Lanes gives r, tables that were just read, the virtual lanes of the switches, or of the snapshot
// that the session reads.
func Lanes(ctx context.Context, rt *lang.Runtime, r *routes.Routes) error {
	t, release := rt.Thread(ctx, "command")
	defer release()
	return lang.Operate(t, "verify", func(c *lang.Call) error { return values.ReadSL2VL(c, r) })
}

// maxWarned is how many requests without an answer are in warnings.
const maxWarned = 8

// Answers returns f with the other data that audits read, by table.ReadAnswers and
// table.ReadExtended. Requests without an answer are among the fabric's problems and in
// warnings.
func Answers(ctx context.Context, rt *lang.Runtime, f *fabric.Fabric) (*fabric.Fabric, error) {
	t, release := rt.Thread(ctx, "command")
	defer release()
	var r fabric.Reading
	err := lang.Operate(t, "snapshot", func(c *lang.Call) (err error) {
		err = c.Block(func(ctx context.Context) (err error) {
			client := topology.EnvOf(rt).SA
			if r, err = table.ReadAnswers(ctx, client, f, rt.Clock.Now); err != nil {
				return err
			}
			more, err := table.ReadExtended(ctx, client.Engine, f.With(r))
			more.Problems = append(r.Problems, more.Problems...)
			r = more
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
