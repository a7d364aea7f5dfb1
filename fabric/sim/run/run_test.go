//go:build linux && (amd64 || arm64)

package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/hermetic"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/run"
	"fabsh/fabric/sim/server"
	"fabsh/mad/ibsim/ibsimtest"
)

// Variables by which this test's program is fabsh sim --run: the topology, and settings.
const (
	specVariable     = "FABSH_TEST_RUN_SPEC"
	bareVariable     = "FABSH_TEST_RUN_BARE"
	nodeVariable     = "FABSH_TEST_RUN_NODE"
	ethernetVariable = "FABSH_TEST_RUN_ETHERNET"
)

func TestMain(m *testing.M) {
	run.Become(os.Args)
	switch os.Getenv(probeVariable) {
	case "all":
		probe()
		os.Exit(0)
	case "fast":
		probeFast()
		os.Exit(0)
	}
	if spec, ok := os.LookupEnv(specVariable); ok {
		os.Unsetenv(specVariable)
		status, err := supervise(spec)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 3
		}
		os.Exit(status)
	}
	code := hermetic.Tests(m).Run()
	os.RemoveAll(programFolder)
	os.Exit(code)
}

func supervise(spec string) (int, error) {
	f, o, err := sim.ParseFiles(spec, open, open)
	if err != nil {
		return 0, err
	}
	o.Bare = os.Getenv(bareVariable) != ""
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		return 0, err
	}
	subnet := sim.New(f, o)
	if node := os.Getenv(nodeVariable); os.Getenv(ethernetVariable) != "" {
		guids := subnet.NodeGUIDs(node)
		if err := errors.Join(subnet.Cables.SetEthernet(guids[0], 1, true), subnet.Edit.Name(guids[1], "renamed")); err != nil {
			return 0, err
		}
	}
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM) // before the command runs, which may have the test send one
	r, err := run.Start(run.ProgramOptions{
		Subnet: subnet, Fabric: f, Node: os.Getenv(nodeVariable), Program: os.Args[0], Path: path, Args: os.Args[1:],
		Log: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if errors.Is(err, run.ErrUnsupported) {
		return unsupported, nil
	}
	if err != nil {
		return 0, err
	}
	go func() {
		for s := range ch {
			r.Signal(s.(syscall.Signal))
		}
	}()
	return r.Wait()
}

func open(name string) (io.ReadCloser, error) { return os.Open(name) }

// unsupported is the exit status on a host that cannot do it.
const unsupported = 199

// nobody is the user ID of programs where tests run as root.
const nobody = 65534

var programFolder string

// program is a copy of this test's program that other users may execute.
var program = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if programFolder, err = os.MkdirTemp("", "fabsh-run-test-"); err != nil {
		return "", err
	}
	if err := os.Chmod(programFolder, 0o755); err != nil {
		return "", err
	}
	from, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer from.Close()
	name := filepath.Join(programFolder, "fabsh")
	to, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	defer to.Close()
	_, err = io.Copy(to, from)
	return name, err
})

// subnet is where commands of a test run.
type subnet struct {
	spec     string
	bare     bool
	node     string
	ethernet bool   // the first port of node is; its second adapter has another name
	folder   string // of their files
}

// on returns a subnet, or skips the test.
func on(t testing.TB, spec string) *subnet {
	t.Helper()
	s := &subnet{spec: spec, folder: t.TempDir()}
	if os.Getuid() == 0 {
		for dir := s.folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			os.Chmod(dir, 0o755)
		}
		if err := os.Chown(s.folder, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if c := s.command(t, "true"); c.Run() != nil && c.ProcessState.ExitCode() == unsupported {
		t.Skip(run.ErrUnsupported)
	}
	return s
}

// command prepares a command on the subnet.
func (s *subnet) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	name, err := program()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = s.folder
	c.Env = append(ibsimtest.Env(t), specVariable+"="+s.spec, nodeVariable+"="+s.node, "OSM_TMP_DIR="+s.folder, "OSM_CACHE_DIR="+s.folder, "TMPDIR="+s.folder)
	if s.bare {
		c.Env = append(c.Env, bareVariable+"=1")
	}
	if s.ethernet {
		c.Env = append(c.Env, ethernetVariable+"=1")
	}
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	c.WaitDelay = 10 * time.Second
	return c
}

