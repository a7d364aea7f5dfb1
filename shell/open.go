package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/umad"
)

// connection is a fabric that was opened.
type connection struct {
	name      string           // in the prompt: what -F says, but for folders
	transport engine.Transport // nil: a file
	sim       *sim.Subnet      // in this process; nil: none is
	loaded    *fabric.Fabric   // from a file
	clock     lang.Clock       // a recording's; nil: the real one
	warning   error            // what is missing; nil: nothing is
}

// fabricKind is a kind of fabric that -F may name. open gets what stands behind
// the colon.
type fabricKind struct {
	name, usage string
	open        func(o *settings, arg string) (*connection, error)
}

// fabricKinds are all of them.
func fabricKinds() []fabricKind {
	return []fabricKind{
		{"umad", "umad[:DEVICE/PORT]", openUmad},
		{"ibsim", "ibsim[:SOCKNAME]", openIbsim},
		{"sim", "sim[:SPEC|FILE]", openSim},
		{"replay", "replay:FILE", openReplay},
		{"file", "file:PATH", openFile},
	}
}

func kindsUsage() string {
	var usages []string
	for _, k := range fabricKinds() {
		usages = append(usages, k.usage)
	}
	return strings.Join(usages, ", ")
}

// hostError is a failure of the host or of the fabric, not of the command.
type hostError struct{ err error }

func (e *hostError) Error() string { return e.err.Error() }
func (e *hostError) Unwrap() error { return e.err }

// open opens what spec says.
func open(o *settings, spec string) (*connection, error) {
	name, arg, _ := strings.Cut(spec, ":")
	var names []string
	for _, k := range fabricKinds() {
		if k.name == name {
			return k.open(o, arg)
		}
		names = append(names, k.name)
	}
	return nil, fmt.Errorf("-F %q: no such kind of fabric%s: use %s", spec, fabric.DidYouMean(name, names), kindsUsage())
}

// openUmad opens a port of the host: DEVICE/PORT, DEVICE, or the first that
// will do.
func openUmad(o *settings, arg string) (*connection, error) {
	options, err := umadOptions(o, arg)
	if err != nil {
		return nil, err
	}
	t, err := umad.Open(options)
	switch {
	case errors.Is(err, umad.ErrNoDevice):
		err = fmt.Errorf("%w; %s", err, without)
		fallthrough
	case err != nil:
		return nil, &hostError{err}
	}
	return &connection{name: "umad:" + t.String(), transport: t}, nil
}

// without says what there is where there is no device.
const without = "to try fabsh on a simulated fabric: fabsh -F sim (-F ibsim is one of ibsim's, -F file:PATH a saved one)"

// umadOptions joins what -F umad:DEVICE/PORT, -C and -P say.
func umadOptions(o *settings, arg string) (umad.Options, error) {
	device, num, hasPort := strings.Cut(arg, "/")
	var port number
	if hasPort {
		port = number{min: 1, max: 254}
		if err := port.Set(num); err != nil {
			return umad.Options{}, fmt.Errorf("-F umad:%s: after the slash: %w", arg, err)
		}
	}
	switch {
	case device != "" && o.ca != "" && device != o.ca:
		return umad.Options{}, fmt.Errorf("-F umad:%s and -C %s name different devices", arg, o.ca)
	case hasPort && o.port.isSet && port.value != o.port.value:
		return umad.Options{}, fmt.Errorf("-F umad:%s and -P %d name different ports", arg, o.port.value)
	}
	return umad.Options{Device: cmp.Or(device, o.ca), Port: cmp.Or(port.value, o.port.value)}, nil
}

