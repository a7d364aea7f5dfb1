package changes

import (
	"context"
	"errors"
	"io"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/routes"
)

// Check checks the certificate of a plan on the current fabric, or on a snapshot, and
// returns what it proves and what it does not cover. The error is a
// *certificate.FailureError if it does not hold, or change.ErrNoCertificate.
func Check(ctx context.Context, rt *lang.Runtime, p *change.Plan) (verdict string, notes []string, err error) {
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
			return lang.Errorf("certificate not checked: incomplete sweep: %s", now.Missing())
		}
		base := change.FingerprintOf(now.Fabric, nil)
		base.Manager = p.Base.Manager // change apply judges it
		if since := p.Base.Since(&base); len(since) > 0 {
			return &certificate.FailureError{Reason: "the fabric has changed since the plan was made: " + strings.Join(since[:min(len(since), 5)], "; ")}
		}
		live, err := routes.OfFabric(now.Fabric)
		switch {
		case err == nil && live == nil && env(c).Engine == nil:
			err = lang.Errorf("certificate not checked: the file of this session has no forwarding tables")
		case err == nil && live == nil:
			live, err = tables(c, p, now.Fabric)
		}
		if err != nil {
			return err
		}
		t := change.Tables{Live: live}
		if err := checkAdaptive(c, p, &t); err != nil {
			return err
		}
		return c.Block(func(ctx context.Context) error {
			if e := env(c); e.Engine != nil {
				levels := change.Levels{Client: e.SA, File: e.Levels, Open: func(path string) (io.ReadCloser, error) { return c.Runtime().Files.OpenNamed(ctx, path) }}
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