// sh runs a script on the subnet, and returns what it writes. The names of peers are in
// PATH.
func (s *subnet) sh(t testing.TB, script string) string {
	t.Helper()
	var out bytes.Buffer
	c := s.command(t, "sh", "-c", script)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out.String())
	}
	return out.String()
}

// lines are the lines of a text that contain a word.
func lines(text, word string) (n int) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// The exit status is the command's.
func TestStatus(t *testing.T) {
	s := on(t, "fattree:k=4")
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, "nosuch": 127} {
		c := s.command(t, "sh", "-c", script)
		c.Run()
		if got := c.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: got status %d, want %d", script, got, want)
		}
	}
}

// The tools of infiniband-diags print what they print with libumad2sim.
func TestTools(t *testing.T) {
	t.Parallel()
	s := on(t, "fattree:k=4")
	got := s.sh(t, tools)
	want := listened(t, s.spec, false, tools)
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-libumad2sim +run\n%s", diff)
	}
}

// tools print what they read. Left out is what libumad2sim's files have otherwise: the
// rate and the link layer; and the time.
const tools = `quiet() { echo "$ $*"; "$@" 2>/dev/null; }
quiet ibstat | grep -v 'Rate\|Link layer'
quiet ibstat -l; quiet ibaddr; quiet sminfo
quiet ibnetdiscover | grep -v generated; quiet ibnetdiscover -p; quiet iblinkinfo; quiet ibqueryerrors
quiet smpquery nodeinfo 8; quiet smpquery -D nodeinfo 0,1; quiet smpquery portinfo 8 1; quiet smpquery switchinfo 1
quiet smpquery pkeys 8; quiet smpquery -D sl2vl 0,1,2 1; quiet smpquery -D nodedesc 0,1,3
quiet perfquery 8 1; quiet ibroute 1; quiet ibtracert 8 10; quiet dump_fts
quiet saquery NR 8; quiet saquery CPI; quiet ibportstate 1 1; quiet smpdump 8 0x11; quiet vendstat -N 1
true
`

// Routes that begin at a LID, the leaf's, lead to where the whole directed routes lead; the answer is
// sent to the LID of the host (smpquery -c).
func TestCombinedRoutes(t *testing.T) {
	t.Parallel()
	s := on(t, "fattree:k=8")
	got := s.sh(t, `for p in 1 2 7 7,2 7,2,3; do
  a=$(smpquery -c nodeinfo 1 0,$p | sed 1d) b=$(smpquery -D nodeinfo 0,1,$p | sed 1d)
  [ -n "$a" ] && [ "$a" = "$b" ] && echo "$a" | grep -c PortGuid
done
smpquery -c nodeinfo 1 0,7 | sed -n 1p`)
	if want := "1\n1\n1\n1\n1\n# Node info: Lid 1 DR path slid 14; dlid 65535; 0,7\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Tables of several segments, of which libumad2sim passes on one.
func TestTables(t *testing.T) {
	t.Parallel()
	s := on(t, "fattree:k=8")
	out := s.sh(t, "saquery NR; saquery PR; saquery LR; saquery PIR")
	for word, want := range map[string]int{"NodeDescription": 44, "dlid": 44 * 44, "ToLID": 128} {
		if got := lines(out, word); got < want {
			t.Errorf("%d of %q, want %d", got, word, want)
		}
	}
}

// OpenSM brings a bare subnet up, with each of its engines, and its tables equal the tables of
// --listen.
func TestEngines(t *testing.T) {
	t.Parallel()
	const script = `opensm -o -e -R %s -f log >out 2>&1 || cat out
grep -c 'SUBNET UP' log; cat /sys/class/infiniband/ibsim0/ports/1/state 2>/dev/null || echo '4: ACTIVE'
for tool in dump_fts 'dump_fts -M' ibnetdiscover; do $tool 2>/dev/null | grep -v generated; done`
	engines := []string{"minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp"}
	if testing.Short() {
		engines = engines[:2] // each takes long with the race detector
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			s := on(t, "fattree:k=4")
			s.bare = true
			commands := fmt.Sprintf(script, engine)
			out := s.sh(t, commands)
			if !strings.HasPrefix(out, "1\n4: ACTIVE\n") {
				t.Errorf("got %q", out)
			}
			if diff := cmp.Diff(strings.Split(listened(t, s.spec, true, commands), "\n"), strings.Split(out, "\n")); diff != "" {
				t.Errorf("-libumad2sim +run\n%s", diff)
			}
		})
	}
}

