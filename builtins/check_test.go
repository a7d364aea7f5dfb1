package builtins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"fabsh/builtins/check"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestCheckOfWhatRuns: nothing is found in what other tests run: shipped scripts,
// examples of help, and scripts of tests that do not fail.
func TestCheckOfWhatRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	s := plain(t, nil)
	sources := map[string]string{}
	for _, name := range script.Embedded() {
		src, err := s.Interpreter.Read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = src
	}
	for _, b := range documentedBuiltins() {
		var code strings.Builder
		for line := range strings.Lines(strings.TrimSpace(b.Example) + "\n") {
			if input, ok := strings.CutPrefix(line, "> "); ok {
				code.WriteString(input)
			}
		}
		sources["example of "+b.Name] = code.String()
	}
	files, err := filepath.Glob("testdata/*.star")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata/*.star", err)
	}
	for _, path := range files {
		if filepath.Base(path) == "words.star" {
			continue // it tests the warnings of wrong words
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line := 0
		for chunk := range strings.SplitSeq(string(data), "\n---\n") {
			if !strings.Contains(chunk, "### ") {
				sources[fmt.Sprintf("%s:%d", path, line)] = strings.Repeat("\n", line) + chunk
			}
			line += strings.Count(chunk, "\n") + 2
		}
	}
	for name, src := range sources {
		problems, err := check.Script(context.Background(), s.Interpreter, name, src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Text, "undefined: assert") && !strings.HasPrefix(p.Text, "undefined: written") { // names of the tests themselves
				t.Error(p)
			}
		}
	}
}

// FuzzCheck: no text makes it panic, and two checks of a text are equal.
func FuzzCheck(f *testing.F) {
	for _, src := range []string{"f = discover()\nfor p in f.ports: p.x\n", "def f(a, *b, c=1, **d): f(1, *b, c=f, **d)\n", "x, y = [z for z in x]\nx[0] += lambda a=x: a.b\n", "load('@std//lib/walk.star', a='walk')\na(1=2)", "smp_get('PortInfo', 1).m_key.x\nb'a'.y\n(1).z\n"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		check := func() string {
			s, err := NewSession(SessionOptions{FS: afero.NewMemMapFs(), Dir: "/work"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			problems, err := check.Script(context.Background(), s.Interpreter, "x.star", src)
			return fmt.Sprint(problems, err)
		}
		if first, second := check(), check(); first != second {
			t.Errorf("%q: %s, and then %s", src, first, second)
		}
	})
}

// TestCheckMany: the problems of a long script are limited, and the check of one ends with its
// context.
func TestCheckMany(t *testing.T) {
	s := plain(t, nil)
	var src strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&src, "discove%d()\n", i)
	}
	problems, err := check.Source(t.Context(), s.Interpreter, "x.star", src.String())
	if err != nil || len(problems) != 1001 {
		t.Fatalf("%d problems, %v", len(problems), err)
	}
	for i, want := range map[int]string{
		0:    "x.star:1:1: undefined: discove0 (did you mean discover?)",
		999:  "x.star:1000:1: undefined: discove999",
		1000: "x.star:1000:1: 1000 problems or more; others are not reported",
	} {
		if got := problems[i].String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("a message waits")
	cancel(cause)
	if problems, err := check.Source(ctx, s.Interpreter, "x.star", src.String()); err != cause || len(problems) != 0 {
		t.Errorf("%d problems, %v", len(problems), err)
	}
}

// TestTools: what is said of each tool can be typed, and does not fail.
func TestTools(t *testing.T) {
	for _, tool := range check.Tools() {
		if tool.Here == "" && tool.Command == "" && tool.Note == "" {
			t.Errorf("%s: nothing is said", tool.Name)
		}
		onSim(t, "", nil, func(t *testing.T, f *fixture) {
			code := "target = \"leaf-1\"; port = 1; discover()\n" + tool.Here
			if err := program.RunCode(context.Background(), f.Interpreter, "<tool>", code); err != nil && tool.Name != "vendstat" && tool.Name != "ibccquery" && tool.Name != "ibsysstat" { // which this switch does not have
				t.Errorf("%s: %s", tool.Name, f.Explain(err))
			}
		})
	}
}

// TestComingFrom checks that COMING_FROM.md is generated from the tables.
func TestComingFrom(t *testing.T) { golden(t, "../examples/COMING_FROM.md", comingFrom()) }

// comingFrom returns, as Markdown, the page for users of other tools: their commands, and
// the equivalents here.
func comingFrom() string {
	var b strings.Builder
	b.WriteString(`# Coming from other tools
<!-- help: coming-from -->

Commands of other tools, and their equivalents in fabsh. At the prompt, the name of a tool prints its line; ` + "`fabsh report NAME`" + ` prints what the tool of that name prints.
`)
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + cell(text) + "`"
	}
	head := func(name, there, here string) {
		b.WriteString("\n## " + name + "\n\n| " + there + " | " + here + " | notes |\n|---|---|---|\n")
	}
	row := func(there, here, notes string) {
		b.WriteString("| " + there + " | " + here + " | " + notes + " |\n")
	}
	for _, of := range []string{"infiniband-diags", "ibutils"} {
		head(of, "tool", "in a script, at the prompt, or after fabsh -c")
		for _, t := range check.Tools() {
			if t.Of != of {
				continue
			}
			here := code(cmp.Or(t.Here, t.Command))
			if script.IsReport(t.Name) {
				here = code("fabsh report "+t.Name) + "; " + here
			}
			row(code(t.Name), here, cell(t.Note))
		}
	}
	for _, of := range []string{"OpenSM", "UFM"} {
		head(of, of, "fabsh")
		for _, m := range moves {
			if m.of == of {
				row(cell(m.there), code(m.here), cell(m.note))
			}
		}
	}
	return b.String()
}

// TestOpenSMOptions: the options of OpenSM in the guide are those of its own help.
func TestOpenSMOptions(t *testing.T) {
	out, _ := ibsimtest.Command(t, "opensm", "--help").CombinedOutput() // its exit status is 2
	option := regexp.MustCompile("`-([A-Za-z])` (?:a file of )?([a-z_]+)")
	n := 0
	for _, m := range moves {
		for _, found := range option.FindAllStringSubmatch(m.there, -1) {
			n++
			line := regexp.MustCompile(`(?m)^--.*, -` + found[1] + ` .*$`).FindString(string(out))
			if !strings.Contains(line, strings.TrimSuffix(found[2], "s")) {
				t.Errorf("%s: OpenSM's help has %q", m.there, line)
			}
		}
	}
	if n != 4 {
		t.Errorf("%d options", n)
	}
}

// move is a task with OpenSM or UFM, and the equivalent command here.
type move struct{ of, there, here, note string }

var moves = []move{
	{"OpenSM", "`-R ENGINE`", "fabsh route updn --verify --out lfts.dump", "`fabsh route --list`; the file is what `opensm -R file -U lfts.dump` reads, and nothing is sent"},
	{"OpenSM", "`-a` root_guid_file", "fabsh route updn --roots roots.guids", "or names such as `spine-*`"},
	{"OpenSM", "`-u` cn_guid_file, `-G` io_guid_file", "fabsh route ftree --cn cn.guids --io io.guids", ""},
	{"OpenSM", "guid_routing_order_file, port_search_ordering", "fabsh route ftree --port-order ports.txt", ""},
	{"OpenSM", "rch_policy_file, topo_policy_file, pgrp_policy_file", "fabsh route chain --chains chains.conf --topologies topo.conf --groups groups.conf", "routing chains of NVIDIA's OpenSM"},
	{"OpenSM", "`opensm-lfts.dump`, `opensm-sl2vl.dump`", "fabsh -F file:opensm-subnet.lst verify --lfts opensm-lfts.dump", "checks that all packets arrive and that no deadlock is possible"},
	{"OpenSM", "`opensm-subnet.lst`", "fabsh -F file:opensm-subnet.lst audit", ""},
	{"OpenSM", "`-P` a file of partitions", "fabsh audit partitions --partitions partitions.conf", "compares the file with the tables of the ports; `-Y` is the QoS policy"},
	{"OpenSM", "`-R file`, SIGHUP after a failure", "fabsh --write route ftree --watch --out lfts.dump --reload /run/opensm.pid", "repairs the tables, and makes OpenSM read them"},
	{"OpenSM", "another engine, on a running fabric", "fabsh change plan --routes ftree --out new.plan", "proves each step; `fabsh change apply` applies the plan, and reverts it unless it is confirmed"},
	{"OpenSM", "a subnet without a subnet manager, in a lab", "fabsh --write @examples//bring_up.star", ""},
	{"OpenSM", "`osmtest`", "fabsh audit sm", ""},
	{"UFM", "Fabric Health Report", "fabsh audit", "with `--deep` also tables and routing; the exit status reports findings to cron"},
	{"UFM", "Topology Compare, an NDT file", "fabsh audit topology --expect plan.csv", "NDT's CSV, ibnetdiscover's text, a `.topo`, a snapshot"},
	{"UFM", "Periodic comparison with a master topology", "fabsh audit --baseline golden.snap", ""},
	{"UFM", "ibdiagnet2.db_csv", "fabsh -F file:ibdiagnet2.db_csv audit", ""},
	{"UFM", "Telemetry, its Prometheus endpoint", "fabsh exporter --every 60s", "dashboards and rules are in `examples/monitoring`"},
	{"UFM", "Cable Information", "fabsh audit health", "also `reg_get(\"EEPROM\", port)`; not tried on hardware"},
	{"UFM", "Events", "fabsh -c 'sa_subscribe(128).next()'", "reports of the subnet administrator, in a script"},
	{"UFM", "Logical servers and schedulers: the topology for Slurm", "fabsh topology slurm --out /etc/slurm/topology.yaml", ""},
	{"UFM", "Unhealthy ports, disabled by hand", "fabsh --write -c 'port_disable(\"leaf-1/7\")'", ""},
}
