package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad/engine"
)

// simCommand writes the topologies of -F sim to files.
func (a *app) simCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "sim [SPEC] [--out FILE]",
		Short: "Write the topology of a simulated fabric, for ibsim and all who read ibnetdiscover's files",
		Long: `Write the topology of a simulated fabric, as ibnetdiscover prints it: ibsim reads
that, and so do -F file: and -F sim:.

SPEC is KIND[:KEY=VALUE,...] as with -F sim:. The kinds are fattree, pgft, ring,
mesh, torus, hyperx, dragonfly, random; or a file of a topology. With all of them
go remove_links=, remove_switches= and seed=: parts that are not there.`,
		Example: `  fabsh sim fattree:k=8,levels=3 --out net
  fabsh sim dragonfly:a=4,p=2,h=2,remove_links=5%,seed=3 > net`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) > 1 {
				return fmt.Errorf("sim: takes one SPEC, and here is also %q", words[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, words []string) error {
			spec := ""
			if len(words) > 0 {
				spec = words[0]
			}
			if c.Flags().Changed("out") && out == "" {
				return errors.New("sim: --out needs the name of a file")
			}
			defer a.startDeadline().stop()
			f, err := a.bringUp(spec)
			if err != nil {
				return late(fmt.Errorf("sim: %w", err))
			}
			write := func(w io.Writer) error { return format.Dump(w, f, format.KindIbnetdiscover) }
			if out == "" {
				return write(a.console.Out())
			}
			switch err := format.WriteFile(out, write); {
			case errors.Is(err, syscall.EISDIR):
				return fmt.Errorf("sim: --out %s: is a folder", out)
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("sim: --out %s: there is no such folder", out)
			case err != nil:
				return &hostError{fmt.Errorf("sim: --out: %w", err)}
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` instead of the output")
	c.SetFlagErrorFunc(flagError)
	c.MarkFlagFilename("out")
	return c
}

// bringUp makes a simulated fabric and discovers it, so that it has the LIDs,
// widths and speeds that its subnet manager has set.
func (a *app) bringUp(spec string) (*fabric.Fabric, error) {
	f, o, err := sim.ParseFiles(spec, openNamed(a.context(), lang.OpenNamed), a.openIncluded)
	if err != nil {
		return nil, err
	}
	node, err := simNode(f, "")
	if err != nil {
		return nil, err
	}
	t, err := sim.New(f, o).Attach(node, 0)
	if err != nil {
		return nil, err
	}
	e := engine.New(t, engine.Options{})
	defer e.Close()
	return discover.Sweep(a.context(), e, discover.Options{})
}