// What the command leaves is terminated, and so is everything when the supervisor is
// killed; its files are removed.
func TestNothingLeft(t *testing.T) {
	s := on(t, "fattree:k=4")
	began := time.Now()
	s.sh(t, "sleep 1000 & (setsid sleep 1000 &) ; trap '' TERM; echo")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
	s.checkEmpty(t)

	c := s.command(t, "sh", "-c", "(trap '' TERM INT; setsid sleep 1001 &) ; echo $$ >pid; sleep 1001")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ibsimtest.Poll(t, "the command", func() bool { b, _ := os.ReadFile(s.folder + "/pid"); return len(b) > 0 })
	c.Process.Signal(syscall.SIGKILL)
	c.Wait()
	s.checkEmpty(t)
}

// checkEmpty waits until no process and no folder of the subnet is left.
func (s *subnet) checkEmpty(t *testing.T) {
	t.Helper()
	ibsimtest.Poll(t, "the end of all", func() bool {
		names, err := os.ReadDir(s.folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if strings.HasPrefix(n.Name(), "fabsh-run-") {
				return false
			}
		}
		processes, _ := os.ReadDir("/proc")
		for _, p := range processes {
			if env, _ := os.ReadFile("/proc/" + p.Name() + "/environ"); strings.Contains(string(env), s.folder) {
				return false
			}
		}
		return true
	})
}

// ibdiagnet, which ends with a crash under libumad2sim, runs to its end.
func TestIbdiagnet(t *testing.T) {
	s := on(t, "fattree:k=4")
	packages, _ := filepath.Glob(filepath.Join(filepath.Dir(ibsimtest.Path(t, "ibis")), "../lib/*/ibdiagnet1.5.7"))
	if len(packages) == 0 {
		ibsimtest.Need(t, "ibdiagnet's package of Tcl")
	}
	out := s.sh(t, `export HOME=$PWD TCLLIBPATH=`+filepath.Dir(packages[0])+`; printf 'set argv0 ibdiagnet\npackage require ibdiagnet\n' | ibis -o $PWD 2>&1`)
	for _, want := range []string{"-I- Done.", "Bad GUIDs/LIDs Check                     0      0"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in\n%s", want, out)
		}
	}
}

