package session

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// OpenNamed returns open for files that the command line names, until ctx ends.
func OpenNamed(ctx context.Context, open func(context.Context, string) (*lang.File, error)) format.Opener {
	return func(path string) (io.ReadCloser, error) {
		f, err := open(ctx, path)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

// WriteNamed writes the file that the command line names, completely or not at all. It
// waits for the reader of a pipe until ctx ends.
func WriteNamed(ctx context.Context, path string, write func(io.Writer) error) error {
	return NotWritten(path, format.WriteFile(ctx, path, write))
}

// NotWritten returns err with the name that the user knows, not the name of the temporary
// file.
func NotWritten(path string, err error) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such directory", path)
	}
	err = format.FileError(&fs.PathError{Op: pe.Op, Path: path, Err: pe.Err})
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO} {
		if errors.Is(err, cause) {
			return &HostError{err} // not a usage error
		}
	}
	return err
}

// OpenRegular opens a file that the command line does not name. It must be a regular
// file, so that the program never waits for a writer.
func OpenRegular(path string) (*os.File, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is a directory")}
	}
	return f, nil
}

// MaxOwn is the maximum length of the program's own files, in bytes: settings, startup
// statements, and history.
const MaxOwn = 16 << 20

// ReadOwn reads one of the program's own files completely.
func ReadOwn(path string) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := format.Bounded(f, path, MaxOwn)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Secrets are the key files that were read. Scripts and other files cannot open them.
type Secrets []fs.FileInfo

// Open opens a file that another file names, unless it contains keys.
func (s Secrets) Open(path string) (io.ReadCloser, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && slices.ContainsFunc(s, func(secret fs.FileInfo) bool { return os.SameFile(secret, st) }) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("contains keys")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadKeys reads the keys that --keys names, from a file or, with "-", from the
// terminal; nil without --keys. It also returns the file.
func (p *Program) ReadKeys(ctx context.Context) (*engine.Keys, Secrets, error) {
	path := p.Settings.Keys
	switch {
	case !p.Settings.Given("keys"):
		return nil, nil, nil
	case path == "-":
		keys, err := askKeys(p.Interrupts)
		return keys, nil, err
	}
	keys, secrets, err := readKeyFile(ctx, path)
	if _, bad := strconv.ParseUint(path, 0, 64); bad == nil && errors.Is(err, os.ErrNotExist) {
		return nil, nil, errors.New("--keys: a key is not accepted on the command line, which all users of this host can read; give a file, or - to be prompted")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--keys: %w", err)
	}
	return keys, secrets, nil
}

func readKeyFile(ctx context.Context, path string) (*engine.Keys, Secrets, error) {
	f, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	secret, err := private(f)
	if err != nil {
		return nil, nil, err
	}
	keys, err := format.ReadKeys(f, path)
	return keys, Secrets{secret}, err
}

type namedFile interface {
	Name() string
	Stat() (fs.FileInfo, error)
}

// private returns the FileInfo of f, if only its owner may read or write it.
func private(f namedFile) (fs.FileInfo, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fmt.Errorf("%s: is a directory", f.Name())
	case st.Mode().Perm()&0o077 != 0:
		return st, fmt.Errorf("%s: contains keys, but its mode %04o gives other users access; chmod 600 %s", f.Name(), st.Mode().Perm(), f.Name())
	}
	return st, nil
}

// askKeys prompts for each kind of key at the terminal, which does not display it.
func askKeys(interrupts *Interrupts) (*engine.Keys, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("--keys -: no terminal for the prompt; put the keys into a file of mode 0600: --keys FILE")
	}
	defer tty.Close()
	interrupts.OnExit(SaveTerminal(tty))
	defer interrupts.OnExit(func() {})
	// Before the first prompt and between them too, for a user who types fast.
	restore, err := hideTyping(tty)
	if err != nil {
		return nil, fmt.Errorf("--keys -: the terminal would display them: %w; put them into a file of mode 0600: --keys FILE", err)
	}
	defer restore()
	var lines strings.Builder
	for _, name := range format.KeyNames() {
		key, err := askUnseen(tty, name+" (not displayed; Enter for none): ")
		if err != nil {
			return nil, fmt.Errorf("--keys -: %w", err)
		}
		if key != "" {
			fmt.Fprintf(&lines, "%s %s", name, key)
		}
		lines.WriteByte('\n')
	}
	return format.ReadKeys(strings.NewReader(lines.String()), "--keys -")
}

