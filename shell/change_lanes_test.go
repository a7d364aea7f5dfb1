//go:build linux

package shell

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"
)

// lanesDump prints the tables of each switch, as bytes.
const lanesDump = `
for s in discover().switches:
    smp_set("PortInfo", [p for p in s.ports if p.peer], hoq_life=5) if HOQ else None
    print(s.guid, list(smp_get("LinearForwardingTable", s, block=0).data.elems()))
    for i in range(len(s.ports) + 1):
        print(i, [list(smp_get("SLtoVLMappingTable", s, in_port=i, out_port=o).data.elems()) for o in range(1, len(s.ports) + 1)])
`

// TestChangeLanes: tables with virtual lanes are planned with their SL2VL, and their
// service levels are named: with others packets may deadlock, and then the change is not
// made. Made, the tables are without a credit loop on their lanes, and with one on a
// single lane. Taken back, each byte is as before.
func TestChangeLanes(t *testing.T) {
	s := serveSpec(t, "ring:n=6,hosts=1", true)
	file, levels := filepath.Join(s.dir, "lanes.plan"), filepath.Join(s.dir, "paths.sl")
	want := func(text string, status string, args ...string) string {
		t.Helper()
		got := outcome(s.fabsh(args...))
		if !strings.Contains(got, text) || !strings.HasSuffix(got, "[exit status "+status+"]\n") {
			t.Errorf("%v: no %q in\n%s", args, text, got)
		}
		return got
	}
	dump := func(hoq string) string {
		return want("0x", "0", "--write", "-c", strings.ReplaceAll(lanesDump, "HOQ", hoq))
	}
	want("6 switches with tables of updn", "0", "--write", "../examples/bring_up.star", "--engine", "updn")
	before := dump("True") // so that no drain takes long
	want("; loop-free and credit-loop-free at every step, whatever the order within a round; where paths have the service levels of torus-2qos (0, 1); target: the policy's own tables\n", "0", "change", "plan", "--routes", "torus-2qos", "--out", file, "--sl-out", levels)
	want("; not verified here\nmade from: --routes torus-2qos\nsubnet manager: none\nround 1: virtual lanes of service levels", "0", "change", "show", file)
	want("; if paths use service levels other than those assumed, give them (--sl FILE)\n", "1", "--write", "change", "apply", file)
	if dump("False") != before {
		t.Fatal("the refused change was made")
	}
	apply := s.fabsh("--write", "change", "apply", file, "--sl", levels, "--confirm-within", "10m")
	stderr, err := apply.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if said = append(said, lines.Text()); strings.HasPrefix(lines.Text(), "applied;") {
			want("ok: the change is confirmed\n", "0", "change", "confirm")
		}
	}
	if err := apply.Wait(); err != nil {
		t.Errorf("%v: %q", err, said)
	}
	want("verdict      ok\n", "0", "verify", "--sl", levels)
	want("credit loops not judged: ", "1", "verify")                                 // without a subnet manager, the service levels are unknown
	want("nothing to do\n", "0", "--write", "change", "apply", file, "--sl", levels) // it is no change that could be taken back
	want("the fabric is as before the change", "0", "--write", "change", "revert")
	if after := dump("False"); after != before {
		t.Errorf("taken back:\n%s\nbefore:\n%s", after, before)
	}
}
