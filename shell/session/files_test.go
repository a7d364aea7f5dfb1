package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"fabsh/fabric/format"
	"fabsh/mad"
)

// TestNotWritten: a full disk is the host's fault (status 3), a wrong name the
// command's (2).
func TestNotWritten(t *testing.T) {
	for cause, host := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: true, syscall.ENOENT: false, syscall.EISDIR: false} {
		err := NotWritten("a.json", &fs.PathError{Op: "write", Path: "/tmp/a.json.1", Err: cause})
		want := "a.json: " + cause.Error()
		if cause == syscall.ENOENT {
			want = "a.json: no such directory"
		}
		if h := new(*HostError); errors.As(err, h) != host || err.Error() != want {
			t.Errorf("%v: %v, the host's fault: %v", cause, err, !host)
		}
	}
}

// TestOwnFiles: pipes, devices, folders and endless files where the program looks
// for its own files, or for those of the system, hold nobody up.
func TestOwnFiles(t *testing.T) {
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string // PATH stands for the file
	}{
		{"pipe", fifo, "PATH: not a regular file"},
		{"device", func(path string) error { return os.Symlink("/dev/zero", path) }, "PATH: not a regular file"},
		{"folder", func(path string) error { return os.Mkdir(path, 0o700) }, "PATH: is a directory"},
		{"sparse", func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}, "PATH: expected at most 16 MB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := testProgram(t)
			etc := siteFiles(t, map[string]string{"infiniband-diags/x": ""})
			for _, name := range append(siteNameMaps[:1:1], siteConfig) {
				if err := tt.make(filepath.Join(etc, name)); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(etc, siteConfig)
			done := make(chan bool)
			var err error
			go func() {
				defer close(done)
				siteNames(etc, "umad", p.Warn)
				readSite(etc, "umad", p.Settings, p.Warn)
				_, err = ReadOwn(path)
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("it waits")
			}
			if err == nil || strings.ReplaceAll(format.FileError(err).Error(), path, "PATH") != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// siteFiles makes a folder of a site that has these files.
func siteFiles(t testing.TB, files map[string]string) (etc string) {
	t.Helper()
	etc = t.TempDir()
	for name, text := range files {
		path := filepath.Join(etc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "# private") {
			mode = 0o600
		}
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil { // the umask takes from the first
			t.Fatal(err)
		}
	}
	return etc
}

// testProgram is a program with these flags, and what it writes.
func testProgram(t *testing.T, flags ...string) (*Program, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	p := &Program{Settings: new(Settings), Console: NewConsole(out, out)}
	f := pflag.NewFlagSet("fabsh", pflag.ContinueOnError)
	p.Settings.AddFlags(f, f)
	if err := f.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return p, out
}

func TestSiteConfig(t *testing.T) {
	const all = "# private\n\n#CA=no\nCA=mlx5_2\nPort = 2\ntimeout=50\nMLX_EPI=false\nm_key=0x5ec2e7\nsa_key=0x7\nnd_format=%h\n"
	for _, test := range []struct {
		name, kind, text string
		flags            []string
		want             string // device, port, timeout, vendors' speeds left out, M_Key and SM_Key
		told             string // ETC stands for the folder
	}{
		{"all", "umad", all, nil, "mlx5_2 2 50ms true 5ec2e7 7", ""},
		{"flags go before", "umad", all, []string{"-C", "mlx4_0", "-P", "1", "-t", "7s", "--keys", "x"}, "mlx4_0 1 7s true", ""},
		{"ibsim has devices of its own", "ibsim", all, nil, " 0 50ms true 5ec2e7 7", ""},
		{"not of a simulated fabric", "sim", all, nil, " 0 0s false", ""},
		{"Debian's, where all is a comment", "umad", "# Define\n#CA=mlx4_0\n#m_key=0x00\n", nil, " 0 0s false", ""},
		{"no keys", "umad", "m_key=0x00\nsa_key=0\n", nil, " 0 0s false", ""},
		{"keys that all can read", "umad", "m_key=0x5ec2e7\n", nil, " 0 0s false",
			"warning: ETC/infiniband-diags/ibdiag.conf: contains keys, but its mode 0644 gives other users access; chmod 600 ETC/infiniband-diags/ibdiag.conf; keys in it ignored\n"},
		{"a key that is none", "umad", "# private\nm_key=5ec2e7\n", nil, " 0 0s false",
			"warning: ETC/infiniband-diags/ibdiag.conf:2: expected one key of at most 64 bits, as 0x0000000000000000, after m_key; keys in it ignored\n"},
		{"bad values", "umad", "Port=x\ntimeout=-1\nnonsense\nMLX_EPI=TRUE\n", nil, " 0 0s false",
			"warning: ETC/infiniband-diags/ibdiag.conf:1: Port: want a number from 1 to 254\nwarning: ETC/infiniband-diags/ibdiag.conf:2: timeout: want more than 0, and at most 24h\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, out := testProgram(t, test.flags...)
			etc := siteFiles(t, map[string]string{siteConfig: test.text})
			s := p.Settings
			site := readSite(etc, test.kind, s, p.Warn)
			got := fmt.Sprintf("%s %d %v %v", s.CA, s.Port.Value, time.Duration(s.Timeout.Value), site.plainSpeeds)
			if k := site.keys; k != nil {
				got += fmt.Sprintf(" %x %x", k.M, k.SA)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if told := strings.ReplaceAll(out.String(), etc, "ETC"); told != test.told {
				t.Errorf("told %s\nwant %s", told, test.told)
			}
		})
	}
}

func TestSiteNodeNames(t *testing.T) {
	const first, second = "infiniband-diags/ib-node-name-map", "rdma/ib-node-name-map"
	for _, test := range []struct {
		name, kind string
		files      map[string]string
		want       string // of GUID 0x10
		told       string
	}{
		{"none", "umad", nil, "", ""},
		{"one", "umad", map[string]string{first: "0x10 \"a\"\n"}, "a", ""},
		{"the other", "file", map[string]string{second: "# x\n0x10 b # c\n"}, "b ", ""},
		{"both", "replay", map[string]string{first: "0x10 \"a\"\n", second: "0x10 \"b\"\n"}, "a", ""},
		{"not of a simulated fabric", "sim", map[string]string{first: "0x10 \"a\"\n"}, "", ""},
		{"broken", "umad", map[string]string{first: "0x10 \"a\"\nx y\n"}, "",
			"warning: ETC/infiniband-diags/ib-node-name-map:2: expected a GUID, as in 0x0002c90300001000, and then nothing, a space or a #: \"x y\"; using the nodes' own names\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, out := testProgram(t)
			etc := siteFiles(t, test.files)
			if names := siteNames(etc, test.kind, p.Warn); names[mad.GUID(0x10)] != test.want {
				t.Errorf("%v, want %q", names, test.want)
			}
			if told := strings.ReplaceAll(out.String(), etc, "ETC"); told != test.told {
				t.Errorf("told %s\nwant %s", told, test.told)
			}
		})
	}
}

// FuzzSite: whatever ibdiag.conf has, it is read or told, and no key is shown.
func FuzzSite(f *testing.F) {
	f.Add("CA=mlx5_2\nPort=x\ntimeout=1e9\n", uint64(0x5ec2e7), " ")
	f.Add("#m_key=1\nMLX_EPI=\nsa_key=0x7 0x8", uint64(1)<<63, "x")
	etc := siteFiles(f, map[string]string{siteConfig: "# private\n"})
	f.Fuzz(func(t *testing.T, text string, key uint64, behind string) {
		secret := fmt.Sprintf("%016x", key)
		if strings.Contains(text+behind, secret) {
			return
		}
		if err := os.WriteFile(filepath.Join(etc, siteConfig), []byte("# private\n"+text+"\nm_key=0x"+secret+behind+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, out := testProgram(t)
		readSite(etc, "umad", p.Settings, p.Warn)
		if strings.Contains(out.String(), secret) {
			t.Errorf("a key is shown: %s", out)
		}
		if told := strings.Count(out.String(), "\n"); told > strings.Count(text, "\n")+3 {
			t.Errorf("%d lines are told of %q:\n%s", told, text, out)
		}
	})
}

func TestStateDir(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	want := "/state/fabsh"
	if os.Geteuid() == 0 {
		want = "/var/lib/fabsh"
	}
	if got := (&Settings{}).StateDir(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (&Settings{State: "here"}).StateDir(); got != "here" {
		t.Errorf("got %s", got)
	}
	t.Setenv(ControlVariable, "fabsh-run-7") // below fabsh sim --run
	for _, o := range []Settings{{}, {State: "here"}} {
		if got := o.StateDir(); got != o.State {
			t.Errorf("got %s, want %s", got, o.State)
		}
		if got := o.stateDir(&Connection{}); got != o.State { // of a file, or the ports of the host
			t.Errorf("got %s, want %s", got, o.State)
		}
	}
	for script, want := range map[string]string{
		"": "shell", "x/links.star": "links", "../..": "_.", "a b\n.star": "a_b_", ".star": "shell", strings.Repeat("x", 200): strings.Repeat("x", 111) + "-6ee14c8caecd5c45",
	} {
		if got := jobOf(script); got != want {
			t.Errorf("%q: %s, want %s", script, got, want)
		}
	}
}

func TestXDG(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("XDG_STATE_HOME", "")
	if got, want := StateFile("history"), "/home/u/.local/state/fabsh/history"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if got, want := StateFile("history"), "/state/fabsh/history"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("XDG_CONFIG_HOME", "relative")
	if got, want := ConfigFile("rc.star"), "/home/u/.config/fabsh/rc.star"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("HOME", "")
	if got := StateFile("history"); got != "/state/fabsh/history" {
		t.Errorf("got %s", got)
	}
	if got := ConfigFile("rc.star"); got != "" {
		t.Errorf("got %s", got)
	}
}
