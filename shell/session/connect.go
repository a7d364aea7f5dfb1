package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/localhost"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/umad"
)

// Connection is a fabric that was opened.
type Connection struct {
	Name      string           // in the prompt: the argument of -F, without directories
	transport engine.Transport // nil: a file
	sim       *sim.Subnet      // in this process; nil: none
	control   *topology.Sim    // in another process; nil: none
	loaded    *fabric.Fabric   // from a file, or of host
	host      *localhost.Host  // that is judged; nil: a fabric is
	clock     lang.Clock       // a recording's; nil: the real one
	warnings  []error          // what is missing, or was skipped
}

// wrap replaces the transport; with an error, it is closed.
func (c *Connection) wrap(with func(engine.Transport) (engine.Transport, error)) error {
	if with == nil || c.transport == nil {
		return nil
	}
	t, err := with(c.transport)
	if err != nil {
		c.transport.Close()
		return err
	}
	c.transport = t
	return nil
}

// fabricKind is a kind of fabric that -F may name. open is called with the text after
// the colon.
type fabricKind struct {
	name, usage string
	open        func(c connector, arg string) (*Connection, error)
}

// fabricKinds are all of them.
func fabricKinds() []fabricKind {
	return []fabricKind{
		{"umad", "umad[:DEVICE/PORT]", connector.umad},
		{"ibsim", "ibsim[:SOCKNAME]", connector.ibsim},
		{"sim", "sim[:SPEC|FILE]", connector.sim},
		{"replay", "replay:FILE", connector.replay},
		{"file", "file:PATH", connector.file},
	}
}

func kindsUsage() string {
	var usages []string
	for _, k := range fabricKinds() {
		usages = append(usages, k.usage)
	}
	return strings.Join(usages, ", ")
}

// FabricKinds returns the kinds of fabric that -F may name.
func FabricKinds() []string {
	var names []string
	for _, k := range fabricKinds() {
		names = append(names, k.name)
	}
	return names
}

// connector opens fabrics.
type connector struct {
	ctx      context.Context // until it ends, files that the command line names are waited for
	settings *Settings
	secrets  Secrets
}

// Connect opens the fabric that spec names, until ctx ends.
func Connect(ctx context.Context, s *Settings, secrets Secrets, spec string) (*Connection, error) {
	name, arg, _ := strings.Cut(spec, ":")
	for _, k := range fabricKinds() {
		if k.name == name {
			return k.open(connector{ctx, s, secrets}, arg)
		}
	}
	return nil, fmt.Errorf("-F %q: unknown kind of fabric%s; supported: %s", spec, fabric.DidYouMean(name, FabricKinds()), kindsUsage())
}

// umad opens a port of the host: DEVICE/PORT, DEVICE, or the first active one.
func (c connector) umad(arg string) (*Connection, error) {
	options, err := umadOptions(c.settings, arg)
	if err != nil {
		return nil, err
	}
	t, err := umad.Open(options)
	switch {
	case errors.Is(err, umad.ErrNoDevice):
		err = fmt.Errorf("%w; %s", err, WithoutDevice)
		fallthrough
	case err != nil:
		return nil, &HostError{err}
	}
	opened := &Connection{Name: "umad:" + t.String(), transport: t}
	for _, err := range t.Skipped {
		opened.warnings = append(opened.warnings, fmt.Errorf("skipped %w", err))
	}
	if name := os.Getenv(ControlVariable); name != "" {
		opened.control = controlled(name)
	}
	return opened, nil
}

// ControlVariable names, in the environment of what fabsh sim --run runs, the subnet that sim
// controls.
const ControlVariable = "FABSH_SIM_CONTROL"

// controlled returns the value sim of a subnet that another process serves by that name.
func controlled(name string) *topology.Sim {
	served := &server.ControlClient{Name: name}
	return &topology.Sim{Remote: served.Call}
}

// WithoutDevice is the remedy if the host has no device.
const WithoutDevice = "try fabsh on a simulated fabric with -F sim, or use -F ibsim (the simulator ibsim) or -F file:PATH (a saved fabric)"

// umadOptions combines -F umad:DEVICE/PORT, -C and -P.
func umadOptions(o *Settings, arg string) (umad.Options, error) {
	device, num, hasPort := strings.Cut(arg, "/")
	var port Number
	if hasPort {
		port = Number{min: 1, max: 254}
		if err := port.Set(num); err != nil {
			return umad.Options{}, fmt.Errorf("-F umad:%s: after the slash: %w", arg, err)
		}
	}
	switch {
	case device != "" && o.CA != "" && device != o.CA:
		return umad.Options{}, fmt.Errorf("-F umad:%s, -C %s: different devices", arg, o.CA)
	case hasPort && o.Port.IsSet && port.Value != o.Port.Value:
		return umad.Options{}, fmt.Errorf("-F umad:%s, -P %d: different ports", arg, o.Port.Value)
	}
	return umad.Options{Device: cmp.Or(device, o.CA), Port: cmp.Or(port.Value, o.Port.Value)}, nil
}

// ibsim attaches to the simulator of ibsim-utils. Its own variables name socket and
// node if flags do not.
func (c connector) ibsim(socket string) (*Connection, error) {
	o := c.settings
	if o.Port.IsSet && o.Port.Value != 1 {
		return nil, fmt.Errorf("-P %d: not supported by ibsim, which attaches programs to port 1 of an adapter, or to port 0 of a switch", o.Port.Value)
	}
	socket = cmp.Or(socket, os.Getenv("IBSIM_SOCKNAME"))
	t, err := ibsim.Attach(ibsim.Options{
		Socket: socket,
		Node:   cmp.Or(o.CA, os.Getenv("SIM_HOST")),
		ISSM:   o.TrapAgent, // the receiver of requests to queue pair 0
	})
	if err != nil {
		return nil, &HostError{err}
	}
	name := "ibsim"
	if p, err := t.Port(); err == nil {
		name = fmt.Sprintf("ibsim %s/%d", p.Device, p.Num)
	}
	return &Connection{Name: name, transport: t, control: controlled(cmp.Or(socket, server.DefaultName))}, nil
}

// file reads a saved fabric.
func (c connector) file(path string) (*Connection, error) {
	if path == "" {
		return nil, errors.New("-F file: missing path; write -F file:PATH")
	}
	loaded, err := LoadFile(c.ctx, path, c.secrets)
	if err != nil {
		return nil, err
	}
	return &Connection{Name: "file:" + filepath.Base(path), loaded: loaded}, nil
}

// LoadFile reads a saved fabric that the command line names, until ctx ends.
func LoadFile(ctx context.Context, path string, secrets Secrets) (*fabric.Fabric, error) {
	f, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, Late(err)
	}
	defer f.Close()
	loaded, err := format.Load(f, path, secrets.Open)
	return loaded, Late(err)
}

// OpenHost reads the ports of this host, and opens a session that judges them. A host without
// devices has no ports.
func OpenHost(ctx context.Context, p *Program) (*Session, error) {
	o := localhost.ReadOptions{Timeout: p.Settings.Timeout.Value}
	if p.Settings.Given("retries") {
		if o.Retries = p.Settings.Retries.Value; o.Retries == 0 {
			o.Retries = -1 // none; 0 is the engine's default
		}
	}
	h, err := localhost.Read(ctx, o)
	if err != nil {
		return nil, &HostError{fmt.Errorf("audit host: %w", err)}
	}
	return New(p, Base{Connection: &Connection{Name: "host " + h.Name, loaded: h.Fabric, host: h}})
}
