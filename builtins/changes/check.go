package changes

import (
	"context"
	"errors"
	"io"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/routing/routes"
)

// Check checks the certificate of a plan on the fabric as it is now, or as a snapshot has
// it, and returns what it proves and what it does not cover. The error is a
// *certificate.FailureError if it does not hold, or plan.ErrNoCertificate.
func Check(ctx context.Context, rt *lang.Runtime, p *plan.Plan) (verdict string, notes []string, err error) {
	err = operate(ctx, rt, func(c *lang.Call) error {
		look := topology.Sweep
		if env(c).Engine == nil {
			look = topology.CurrentFabric // a snapshot
		}
		now, err := look(c.Thread)
		if err != nil {
			return err
		}
		if !now.Complete() {
			return lang.Errorf("the certificate is not checked, for the sweep is incomplete: %s", now.Missing())
		}
		base := plan.FingerprintOf(now.Fabric, nil)
		base.Manager = p.Base.Manager // change apply judges it
		if since := p.Base.Since(&base); len(since) > 0 {
			return &certificate.FailureError{Reason: "the fabric is not the one that the plan was made for: " + strings.Join(since[:min(len(since), 5)], "; ")}
		}
		live, err := routes.OfFabric(now.Fabric)
		switch {
		case err == nil && live == nil && env(c).Engine == nil:
			err = lang.Errorf("the certificate is not checked, for the file of this session has no forwarding tables")
		case err == nil && live == nil:
			live, err = tables(c, p, now.Fabric)
		}
		if err != nil {
			return err
		}
		t := plan.Tables{Live: live}
		return c.Block(func(ctx context.Context) error {
			if e := env(c); e.Engine != nil {
				levels := plan.Levels{Client: e.SA, File: e.Levels, Open: func(path string) (io.ReadCloser, error) { return c.Runtime().Files.OpenNamed(ctx, path) }}
				levels.InForce(&t, e.Engine)
			}
			r, err := p.CheckCertificate(ctx, &t)
			verdict, notes = p.Verified(r), p.NotCovered(&t)
			return err
		})
	})
	if failed := new(certificate.FailureError); errors.As(err, &failed) {
		return "", nil, failed
	}
	return verdict, notes, err
}
