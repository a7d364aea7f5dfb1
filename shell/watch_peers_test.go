//go:build linux

package shell

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestWatchOpenSM: OpenSM's engine file gives its switches, after a link has
// failed and after it has come back, the tables that fabsh computes anew.
func TestWatchOpenSM(t *testing.T) {
	t.Parallel()
	net := ibsimtest.FatTree(4, 2, 4)
	before := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}})
	dump := filepath.Join(t.TempDir(), "lfts.dump")
	if said := outcome(on(t, before, "route", "ftree", "--out", dump)); !strings.HasSuffix(said, "[exit status 0]\n") {
		t.Fatal(said)
	}
	whole, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}

	f := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0", "-D", "0x43", "-R", "file,no_fallback", "-U", dump}})
	pid := strconv.Itoa(f.SMPID())
	cmd := on(t, f, "--write", "route", "ftree", "--watch=1s", "--out", dump, "--reload", pid)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	// says reads on to a line of the pattern, which has no time in it.
	says := func(pattern string) {
		t.Helper()
		var said []string
		for lines.Scan() {
			_, text, _ := strings.Cut(lines.Text(), " ")
			said = append(said, text)
			if regexp.MustCompile("^(" + pattern + ")$").MatchString(text) {
				return
			}
		}
		t.Fatalf("it said %q and no %q", said, pattern)
	}
	says(regexp.QuoteMeta(dump) + " is up to date")

	// loaded waits until OpenSM dumps the tables that the file has.
	loaded := func() []byte {
		t.Helper()
		says("opensm \\(process " + pid + "\\): SIGHUP sent, to read the tables")
		want, err := os.ReadFile(dump)
		if err != nil {
			t.Fatal(err)
		}
		ibsimtest.Poll(t, "OpenSM to dump the tables of the file", func() bool {
			got, _ := os.ReadFile(filepath.Join(f.Dir, "opensm-lfts.dump"))
			return string(got) == string(want)
		})
		// It dumps them before it is done with the switches.
		ibsimtest.Poll(t, "the switches to have the tables of the file", func() bool {
			return outcome(on(t, f, "-C", "host-0-1", "-I", filepath.Dir(dump), "-c", fmt.Sprintf("f = discover(); load_routes(%q, f).diff(get_routes(f)).entries", dump))) == "0\n[exit status 0]\n"
		})
		return want
	}
	f.Console(t, `Unlink "leaf-0"[5]`)
	if less := loaded(); string(less) == string(whole) {
		t.Error("a link is gone, and the tables are the same")
	}
	f.Console(t, `ReLink "leaf-0"[5]`)
	// Entries to the LIDs of switches stay where the repair has put them: they work.
	toCAs := regexp.MustCompile(`(?m)^0x.*# Channel Adapter.*$`)
	if again := loaded(); !slices.Equal(toCAs.FindAllString(string(again), -1), toCAs.FindAllString(string(whole), -1)) {
		t.Errorf("the link is back, and the tables are not:\n%s", again)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit status %d, want 130", code)
	}
}
