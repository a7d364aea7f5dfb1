package shell

import (
	"github.com/spf13/cobra"
)

// changeCommand has the commands on changes.
func (a *app) changeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "change",
		Short: "Plan a change of the fabric, and show what a plan does",
		Long: `Plan a change of the fabric, and show what a plan does. A plan is made without a
change of the fabric: what a script or a routing policy would write is recorded, put
in an order, and proven: packets neither loop nor get lost nor deadlock at any step.`,
		Example: `  fabsh change plan --routes ftree --out new.plan
  fabsh change plan maintenance.star --out m.plan
  fabsh change show new.plan`,
	}
	c.AddCommand(a.planCommand(), a.showCommand())
	return c
}
