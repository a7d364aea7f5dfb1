package shell

import (
	"github.com/spf13/cobra"
)

// changeCommand has the commands on changes.
func (a *app) changeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "change",
		Short: "Plan a change of the fabric, show it, make it, take it back",
		Long: `Plan a change of the fabric, and make it. A plan is made without a change of the
fabric: what a script or a routing policy would write is recorded, put in an order,
and proven: packets neither loop nor get lost nor deadlock at any step. It is made
under a journal: round by round, each read back, with a look at the fabric in
between, and is taken back by itself unless it is confirmed.`,
		Example: `  fabsh change plan --routes ftree --out new.plan
  fabsh change plan maintenance.star --out m.plan
  fabsh change show new.plan
  fabsh --write change apply new.plan --confirm-within 60s
  fabsh change confirm
  fabsh --write change revert
  fabsh change status`,
	}
	c.AddCommand(a.planCommand(), a.showCommand(), a.applyCommand(), a.confirmCommand(), a.revertCommand(), a.resumeCommand(), a.statusCommand(), a.guardCommand())
	return c
}
