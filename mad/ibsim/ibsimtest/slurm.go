package ibsimtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Slurm is Slurm's controller, with munge beside it, on this machine's loopback. It has
// no nodes, only their names, unless StartNode starts one.
type Slurm struct{ dir string }

// StartSlurm starts the controller with a topology.conf of plugin topology/tree, which
// is for these nodes, in Slurm's notation. It waits until the controller answers. The
// further lines end its slurm.conf.
func StartSlurm(t testing.TB, topology, nodes string, further ...string) *Slurm {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// Sockets have short names: not below t.TempDir().
	dir, err := os.MkdirTemp("", "fabsh-slurm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Slurm{dir}
	plugins, _ := filepath.Glob(filepath.Join(peersDir(t), "usr/lib/*/slurm-wlm"))
	if len(plugins) == 0 {
		plugins, _ = filepath.Glob("/usr/lib/*/slurm-wlm")
	}
	if len(plugins) == 0 {
		Need(t, "plugins of Slurm")
	}
	s.write(t, "key", rand.Text()+rand.Text())
	s.write(t, "topology.conf", topology)
	s.write(t, "slurm.conf", strings.Join([]string{
		"ClusterName=test",
		fmt.Sprintf("SlurmctldHost=%s(127.0.0.1)", host),
		fmt.Sprintf("SlurmctldPort=%d", freePort(t)),
		"SlurmUser=" + me.Username,
		"AuthType=auth/munge",
		"AuthInfo=socket=" + filepath.Join(dir, "munge"),
		"CredType=cred/munge",
		"StateSaveLocation=" + dir,
		"SlurmdSpoolDir=" + dir,
		"SlurmctldPidFile=" + filepath.Join(dir, "pid"),
		"PluginDir=" + plugins[0],
		"TopologyPlugin=topology/tree",
		"ProctrackType=proctrack/linuxproc",
		fmt.Sprintf("SlurmdPidFile=%s", filepath.Join(dir, "slurmd.pid")),
		"TaskPlugin=task/none", // as proctrack/linuxproc: without cgroups
		"JobAcctGatherType=jobacct_gather/none",
		fmt.Sprintf("NodeName=%s NodeAddr=127.0.0.1 NodeHostname=%s Port=%d", nodes, host, freePort(t)),
		"PartitionName=all Nodes=ALL Default=YES",
		"MessageTimeout=100", // of scontrol, seconds
		"TCPTimeout=60",
		strings.Join(further, "\n") + "\n",
	}, "\n"))
	at := func(name string) string { return filepath.Join(dir, name) }
	munged := Command(t, "munged", "--foreground", "--force", "--socket="+at("munge"), "--key-file="+at("key"), "--log-file="+at("munge.log"), "--pid-file="+at("munge.pid"), "--seed-file="+at("munge.seed"))
	start(t, munged, syscall.SIGTERM)
	Poll(t, "munged", func() bool { return isThere(at("munge")) })
	ctld := Command(t, "slurmctld-wlm", "-D", "-i", "-f", at("slurm.conf"))
	log, err := os.Create(at("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctld.Stdout, ctld.Stderr = log, log
	start(t, ctld, syscall.SIGTERM)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("slurmctld:\n%s", s.Log(t))
		}
	})
	Poll(t, "slurmctld", func() bool {
		text, _ := os.ReadFile(log.Name())
		if strings.Contains(string(text), "fatal:") || strings.Contains(string(text), "error while loading") {
			t.Fatalf("slurmctld:\n%s", text)
		}
		return strings.Contains(string(text), "Running as primary controller")
	})
	return s
}

// StartNode starts Slurm's daemon of a node, whose name the controller knows, on this
// machine, and returns a function that stops it. Its jobs are this user's, who is root.
func (s *Slurm) StartNode(t testing.TB, name string) func() {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("slurmd runs jobs as root alone")
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "slurmd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := Command(t, "slurmd-wlm", "-D", "-N", name, "-f", filepath.Join(s.dir, "slurm.conf"), "-d", Path(t, "slurmstepd-wlm"))
	c.Stdout, c.Stderr = log, log
	start(t, c, syscall.SIGTERM)
	t.Cleanup(func() {
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("slurmd:\n%s", text)
		}
	})
	return func() { stop(c, syscall.SIGTERM) }
}

// Topology returns what scontrol show topology prints.
func (s *Slurm) Topology(t testing.TB) string {
	t.Helper()
	c := Command(t, "scontrol", "show", "topology")
	c.Env = append(c.Env, "SLURM_CONF="+filepath.Join(s.dir, "slurm.conf"))
	return Output(t, c)
}

// Shell runs a script in which sinfo and scontrol ask the controller, and returns what it writes.
// Their errors do not end it.
func (s *Slurm) Shell(t testing.TB, script string) string {
	t.Helper()
	Path(t, "sinfo") // or the test is skipped
	c := exec.CommandContext(t.Context(), "sh")
	c.Env = append(Env(t), "SLURM_CONF="+filepath.Join(s.dir, "slurm.conf"))
	c.Stdin = strings.NewReader(script)
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// Log returns what the controller has written.
func (s *Slurm) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *Slurm) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port that is unused now and probably stays so: it is below the ports
// that Linux assigns to programs that request any port (ip(7), ip_local_port_range).
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 10000 + mathrand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
