package changes

import (
	"context"
	"fmt"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/tenant"
)

// checkTenants refuses a plan that joins tenants of the options, or notes in its report that it does if that is allowed.
// live are the tables in force.
func checkTenants(c *lang.Call, p *change.Plan, live *routes.Routes) error {
	o := proofOptions(c)
	if o.Tenants == nil {
		return nil
	}
	m, err := o.Tenants.On(env(c).Fabric())
	if err != nil {
		return lang.Errorf("--tenants: %w", err)
	}
	facts := &tenant.Facts{}
	if live.Entries() > 0 {
		facts.Routes = live
	}
	if facts.Tables, err = datagrams.ReadPKeys(c, p.TenantPorts(m.Fabric)); err != nil {
		return err
	}
	var joined []tenant.Pair
	err = c.Block(func(ctx context.Context) error {
		joined, err = p.JoinedTenants(ctx, m, facts)
		return err
	})
	if err != nil || len(joined) == 0 {
		return err
	}
	first := joined[0].Reason
	if n := len(joined) - 1; n > 0 {
		first += fmt.Sprintf("; and %d more", n)
	}
	if !o.AllowTenants {
		return &change.RefusalError{Reason: fmt.Sprintf("the plan joins tenants: %s; --allow-tenants makes it nevertheless", first)}
	}
	p.Report.NotJudged = append(p.Report.NotJudged, "the plan joins tenants, which --allow-tenants allows: "+first)
	return nil
}
