package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// recordOptions are the flags of history record.
type recordOptions struct {
	history, subnet         string // history: a file, or an address of PostgreSQL; "": that of the subnet
	every                   time.Duration
	once, noTraffic, routes bool
}

func historyRecordCommand(p *session.Program) *cobra.Command {
	o := recordOptions{every: 5 * time.Minute}
	c := &cobra.Command{
		Use:   "record [--every TIME | --once]",
		Short: "Sweep the fabric, and add what changed to the history",
		Long: `Sweep the fabric every five minutes, read the counters of all ports with a link, and add
what changed to the history, until Ctrl-C; with --once, do it once: for cron. A sweep
sends what "discover()" does, about one datagram for each port; the counters take one to
three more for each port. Of devices of NVIDIA that have registers, bit error rates are read
once an hour, and modules once a day: serial numbers, temperature, light.

One process records the history of a subnet. A failed sweep adds nothing, is reported on
standard error, and is a gap in the history. If less than 5 % or 1 GiB of the disk is
free, traffic and errors by 5 minutes are not kept, which is reported; events are.
A counter that grows at more than 2 % of the ports is kept by hour, rounded to 10 %.
On the first sweep of a day (UTC), rows that are too old are removed.

With -F file:FILE, the fabric of FILE is added, with the time of now.

--history postgres://USER@HOST/DATABASE copies the history of the subnet to PostgreSQL after
each sweep, also what audits and other commands have added: in one transaction, the rows
that differ. The file stays the original. While the server cannot be reached, which is
reported, sweeps go on, and the copy catches up later. One process copies the history of a
subnet. The password comes from PGPASSFILE or ~/.pgpass.`,
		Example: `  fabsh history record
  fabsh history record --history postgres://fabsh@db.example.com/fabrics
  fabsh history record --once
  fabsh history record --every 15m --no-traffic`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if o.every < time.Second || o.every > 24*time.Hour {
				return errors.New("--every must be between 1s and 24h")
			}
			if err := checkHistory(o.history); err != nil {
				return err
			}
			return onFabric(p, func(ctx context.Context, s *session.Session) error {
				if o.once {
					o.every = 0
				}
				return recordHistory(ctx, s, o)
			})
		},
	}
	c.Flags().StringVar(&o.history, "history", "", "write the history in `FILE` (default: that of the subnet in --state); postgres://USER@HOST/DATABASE: also copy that of the subnet to PostgreSQL")
	c.Flags().DurationVar(&o.every, "every", o.every, "sweep again after `TIME`")
	c.Flags().BoolVar(&o.once, "once", false, "sweep once")
	c.Flags().BoolVar(&o.noTraffic, "no-traffic", false, "do not keep the traffic of ports, which is most of the file")
	c.Flags().BoolVar(&o.routes, "routes", false, "keep the forwarding tables too, for verify and diff of a past fabric: one datagram for 64 LIDs of each switch in each sweep")
	c.MarkFlagsMutuallyExclusive("every", "once")
	params{subnetParam(&o.subnet)}.addTo(c)
	return c
}

// checkHistory returns an error if --history is an invalid address of PostgreSQL.
func checkHistory(file string) error {
	if !history.IsServer(file) {
		return nil
	}
	if err := history.CheckServer(file); err != nil {
		return fmt.Errorf("--history: %w", err)
	}
	return nil
}

