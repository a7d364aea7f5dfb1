//go:build linux && (amd64 || arm64)

package run_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// strace follows tools, and bash runs them in pipes and substitutions.
func TestStrace(t *testing.T) {
	s := on(t, "fattree:k=4")
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip(err)
	}
	out := s.sh(t, `strace -f -o trace sh -c 'ibnetdiscover -p | grep -c ^CA'; grep -c '/dev/infiniband/umad0' trace`)
	if want := "8\n"; !strings.HasPrefix(out, want) || strings.HasSuffix(out, "\n0\n") {
		t.Errorf("got %q, want %q and more", out, want)
	}
}

func TestBash(t *testing.T) {
	s := on(t, "fattree:k=4")
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	out := s.sh(t, `bash -c 'set -o pipefail; cat <(ibstat -l) <(ibaddr | cut -d" " -f1); for f in /sys/class/infiniband/*/ports/*/state; do read -r x <$f; echo "$x"; done; (exec ibstat -l); x=$(sminfo) && echo ${x%% lid*} | tail -1; ibstat nosuch >/dev/null 2>&1 || echo failed'`)
	if want := "ibsim0\nGID\n4: ACTIVE\nibsim0\nsminfo: sm\nfailed\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// When the process that waits for the command is killed, its descendants end too, and the
// files are removed.
func TestKeeperKilled(t *testing.T) {
	s := on(t, "fattree:k=4")
	c := s.command(t, "sh", "-c", "(setsid sh -c ': >started; kill -STOP $$' &); until [ -e started ]; do sleep .01; done; echo $PPID >pid; exec sleep 1002")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	keeper := 0
	ibsimtest.Poll(t, "the command", func() bool {
		b, _ := os.ReadFile(s.folder + "/pid")
		keeper, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return keeper > 0 && strings.HasSuffix(string(b), "\n")
	})
	syscall.Kill(keeper, syscall.SIGKILL)
	c.Wait()
	if got := c.ProcessState.ExitCode(); got != 3 {
		t.Errorf("got status %d", got)
	}
	s.checkEmpty(t)
}

// When both are killed, the command ends too, and the next start removes the files.
func TestBothKilled(t *testing.T) {
	s := on(t, "fattree:k=4")
	c := s.command(t, "sh", "-c", "echo $PPID >pid; exec sleep 1004")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	keeper := 0
	ibsimtest.Poll(t, "the command", func() bool {
		b, _ := os.ReadFile(s.folder + "/pid")
		keeper, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return keeper > 0 && strings.HasSuffix(string(b), "\n")
	})
	for _, pid := range []int{c.Process.Pid, keeper} {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	for _, pid := range []int{keeper, c.Process.Pid} {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	c.Wait()
	folders := func() int {
		list, err := filepath.Glob(s.folder + "/fabsh-run-*")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if got := folders(); got != 1 {
		t.Errorf("%d folders are left, want 1", got)
	}
	s.sh(t, "true")
	s.checkEmpty(t)
}

// The tools of a newer rdma-core, whose source FABSH_RDMA_CORE names, print the same as
// Debian's, but for the fields that those do not know.
func TestNewTools(t *testing.T) {
	source := os.Getenv("FABSH_RDMA_CORE")
	if source == "" {
		t.Skip("FABSH_RDMA_CORE is not set")
	}
	s := on(t, "fattree:k=4")
	folder := filepath.Join(programFolder, "tools")
	if out, err := exec.Command("sh", "../../../mad/umad/umadtest/rdmacore.sh", source, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const script = `quiet() { echo "$ $*"; "$@" 2>/dev/null; }
quiet ibaddr; quiet sminfo; quiet ibnetdiscover; quiet ibnetdiscover -p; quiet iblinkinfo; quiet ibqueryerrors
quiet smpquery nodeinfo 8; quiet smpquery portinfo 8 1; quiet smpquery switchinfo 1; quiet smpquery -D sl2vl 0,1,2 1
quiet perfquery 8 1; quiet ibroute 1; quiet ibtracert 8 10; quiet dump_fts; quiet ibportstate 1 1
quiet saquery NR; quiet saquery PR; quiet saquery PIR; quiet saquery CPI; quiet saquery LR; true`
	newer := regexp.MustCompile(`(?m)^.*(LinkSpeedExt[A-Za-z]*2:|# Topology file: generated).*\n`)
	want := newer.ReplaceAllString(s.sh(t, script), "")
	got := newer.ReplaceAllString(s.sh(t, "PATH="+folder+":$PATH; export LD_LIBRARY_PATH=\n"+script), "")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-Debian's +newer\n%s", diff)
	}
}
