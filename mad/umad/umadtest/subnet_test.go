//go:build kernelibtest

package umadtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

func TestMain(m *testing.M) {
	Main(m, VM{
		Modules:  []string{"ib_umad", "vib"},
		Programs: []string{"ibsim", "opensm", "iblinkinfo", "ibnetdiscover", "ibqueryerrors", "ibroute", "ibtracert", "osmtest", "perfquery", "saquery", "sminfo", "smpquery"},
		Packages: []string{"fabsh/shell/fabsh"},
	})
}

// A tree of 9 leaves with 9 hosts each, and 9 spines.
const (
	hosts    = 81
	switches = 18
)

// subnet is a simulator's fabric with OpenSM on vib0 and us on vib1.
type subnet struct {
	t   *testing.T
	sim *ibsimtest.Fixture
	sm  *exec.Cmd
	log string // OpenSM's
	// The cables of vib0 and vib1.
	theirs, ours *cable
}

// start brings up the subnet of a simulator, between two of its nodes.
func start(t *testing.T, f *ibsimtest.Fixture, theirs, ours string) *subnet {
	t.Helper()
	s := &subnet{t: t, sim: f, log: filepath.Join(f.Dir, "opensm.log")}
	// ISSM: requests, such as Reports, come to the adapter. That is all; the
	// port does not say that a subnet manager is there.
	s.theirs = plugIn(t, ibsim.Options{Socket: f.Name, Node: theirs, ISSM: true})
	s.ours = plugIn(t, ibsim.Options{Socket: f.Name, Node: ours, ISSM: true})
	// Where OpenSM's messages to the system's log go, instead of to the console.
	os.Remove("/dev/log") // the earlier subnet's
	syslog, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "/dev/log"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syslog.Close() })
	go io.Copy(io.Discard, syslog)
	t.Cleanup(func() {
		if s.sm != nil {
			s.stopSM()
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of OpenSM's log:\n%s", tail(s.said(t)))
		}
	})
	s.startSM()
	return s
}

// startSM starts OpenSM, with more arguments, and waits until the subnet is up.
func (s *subnet) startSM(args ...string) {
	t, f := s.t, s.sim
	t.Helper()
	conf := filepath.Join(f.Dir, "opensm.conf")
	if err := os.WriteFile(conf, []byte("force_log_flush TRUE\ntransaction_timeout 5000\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	os.Remove(s.log) // the earlier OpenSM's log says that the subnet is up
	s.sm = ibsimtest.Command(t, "opensm", append([]string{"-F", conf, "-e", "-s", "1", "-f", s.log, "--dump_files_dir", f.Dir,
		"-g", portGUID(t, "vib0")}, args...)...)
	out, err := os.Create(filepath.Join(f.Dir, "opensm.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.sm.Stdout, s.sm.Stderr = out, out
	if err := s.sm.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ibsimtest.Poll(t, "OpenSM to bring the subnet up", func() bool {
		state, _ := os.ReadFile("/sys/class/infiniband/vib1/ports/1/state")
		return strings.HasPrefix(string(state), "4: ACTIVE") && strings.Contains(s.said(t), "SUBNET UP")
	})
	t.Logf("subnet up after %v", time.Since(began).Round(10*time.Millisecond))
}

// portGUID is of an adapter's port.
func portGUID(t *testing.T, device string) string {
	t.Helper()
	gid, err := os.ReadFile("/sys/class/infiniband/" + device + "/ports/1/gids/0")
	if err != nil {
		t.Fatal(err)
	}
	return "0x" + strings.ReplaceAll(strings.TrimSpace(string(gid))[20:], ":", "")
}

func (s *subnet) stopSM() {
	s.sm.Process.Kill()
	s.sm.Wait()
}

// said is OpenSM's log.
func (s *subnet) said(t *testing.T) string {
	b, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// tail is the end of a long text.
func tail(s string) string { return s[max(0, len(s)-4000):] }

// slowly has fabsh wait for answers as long as emulated processors take, unless flags
// after it say otherwise.
var slowly = []string{"-t", "5s"}

// fabsh runs code, and returns all it writes and its exit status.
func fabsh(ctx context.Context, code string, flags ...string) string {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, "fabsh", slices.Concat([]string{"-q", "-C", "vib1"}, slowly, flags, []string{"-c", code})...)
	c.Stdout, c.Stderr = &out, &out
	c.Run()
	if status := c.ProcessState.ExitCode(); status != 0 {
		fmt.Fprintf(&out, "[exit status %d]\n", status)
	}
	return out.String()
}

// diag runs a program of infiniband-diags on our adapter.
func diag(t *testing.T, name string, args ...string) string {
	t.Helper()
	return ibsimtest.Output(t, ibsimtest.Command(t, name, append([]string{"-C", "vib1", "-P", "1", "-t", "10000"}, args...)...))
}

// field is what a program of infiniband-diags says behind name and dots.
func field(t *testing.T, out, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^#?\s*` + regexp.QuoteMeta(name) + `:\.*(.*)$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, out)
	}
	return m[1]
}

// cable joins a virtual adapter to a node of ibsim.
type cable struct {
	hca  *HCA
	far  *ibsim.Transport
	done sync.WaitGroup
	stop chan struct{}
}

func plugIn(t *testing.T, o ibsim.Options) *cable {
	t.Helper()
	far, err := ibsim.Attach(o)
	if err != nil {
		t.Fatal(err)
	}
	port, err := far.Port()
	if err != nil {
		t.Fatal(err)
	}
	hca, err := NewHCA(port)
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{hca: hca, far: far, stop: make(chan struct{})}
	c.done.Go(c.out)
	c.done.Go(c.in)
	c.done.Go(func() { c.follow(port) })
	t.Cleanup(c.unplug)
	return c
}

// unplug takes the adapter out of the machine.
func (c *cable) unplug() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
		c.hca.Close()
		c.far.Close()
		c.done.Wait()
	}
}

// out carries what the kernel sends. The kernel has made the first hop of a
// directed route already; ibsim makes it itself.
func (c *cable) out() {
	var d engine.Datagram
	for c.hca.Recv(&d) == nil {
		if m := d.MAD; mad.Class(m[1]) == mad.ClassSubnDirected && m[6] == 1 && m[4]&0x80 == 0 {
			m[6] = 0
		}
		c.far.Send(&d) // what ibsim cannot carry is lost
	}
}

// in carries what comes for us. In transaction IDs, ibsim puts a number of its
// own into the upper 16 bits; of an answer, the kernel wants back its own: 0.
func (c *cable) in() {
	var d engine.Datagram
	for c.far.Recv(&d) == nil {
		if d.Undelivered {
			continue
		}
		if mad.ParseHeader(d.MAD).Method.IsResponse() {
			d.MAD[8], d.MAD[9] = 0, 0
		}
		d.QP = 1
		if mad.Class(d.MAD[1]).Family() == mad.ClassSubn {
			d.QP = 0
		}
		c.hca.Send(&d)
	}
}

// follow has the kernel's port be as ibsim's, which the subnet manager sets.
func (c *cable) follow(last engine.Port) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		p, err := c.far.Port()
		if err == nil && fmt.Sprint(p) != fmt.Sprint(last) && c.hca.Set(p) == nil {
			last = p
		}
	}
}
