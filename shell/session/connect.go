package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"syscall"
	"time"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/fabric/localhost"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/fabric/sim/spec"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/umad"
)

// Connection is a fabric that was opened.
type Connection struct {
	Name      string                  // in the prompt: the argument of -F, without directories
	transport engine.Transport        // nil: a file
	sim       *sim.Subnet             // in this process; nil: none
	control   *topology.Sim           // in another process; nil: none
	loaded    *fabric.Fabric          // from a file, or of host
	host      *localhost.Host         // that is judged; nil: a fabric is
	clock     lang.Clock              // a recording's; nil: the real one
	ports     func() []engine.Port    // the active ports of this host; nil: the fabric is reached otherwise
	history   *topology.HistorySource // of loaded; nil: it is from a file
	warnings  []error                 // what is missing, or was skipped
	recorded  *recorded               // by --record; nil: nothing is
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
		{"history", "history:[SUBNET|FILE][@TIME]", connector.history},
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
	opened := &Connection{Name: "umad:" + t.String(), transport: t, ports: activePorts}
	for _, err := range t.Skipped {
		opened.warnings = append(opened.warnings, fmt.Errorf("skipped %w", err))
	}
	if name := os.Getenv(ControlVariable); name != "" {
		opened.control = controlled(name)
	}
	return opened, nil
}

// activePorts returns the active ports of this host that send subnet management packets.
func activePorts() (list []engine.Port) {
	all, _ := umad.HostPorts(nil)
	for _, p := range all {
		if p.Link == "infiniband" && p.State == mad.PortStateActive && (p.Role == "smi" || p.Role == "both") {
			list = append(list, p.Port)
		}
	}
	return list
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

// history reads the fabric as it was at a time.
func (c connector) history(arg string) (*Connection, error) {
	f, source, err := LoadHistory(c.ctx, c.settings.StateDir(), arg, nil)
	var host *HostError
	switch {
	case errors.As(err, &host) && strings.HasPrefix(err.Error(), "history:"):
		return nil, &HostError{fmt.Errorf("-F %w", host.Err)}
	case err != nil && strings.HasPrefix(err.Error(), "history:"):
		return nil, fmt.Errorf("-F %w", err)
	case err != nil:
		return nil, err
	}
	return &Connection{Name: "history of " + source.Time.Local().Format(time.RFC3339), loaded: f, history: source}, nil
}

// LoadHistory reads a fabric as it was at a time from what -F history: or diff names: [SUBNET|FILE][@TIME].
// Without a file it is the history of a subnet in the directory for state dir. An existing file of the
// whole name has precedence over one with a time. allowed, unless it is nil, returns an error if a file
// must not be read.
func LoadHistory(ctx context.Context, dir, arg string, allowed func(path string) error) (*fabric.Fabric, *topology.HistorySource, error) {
	name, text := arg, "now"
	if i := strings.LastIndexByte(arg, '@'); i >= 0 && !isFile(arg) {
		name, text = arg[:i], arg[i+1:]
	}
	t, err := history.ParseTime(text, time.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("history:%s: %w", arg, err)
	}
	path := name
	if !history.IsServer(name) && !isFile(name) {
		if path, err = history.Find(dir, name); err != nil {
			return nil, nil, &HostError{fmt.Errorf("history:%s: %w", arg, err)}
		}
	} else if allowed != nil {
		if err := allowed(path); err != nil {
			return nil, nil, err
		}
	}
	h, err := history.Open(ctx, path)
	if err != nil {
		return nil, nil, &HostError{err}
	}
	defer h.Close()
	f, cycle, err := h.At(ctx, t)
	if err != nil {
		return nil, nil, &HostError{err}
	}
	return f, &topology.HistorySource{Path: path, Time: cycle}, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// LoadFile reads a saved fabric that the command line names, a file or a directory, until ctx ends.
func LoadFile(ctx context.Context, path string, secrets Secrets) (*fabric.Fabric, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return loadDir(path, secrets)
	}
	f, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, Late(err)
	}
	defer f.Close()
	loaded, err := format.Load(f, path, secrets.Open)
	return loaded, Late(err)
}

// loadDir reads a fabric from the files of a directory. No link leads out of it.
func loadDir(path string, secrets Secrets) (*fabric.Fabric, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, format.FileError(err)
	}
	defer root.Close()
	return format.LoadDir(root.FS(), path, secrets.Open)
}

