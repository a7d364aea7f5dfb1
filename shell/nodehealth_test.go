package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fabsh/fabric/hermetic"
	"fabsh/fabric/hosts"
	simrun "fabsh/fabric/sim/run"
	"fabsh/mad/ibsim/ibsimtest"
)

// nodeHealth is the directory of the examples for schedulers.
const nodeHealth = "../examples/node_health"

// The examples for Slurm and NHC work as they are: a healthy host passes, one whose ports are
// not active is drained, and starts no job; a usage error drains none.
func TestNodeHealth(t *testing.T) {
	if testing.Short() {
		t.Skip("checks results only")
	}
	if !simrun.Supported() {
		t.Skip("this host cannot supervise programs (Linux 5.14, seccomp user notification)")
	}
	t.Parallel()
	folder, err := filepath.Abs(nodeHealth)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "logger"), []byte("#!/bin/sh\nexec cat >/dev/null\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sinfo"), []byte("#!/bin/sh\necho \"${REASON:-none}\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	nhc, err := os.ReadFile(filepath.Join(folder, "nhc.conf"))
	if err != nil {
		t.Fatal(err)
	}
	_, check, _ := strings.Cut(string(nhc), " -r 0 ")
	for _, c := range []struct {
		name, subnet, expect, command string
		status                        int
		out                           string
	}{
		{"healthy", "ring:n=3", "1xHDR", "fabsh_health.sh", 0, "^$"},
		{"healthy, prolog", "ring:n=3", "1xHDR", "prolog.sh", 0, "^$"},
		{"fault", "ring:n=3 --bare", "1xHDR", "fabsh_health.sh", 0, "<update><nodename=node-7><state=drain><reason=fabsh: host.init:0x[0-9a-f]+/1  ibsim0/1: the link is up, but the state of the port is initialize: no subnet manager has configured it>$"},
		{"fault, drained by somebody else", "ring:n=3 --bare", "1xHDR", "fabsh_health.sh", 0, "^[^<]*host.init:[^<]*$"},
		{"healthy, drained by fabsh", "ring:n=3", "1xHDR", "fabsh_health.sh", 0, "^<update><nodename=node-7><state=undrain>$"},
		{"healthy, drained by an audit of the fabric", "ring:n=3", "1xHDR", "fabsh_health.sh", 0, "^$"},
		{"healthy, drained by somebody else", "ring:n=3", "1xHDR", "fabsh_health.sh", 0, "^$"},
		{"fault, drained by fabsh", "ring:n=3 --bare", "1xHDR", "fabsh_health.sh", 0, "<update><nodename=node-7>"},
		{"fault, prolog", "ring:n=3 --bare", "1xHDR", "prolog.sh", 1, "(?s)error     host.init:.*<state=drain>"},
		{"usage", "ring:n=3 --bare", "nofile", "fabsh_health.sh", 0, "nofile: no such file"},
		{"NHC", "ring:n=3", "", check, 1, "expected: 8 at 4x NDR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := strings.TrimSpace(c.command)
			if strings.HasSuffix(command, ".sh") {
				command = `"` + filepath.Join(folder, command) + `"` // blanks
			}
			x := exec.Command("sh", "-c", "exec fabsh sim "+c.subnet+" --run sh -c '"+command+"'")
			reason := map[string]string{
				"fault, drained by somebody else": "maintenance", "fault, drained by fabsh": "fabsh: host.down:0x1/1  port",
				"healthy, drained by fabsh": "fabsh: host.down:0x1/1  port; down", "healthy, drained by somebody else": "host.down:0x1/1 fabsh: host.down:0x1/1",
				"healthy, drained by an audit of the fabric": "fabsh: host.adapters node-7: one of two adapters is missing",
			}[c.name]
			x.Env = append(testEnv(t), "REASON="+reason, "PATH="+dir+":"+os.Getenv("PATH"), "HEALTH_EXPECT="+c.expect, "SLURMD_NODENAME=node-7")
			out, err := x.CombinedOutput()
			status := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				status = exit.ExitCode()
			}
			if status != c.status || !regexp.MustCompile(c.out).Match(out) {
				t.Errorf("status %d, want %d; %s", status, c.status, out)
			}
		})
	}
}

