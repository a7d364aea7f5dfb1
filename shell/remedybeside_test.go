package shell

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRemedyBesideManager: beside a running subnet manager a link is isolated and restored by
// the plans of a remedy. It is isolated once its journal has confirmed that, also if the next
// change has replaced that journal.
func TestRemedyBesideManager(t *testing.T) {
	if testing.Short() {
		t.Skip("20 s, in which the subnet manager settles")
	}
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.star", `def remedy(fabric, findings, *, to = "isolate"):
    p = [n for n in fabric.nodes if n.name == "leaf-2"][0].ports[3]
    return [isolate(p, "bad") if to == "isolate" else restore(p, "repaired")]
`)
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(t, name, "fattree:k=4")
	fabsh := func(words ...string) *exec.Cmd {
		c := exec.Command("fabsh", append([]string{"-F", "ibsim:" + name, "--state", "state"}, words...)...)
		c.Env, c.Dir = testEnv(t), dir
		return c
	}
	remedy := func(want string, words ...string) {
		t.Helper()
		out, _ := fabsh(append([]string{"remedy", "mine.star", "--audits", "links"}, words...)...).CombinedOutput()
		if first, _, _ := strings.Cut(string(out), "\n"); first != want {
			t.Fatalf("%q: got\n%s\nwant\n%s", words, out, want)
		}
	}
	change := func(plan string) {
		t.Helper()
		c := fabsh("--write", "--override-sm", "change", "apply", plan, "--confirm-within", "60s")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = c.Stdout
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&log, lines.Text())
			if strings.Contains(lines.Text(), "unless confirmed") { // not earlier: both take the change's lock
				if out, err := fabsh("change", "confirm").CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
		}
		if err := c.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, log.String())
		}
	}
	remedy("planned   isolate  leaf-2/3 - spine-1/2: bad", "--out", "isolate.plan")
	refused, _ := fabsh("--state", "other", "--write", "--override-sm", "change", "apply", "isolate.plan").CombinedOutput()
	if want := "change apply: no log of remedies below other has port 0x0002c90300100040/2 as planned in the last 24 h; make the plan again with fabsh remedy --out, and apply it with the same --state\n"; string(refused) != want {
		t.Errorf("with another state: %s", refused)
	}
	change("isolate.plan")
	remedy("declined  isolate  leaf-2/3: bad")
	remedy("planned   restore  spine-1/2: repaired", "--to=restore", "--out", "restore.plan")
	change("restore.plan")
	remedy("kept      restore  leaf-2/3 - spine-1/2: repaired", "--to=restore", "--out", "kept.plan")
	remedy("declined  restore  leaf-2/3 - spine-1/2: repaired", "--to=restore")
	out, err := fabsh("-o", "csv", "remedy", "log").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?m)^[^,]*,`).ReplaceAllString(string(out), "")
	const want = `decision,action,subject,remedy,reason,rule,why,port,cost
planned,isolate,leaf-2/3 - spine-1/2,mine,bad,,,0x0002c90300100040/2,
applied,isolate,leaf-2/3 - spine-1/2,mine,,,,0x0002c90300100040/2,
planned,restore,spine-1/2,mine,repaired,,,0x0002c90300100040/2,
applied,restore,leaf-2/3 - spine-1/2,mine,,,,0x0002c90300100040/2,
kept,restore,leaf-2/3 - spine-1/2,mine,repaired,,,0x0002c90300100040/2,
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
