package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/trial"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
	"fabsh/shell/session"
)

// trialOptions are the options of trial.
type trialOptions struct {
	out        string
	budget     int
	events     time.Duration
	yes        bool
	identities bool
	quiet      bool // -q
}

// trialCommand reads everything from a few devices of each model.
func trialCommand(p *session.Program) *cobra.Command {
	o := trialOptions{budget: 100_000}
	c := &cobra.Command{
		Use:   "trial [--out FILE]",
		Short: "Read everything from a few devices of each model: the first contact with a real fabric",
		Long: `Sweep the fabric, and read from at most three devices of each model everything that
fabsh can read: all attributes, blocks of tables, registers, management classes, the
records of the subnet administrator, and events for a minute. Report what was answered,
unsupported, refused or timed out, and whether other sources agree: the records of the
subnet administrator and, with -F umad, sysfs, infiniband-diags, mstflint and the
ibdiagnet2.db_csv of this host, where they exist.

It never writes: the session is read-only. The only lasting request is the subscription
to events, which it ends. It sends at most --budget datagrams, prints that first and, at
a terminal, asks. A device that times out three times is not queried again; a device
that an M_Key protects is not queried after the sweep, and no keys are used.

--out FILE saves the recording, without keys. Names, GUIDs, GIDs and serial numbers in it
are replaced, each by the same everywhere; --identities keeps them. -F replay:FILE trial
reproduces the report, without the comparisons with the host. CONTRIBUTING.md describes
how to send a recording. Findings (differences, timeouts, malformed answers) make the
exit status 1.`,
		Example: `  fabsh trial --out trial.pcap
  fabsh -F sim trial --events 0
  fabsh trial -C mlx5_0 --budget 20000 --yes -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, x := range [][2]string{{"write", "a trial never writes"}, {"plan", "a trial never writes"}, {"keys", "a trial uses no keys"}, {"record", "give --out FILE"}} {
				if p.Settings.Given(x[0]) {
					return fmt.Errorf("trial: --%s: not supported: %s", x[0], x[1])
				}
			}
			switch {
			case o.budget <= 0:
				return errors.New("trial: --budget must be positive")
			case o.events < 0 || o.events > time.Hour:
				return errors.New("trial: --events must be between 0 and 1h")
			}
			return o.run(p)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.out, "out", "", "write the recording to `FILE`")
	c.Flags().IntVar(&o.budget, "budget", o.budget, "send at most `N` datagrams")
	c.Flags().DurationVar(&o.events, "events", time.Minute, "receive events for `DURATION`; 0: do not subscribe")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&o.identities, "identities", false, "keep names, GUIDs, GIDs and serial numbers in the recording")
	c.MarkFlagFilename("out")
	return c
}

// memoryFile is a recording in memory. It is safe for concurrent use.
type memoryFile struct {
	mu   sync.Mutex
	file bytes.Buffer
}

func (r *memoryFile) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file.Write(b)
}

// Close keeps the recording.
func (r *memoryFile) Close() error { return nil }

// bytes returns what was recorded until now.
func (r *memoryFile) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.file.Bytes())
}

// run opens a read-only session, whose datagrams are counted and recorded, and runs the trial.
func (o *trialOptions) run(p *session.Program) error {
	settings := *p.Settings
	settings.ReadOnly = true
	o.quiet = settings.Quiet
	p = p.With(settings)
	var file memoryFile
	var budget *trial.Budget
	var replay *capture.Replay
	wrap := func(t engine.Transport) (engine.Transport, error) {
		replay, _ = t.(*capture.Replay)
		budget = trial.NewBudget(t, o.budget)
		if replay != nil {
			return budget, nil
		}
		return capture.Record(budget, &file)
	}
	open := func(ctx context.Context) (*session.Session, error) {
		return session.Open(ctx, p, session.Opening{NoKeys: true, Wrap: wrap})
	}
	return execute(p, task{name: "trial", time: p.StartTime(), open: open, run: func(ctx context.Context, s *session.Session) error {
		switch {
		case s.Engine == nil:
			return s.NoLive("trial", "the session reads a file; a trial reads devices")
		case replay != nil && o.out != "":
			return errors.New("trial: --out: the session replays a recording; copy that file")
		}
		if err := o.ask(ctx, p, s); err != nil {
			return err
		}
		r, err := o.try(ctx, s, budget, replay)
		if err != nil {
			return session.Late(err)
		}
		if replay == nil {
			o.note(s, "%s sent", plural.Count(budget.Sent(), "datagram", "datagrams"))
		}
		if budget.Exhausted() {
			s.Warn("the budget of datagrams was used up; raise it with --budget")
		}
		if err := showTrial(s, r); err != nil {
			return err
		}
		if err := o.save(ctx, file.bytes()); err != nil {
			return err
		}
		if !r.Clean() || budget.Exhausted() {
			return session.Exit(lang.StatusFindings)
		}
		return nil
	}})
}

// ask announces the trial, and asks at a terminal.
func (o *trialOptions) ask(ctx context.Context, p *session.Program, s *session.Session) error {
	if s.Engine.Traits().Recorded {
		return nil
	}
	asks := !o.yes && p.StdinIsTerminal() && p.Console.ErrIsTerminal()
	events := ""
	if d := o.events; d > 0 {
		events = fmt.Sprintf("; a subscription to events for %v", d)
	}
	if o.quiet = o.quiet && !asks; !o.quiet {
		o.note(s, "trial of %s: a sweep, then all that fabsh can read from at most three devices of each model; at most %s; nothing is written%s", s.Name, plural.Count(o.budget, "datagram", "datagrams"), events)
	}
	if !asks {
		return nil
	}
	fmt.Fprint(p.Console.Err(), "Continue? [y/N] ")
	var answer string
	fmt.Fscanln(session.NewKeyboard(ctx, p.Stdin), &answer)
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("trial: not confirmed; nothing was sent")
}

// note prints a line for the user, who sees names that the report does not have.
func (o *trialOptions) note(s *session.Session, format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(s.Console.Err(), format+"\n", args...)
	}
}

// try runs the trial.
func (o *trialOptions) try(ctx context.Context, s *session.Session, budget *trial.Budget, replay *capture.Replay) (*trial.Report, error) {
	options := trial.RunOptions{
		Client:   topology.EnvOf(s.Runtime).SA,
		Events:   o.events,
		Sleep:    s.Runtime.Clock.Sleep,
		Progress: s.Runtime.Progress,
		Chosen: func(_ *fabric.Fabric, devices []*trial.Device) {
			for _, d := range devices {
				o.note(s, "%s: %s", d.Name, lang.Harmless(d.Node.Label()))
			}
		},
	}
	if tools := openHostTools(ctx, s, budget); tools != nil {
		options.Foreign = tools.foreign
	}
	if replay != nil {
		options.Recorded = func() (list []mad.Notice) {
			for _, m := range replay.Reports() {
				var n mad.Notice
				n.Decode(m[mad.SADataOffset:])
				list = append(list, n)
			}
			return list
		}
	}
	return trial.Run(ctx, options)
}

// save writes the recording to the file of --out.
func (o *trialOptions) save(ctx context.Context, recording []byte) error {
	if o.out == "" {
		return nil
	}
	if !o.identities {
		var err error
		if recording, err = capture.Anonymize(recording); err != nil {
			return fmt.Errorf("trial: --out: %w", err)
		}
	}
	err := session.WriteNamed(ctx, o.out, func(w io.Writer) error {
		_, err := w.Write(recording)
		return err
	})
	if err != nil {
		return fmt.Errorf("trial: --out: %w", err)
	}
	return nil
}