// Site settings for infiniband-diags apply here too (rdma-core ibdiag_common.c,
// read_ibdiag_config; util/node_name_map.c). The first name of the map is Debian's, the
// second rdma-core's own.
const siteConfig = "infiniband-diags/ibdiag.conf"

var siteNameMaps = []string{"infiniband-diags/ib-node-name-map", "rdma/ib-node-name-map"}

// siteFolder returns the directory of the configuration of the site.
func (s *Settings) siteFolder() string { return filepath.Join(cmp.Or(s.Root, "/"), "etc") }

// ThresholdFile returns the path of the limits of counters of the site, which ibqueryerrors reads
// (rdma-core ibqueryerrors.c, DEF_THRES_FILE); "" without one, and for fabrics other than those
// of the site.
func ThresholdFile(s *Settings) string { return thresholdFile(s.siteFolder(), s) }

func thresholdFile(etc string, s *Settings) string {
	spec, _ := s.FabricSpec()
	kind, _, _ := strings.Cut(spec, ":")
	path := filepath.Join(etc, "infiniband-diags/error_thresholds")
	if i, err := os.Stat(path); kind != "umad" && kind != "ibsim" || err != nil || !i.Mode().IsRegular() {
		return ""
	}
	return path
}

// site is what ibdiag.conf sets, besides settings.
type site struct {
	keys        *engine.Keys
	secrets     Secrets // the file, if it has keys
	plainSpeeds bool    // no requests for vendors' speeds
}

