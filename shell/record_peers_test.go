//go:build linux

package shell

import (
	"bufio"
	"bytes"
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

// auditCode asks for all sorts of things: a sweep, tables of many segments,
// counters, a node that is not there, a BUSY agent's like: what is refused.
const auditCode = `
f = discover()
print(f, [n.name for n in f.nodes])
for name in ["NodeRecord", "PortInfoRecord", "LinkRecord"]:
    r = sa_gettable(name)
    print(name, len(r), r[-1])
print([bool(c) for c in perf_get("PortCounters", [p for p in f.ports if p.peer])])
print(parallel(lambda sw: [e for e in get_lft(sw)], f.switches))
print(smp_get("NodeInfo", [1, 999, f.switches[0]]))
print(catch(smp_get, "SwitchInfo", f.cas[0]))
`

// TestRecordIbsim: a session under OpenSM, with tables in segments, is replayed
// without them to the byte, and tshark understands all that was recorded.
func TestRecordIbsim(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.pcap")
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, RMPP: true})
	want := outcome(on(t, f, "--record", file, "-t", "2s", "-c", auditCode))
	if !strings.Contains(want, "\nPortInfoRecord ") || !strings.HasSuffix(want, "exit status 3\n[exit status 3]\n") {
		t.Fatal(want)
	}
	f.Kill(t)
	if got := outcome(fabsh(t, nil, "-F", "replay:"+file, "-c", auditCode)); got != want {
		t.Errorf("-recorded +replayed\n%s", cmp.Diff(want, got))
	}
	cmd := ibsimtest.Command(t, "tshark", "-r", file, "-Y", "_ws.malformed || !infiniband.mad", "-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info")
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	if bad := ibsimtest.Output(t, cmd); bad != "" {
		t.Errorf("tshark does not understand:\n%s", bad)
	}
}

// TestRecordKilled: the part that a session leaves that is killed, at any moment, is
// replayed as far as it went, and an older recording is untouched. After SIGTERM the
// recording is complete.
func TestRecordKilled(t *testing.T) {
	for i := range 6 {
		file := filepath.Join(t.TempDir(), "a.pcap")
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		signal := []os.Signal{os.Kill, syscall.SIGTERM}[i%2]
		cmd := fabsh(t, nil, "-F", "sim:ring:n=4", "--record", file, "-c", `
while True:
    print(discover())`)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // one sweep is over, and others follow
		want := lines.Text()
		time.AfterFunc(time.Duration(i)*7*time.Millisecond, func() { cmd.Process.Signal(signal) })
		for lines.Scan() {
		}
		cmd.Wait()
		if signal == os.Kill {
			if old, err := os.ReadFile(file); err != nil || string(old) != "old" {
				t.Errorf("the older recording is %.20q, %v", old, err)
			}
			file += ".part"
		}
		got := outcome(fabsh(t, nil, "-F", "replay:"+file, "-c", "print(discover())"))
		if got != want+"\n[exit status 0]\n" {
			st, _ := os.Stat(file)
			// The kernel may end a write where a page does, if it was to kill
			// the writer (mm/filemap.c, generic_perform_write).
			if st.Size()%int64(os.Getpagesize()) == 0 && strings.Contains(got, "is cut off: the file is incomplete") {
				continue
			}
			t.Errorf("of a recording of %d bytes: got %swant %s", st.Size(), got, want)
		}
	}
}

// TestRecordNoKeys: no key that a session knows is in its recording.
func TestRecordNoKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.pcap")
	const key = 0x1122334455667788
	got := outcome(fabsh(t, nil, "-F", "sim:ring:n=2", "--record", file, "-c", fmt.Sprintf(`
smp_set("PortInfo", dr("0,1"), 0, m_key=%#x, m_key_protect_bits=0)
print(catch(smp_get, "PortInfo", dr("0,1"), 0))
print(len(sa_gettable("PortInfoRecord")))`, key)))
	recording, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, got)
	}
	if bytes.Contains(recording, []byte{0x11, 0x22, 0x33, 0x44}) || bytes.Contains(recording, []byte{0x55, 0x66, 0x77, 0x88}) {
		t.Error("the M_Key is in the recording")
	}
	if !strings.HasSuffix(got, "[exit status 0]\n") {
		t.Error(got)
	}
}
