package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/trial"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
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

--out FILE saves the recording, without keys, and the report in FILE.txt. Names, GUIDs,
GIDs and serial numbers in both are replaced, each by the same everywhere, and what does
not decode is zero; --identities keeps them. Both are then searched for each name, GUID
and serial number, and not saved if one is left. Names of devices are shown only at a
terminal. -F replay:FILE trial reproduces the report, without the comparisons with the
host. CONTRIBUTING.md describes how to send a recording. Findings (differences, timeouts,
malformed answers) make the exit status 1.`,
		Example: `  fabsh trial --out trial.pcap
  fabsh -F sim trial --events 0
  fabsh trial -C mlx5_0 --budget 20000 --yes -o json`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			for _, x := range [][2]string{{"write", "a trial never writes"}, {"plan", "a trial never writes"}, {"keys", "a trial uses no keys"}, {"record", "give --out FILE"}} {
				if p.Settings.Given(x[0]) {
					return fmt.Errorf("--%s: not supported: %s", x[0], x[1])
				}
			}
			switch {
			case o.budget <= 0:
				return errors.New("--budget must be positive")
			case o.events < 0 || o.events > time.Hour:
				return errors.New("--events must be between 0 and 1h")
			}
			return o.run(p)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.out, "out", "", "write the recording to `FILE`, and the report to FILE.txt")
	c.Flags().IntVar(&o.budget, "budget", o.budget, "send at most `N` datagrams")
	c.Flags().DurationVar(&o.events, "events", time.Minute, "receive events for `DURATION`; 0: do not subscribe")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&o.identities, "identities", false, "keep names, GUIDs, GIDs and serial numbers in the recording and the report")
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
	return execute(p, task{time: p.StartTime(), open: open, run: func(ctx context.Context, s *session.Session) error {
		switch {
		case s.Engine == nil:
			return s.NoLive("the session reads a file; a trial reads devices")
		case replay != nil && o.out != "":
			return errors.New("--out: the session replays a recording; copy that file")
		}
		if err := o.ask(ctx, p, s); err != nil {
			return err
		}
		named := o.out == "" || o.identities || p.Console.ErrIsTerminal() // else the messages may be sent with the recording
		r, err := o.try(ctx, s, budget, replay, named)
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
		if err := o.save(ctx, s, r, file.bytes()); err != nil {
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
	return errors.New("not confirmed; nothing was sent")
}

// note prints a line for the user, who sees names that the report does not have.
func (o *trialOptions) note(s *session.Session, format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(s.Console.Err(), format+"\n", args...)
	}
}

// try runs the trial.
func (o *trialOptions) try(ctx context.Context, s *session.Session, budget *trial.Budget, replay *capture.Replay, named bool) (*trial.Report, error) {
	options := trial.RunOptions{
		Client:   topology.EnvOf(s.Runtime).SA,
		Events:   o.events,
		Sleep:    s.Runtime.Clock.Sleep,
		Progress: s.Runtime.Progress,
		Chosen: func(_ *fabric.Fabric, devices []*trial.Device) {
			for _, d := range devices {
				if named {
					o.note(s, "%s: %s", d.Name, lang.Harmless(d.Node.Label()))
				}
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

// save writes the recording to the file of --out, and the report beside it.
func (o *trialOptions) save(ctx context.Context, s *session.Session, r *trial.Report, recording []byte) error {
	if o.out == "" {
		return nil
	}
	err := o.write(ctx, s, r, recording)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func (o *trialOptions) write(ctx context.Context, s *session.Session, r *trial.Report, recording []byte) error {
	reportFile := o.out + ".txt"
	names := func(n *fabric.Node) (string, mad.GUID) { return n.Name(), n.GUID() }
	what := "with names, GUIDs, GIDs and serial numbers"
	var anonymous *capture.Anonymous
	if !o.identities {
		var err error
		if anonymous, err = capture.Anonymize(recording); err != nil {
			return err
		}
		recording, what = anonymous.Recording, "without names, GUIDs, GIDs and serial numbers"
		names = func(n *fabric.Node) (string, mad.GUID) { return anonymous.Node(n.Name(), n.GUID()) }
	}
	text := reportOf(r, names)
	if anonymous != nil {
		if err := anonymous.Check(reportFile, text); err != nil {
			return err
		}
	}
	write := func(path string, data []byte) error {
		return session.WriteNamed(ctx, path, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	if st, err := os.Stat(o.out); err == nil && !st.Mode().IsRegular() { // beside a pipe is no place for a report
		return write(o.out, recording)
	}
	if err := write(o.out, recording); err != nil {
		return err
	}
	if err := write(reportFile, []byte(text)); err != nil {
		return err
	}
	o.note(s, "saved %s and %s, %s", o.out, reportFile, what)
	return nil
}

// reportOf returns the report as a text that names the devices, as messages do.
func reportOf(r *trial.Report, names func(*fabric.Node) (string, mad.GUID)) string {
	var b strings.Builder
	for _, m := range r.Models {
		for _, d := range m.Devices {
			fmt.Fprintf(&b, "%s: %s\n", d.Name, lang.Harmless(fabric.NodeLabel(names(d.Node))))
		}
	}
	return b.String() + "\n" + r.String()
}

// showTrial shows the report of a trial: as text, as one value in JSON, otherwise the results
// as rows.
func showTrial(s *session.Session, r *trial.Report) error {
	switch s.Format {
	case lang.FormatText:
		s.Print(r.String())
		return nil
	case lang.FormatJSON:
		return s.Show(trialValue(r))
	}
	return s.Show(starlark.NewList(trialRows(r)))
}

// facts is a part of a report, as a value to encode.
type facts struct {
	schema string
	list   []lang.Fact
}

var _ lang.Factual = (*facts)(nil)

func (v *facts) Type() string          { return "trial" }
func (v *facts) Freeze()               {}
func (v *facts) Truth() starlark.Bool  { return true }
func (v *facts) Hash() (uint32, error) { return 0, lang.Errorf("unhashable: trial") }
func (v *facts) Schema() string        { return v.schema }
func (v *facts) String() string        { return v.schema }
func (v *facts) Facts() []lang.Fact    { return v.list }

// with adds a fact.
func (v *facts) with(name string, value starlark.Value) *facts {
	v.list = append(v.list, lang.Fact{Name: name, Value: value})
	return v
}

func (v *facts) text(name, s string) *facts { return v.with(name, starlark.String(s)) }
func (v *facts) number(name string, n int) *facts {
	return v.with(name, starlark.MakeInt(n))
}

// listOf returns a list of values.
func listOf[T any](list []T, value func(T) starlark.Value) starlark.Value {
	values := make([]starlark.Value, len(list))
	for i, x := range list {
		values[i] = value(x)
	}
	return starlark.NewList(values)
}

func text(s string) starlark.Value { return starlark.String(s) }

// trialValue returns the whole report.
func trialValue(r *trial.Report) starlark.Value {
	v := &facts{schema: "trial/1"}
	v.number("nodes", r.Nodes).number("sweep_problems", r.SweepProblems).with("sweep_complete", starlark.Bool(!r.SweepEnded))
	counts := &facts{schema: "trial_counts/1"}
	for o, word := range trial.Outcomes() {
		counts.number(word, r.Count(trial.Outcome(o)))
	}
	v.with("requests", counts)
	v.with("models", listOf(r.Models, func(m *trial.Model) starlark.Value {
		model := &facts{schema: "trial_model/1"}
		return model.text("type", m.Type.String()).number("vendor_id", int(m.Vendor)).number("device_id", int(m.DeviceID)).number("found", m.Found).
			with("devices", listOf(m.Devices, func(d *trial.Device) starlark.Value {
				device := (&facts{schema: "trial_device/1"}).text("device", d.Name)
				if d.Unread == "" {
					device.with("unread", starlark.None)
				} else {
					device.text("unread", d.Unread)
				}
				return device.with("requests", listOf(d.Results, func(x *trial.Result) starlark.Value { return trialRow("", x) }))
			}))
	}))
	v.with("records", listOf(r.Records, func(x *trial.Result) starlark.Value { return trialRow("", x) }))
	traps := &facts{schema: "trial_events/1"}
	traps.text("outcome", r.Events.Outcome.String()).text("detail", r.Events.Detail).with("seconds", starlark.Float(r.Events.Duration.Seconds()))
	traps.with("traps", listOf(slices.Sorted(maps.Keys(r.Events.Traps)), func(number uint16) starlark.Value {
		return (&facts{schema: "trial_trap/1"}).number("number", int(number)).number("count", r.Events.Traps[number])
	}))
	v.with("events", traps)
	v.with("comparisons", listOf(r.Comparisons, trialComparison)).with("host_comparisons", listOf(r.Host, trialComparison))
	return v
}

func trialComparison(c *trial.Comparison) starlark.Value {
	return (&facts{schema: "trial_comparison/1"}).text("device", c.Device).text("source", c.Source).text("attribute", c.Attribute).text("place", c.Place).
		with("agreed", listOf(c.Agreed, text)).
		with("differed", listOf(c.Differed, func(d trial.Difference) starlark.Value {
			return (&facts{schema: "trial_difference/1"}).text("field", d.Field).text("here", d.Here).text("there", d.There)
		})).
		with("not_compared", listOf(c.NotCompared, text))
}

// trialRow returns a result; of a device that has a name.
func trialRow(device string, x *trial.Result) starlark.Value {
	v := &facts{schema: "trial_request/1"}
	if device != "" {
		v.text("device", device)
	}
	return v.text("class", x.Class).text("attribute", x.Attribute).text("place", x.Place).text("outcome", x.Outcome.String()).text("detail", x.Detail)
}

// trialRows returns all results as rows.
func trialRows(r *trial.Report) (list []starlark.Value) {
	for _, m := range r.Models {
		for _, d := range m.Devices {
			for _, x := range d.Results {
				list = append(list, trialRow(d.Name, x))
			}
		}
	}
	for _, x := range r.Records {
		list = append(list, trialRow("subnet administrator", x))
	}
	return list
}

// hostTools are the other sources of this host: its sysfs, the tools of infiniband-diags and
// mstflint, and the file of ibdiagnet.
type hostTools struct {
	local  umad.HostPort
	pci    string // address of the local device, or ""
	budget *trial.Budget
	// run returns the output of a tool, or false without it.
	run    func(ctx context.Context, name string, args ...string) (string, bool)
	dbCSV  *fabric.Fabric // nil: without the file
	device string         // "mlx5_0"
}

// toolFolders are the folders of tools. Others, such as the folders of PATH, are not searched.
var toolFolders = []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"}

const (
	toolDeadline = 10 * time.Second
	toolOutput   = 256 << 10 // bytes
	// toolDatagrams is how many datagrams a run of a tool sends at most: smpquery sends one
	// request, and repeats it (libibmad DEF_RETRIES 3).
	toolDatagrams = 4
	// dbCSVPath is where ibdiagnet writes its results.
	dbCSVPath = "/var/tmp/ibdiagnet2/ibdiagnet2.db_csv"
)

// openHostTools returns the sources of the host for the port that the session uses; nil
// without a port of the host.
func openHostTools(ctx context.Context, s *session.Session, budget *trial.Budget) *hostTools {
	if s.Engine.Traits().Name != "umad" {
		return nil
	}
	port, err := s.Engine.Port()
	if err != nil {
		return nil
	}
	list, _ := umad.HostPorts(nil)
	h := &hostTools{budget: budget, device: port.Device, run: runTool}
	for _, p := range list {
		if p.PortGUID == port.PortGUID && p.Device == port.Device {
			h.local = p
		}
	}
	if target, err := filepath.EvalSymlinks(filepath.Join("/sys/class/infiniband", port.Device, "device")); err == nil {
		h.pci = filepath.Base(target)
	}
	h.dbCSV = readDBCSV(dbCSVPath)
	return h
}

// readDBCSV reads a file of ibdiagnet; nil if it is missing or invalid.
func readDBCSV(path string) *fabric.Fabric {
	f, err := session.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	loaded, err := format.Load(f, path, func(string) (io.ReadCloser, error) { return nil, fs.ErrPermission })
	if err != nil {
		return nil
	}
	return loaded
}

// foreign returns what the sources report of a device that was read.
func (h *hostTools) foreign(ctx context.Context, d *trial.Device) (list []trial.Foreign) {
	if d.Node.GUID() == h.local.NodeGUID {
		list = append(list, h.sysfs(d), h.mstflint(ctx))
	}
	queries := []smpQuery{{mad.AttrNodeInfo, "nodeinfo", 0, ""}, {mad.AttrNodeDescription, "nodedesc", 0, ""}}
	if d.Node.IsSwitch() {
		queries = append(queries, smpQuery{mad.AttrSwitchInfo, "switchinfo", 0, ""})
	}
	for p := range d.Node.Ports() {
		if d.Answer(mad.AttrPortInfo, uint32(p.Num())) != nil {
			queries = append(queries, smpQuery{mad.AttrPortInfo, "portinfo", p.Num(), "port " + strconv.Itoa(p.Num())})
		}
	}
	for _, q := range queries {
		if x, ok := h.smpquery(ctx, d, q); ok {
			list = append(list, x)
		}
	}
	return append(list, h.ibdiagnet(d)...)
}

// smpQuery is a command of smpquery.
type smpQuery struct {
	attr  *mad.Attribute
	name  string
	port  int // the modifier
	place string
}

// smpquery runs smpquery along the route of a device.
func (h *hostTools) smpquery(ctx context.Context, d *trial.Device, q smpQuery) (x trial.Foreign, ok bool) {
	args := []string{"-C", h.device, "-P", strconv.Itoa(int(h.local.Num)), "-D", q.name, d.Node.Route().String()}
	if q.attr == mad.AttrPortInfo {
		args = append(args, strconv.Itoa(q.port))
	}
	if !h.budget.Reserve(toolDatagrams) {
		return x, false
	}
	out, ok := h.run(ctx, "smpquery", args...)
	return trial.Foreign{Source: "smpquery", Attr: q.attr, Modifier: uint32(q.port), Place: q.place, Fields: trial.Fields(q.attr, out)}, ok
}

// mstflint compares the firmware of the local device with its register.
func (h *hostTools) mstflint(ctx context.Context) trial.Foreign {
	x := trial.Foreign{Source: "mstflint", Attr: mad.LayoutMGIR}
	if h.pci == "" {
		return x
	}
	if out, ok := h.run(ctx, "mstflint", "-d", h.pci, "query"); ok {
		x.Fields = trial.Fields(mad.LayoutMGIR, out)
	}
	return x
}

// sysfs returns what the kernel shows of the local port.
func (h *hostTools) sysfs(d *trial.Device) trial.Foreign {
	p := &h.local
	number := func(n int) string { return strconv.Itoa(n) }
	return trial.Foreign{Source: "sysfs", Attr: mad.AttrPortInfo, Modifier: uint32(d.Port()), Place: "port " + number(d.Port()), Fields: map[string]string{
		"lid": number(int(p.LID)), "lmc": number(int(p.LMC)), "master_sm_lid": number(int(p.SMLID)), "master_sm_sl": number(int(p.SMSL)),
		"port_state": p.State.String(), "port_physical_state": p.PhysicalState.String(), "gid_prefix": strconv.FormatUint(p.GIDPrefix, 10),
	}}
}

// ibdiagnet returns what the file of ibdiagnet has of a device.
func (h *hostTools) ibdiagnet(d *trial.Device) (list []trial.Foreign) {
	if h.dbCSV == nil {
		return nil
	}
	const source = "ibdiagnet2.db_csv"
	for i := range h.dbCSV.Nodes() {
		n := &h.dbCSV.Nodes()[i]
		if n.GUID() != d.Node.GUID() {
			continue
		}
		add := func(a *mad.Attribute, port int, place string, encode func([]byte)) {
			data := make([]byte, a.Size)
			encode(data)
			list = append(list, trial.Foreign{Source: source, Attr: a, Modifier: uint32(port), Place: place, Data: data})
		}
		add(mad.AttrNodeInfo, 0, "", n.Info().Encode)
		if n.SwitchInfo() != nil {
			add(mad.AttrSwitchInfo, 0, "", n.SwitchInfo().Encode)
		}
		for p := range n.Ports() {
			if p.Info() != nil && d.Answer(mad.AttrPortInfo, uint32(p.Num())) != nil {
				add(mad.AttrPortInfo, p.Num(), "port "+strconv.Itoa(p.Num()), p.Info().Encode)
			}
		}
	}
	return list
}

// runTool runs a tool of the host, found in toolFolders: with a deadline, a limit of its
// output, and an environment that has nothing of this process.
func runTool(ctx context.Context, name string, args ...string) (out string, ok bool) {
	path, ok := findTool(name, toolFolders...)
	if !ok {
		return "", false
	}
	return runFile(ctx, path, toolDeadline, args...)
}

// runFile runs the program at path, and ends it and its children at the deadline.
func runFile(ctx context.Context, path string, deadline time.Duration, args ...string) (out string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	c := exec.CommandContext(ctx, path, args...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/"}
	c.Dir = "/"
	c.WaitDelay = time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	w := &limited{limit: toolOutput, end: cancel}
	c.Stdout = w
	if err := c.Run(); err != nil || w.over {
		return "", false
	}
	return w.b.String(), true
}

// findTool returns the path of a tool: a program that only root can change.
func findTool(name string, folders ...string) (path string, ok bool) {
	for _, folder := range folders {
		path := filepath.Join(folder, filepath.Base(name))
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || info.Mode()&0o022 != 0 {
			continue
		}
		if st, isUnix := info.Sys().(*syscall.Stat_t); isUnix && st.Uid == 0 {
			return path, true
		}
	}
	return "", false
}

// limited keeps an output up to a limit, and calls end beyond it.
type limited struct {
	b     bytes.Buffer // not embedded: its ReadFrom knows no limit
	limit int
	end   func()
	over  bool
}

func (l *limited) Write(b []byte) (int, error) {
	if l.b.Len()+len(b) > l.limit {
		l.over = true
		l.end()
		return 0, errors.New("too much output")
	}
	return l.b.Write(b)
}
