//go:build linux && (amd64 || arm64)

package run_test

import (
	"bytes"
	"fmt"
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
	ibsimtest.Path(t, "strace")
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

// Files are found in the tree, however a path is written; what programs put into its
// folders leads nowhere.
func TestPaths(t *testing.T) {
	s := on(t, "fattree:k=4")
	if err := os.WriteFile(s.folder+"/secret", []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const script = `exec 2>&1
port=/sys/class/infiniband/ibsim0/ports/1
cat $port/state $port/../../node_type /sys/class/../class/infiniband/ibsim0/node_desc //sys//class/infiniband/./ibsim0/ports/1/lid
cd /sys/class; cat infiniband/ibsim0/ports/1/lid; cd /dev; ls infiniband; cd /
cat $port/gid_attrs/types/1
ls -l /dev/infiniband/umad0 | cut -c1-10; find /sys/class/infiniband_mad -type f | sort
test -r $port/lid && test ! -w $port/lid && test ! -x $port/lid && test -d $port && test -c /dev/infiniband/issm0 && echo tests
cat $port/nosuch; cat $port/lid/x; cat /sys/class/infiniband; echo 1 >$port/lid; readlink $port/lid; stat -c '%F %s %t:%T' $port/lid $port /dev/infiniband/issm0
cat /sys/class/infiniband/../../kernel/nosuch; cat /dev/infiniband/../null
exec 7<$port; folder=$(readlink /proc/$$/fd/7); cd $folder; cat lid; ls -d counters; cat ../../node_type
rm -f rate; ln -s "$OSM_TMP_DIR/secret" rate; cat rate; cat $port/rate
mv gids elsewhere; ln -s "$OSM_TMP_DIR" gids; cat gids/secret; cat $port/gids/secret; ls $port/gids; cat $port/gids/0
i=0; while [ $i -lt 200 ]; do rm -f pkeys; ln -s "$OSM_TMP_DIR" pkeys; i=$((i+1)); done 2>/dev/null & ls $port/pkeys >/dev/null 2>&1; cat $port/pkeys/0; wait
`
	const want = `4: ACTIVE
1: CA
node-0002 HCA-1
0x8
0x8
issm0
umad0
uverbs0
cat: PORT/gid_attrs/types/1: Invalid argument
crw-------
/sys/class/infiniband_mad/abi_version
/sys/class/infiniband_mad/issm0/dev
/sys/class/infiniband_mad/issm0/ibdev
/sys/class/infiniband_mad/issm0/port
/sys/class/infiniband_mad/umad0/dev
/sys/class/infiniband_mad/umad0/ibdev
/sys/class/infiniband_mad/umad0/port
tests
cat: PORT/nosuch: No such file or directory
cat: PORT/lid/x: Not a directory
cat: /sys/class/infiniband: Is a directory
sh: 8: cannot create PORT/lid: Permission denied
regular file 4096 0:0
directory 4096 0:0
character special file 0 e7:40
cat: /sys/class/infiniband/../../kernel/nosuch: No such file or directory
cat: /dev/infiniband/../null: No such file or directory
0x8
counters
1: CA
200 Gb/sec (4X HDR)
200 Gb/sec (4X HDR)
cat: gids/secret: No such file or directory
cat: PORT/gids/secret: No such file or directory
ls: cannot open directory 'PORT/gids': Too many levels of symbolic links
fe80:0000:0000:0000:0002:c903:1000:0011
0xffff
`
	got := strings.ReplaceAll(s.sh(t, script), "/sys/class/infiniband/ibsim0/ports/1", "PORT")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	s.checkEmpty(t)
	if _, err := os.Stat(s.folder + "/secret"); err != nil {
		t.Error(err)
	}
}

// Fifty tools at a time, on several hosts.
func TestManyTools(t *testing.T) {
	tools := 50
	if testing.Short() {
		tools = 10 // they take long with the race detector
	}
	s := on(t, "fattree:k=8")
	out := s.sh(t, fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); SIM_HOST="node-00$((10+i%%20)) HCA-1" ibnetdiscover -p >out.$i & done; wait; cat out.* | grep -c '^CA\|^SW'`, tools))
	if want := fmt.Sprintln(128 * tools); out != want { // lines
		t.Errorf("got %q, want %q", out, want)
	}
}

// A program sees the host that SIM_HOST names.
func TestHost(t *testing.T) {
	s := on(t, "fattree:k=4")
	s.node = "node-0003"
	out := s.sh(t, `cat /sys/class/infiniband/ibsim0/node_desc; SIM_HOST="node-0005 HCA-1" cat /sys/class/infiniband/ibsim0/node_desc
SIM_HOST=leaf-1 cat /sys/class/infiniband/ibsim0/node_type /sys/class/infiniband/ibsim0/ports/0/lid; SIM_HOST=nosuch ls /sys/class/infiniband 2>&1 || true`)
	const want = "node-0003 HCA-1\nnode-0005 HCA-1\n2: switch\n0x1\nSIM_HOST=nosuch: unknown node \"nosuch\"; the program sees no device\n"
	if !strings.HasPrefix(out, want) {
		t.Errorf("got %q, want %q", out, want)
	}
}

// Two OpenSMs: when the master is killed, the other takes over. sysfs shows it.
func TestFailover(t *testing.T) {
	s := on(t, "fattree:k=4")
	s.bare = true
	out := s.sh(t, `conf() { printf 'sminfo_polling_timeout 500\npolling_retry_number 4\n' >conf; }
conf; state() { SIM_HOST="node-0003 HCA-1" cat /sys/class/infiniband/ibsim0/ports/1/$1; }
OSM_TMP_DIR=$PWD OSM_CACHE_DIR=$PWD opensm -F conf -e -p 10 -f log1 >/dev/null 2>&1 & one=$!
until [ "$(state state)" = '4: ACTIVE' ]; do sleep .1; done
mkdir two; SIM_HOST="node-0004 HCA-1" OSM_TMP_DIR=$PWD/two OSM_CACHE_DIR=$PWD/two opensm -F conf -e -p 5 -f log2 >/dev/null 2>&1 & two=$!
until grep -qs 'STANDBY\|Standby' log2; do sleep .1; done
first=$(state sm_lid); kill -9 $one
until [ "$(state sm_lid)" != $first ]; do sleep .1; done; sminfo | sed 's/.*state/state/'; kill $two; wait $two 2>/dev/null; true`)
	if want := "state 3 SMINFO_MASTER\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// All flows of osmtest pass: inventory, validations, services and events. OpenSM sweeps once:
// osmtest compares LocalPortNum, which depends on the way that an SMP of the last sweep took.
func TestOSMTest(t *testing.T) {
	if testing.Short() {
		t.Skip("waits half a minute for expected timeouts")
	}
	t.Parallel()
	s := on(t, "fattree:k=4")
	s.bare = true
	out := s.sh(t, `printf 'sweep_on_trap FALSE\nsweep_interval 0\ntransaction_timeout 2000\n' >conf; opensm -F conf -e -f log >/dev/null 2>&1 & sm=$!
until [ "$(cat /sys/class/infiniband/ibsim0/ports/1/state)" = '4: ACTIVE' ]; do sleep .1; done; sleep .3
for flow in c a s e; do osmtest -f $flow -i inventory -l olog 2>&1 | grep -o 'OSMTEST: TEST.*'; done; kill $sm; wait; grep -c 'SUBNET UP' log`)
	if want := "OSMTEST: TEST \"Create Inventory\" PASS\nOSMTEST: TEST \"All Validations\" PASS\nOSMTEST: TEST \"Services Registration\" PASS\nOSMTEST: TEST \"Event Forwarding\" PASS\n1\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// Signals reach the command, and Ctrl-C on a terminal, which goes to all, ends all. A group gets the signal
// twice, for fabsh forwards it too; the command ignores the second.
func TestSignals(t *testing.T) {
	s := on(t, "fattree:k=4")
	for _, group := range []bool{false, true} {
		os.Remove(s.folder + "/ready")
		c := s.command(t, "sh", "-c", `trap 'trap "" TERM INT; echo got; exit 5' TERM INT; : >ready; while :; do sleep .01; done`)
		if c.SysProcAttr == nil {
			c.SysProcAttr = &syscall.SysProcAttr{}
		}
		c.SysProcAttr.Setpgid = true
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ibsimtest.Poll(t, "the command", func() bool { _, err := os.Stat(s.folder + "/ready"); return err == nil })
		if group {
			syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		} else {
			c.Process.Signal(syscall.SIGTERM)
		}
		err := c.Wait()
		if got := c.ProcessState.ExitCode(); got != 5 || out.String() != "got\n" {
			t.Errorf("group %v: status %d (%v), output %q", group, got, err, out.String())
		}
	}
	s.checkEmpty(t)
}