// An adapter's ports are all there, and the adapters of a host.
func TestAdapters(t *testing.T) {
	t.Parallel()
	net := filepath.Join(t.TempDir(), "net")
	const text = `vendid=0x2c9
devid=0xd2f0
switchguid=0x10
Switch	4 "leaf"	# "leaf" enhanced port 0 lid 1 lmc 0
[1]	"a"[1]	# "one HCA-1" lid 2 4xHDR
[2]	"a"[2]	# "one HCA-1" lid 3 4xHDR
[3]	"b"[1]	# "one HCA-2" lid 4 4xHDR
[4]	"c"[1]	# "two HCA-1" lid 5 4xHDR

caguid=0x20
Ca	2 "a"	# "one HCA-1"
[1]	"leaf"[1]	# lid 2 lmc 0 "leaf" lid 1 4xHDR
[2]	"leaf"[2]	# lid 3 lmc 0 "leaf" lid 1 4xHDR

caguid=0x30
Ca	2 "b"	# "one HCA-2"
[1]	"leaf"[3]	# lid 4 lmc 0 "leaf" lid 1 4xHDR

caguid=0x40
Ca	1 "c"	# "two HCA-1"
[1]	"leaf"[4]	# lid 5 lmc 0 "leaf" lid 1 4xHDR
`
	if err := os.WriteFile(net, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(net); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	s := on(t, net)
	s.node = "one"
	got := s.sh(t, `cd /; for f in /dev/infiniband /sys/class/infiniband; do ls $f | tr '\n' ' '; echo; done
for p in ibsim0/ports/1 ibsim0/ports/2 ibsim1/ports/1 ibsim1/ports/2; do cat /sys/class/infiniband/$p/state; done; cat /sys/class/infiniband/ibsim1/node_desc
for p in "-P 1" "-P 2" "-C ibsim1"; do smpquery $p -D nodeinfo 0 | grep LocalPort; ibaddr $p | sed 's/.*LID/LID/'; done
SIM_HOST=b cat /sys/class/infiniband/ibsim0/node_desc /sys/class/infiniband/ibsim1/node_desc`)
	const want = `issm0 issm1 issm2 issm3 umad0 umad1 umad2 umad3 uverbs0 uverbs1 
ibsim0 ibsim1 
4: ACTIVE
4: ACTIVE
4: ACTIVE
1: DOWN
one HCA-2
LocalPort:.......................1
LID start 0x2 end 0x2
LocalPort:.......................2
LID start 0x3 end 0x3
LocalPort:.......................1
LID start 0x4 end 0x4
one HCA-2
one HCA-1
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A host of a fat tree with rails has an adapter of each.
func TestRails(t *testing.T) {
	s := on(t, "fattree:k=4,rails=2")
	s.node = "node-0003"
	got := s.sh(t, `cd /; ls /sys/class/infiniband | tr '\n' ' '; cat /sys/class/infiniband/*/node_desc; sort -u /sys/class/infiniband/*/sys_image_guid | wc -l`)
	if want := "ibsim0 ibsim1 node-0003 HCA-1\nnode-0003 HCA-2\n1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An Ethernet port has files as one of an mlx5 adapter in that mode, and a name that was changed
// is shown.
func TestEthernet(t *testing.T) {
	s := on(t, "fattree:k=4,rails=2")
	s.node, s.ethernet = "node-0003", true
	got := s.sh(t, `cd /; for p in 0 1; do for f in link_layer state phys_state lid sm_lid cap_mask; do cat /sys/class/infiniband/ibsim$p/ports/1/$f; done; done; cat /sys/class/infiniband/*/node_desc`)
	const want = `Ethernet
1: DOWN
3: Disabled
0x0
0x0
0x00010000
InfiniBand
4: ACTIVE
5: LinkUp
0xc
0x7
0x0221ca6c
node-0003 HCA-1
renamed
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A host that cannot supervise programs says so, as one where a supervisor runs already.
func TestUnsupported(t *testing.T) {
	s := on(t, "fattree:k=4")
	c := s.command(t, "sh", "-c", specVariable+"=ring:n=3 exec "+programFolder+"/fabsh true")
	c.Run()
	if got := c.ProcessState.ExitCode(); got != unsupported {
		t.Errorf("got status %d, want %d", got, unsupported)
	}
	s.checkEmpty(t)
}

// listened runs a script with libumad2sim on a subnet that fabsh sim --listen serves.
func listened(t *testing.T, spec string, bare bool, script string) string {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Bare = bare
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	srv, err := server.Listen(sim.New(f, o), f, server.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(t.Context())
	}()
	t.Cleanup(func() { <-done })
	tool := ibsimtest.On(t, name, nil, nil).Command(t, "", "ibnetdiscover")
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	c.Dir, c.Env = tool.Dir, append(tool.Env, "OSM_TMP_DIR="+tool.Dir, "OSM_CACHE_DIR="+tool.Dir)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}
