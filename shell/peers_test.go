//go:build linux

package shell

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// on makes ready fabsh on a private ibsim.
func on(t *testing.T, f *ibsimtest.Fixture, args ...string) *exec.Cmd {
	t.Helper()
	return fabsh(t, nil, append([]string{"-F", "ibsim:" + f.Name}, args...)...)
}

// changed are the lines that differ between two outputs of as many lines.
func changed(before, after string) (lines []string) {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	if len(a) != len(b) {
		return []string{before, after}
	}
	for i := range a {
		if a[i] != b[i] {
			lines = append(lines, strings.TrimSpace(a[i])+" -> "+strings.TrimSpace(b[i]))
		}
	}
	return lines
}

// TestChangesUnderOpenSM: what OpenSM owns changes only where the user insists,
// and then exactly as asked. The C tools say so.
func TestChangesUnderOpenSM(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}})
	discovered := outcome(on(t, f, "-c", `
f = discover()
leaf = [n for n in f.nodes if n.name == "leaf-0"][0]
sm = [n for n in f.nodes if n.name == "host-3-3 HCA-1"][0]
print(leaf.lid, sm.lid, sm.ports[1].guid, *[json.decode(json.encode(s.route)) for s in f.switches])
`))
	var leaf, sm int
	var guid string
	routes := make([]string, 6)
	if _, err := fmt.Sscan(discovered, &leaf, &sm, &guid, &routes[0], &routes[1], &routes[2], &routes[3], &routes[4], &routes[5]); err != nil {
		t.Fatalf("%v: %s", err, discovered)
	}
	look := func(tool string, args ...string) string { return f.Run(t, tool, args...) }
	tables := func() string {
		var all strings.Builder
		for _, route := range routes {
			all.WriteString(look("ibroute", "-a", "-n", "-D", route))
		}
		return all.String()
	}
	portInfo := func() string { return look("smpquery", "PortInfo", fmt.Sprint(leaf), "5") }
	lanes := func() string { return look("smpquery", "SL2VL", fmt.Sprint(leaf), "5") }
	refusal := func(call, attr string) string {
		return fmt.Sprintf("%s: refused: a subnet manager with GUID %s at LID %d, priority 0, state master sets %s and expects no other changes; "+
			"OpenSM neither detects nor repairs them, because it compares with the values that it remembers; --override-sm allows the change\n", call, guid, sm, attr)
	}
	for _, test := range []struct {
		name, code string
		flags      []string
		witness    func() string
		want       []string // lines changed
		says       string   // how stdout and stderr begin
		status     int
	}{
		{"no --write", fmt.Sprintf("set_lft(%d, {17: 5})", leaf), nil, tables, nil,
			"set_lft: refused: it would change the fabric; allow changes with --write\n", 2},
		{"no --override-sm", fmt.Sprintf("set_lft(%d, {17: 5})", leaf), []string{"--write"}, tables, nil, refusal("set_lft", "LinearForwardingTable"), 2},
		{"neither caught", fmt.Sprintf("catch(set_lft, %d, {17: 5})", leaf), []string{"--write"}, tables, nil, refusal("set_lft", "LinearForwardingTable"), 2},
		{"one entry", fmt.Sprintf("print(set_lft(%d, {21: 1})[21])", leaf), []string{"--write", "--override-sm"}, tables,
			[]string{"0x0015 00# -> 0x0015 001"}, "1\n", 0},
		{"the same again", fmt.Sprintf("print(set_lft(%d, {21: 1})[21])", leaf), []string{"--write", "--override-sm"}, tables, nil, "1\n", 0},
		{"an entry dropped", `print(set_lft([s for s in discover().switches if s.name == "leaf-0"][0], {21: None})[21])`, []string{"--write", "--override-sm"}, tables,
			[]string{"0x0015 00# -> 0x0015 255"}, "None\n", 0},
		{"PortInfo without --override-sm", fmt.Sprintf(`smp_set("PortInfo", %d, 5, hoq_life=7)`, leaf), []string{"--write"}, portInfo, nil, refusal("smp_set", "PortInfo"), 2},
		{"PortInfo", fmt.Sprintf(`print(smp_set("PortInfo", %d, 5, hoq_life=7).port_state)`, leaf), []string{"--write", "--override-sm"}, portInfo,
			[]string{"HoqLife:.........................18 -> HoqLife:.........................7"}, "active\n", 0},
		{"PortInfo of a port value", `print(smp_set("PortInfo", [s for s in discover().switches if s.name == "leaf-0"][0].ports[5], hoq_life=8).port_state)`,
			[]string{"--write", "--override-sm"}, portInfo, []string{"HoqLife:.........................7 -> HoqLife:.........................8"}, "active\n", 0},
		{"a record", fmt.Sprintf(`r = smp_get("PortInfo", %d, 5).replace(hoq_life=9); print(smp_set(r, %[1]d, 5).hoq_life)`, leaf), []string{"--write", "--override-sm"}, portInfo,
			[]string{"HoqLife:.........................8 -> HoqLife:.........................9"}, "9\n", 0},
		{"what the agent ignores", fmt.Sprintf(`smp_set("PortInfo", %d, 5, vl_high_limit=7)`, leaf), []string{"--write", "--override-sm"}, portInfo, nil,
			fmt.Sprintf("smp_set: LID %d: the Set of PortInfo was answered, but vl_high_limit is 0, not 7\n", leaf), 3},
		{"what the agent refuses", fmt.Sprintf(`smp_set("NodeDescription", %d, node_string="x")`, leaf), []string{"--write"}, portInfo, nil,
			fmt.Sprintf("smp_set: SubnSet(NodeDescription) to LID %d: method not supported (status 0x0008)\n", leaf), 3},
		{"SLtoVLMappingTable", fmt.Sprintf(`print(smp_set("SLtoVLMappingTable", %d, in_port=3, out_port=5, sl_to_vl=[i %% 4 for i in range(16)]).sl_to_vl[5])`, leaf),
			[]string{"--write", "--override-sm"}, lanes, []string{
				"ports: in  3, out  5: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14| 7| -> ports: in  3, out  5: | 0| 1| 2| 3| 0| 1| 2| 3| 0| 1| 2| 3| 0| 1| 2| 3|"}, "1\n", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.witness()
			got := outcome(on(t, f, append(test.flags, "-c", test.code)...))
			after := test.witness()
			if !strings.HasPrefix(got, test.says) || !strings.HasSuffix(got, fmt.Sprintf("[exit status %d]\n", test.status)) {
				t.Errorf("got  %swant %s[exit status %d]", got, test.says, test.status)
			}
			lines := changed(before, after)
			for i := range lines { // ports that OpenSM chose
				lines[i] = regexp.MustCompile(`^(0x\S+ 00)\d ->`).ReplaceAllString(lines[i], "$1# ->")
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestToolOptions: the long options of each tool that a report is named after are options of the
// report or of the session, or the error names what to use instead.
func TestToolOptions(t *testing.T) {
	option := regexp.MustCompile(`(?m)^  --(\w[\w-]+)(?:, -\w)?( <)?`)
	for _, tool := range []string{"iblinkinfo", "ibqueryerrors", "ibroute", "ibtracert", "perfquery", "saquery", "sminfo"} {
		help, _ := ibsimtest.Command(t, tool, "--help").CombinedOutput() // its exit status is 2
		options := option.FindAllStringSubmatch(string(help), -1)
		if len(options) < 10 {
			t.Errorf("%s: %d options in\n%s", tool, len(options), help)
		}
		for _, m := range options {
			word := "--" + m[1]
			if m[2] != "" {
				word += "=1"
			}
			got, status := failing(t, "report", tool, "--help", word)
			if unsupported := strings.Contains(got, ": unsupported"); status != 0 && !unsupported || strings.Contains(got, "unknown flag") {
				t.Errorf("report %s %s: %s[exit status %d]", tool, word, got, status)
			}
		}
	}
	for words, want := range map[string]string{
		"sminfo --sm_port=x":              `report: --sm-lid "x": `,
		"ibqueryerrors --Port=x --ca":     `report: --port "x": `,
		"iblinkinfo --outstanding_smps=x": `report: --window "x": `,
		"iblinkinfo --Direct=x --dwn":     `report: --dwn: unknown flag (did you mean --down?)`,
		"ibroute --m_key=0x77":            `report: --m_key: unsupported: other users see command lines; use --keys FILE` + "\n",
	} {
		if got, status := failing(t, append([]string{"report"}, strings.Fields(words)...)...); !strings.HasPrefix(got, want) || status != 2 {
			t.Errorf("report %s: got %s[exit status %d], want %s", words, got, status, want)
		}
	}
}

// TestLoss: a port that loses all is named, costs one ladder, and ends with 3.
func TestLoss(t *testing.T) {
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}})
	lid := strings.TrimSuffix(outcome(on(t, f, "-c", `print([n for n in discover().cas if n.name == "host-2-1 HCA-1"][0].lid)`)), "\n[exit status 0]\n")
	f.Console(t, `Error "host-2-1"[1] 100`)
	const lost = `port 2 of "leaf-2" (0x0002c903000000f0): the node at the other end is unknown: SubnGet(NodeInfo) to route 0,1,5,3,2: timed out after 6 attempts; the link is up, so check that node and the cable`
	for _, test := range []struct{ name, code, want string }{ // LID is that of the port
		{"discover", "f = discover(); print(f); print(stats().timed_out)",
			"warning: discover: " + lost + "\nfabric: 21 nodes (6 switches, 15 CAs), 23 links, incomplete: 1 timed out\n1\n1 request was not answered: exit status 3\n[exit status 3]\n"},
		{"a list", "print([x.status if not x else x.num_ports for x in smp_get('NodeInfo', [1, LID])])",
			"[1, \"timed out\"]\n1 request was not answered: exit status 3\n[exit status 3]\n"},
		{"caught", "print(catch(smp_get, 'NodeInfo', LID).status)", "timed out\n[exit status 0]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := outcome(on(t, f, "-c", strings.ReplaceAll(test.code, "LID", lid)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTenClients: ibsim has ten places, of which OpenSM has one.
func TestTenClients(t *testing.T) {
	f := ibsimtest.Start(t, twoSwitches, ibsimtest.FixtureOptions{SM: "H2"})
	for range 9 {
		cmd := on(t, f, "-c", `print("here"); sleep("1h")`)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			cmd.Process.Kill()
			cmd.Wait()
		}()
	}
	got := outcome(on(t, f, "-c", "1"))
	want := fmt.Sprintf("fabsh: ibsim at %q: all 10 slots for clients are in use, perhaps by clients that did not detach; Attached on its console lists them, X with a number frees one\n[exit status 3]\n", f.Name)
	if got != want {
		t.Errorf("the eleventh got %swant %s", got, want)
	}
}

// TestCrowd: several of fabsh and OpenSM's sweeps share an ibsim, and all see
// the same.
func TestCrowd(t *testing.T) {
	f := ibsimtest.Start(t, ibsimtest.FatTree(6, 3, 6), ibsimtest.FixtureOptions{SM: "host-5-5", SMArgs: []string{"-s", "1"}})
	const code = `
f = discover()
print(f)
print([len([e for e in get_lft(s) if e != None]) for s in f.switches])
print(len([c for c in perf_get("PortCounters", [p for p in f.ports if p.peer]) if c]))
print(sorted([sa_get("NodeRecord", lid=n.lid).node_string for n in f.cas]))
`
	outcomes := make([]string, 4)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() { outcomes[i] = outcome(on(t, f, "-c", code)) })
	}
	all.Wait()
	if !strings.HasSuffix(outcomes[0], "\n[exit status 0]\n") || strings.Count(outcomes[0], "\n") != 5 || strings.Contains(outcomes[0], "warning") {
		t.Error(outcomes[0])
	}
	for i, o := range outcomes {
		if diff := cmp.Diff(outcomes[0], o); diff != "" {
			t.Errorf("the first and number %d (-first):\n%s", i, diff)
		}
	}
}
