package shell

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/mad"
)

// simServe is how fabsh sim serves a fabric.
type simServe struct {
	name          string // of the sockets
	bare, console bool
}

// serveSim serves a simulated fabric by ibsim's sockets until it is interrupted.
func (a *app) serveSim(spec string, o *simServe) error {
	defer a.startDeadline().stop()
	f, options, err := sim.ParseFiles(spec, openNamed(a.context(), lang.OpenNamed), a.openIncluded)
	if err != nil {
		return late(fmt.Errorf("sim: %w", err))
	}
	options.Bare = o.bare
	name := cmp.Or(o.name, os.Getenv("IBSIM_SOCKNAME"), server.DefaultName)
	subnet := sim.New(f, options)
	log := func(text string) {
		if !a.quiet {
			fmt.Fprintln(a.console.Err(), text)
		}
	}
	srv, err := server.Listen(subnet, f, server.Options{Name: name, Log: log})
	if errors.Is(err, server.ErrName) {
		return fmt.Errorf("sim: %w", err)
	}
	if err != nil {
		return &hostError{fmt.Errorf("sim: %w", err)}
	}
	state := "up, with a subnet manager of its own"
	if o.bare {
		state = "bare: attach a subnet manager"
	}
	log(fmt.Sprintf("serving %s (%s)\nattach with: IBSIM_SOCKNAME=%s [SIM_HOST=NODE] ibsim-run COMMAND, or fabsh -F ibsim:%[3]s", counts(f), state, name))
	if o.console {
		go srv.Console(os.Stdin, a.console.Out())
	}
	err = srv.Serve(a.context())
	switch {
	case errors.Is(err, server.ErrQuit):
		return nil
	case err != nil:
		return &hostError{fmt.Errorf("sim: %w", err)}
	}
	return a.context().Err()
}

// counts is how much there is of a fabric.
func counts(f *fabric.Fabric) string {
	return fmt.Sprintf("%s, %s, %s", fabric.Plural(len(f.OfType(mad.NodeTypeSwitch)), "switch", "switches"),
		fabric.Plural(len(f.OfType(mad.NodeTypeCA)), "host", "hosts"), fabric.Plural(f.Links(), "cable", "cables"))
}
