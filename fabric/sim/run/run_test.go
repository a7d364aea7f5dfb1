//go:build linux && (amd64 || arm64)

package run_test

import (
	"os"
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
	s := on(t, "fattree:k=4")
	got := s.sh(t, tools)
	want := listened(t, s.spec, tools)
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
	s := on(t, "fattree:k=8")
	out := s.sh(t, "saquery NR; saquery PR; saquery LR; saquery PIR")
	for word, want := range map[string]int{"NodeDescription": 44, "dlid": 44 * 44, "ToLID": 128} {
		if got := lines(out, word); got < want {
			t.Errorf("%d of %q, want %d", got, word, want)
		}
	}
}

// OpenSM brings a bare subnet up, with each of its engines.
func TestEngines(t *testing.T) {
	for _, engine := range []string{"minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp"} {
		t.Run(engine, func(t *testing.T) {
			s := on(t, "fattree:k=4")
			s.bare = true
			out := s.sh(t, "opensm -o -e -R "+engine+" -f log >out 2>&1 || cat out; grep -c 'SUBNET UP' log; saquery -t 300 NR 2>/dev/null | grep -c NodeDesc; cat /sys/class/infiniband/ibsim0/ports/1/state")
			if !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "4: ACTIVE") {
				t.Errorf("got %q", out)
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
	if took := time.Since(began); took > 20*time.Second {
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