// OpenHost reads the ports of this host, and opens a session that judges them. A host without
// devices has no ports. domain reads the NVLink domain of the host; nil: it stays unknown.
func OpenHost(ctx context.Context, p *Program, domain func(context.Context) (string, error)) (*Session, error) {
	o := localhost.ReadOptions{Timeout: p.Settings.Timeout.Value}
	if p.Settings.Given("retries") {
		if o.Retries = p.Settings.Retries.Value; o.Retries == 0 {
			o.Retries = -1 // none; 0 is the engine's default
		}
	}
	var nvlink string
	var unread error
	var wait sync.WaitGroup
	if domain != nil {
		wait.Go(func() { nvlink, unread = domain(ctx) })
	}
	h, err := localhost.Read(ctx, o)
	wait.Wait()
	if err != nil {
		return nil, &HostError{fmt.Errorf("host: %w", err)}
	}
	if h.Domain = nvlink; unread != nil {
		p.Warn("NVLink domain: not judged: %v", unread)
	}
	return New(p, Base{Connection: &Connection{Name: "host " + h.Name, loaded: h.Fabric, host: h}})
}

// simKey is the key in a simulated fabric's specification. No key is shown.
var simKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\bmkey\s*=)[^,]*`)
})

func (c connector) sim(spec string) (*Connection, error) {
	return Simulate(c.settings, spec, OpenNamed(c.ctx, lang.OpenNamed), c.secrets.Open)
}

// Simulate makes a subnet in this process, and attaches to its first adapter unless the
// settings name another node. Files that spec names are opened by open, and those that
// they name by included.
func Simulate(s *Settings, spec string, open, included format.Opener) (*Connection, error) {
	f, options, err := sim.ParseFiles(spec, open, included)
	if err != nil {
		return nil, Late(err)
	}
	node, err := SimNode(f, s.CA)
	if err != nil {
		return nil, err
	}
	subnet := sim.New(f, options)
	t, err := subnet.Attach(node, s.Port.Value)
	if err != nil {
		return nil, err
	}
	return &Connection{Name: strings.TrimSuffix("sim:"+simKey().ReplaceAllString(spec, "$1..."), ":"), transport: t, sim: subnet}, nil
}

// SimNode returns the node to attach to: the one with this name or GUID, else the first
// with a cable that is not a switch; among switches only, the first.
func SimNode(f *fabric.Fabric, name string) (int, error) {
	nodes := f.Nodes()
	if name == "" {
		for i := range nodes {
			if n := &nodes[i]; !n.IsSwitch() && spec.HasCable(n) {
				return i, nil
			}
		}
		return max(0, slices.IndexFunc(nodes, func(n fabric.Node) bool { return n.IsSwitch() })), nil
	}
	for i := range nodes {
		if nodes[i].GUID().String() == name {
			return i, nil
		}
	}
	n, err := f.FindNode(name)
	if err != nil {
		return 0, fmt.Errorf("-C: %w", err)
	}
	return n.ID(), nil
}

// replay reads a recording, which takes the place of the fabric.
func (c connector) replay(path string) (*Connection, error) {
	if path == "" {
		return nil, errors.New("-F replay: missing file; write -F replay:FILE")
	}
	f, err := lang.OpenNamed(c.ctx, path)
	if err != nil {
		return nil, Late(err)
	}
	defer f.Close()
	r, err := format.Unpack(f, path, maxRecording)
	if err != nil {
		return nil, err
	}
	recording, err := capture.Load(r, path)
	if err != nil {
		return nil, Late(err)
	}
	t := capture.NewReplay(recording)
	opened := &Connection{Name: "replay:" + filepath.Base(path), transport: t, clock: t}
	if err := recording.Incomplete(); err != nil {
		opened.warnings = append(opened.warnings, err)
	}
	return opened, nil
}

// maxRecording is the maximum length of a recording, in bytes: that of a sweep of the
// largest subnet, with 1.5 million requests and their answers. In memory it takes up to
// three times as much.
const maxRecording = 1 << 30

// record records the traffic of c in the file at path; "": no recording.
func (c *Connection) record(path string) error {
	switch {
	case path == "":
		return nil
	case c.loaded != nil:
		return errors.New("--record: the session reads a file, so no traffic can be recorded")
	case c.clock != nil:
		return errors.New("--record: the session replays a recording; copy that file")
	case c.transport == nil:
		return nil // no fabric, and code that may not need one
	}
	f, err := createRecording(path)
	if err != nil {
		c.transport.Close()
		return fmt.Errorf("--record: %w", format.FileError(err))
	}
	t, err := capture.Record(c.transport, f)
	if err != nil {
		c.transport.Close()
		if file, ok := f.(*recordFile); ok {
			file.discard()
		}
		return &HostError{fmt.Errorf("--record %s: %w", path, err)}
	}
	c.transport = t
	c.recorded = &recorded{path: path}
	c.recorded.file, _ = f.(*recordFile)
	return nil
}

// recorded is what --record writes.
type recorded struct {
	path string      // as the command line has it
	file *recordFile // nil: a pipe or a device
}

// Recording is what --record has written so far. More packets may follow in the file; these stay.
type Recording struct {
	File  string // as the command line has it
	Bytes int64  // 0: a pipe or a device, which cannot be read
	Sum   string // of these bytes, SHA-256
}

// Recording returns what --record has written so far; nil without it. The error is that packets are
// missing in the recording, or that it cannot be read.
func (s *Session) Recording() (*Recording, error) {
	if s.recorded == nil {
		return nil, nil
	}
	r := &Recording{File: s.recorded.path}
	f := s.recorded.file
	if f == nil {
		return r, nil
	}
	var err error
	f.mu.Lock()
	r.Bytes, err = f.size, f.err
	f.mu.Unlock()
	h := sha256.New()
	if err == nil {
		_, err = io.Copy(h, io.NewSectionReader(f.f, 0, r.Bytes))
	}
	if err != nil {
		return r, fmt.Errorf("--record %s: incomplete recording: %w", r.File, err)
	}
	r.Sum = hex.EncodeToString(h.Sum(nil))
	return r, nil
}

// partSuffix ends the name of a recording that is being written. An incomplete
// recording of a killed session keeps it, so that it does not look complete.
const partSuffix = ".part"

// recordFile is a recording that is being written. Until Close it is FILE.part; an
// existing recording at FILE is unchanged until then.
type recordFile struct {
	f    *os.File
	path string
	mode fs.FileMode // of the file that is replaced; 0: no file is replaced

	mu   sync.Mutex // guards all below
	size int64      // of all complete packets, in bytes
	err  error      // of a write: the recording has ended
}

// createRecording starts a recording at path. Pipes and devices are written directly.
func createRecording(path string) (io.WriteCloser, error) {
	target, err := format.Target(path)
	if err != nil {
		return nil, err
	}
	r := &recordFile{path: target}
	switch st, err := os.Stat(target); {
	case err == nil && !st.Mode().IsRegular():
		return format.Create(path, os.O_RDWR)
	case err == nil:
		r.mode = st.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if r.f, err = createPart(target + partSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist} // the directory is missing
	}
	return r, err
}

// createPart creates the file at path, which this process locks. A file left by a
// killed session is replaced.
func createPart(path string) (*os.File, error) {
	if old, err := format.OpenPlain(path, os.O_RDONLY); err == nil {
		err = syscall.Flock(int(old.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			old.Close()
			return nil, fmt.Errorf("%s: another session is writing this recording; choose another file", path)
		}
		os.Remove(path)
		old.Close()
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o666)
	if err == nil {
		syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // file systems without locks
	}
	return f, err
}

// Write writes one packet. After an error, the partial packet is removed, and nothing
// more is written.
func (r *recordFile) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.f.Write(b)
	if err != nil {
		r.err = err
		r.f.Truncate(r.size)
		return 0, err
	}
	r.size += int64(n)
	return n, nil
}

// Close ends the recording, and gives it its name unless a packet is missing.
func (r *recordFile) Close() error {
	err := r.err
	if err == nil && r.mode != 0 {
		err = r.f.Chmod(r.mode)
	}
	if err == nil {
		err = r.f.Sync() // otherwise a crash of the machine could leave an empty file
	}
	if err == nil {
		err = os.Rename(r.f.Name(), r.path)
	}
	r.f.Close()
	if err != nil {
		return fmt.Errorf("--record %s: incomplete recording, kept in %s: %w", r.path, r.f.Name(), err)
	}
	return nil
}

// discard removes a recording that has not started.
func (r *recordFile) discard() {
	os.Remove(r.f.Name())
	r.f.Close()
}