// Debian's slurmd with the shipped lines and programs: a host without a fault runs a job; one
// whose ports are not active runs none, and is drained, by its prolog and by HealthCheckProgram.
func TestNodeHealthSlurmd(t *testing.T) {
	if testing.Short() {
		t.Skip("Slurm's daemons take seconds")
	}
	if !simrun.Supported() {
		t.Skip("this host cannot supervise programs (Linux 5.14, seccomp user notification)")
	}
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name)+".new", []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at(name)+".new", at(name)); err != nil {
			t.Fatal(err)
		}
	}
	var lines string
	for _, name := range []string{"fabsh_health.sh", "prolog.sh", "slurm.conf"} {
		text, err := os.ReadFile(filepath.Join(nodeHealth, name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
		lines = strings.ReplaceAll(string(text), "/etc/slurm", dir)
	}
	scontrol := ibsimtest.Path(t, "scontrol")
	fabsh, err := exec.LookPath("fabsh")
	if err != nil {
		t.Fatal(err)
	}
	write("logger", "#!/bin/sh\ncat >>'"+at("syslog")+"'\n")
	s := ibsimtest.StartSlurm(t, "SwitchName=s Nodes=node-7\n", "node-7", lines)
	var settings strings.Builder
	for _, kv := range append(ibsimtest.Env(t), testEnv(t)...) {
		if name, value, _ := strings.Cut(kv, "="); name == "LD_LIBRARY_PATH" || name == hermetic.RootVariable {
			fmt.Fprintf(&settings, "export %s='%s'\n", name, value)
		}
	}
	fmt.Fprintf(&settings, "export SLURM_CONF='%s'\n", s.Shell(t, `printf %s "$SLURM_CONF"`))
	fmt.Fprintf(&settings, "HEALTH_EXPECT=1xHDR FABSH='%s' SCONTROL='%s' SINFO='%s' LOGGER='%s'\n", at("fabsh"), scontrol, ibsimtest.Path(t, "sinfo"), at("logger"))
	write("fabsh_health.conf", settings.String())
	host := func(subnet string) { // in which programs of Slurm find this host
		write("fabsh", fmt.Sprintf(`#!/bin/sh
'%[1]s' sim ring:n=3 --host 'node-0002 HCA-1' %[2]s --run '%[1]s' "$@" 2>'%[3]s'
status=$?
echo $status >>'%[4]s'
exit $status
`, fabsh, subnet, at("stderr"), at("statuses")))
	}
	host("")
	node := func(want string) {
		t.Helper()
		var out string
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(out)
			}
		})
		ibsimtest.Poll(t, "node-7: "+want, func() bool {
			out = s.Shell(t, "scontrol --oneliner show node node-7")
			return regexp.MustCompile(want).MatchString(out)
		})
	}
	submit := func(out string) { s.Shell(t, "sbatch -D "+dir+" -o "+out+" --wrap 'echo ran on $SLURMD_NODENAME'") }
	stop := s.StartNode(t, "node-7")
	node("State=IDLE ")
	submit(at("first"))
	ibsimtest.Poll(t, "the first job", func() bool {
		text, _ := os.ReadFile(at("first"))
		return string(text) == "ran on node-7\n"
	})
	node("State=IDLE ")

	judged := func(want string) {
		t.Helper()
		text, _ := os.ReadFile(at("statuses"))
		if string(text) != want {
			errors, _ := os.ReadFile(at("stderr"))
			t.Fatalf("statuses %q, want %q; %s", text, want, errors)
		}
	}
	judged("0\n0\n") // HealthCheckProgram, as slurmd started; the prolog
	host("--bare")
	submit(at("second"))
	node(`State=IDLE\+DRAIN .* Reason=fabsh: host\.init:0x[0-9a-f]+/1 +ibsim0/1: the link is up`)
	judged("0\n0\n1\n")
	if text, _ := os.ReadFile(at("syslog")); strings.Count(string(text), "host.init:") != 1 {
		t.Errorf("the log of the system has %q, want the finding once", text)
	}
	if text, err := os.ReadFile(at("second")); err == nil {
		t.Errorf("a job ran on a host with a fault: %s", text)
	}
	// The host is well again: its own program lifts the drain, and jobs run. slurmd starts the
	// program when it starts.
	restart := func() {
		t.Helper()
		stop()
		stop = s.StartNode(t, "node-7")
	}
	host("")
	restart()
	node("State=IDLE ")
	submit(at("third")) // the second one, which was requeued, waits for minutes
	ibsimtest.Poll(t, "the third job", func() bool {
		text, _ := os.ReadFile(at("third"))
		return string(text) == "ran on node-7\n"
	})
	// An audit of the fabric lifts it too; the drain of an administrator stays.
	host("--bare")
	restart()
	node(`State=IDLE\+DRAIN .* Reason=fabsh: host\.init:`)
	drains := s.Shell(t, "sinfo -a -h -N -o '%N %E'")
	list, err := hosts.ReadDrained([]byte(drains))
	if err != nil {
		t.Fatal(err)
	}
	well := &hosts.HealthReport{Hosts: []hosts.HostHealth{{Name: "node-7", State: hosts.OK}}, Judged: []string{"link.init"}}
	slurm, err := hosts.SchedulerFormatByName("slurm")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := slurm.Write(well, hosts.Output{Drained: list})
	s.Shell(t, text)
	node("State=IDLE ")
	s.Shell(t, "scontrol update nodename=node-7 state=drain reason=maintenance")
	host("")
	before, _ := os.ReadFile(at("statuses"))
	restart()
	ibsimtest.Poll(t, "the program, which finds the host well", func() bool {
		after, _ := os.ReadFile(at("statuses"))
		return strings.HasSuffix(strings.TrimPrefix(string(after), string(before)), "0\n")
	})
	node(`State=IDLE\+DRAIN .* Reason=maintenance`)
}