// openIbsim attaches to the simulator of ibsim-utils. Its own variables name
// socket and node where flags do not.
func openIbsim(o *settings, socket string) (*connection, error) {
	if o.port.isSet && o.port.value != 1 {
		return nil, fmt.Errorf("-P %d: ibsim attaches programs to port 1 of a channel adapter, or to port 0 of a switch, only", o.port.value)
	}
	t, err := ibsim.Attach(ibsim.Options{
		Socket: cmp.Or(socket, os.Getenv("IBSIM_SOCKNAME")),
		Node:   cmp.Or(o.ca, os.Getenv("SIM_HOST")),
		ISSM:   o.trapAgent, // who gets requests to queue pair 0
	})
	if err != nil {
		return nil, &hostError{err}
	}
	name := "ibsim"
	if p, err := t.Port(); err == nil {
		name = fmt.Sprintf("ibsim %s/%d", p.Device, p.Num)
	}
	return &connection{name: name, transport: t}, nil
}

// simKey is the key in a simulated fabric's specification. No key is shown.
var simKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\bmkey\s*=)[^,]*`)
})

// openSim makes a subnet in this process, and attaches to its first channel
// adapter unless told otherwise.
func openSim(o *settings, spec string) (*connection, error) {
	return simulate(o, spec, openNamed(o.context(), lang.OpenNamed), o.openIncluded)
}

// simulate is openSim with the files that open opens, and those that they name,
// which included opens.
func simulate(o *settings, spec string, open, included format.Opener) (*connection, error) {
	f, options, err := sim.ParseFiles(spec, open, included)
	if err != nil {
		return nil, late(err)
	}
	node, err := simNode(f, o.ca)
	if err != nil {
		return nil, err
	}
	subnet := sim.New(f, options)
	t, err := subnet.Attach(node, o.port.value)
	if err != nil {
		return nil, err
	}
	return &connection{name: strings.TrimSuffix("sim:"+simKey().ReplaceAllString(spec, "$1..."), ":"), transport: t, sim: subnet}, nil
}

// simNode is the node to attach to: the one with this name or GUID, else the
// first that is no switch and has a cable; of switches alone the first.
func simNode(f *fabric.Fabric, name string) (int, error) {
	nodes := f.Nodes()
	if name == "" {
		for i := range nodes {
			if n := &nodes[i]; !n.IsSwitch() && sim.HasCable(n) {
				return i, nil
			}
		}
		return max(0, slices.IndexFunc(nodes, func(n fabric.Node) bool { return n.IsSwitch() })), nil
	}
	var names []string
	for i := range nodes {
		if n := &nodes[i]; n.Name() == name || n.GUID().String() == name {
			return i, nil
		}
		names = append(names, nodes[i].Name())
	}
	return 0, fmt.Errorf("-C %q: the simulated fabric has no such node%s", name, fabric.DidYouMean(name, names))
}

// openFile reads a saved fabric.
func openFile(o *settings, path string) (*connection, error) {
	if path == "" {
		return nil, errors.New("-F file: which file? write -F file:PATH")
	}
	f, err := lang.OpenNamed(o.context(), path)
	if err != nil {
		return nil, late(err)
	}
	defer f.Close()
	loaded, err := format.Load(f, path, o.openIncluded)
	if err != nil {
		return nil, late(err)
	}
	return &connection{name: "file:" + filepath.Base(path), loaded: loaded}, nil
}

// openIncluded opens a file that another one names, and none that holds keys.
func (s *settings) openIncluded(path string) (io.ReadCloser, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && slices.ContainsFunc(s.secrets, func(secret fs.FileInfo) bool { return os.SameFile(secret, st) }) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("holds keys")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// context is that of opening what the command line names: it ends with the deadline.
func (s *settings) context() context.Context {
	if s.opening == nil {
		return context.Background()
	}
	return s.opening
}

// within has what is opened from now on end with ctx, too, until end is called.
func (s *settings) within(ctx context.Context) (end func()) {
	before := s.opening
	both, cancel := context.WithCancelCause(s.context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	s.opening = both
	return func() {
		stop()
		s.opening = before
		cancel(nil)
	}
}

// late makes the end of the time a failure of the host: who was to write a pipe
// has not.
func late(err error) error {
	var d *lang.DeadlineError
	if errors.As(err, &d) {
		return &hostError{d}
	}
	return err
}

// noFile returns err as "path: cause" where it is about a file.
func noFile(err error) error { return format.FileError(err) }

// open opens the fabric that the flags name, and a session on it. Where they
// name none and the host has no device, code may run all the same: what needs
// the fabric says so. At the prompt a simulated one is offered.
func (a *app) open(prompt bool) (*session, error) {
	spec, given := a.fabricSpec()
	keys, err := a.readKeys()
	if err != nil {
		return nil, late(err)
	}
	kind, _, _ := strings.Cut(spec, ":")
	names, err := a.nodeNames(kind)
	if err != nil {
		return nil, late(err)
	}
	a.site(kind)
	c, err := open(&a.settings, spec)
	switch {
	case err == nil:
	case given:
		return nil, err
	case prompt:
		if err := a.offer(err); err != nil {
			return nil, err
		}
		if c, err = open(&a.settings, "sim"); err != nil {
			return nil, err
		}
	}
	if c != nil && c.warning != nil {
		a.warn("%v", c.warning)
	}
	return a.session(c, err, cmp.Or(keys, a.siteKeys), names)
}

// session makes a session on c, or, if that is nil, on nothing because of absent.
func (a *app) session(c *connection, absent error, keys *engine.Keys, names map[mad.GUID]string) (*session, error) {
	if c == nil {
		c = &connection{name: "no fabric"}
	}
	s := &session{app: a, name: c.name, began: time.Now()}
	a.console.setColor(a.color, a.output())
	if err := a.startRecording(c); err != nil {
		return nil, err
	}
	clock := c.clock
	if a.virtualTime {
		if c.sim == nil {
			return nil, errors.New("--virtual-time has no meaning without a fabric that is simulated in this process (-F sim)")
		}
		clock = lang.NewVirtualClock()
	}
	client := &sa.Client{SMLID: mad.LID(a.smLID.value), PKey: uint16(a.pkey.value)}
	if a.sl.isSet {
		sl := uint8(a.sl.value)
		client.SL = &sl
	}
	if c.transport != nil {
		o := a.engineOptions(c.transport, keys)
		o.Resolve = client.Resolve
		s.engine = engine.New(c.transport, o)
	}
	o := builtins.Options{
		Env: topology.Env{
			Engine:      s.engine,
			Absent:      absent,
			Sim:         c.sim,
			Loaded:      c.loaded,
			Names:       names,
			PlainSpeeds: a.plainSpeeds,
			SA:          client,
			Write:       s.engine != nil && s.engine.Write(),
			OverrideSM:  a.overrideSM,
			TrapAgent:   a.trapAgent,
		},
		Stdout:     a.console.Out(),
		Stderr:     a.console.Err(),
		Format:     a.output(),
		Include:    a.include,
		Out:        a.out,
		Secrets:    a.secrets,
		Flags:      a.sessionFlags(),
		Quiet:      a.quiet,
		Verbose:    a.verbose,
		State:      a.stateDir(),
		User:       login(),
		StartGuard: s.startGuard,
		Job:        jobOf(a.script),
		Version:    version(),
		Clock:      clock,
		Width:      a.console.width,
		Blocks:     a.console.blocks,
	}
	if !a.quiet {
		s.progress = &progress{console: a.console, idle: s.doing}
		o.Progress = s.progress.Tell
	}
	var err error
	if s.Session, err = builtins.NewSession(o); err != nil {
		s.closeEngine()
		return nil, err
	}
	a.interrupts.onExit(s.leave)
	s.nameUnended()
	if a.planFile != "" {
		if err := s.startPlan(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (a *app) engineOptions(t engine.Transport, keys *engine.Keys) engine.Options {
	o := engine.Options{
		Keys:    keys,
		Window:  a.window.value,
		Timeout: a.timeout.value,
		Retries: a.retries.value,
		Write:   !a.readOnly && a.planFile == "" && (a.write || t.Traits().Simulated),
	}
	if o.Retries == 0 {
		o.Retries = -1 // none; 0 is the engine's default
	}
	return o
}