// openHistory opens the history that --history names, and begins to copy it if that is an address of
// PostgreSQL; else copied is nil.
func openHistory(ctx context.Context, s *session.Session, f *fabric.Fabric, file, given string) (r *history.Recorder, copied *replication, err error) {
	if file != "" && file != historyOfSubnet && !history.IsServer(file) {
		subnet := fabric.SubnetOf(f, given)
		if !subnet.IsKnown() {
			return nil, nil, errors.New("the subnet has no name; give --subnet NAME")
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, nil, err
		}
		if r, err = history.NewRecorder(ctx, path, subnet, s.Clock.Now()); err != nil {
			err = &session.HostError{Err: err}
		}
		return r, nil, err
	}
	if s.StateDir == "" {
		return nil, nil, errors.New("no directory for state; give --state DIR")
	}
	if r, err = openRecorder(ctx, s, f, given); err != nil || !history.IsServer(file) {
		return r, nil, err
	}
	if copied, err = replicate(ctx, r.Path(), file); err != nil {
		r.Close()
		return nil, nil, err
	}
	return r, copied, nil
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
	if s.Engine == nil {
		o.every = 0
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	r, copied, err := openHistory(ctx, s, f, o.history, o.subnet)
	if err != nil {
		return err
	}
	defer func() {
		if failure := r.Close(); failure != nil && err == nil {
			err = &session.HostError{Err: failure}
		}
		if copied != nil {
			copied.close(ctx)
			if text := copied.news(); text != "" {
				s.Warn("history record: %s", text)
			}
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
		if x.cycles++; x.cycles == 1 {
			if err := r.States(ctx, audit.States(s.StateDir, fabric.SubnetOf(f, o.subnet), nil)); err != nil {
				s.Warn("history record: the findings of earlier runs were not added: %v", err)
			}
		}
		if copied != nil {
			copied.cycle()
		}
		if o.every == 0 {
			return nil
		}
		for f = nil; f == nil; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(o.every):
			}
			if copied != nil {
				if text := copied.news(); text != "" {
					s.Warn("history record: %s", text)
				}
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
	cycles   int
	slow     slowReads
}

// slowReads is what is read seldom, of devices that have registers.
type slowReads struct {
	hour time.Time // in which bit error rates were read last
}

// read reads bit error rates once an hour, and modules once a day.
func (x *slowReads) read(ctx context.Context, s *session.Session, r *history.Recorder, f *fabric.Fabric, c *history.Cycle) error {
	now := s.Clock.Now()
	if hour := now.Truncate(time.Hour); !hour.Equal(x.hour) {
		x.hour = hour
		rates, err := device.ReadErrorRates(ctx, topology.EnvOf(s.Runtime).SA, f)
		if err != nil {
			return err
		}
		c.Rates = history.RatesOf(f.Bare().With(fabric.Reading{Answers: rates.Answers}))
	}
	if !r.WantsModules(now) {
		return nil
	}
	registers, err := device.ReadRegisters(ctx, topology.EnvOf(s.Runtime).SA, f)
	if err != nil {
		return err
	}
	if c.Modules = history.ModulesOf(f.Bare().With(fabric.Reading{Answers: registers.Answers})); c.Modules == nil {
		c.Modules = []history.Module{} // none has the registers: they are read tomorrow again
	}
	return nil
}

// read returns the cycle of a sweep.
func (x *recording) read(ctx context.Context, f *fabric.Fabric) (c history.Cycle, err error) {
	s := x.session
	c = history.Cycle{Every: x.options.every, Source: s.Name, Fabric: f, Traffic: !x.options.noTraffic}
	if s.Engine == nil {
		if x.options.routes && f.HasLFTs() {
			c.Routes = f
		}
		c.Time = s.Clock.Now()
		return c, nil
	}
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
	if err := x.slow.read(ctx, s, x.recorder, f, &c); err != nil {
		return c, err
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
func historyCompactCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "compact",
		Short: "Rewrite the history without unused space",
		Long: `Rewrite the history without the space of rows that were removed, check the result, and
replace the file. No recorder or reader may use it meanwhile. It needs as much free
space as the history has.`,
		Example: `  fabsh history compact`,
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
				path, err := o.path(s.StateDir)
				if err != nil {
					return err
				}
				before, after, err := history.Compact(ctx, path)
				if err != nil && o.file != "" && !errors.Is(err, history.ErrInUse) { // a wrong command line
					return err
				}
				if err != nil {
					return &session.HostError{Err: err}
				}
				s.Print(fmt.Sprintf("%s: %d bytes, before %d\n", path, after, before))
				return nil
			})
		},
	}
	o.addTo(c)
	return c
}

func historyImportCommand(p *session.Program) *cobra.Command {
	var subnet string
	c := &cobra.Command{
		Use:   "import SNAPSHOT...",
		Short: "Add snapshots to the history",
		Long: `Add snapshots (fabsh snapshot) to the history of their subnet, in the order of their
times: when their counters were read (snapshot --all), else when the file was modified.
Each must be later than the last sweep of the history: import before the first
"fabsh history record". Errors between snapshots with counters are added too, and
forwarding tables.`,
		Example: `  fabsh history import may.fab june.fab`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return errors.New("want one SNAPSHOT or more")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
				return importSnapshots(ctx, s, words, subnet)
			})
		},
	}
	params{subnetParam(&subnet)}.addTo(c)
	return c
}

// importSnapshots adds the fabrics of files as cycles.
func importSnapshots(ctx context.Context, s *session.Session, paths []string, given string) (err error) {
	if s.StateDir == "" {
		return errors.New("no directory for state; give --state DIR")
	}
	type snapshot struct {
		path string
		when time.Time
		f    *fabric.Fabric
	}
	var list []snapshot
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return format.FileError(err)
		}
		f, err := loadBaseline(ctx, s, path)
		if err != nil {
			return err
		}
		x := snapshot{path, f.CountersRead(), f}
		if x.when.IsZero() {
			x.when = st.ModTime()
		}
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b snapshot) int { return a.when.Compare(b.when) })
	r, err := openRecorder(ctx, s, list[0].f, given)
	if err != nil {
		return err
	}
	defer func() {
		if failure := r.Close(); failure != nil && err == nil {
			err = &session.HostError{Err: failure}
		}
	}()
	for _, x := range list {
		if last := r.Last(); !last.IsZero() && !x.when.Truncate(time.Second).After(last) {
			return fmt.Errorf("%s: of %s, and the last sweep of the history is of %s; import into a new history (--subnet NAME or --state DIR)", x.path, x.when.Format(time.RFC3339), last.Local().Format(time.RFC3339))
		}
		if err := audit.CheckSubnet(s.StateDir, fabric.SubnetOf(x.f, given)); err != nil {
			return fmt.Errorf("%s: %w", x.path, err)
		}
		c := history.Cycle{Time: x.when, Source: "import " + filepath.Base(x.path), Fabric: x.f, Modules: history.ModulesOf(x.f)}
		if x.f.HasLFTs() {
			c.Routes = x.f
		}
		if read, err := audit.ReadOf(x.f); err == nil {
			c.Counters = read
		}
		sum, err := r.Record(ctx, c)
		if err != nil {
			return &session.HostError{Err: err}
		}
		s.Print(x.path + ": " + recordLine(sum, x.f))
	}
	return nil
}
