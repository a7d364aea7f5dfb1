//go:build linux && (amd64 || arm64)

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// The exit status is that of the command.
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

// The tools of infiniband-diags print the same as with libumad2sim.
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

// OpenSM brings a bare subnet up, with each of its engines, and its tables are those of
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
	packages := filepath.Join(filepath.Dir(ibsimtest.Path(t, "ibis")), "../lib/x86_64-linux-gnu")
	if _, err := os.Stat(packages + "/ibdiagnet1.5.7"); err != nil {
		t.Skip(err)
	}
	out := s.sh(t, `export HOME=$PWD TCLLIBPATH=`+packages+`; printf 'set argv0 ibdiagnet\npackage require ibdiagnet\n' | ibis -o $PWD 2>&1`)
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