// readSite reads ibdiag.conf below etc, for a fabric of that kind. Flags take
// precedence: it sets only what s does not have from the command line. As with
// infiniband-diags, errors in it are warnings.
func readSite(etc, kind string, s *Settings, warn func(format string, args ...any)) (out site) {
	if kind != "umad" && kind != "ibsim" {
		return out
	}
	path := filepath.Join(etc, siteConfig)
	f, err := OpenRegular(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			warn("%v", format.FileError(err))
		}
		return out
	}
	defer f.Close()
	r, err := format.Bounded(f, path, MaxOwn)
	if err != nil {
		warn("%v", err)
		return out
	}
	var keys strings.Builder // lines of a key file, at their position in this one
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if n > 1 {
			keys.WriteByte('\n')
		}
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		switch name {
		case "m_key", "sa_key":
			fmt.Fprintf(&keys, "%s %s", name, value)
		case "MLX_EPI":
			out.plainSpeeds = !strings.EqualFold(value, "true")
		default:
			if err := s.setFromSite(kind, name, value); err != nil {
				warn("%s:%d: %s: %v", path, n, name, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		warn("%s: %v", path, err)
	}
	if text := keys.String(); strings.Trim(text, "\n") != "" && !s.Given("keys") {
		out.keys, out.secrets, err = siteKeys(f, text)
		if err != nil {
			warn("%v; keys in it ignored", err)
		}
	}
	return out
}

// setFromSite applies a line of ibdiag.conf that corresponds to a flag.
func (s *Settings) setFromSite(kind, name, value string) error {
	switch {
	case name == "timeout" && !s.Given("timeout"):
		return s.Timeout.Set(value)
	case kind == "ibsim": // which has its own devices
	case name == "CA" && !s.Given("ca"):
		s.CA = value
	case name == "Port" && !s.Given("port"):
		return s.Port.Set(value)
	}
	return nil
}

// siteKeys returns the keys of ibdiag.conf, if it is as private as a key file must be;
// nil without keys.
func siteKeys(f *os.File, lines string) (*engine.Keys, Secrets, error) {
	keys, err := format.ReadKeys(strings.NewReader(lines), f.Name())
	if err != nil || keys.M == 0 && keys.SA == 0 {
		return nil, nil, err
	}
	secret, err := private(f)
	switch {
	case secret == nil:
		return nil, nil, err
	case err != nil:
		keys = nil
	}
	return keys, Secrets{secret}, err
}

// NodeNames returns the names of --node-name-map, else of the site's map, if any. A
// simulated fabric has its own names.
func (p *Program) NodeNames(ctx context.Context, kind string) (map[mad.GUID]string, error) {
	if p.Settings.Given("node-name-map") {
		names, err := readNodeNames(ctx, p.Settings.NameMap)
		if err != nil {
			return nil, fmt.Errorf("--node-name-map: %w", err)
		}
		return names, nil
	}
	return siteNames(p.Settings.siteFolder(), kind, p.Warn), nil
}

// readNodeNames reads the map that the command line names.
func readNodeNames(ctx context.Context, path string) (map[mad.GUID]string, error) {
	f, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.ReadNodeNames(f, path)
}

// siteNames returns the names of the map below etc, for a fabric of that kind.
func siteNames(etc, kind string, warn func(format string, args ...any)) map[mad.GUID]string {
	if kind == "sim" {
		return nil
	}
	for _, path := range siteNameMaps {
		names, err := readSiteNames(filepath.Join(etc, path))
		switch {
		case err == nil:
			return names
		case !errors.Is(err, fs.ErrNotExist):
			warn("%v; using the nodes' own names", format.FileError(err))
			return nil
		}
	}
	return nil
}

func readSiteNames(path string) (map[mad.GUID]string, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.ReadNodeNames(f, path)
}

// systemState is where root keeps state between runs, below / (Filesystem Hierarchy
// Standard, /var/lib).
const systemState = "var/lib/fabsh"

// stateDir returns the directory for state kept between runs of a fabric that c opens:
// --state; else "" for a fabric that is simulated or replayed, which is another one each
// time.
func (s *Settings) stateDir(c *Connection) string {
	if c.transport != nil && s.State == "" {
		if t := c.transport.Traits(); t.Simulated || t.Recorded {
			return ""
		}
	}
	return s.StateDir()
}

// StateDir returns the directory for state kept between runs: --state, else the directory of the
// system for root, and of the user for others. It is empty without one, and under fabsh sim
// --run, where the devices and the fabric of this host are simulated.
func (s *Settings) StateDir() string {
	switch {
	case s.State != "":
		return s.State
	case os.Getenv(ControlVariable) != "":
		return ""
	case os.Geteuid() == 0:
		return filepath.Join(cmp.Or(s.Root, "/"), systemState)
	}
	return StateFile("")
}

// StateFile and ConfigFile return the paths of the XDG base directory specification for
// a program's files; empty without a home directory.
func StateFile(name string) string { return xdgFile("XDG_STATE_HOME", ".local/state", name) }

func ConfigFile(name string) string { return xdgFile("XDG_CONFIG_HOME", ".config", name) }

func xdgFile(variable, fallback, name string) string {
	dir := os.Getenv(variable)
	if !filepath.IsAbs(dir) { // the specification ignores relative ones
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, fallback)
	}
	return filepath.Join(dir, "fabsh", name)
}

// jobOf returns the name for the state of a script: the script's name, or "shell"
// without one.
func jobOf(script string) string {
	name := strings.TrimSuffix(filepath.Base(script), ".star")
	if script == "" || name == "" {
		return "shell"
	}
	return audit.JobOf(name)
}

// Login returns the name of the user who runs the program; empty if unknown.
func Login() string {
	for _, name := range []string{"SUDO_USER", "LOGNAME", "USER"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
