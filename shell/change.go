package shell

import (
	"github.com/spf13/cobra"
)

// changeCommand has the commands on changes.
func (a *app) changeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "change",
		Short: "Make a planned change of the fabric, confirm it, or take it back",
		Long: `Make a change that was planned, under a journal: round by round, each read back, with
a look at the fabric in between. It is taken back by itself unless it is confirmed.`,
		Example: `  fabsh --write change apply new.plan --confirm-within 60s
  fabsh change confirm
  fabsh --write change revert
  fabsh change status`,
	}
	c.AddCommand(a.applyCommand(), a.confirmCommand(), a.revertCommand(), a.resumeCommand(), a.statusCommand(), a.guardCommand())
	return c
}
