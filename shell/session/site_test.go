package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"fabsh/mad"
)

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
