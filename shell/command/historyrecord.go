package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// recordOptions are the flags of history record.
type recordOptions struct {
	subnet                      string
	every                       time.Duration
	once, noTraffic, noCounters bool
	routes                      bool
}

func historyRecordCommand(p *session.Program) *cobra.Command {
	o := recordOptions{every: 5 * time.Minute}
	c := &cobra.Command{
		Use:   "record [--every TIME | --once]",
		Short: "Sweep the fabric, and add what changed to the history",
		Long: `Sweep the fabric every five minutes, read the counters of all ports with a link, and add
what changed to the history, until Ctrl-C; with --once, do it once: for cron. A sweep
sends what "discover()" does, about one datagram for each port; the counters take one to
three more for each port. Once a day the registers of devices and modules are read where
devices have them: serial numbers, temperature, light.

One process records the history of a subnet. A failed sweep adds nothing, is reported on
standard error, and is a gap in the history. If less than 5 % or 1 GiB of the disk is
free, traffic and errors by 5 minutes are not kept, which is reported; events are.
A counter that grows at more than 2 % of the ports is kept by hour, rounded to 10 %.
On the first sweep of a day (UTC), rows that are too old are removed.

With -F file:FILE, the fabric of FILE is added, with the time of now.`,
		Example: `  fabsh history record
  fabsh history record --once
  fabsh history record --every 15m --no-traffic`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if o.every < time.Second || o.every > 24*time.Hour {
				return errors.New("--every must be between 1s and 24h")
			}
			return onFabric(p, func(ctx context.Context, s *session.Session) error {
				if o.once {
					o.every = 0
				}
				return recordHistory(ctx, s, o)
			})
		},
	}
	c.Flags().DurationVar(&o.every, "every", o.every, "sweep again after `TIME`")
	c.Flags().BoolVar(&o.once, "once", false, "sweep once")
	c.Flags().BoolVar(&o.noTraffic, "no-traffic", false, "do not keep the traffic of ports, which is most of the file")
	c.Flags().BoolVar(&o.noCounters, "no-counters", false, "do not read counters: no errors, no traffic")
	c.Flags().BoolVar(&o.routes, "routes", false, "keep the forwarding tables too, when they change: one datagram for 64 LIDs of each switch in each sweep")
	c.MarkFlagsMutuallyExclusive("every", "once")
	params{subnetParam(&o.subnet)}.addTo(c)
	return c
}

// openRecorder opens the history of the subnet of f, which must have a name.
func openRecorder(ctx context.Context, s *session.Session, f *fabric.Fabric, given string) (*history.Recorder, error) {
	subnet := fabric.SubnetOf(f, given)
	if !subnet.IsKnown() {
		return nil, errors.New("the subnet has no name: no switches and no subnet manager; give --subnet NAME")
	}
	if err := audit.CheckSubnet(s.StateDir, subnet); err != nil {
		return nil, &session.HostError{Err: err}
	}
	r, err := history.NewRecorder(ctx, filepath.Join(subnet.Folder(s.StateDir), history.FileName), subnet, s.Clock.Now())
	if err != nil {
		return nil, &session.HostError{Err: err}
	}
	if err := audit.RecordSubnet(s.StateDir, subnet, f.Complete()); err != nil {
		r.Close()
		return nil, &session.HostError{Err: err}
	}
	return r, nil
}

// recordHistory adds a cycle, or one every so often until ctx ends.
func recordHistory(ctx context.Context, s *session.Session, o recordOptions) (err error) {
	if s.StateDir == "" {
		return errors.New("no directory for state; give --state DIR")
	}
	if s.Engine == nil {
		o.every = 0
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	r, err := openRecorder(ctx, s, f, o.subnet)
	if err != nil {
		return err
	}
	defer func() {
		if failure := r.Close(); failure != nil && err == nil {
			err = &session.HostError{Err: failure}
		}
	}()
	x := &recording{session: s, options: o, recorder: r}
	for {
		c, err := x.read(ctx, f)
		if err != nil {
			return err
		}
		sum, err := r.Record(ctx, c)
		if err != nil {
			return &session.HostError{Err: err}
		}
		s.Print(recordLine(sum, f))
		if o.every == 0 {
			return nil
		}
		for f = nil; f == nil; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(o.every):
			}
			if f, err = topology.SweepQuietly(ctx, s.Runtime); err != nil {
				s.Warn("history record: %v", err)
				f = nil
			}
		}
	}
}

// recordLine is what a cycle added, in a line.
func recordLine(x *history.Summary, f *fabric.Fabric) string {
	parts := []string{plural.Count(len(x.Events), "event", "events")}
	if x.Grown > 0 {
		parts = append(parts, plural.Count(x.Grown, "error counter grew", "error counters grew"))
	}
	if len(x.Wide) > 0 {
		parts = append(parts, "kept by hour: "+strings.Join(x.Wide, ", "))
	}
	parts = append(append(parts, x.Notes...), f.String())
	return fmt.Sprintf("%s: %s\n", x.Time.Local().Format(time.RFC3339), strings.Join(parts, ", "))
}

// recording is what history record reads from sweep to sweep.
type recording struct {
	session  *session.Session
	options  recordOptions
	recorder *history.Recorder
	poller   audits.Poller
}

// read returns the cycle of a sweep.
func (x *recording) read(ctx context.Context, f *fabric.Fabric) (c history.Cycle, err error) {
	s := x.session
	c = history.Cycle{Every: x.options.every, Source: s.Name, Fabric: f, Traffic: !x.options.noTraffic}
	if s.Engine == nil {
		c.Time = s.Clock.Now()
		return c, nil
	}
	if !x.options.noCounters {
		var ports []*fabric.Port
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Num() > 0 && p.Peer() != nil {
				ports = append(ports, p)
			}
		}
		if len(ports) > 0 {
			if _, err := audits.ReadRates(ctx, s.Runtime, &x.poller, ports); err != nil {
				return c, err
			}
			c.Counters = x.poller.Last()
		}
	}
	if now := s.Clock.Now(); x.recorder.WantsModules(now) {
		registers, err := device.ReadRegisters(ctx, topology.EnvOf(s.Runtime).SA, f)
		if err != nil {
			return c, err
		}
		c.Modules = history.ModulesOf(f.Bare().With(fabric.Reading{Answers: registers.Answers}))
		if c.Modules == nil {
			c.Modules = []history.Module{} // none has the registers: they are read tomorrow again
		}
	}
	if x.options.routes {
		live, err := audits.ReadRoutes(ctx, s.Runtime, f, false)
		if err != nil {
			return c, err
		}
		c.Routes = f.Bare().With(fabric.Reading{LFTs: rows(live)})
	}
	c.Time = s.Clock.Now()
	return c, nil
}
