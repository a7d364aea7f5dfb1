package builtins

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
)

// TestOutput compares all four formats of one value of each kind.
func TestOutput(t *testing.T) {
	const setUp = `
f = discover()
sw, ca = f.switches[0], f.cas[0]
`
	for _, test := range []struct{ name, code string }{
		{"node", "show(sw)"},
		{"nodes", "show(f.nodes)"},
		{"ports", "show(sw.ports)"},
		{"links", "show(f.links)"},
		{"fabric", "show(f)"},
		{"node_info", `show(smp_get("NodeInfo", sw))`},
		{"port_info", `show(smp_get("PortInfo", ca, 1).replace(m_key=1))`},
		{"port_infos", `show(smp_get("PortInfo", [sw.ports[1], "nobody", ca.ports[1]]))`},
		{"node_infos", `show(smp_get("NodeInfo", [sw, 999, ca]))`},
		{"node_records", `show(sa_gettable("NodeRecord", node_type="switch"))`},
		{"lft", "show(get_lft(sw))"},
		{"mft", "set_mft(sw, {0xc000: [1, 3], 0xc002: [0]}); show(get_mft(sw))"},
		{"sl2vl", "set_sl2vl(sw.ports[1], {(2, 1): {3: None}}); show(get_sl2vl(sw.ports[1]))"},
		{"vlarb", "show(get_vlarb(sw.ports[1]))"},
		{"pkeys", "set_pkeys(ca, {2: 1}); show(get_pkeys(ca))"},
		{"guids", "set_guids(ca, {2: 1}); show(get_guids(ca))"},
		{"dicts", `show([{"a": 1, "b": "x,\"y\"\n"}, {"a": 1.5, "c": None}, {"b": ("p", "q"), "c": [1, {"d": 2}]}])`},
		{"dict", `show({"a": 1, 17: [1]})`},
		{"scalars", `show([1, "x", None, True])`},
		{"lists", `show([["a", 1], ["b", 2]])`},
		{"text", `show("x\ny")`},
		{"table", `show(table(f.nodes, columns=["name", "lid", "route"], title="Nodes"))`},
		{"empty", "show([])"},
		{"route", `show(dr("0,1"))`},
		{"texts", `show({"bytes": b"\x01\xff", "time": time.from_timestamp(0), "duration": 2 * time.second, "route": dr("0,1")})`},
	} {
		for _, format := range lang.Formats {
			t.Run(test.name+"/"+string(format), func(t *testing.T) {
				onSim(t, "ring:n=2", func(o *SessionOptions) { o.Format = format }, func(t *testing.T, f *fixture) {
					out, explained, _ := f.run(setUp + test.code)
					if explained != "" {
						out += explained + "\n"
					}
					golden(t, "testdata/output/"+test.name+"."+string(format), out)
				})
			})
		}
	}
}

// TestExplain compares what people are told of mistakes.
func TestExplain(t *testing.T) {
	for _, test := range []struct{ name, code, want string }{
		{"f-string", `x = f"a"`, `<test>:1:9: syntax error: got string literal, want newline
    x = f"a"
            ^
hint: there are no f-strings; write "port %d of %s" % (n, name), or "{} of {}".format(n, name)`},
		{"try", "try:\n    pass", `<test>:1:1: syntax error: got try, want primary expression
    try:
    ^
hint: there are no exceptions; catch(fn, arg) returns the result or a falsy error value, fail(text) stops the script`},
		{"import", "import json", `<test>:1:1: syntax error: got import, want primary expression
    import json
    ^
hint: there is no import; write load("file.star", "name"); json, math, re and time are predeclared`},
		{"width", `"%5d" % 1`, `unknown conversion %5
  <test>:1:7: in <toplevel>
    "%5d" % 1
          ^
hint: % does not support width or precision; write fmt("5d", x) or fmt(".2f", x)`},
		{"format", `"{:.2f}".format(1)`, `format spec features not supported in replacement fields: .2f
  <test>:1:10: in <toplevel>
    "{:.2f}".format(1)
             ^
hint: format does not support width or precision; write fmt("5d", x) or fmt(".2f", x)`},
		{"habit", "iblinkinfo", `<test>:1:1: undefined: iblinkinfo
    iblinkinfo
    ^
hint: load("@std//report/iblinkinfo.star", "main"); main(); its report is fabsh report iblinkinfo, at the prompt iblinkinfo`},
		{"global", "discovr()", `<test>:1:1: undefined: discovr (did you mean discover?)
    discovr()
    ^`},
		{"several", "a\nb", `<test>:1:1: undefined: a
    a
    ^
<test>:2:1: undefined: b
    b
    ^`},
		{"tabs", "\tx", `<test>:1:2: syntax error: got indent, want primary expression
    	x
    	^`},
		{"no fabric", "discover()", `discover: no live fabric: this session reads a file; open a live fabric with -F (for example -F sim)
  <test>:1:1: in <toplevel>
    discover()
    ^`},
		{"exit", "exit(1)", ""},
		{"deep", "def f(n):\n    1 // n\n    f(n - 1)\nf(30)", "floored division by zero\n  <test>:4:1: in <toplevel>\n" +
			strings.Repeat("  <test>:3:5: in f\n", 9) + "  ... 12 calls omitted\n" + strings.Repeat("  <test>:3:5: in f\n", 9) +
			"  <test>:2:7: in f\n        1 // n\n          ^"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, got, _ := plain(t, nil).run(test.code)
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestBareNames: a few names act without being called.
func TestBareNames(t *testing.T) {
	f := plain(t, nil)
	for _, name := range []string{"exit", "quit"} {
		if _, _, status := f.run(name); status != 0 {
			t.Errorf("%s: status %d", name, status)
		}
		err := f.Show(f.Interpreter.Globals[name])
		if _, ok := err.(*lang.ExitError); !ok {
			t.Errorf("%s does not exit: %v", name, err)
		}
	}
	overview, _ := help.Of(f.Runtime).Find("", 0)
	if out, _, _ := f.run("help"); out != overview {
		t.Errorf("help shows %q", out)
	}
}

// TestHelp compares help on one thing of each kind.
func TestHelp(t *testing.T) {
	f := plain(t, nil)
	for name, topic := range map[string]string{
		"overview": "", "function": "smp_get", "attribute": "NodeInfo", "field": "PortInfo.PortState", "field_snake": "PortInfo.m_key", "header": "NoticePort1", "header_field": "MADHeader.TransactionID",
		"component": "PathRecord.dlid", "two_attributes": "ClassPortInfo", "type": "port", "member": "node.lid", "method": "fabric.dump",
		"topic": "targets", "two_topics": "cron", "class_number": "0x81", "class_name": "SA", "trap": "129", "traps": "traps", "status_word": "busy", "spec_method": "SubnAdmGetTable", "any_method": "TrapRepress",
		"old_spelling": "portinfo", "word": "link_up", "check": "link.speed", "simulation": "simulation", "sim_key": "sim:errors=", "kind": "type plan", "search": "search acknowledge a finding",
		"module": "json", "module_function": "json.encode", "language": "len", "habit": "ibroute", "error": "error",
		"class_range": "0x1f", "response": "GetResp", "bare_field": "AttributeModifier", "status_beginning": "redirect", "sent_field": "SMInfo.priority",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := help.Of(f.Runtime).Find(topic, 0)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/help/"+name+".txt", got)
		})
	}
	for topic, want := range map[string]string{
		"PortInf":            `unknown topic "PortInf" (did you mean PortInfo?); search with help("search PortInf")`,
		"PortInfo.PortStat":  `unknown topic "PortInfo.PortStat" (did you mean PortInfo.PortState?); search with help("search PortInfo.PortStat")`,
		"node.gui":           `unknown topic "node.gui" (did you mean node.guid?); search with help("search node.gui")`,
		"json.encod":         `unknown topic "json.encod" (did you mean json.encode?); search with help("search json.encod")`,
		"something entirely": `unknown topic "something entirely"; search with help("search something entirely")`,
	} {
		if _, err := help.Of(f.Runtime).Find(topic, 0); err == nil || err.Error() != want {
			t.Errorf("help(%q): %v\nwant %s", topic, err, want)
		}
	}
	code := `
def f(a, b=1, *rest, c, d=None, **more):
    """Does it.

    Well.
    """
help(f)
`
	if out, _, _ := f.run(code); out != "f(a, b=1, *rest, c, d=None, **more)\n\nDoes it.\n\nWell.\n" {
		t.Errorf("help of a script's function: %q", out)
	}
}

// slowPairs are measurements that show a fault.
const slowPairs = `[("node-000%d" % n, "node-000%d" % (n % 4 + 5), 200 if n == 1 else 390) for n in [1, 2, 3, 4] for _ in range(4)]`

// columnValues make a value of each type that shows as columns.
var columnValues = map[string]string{
	"inventory_item": "f.inventory()[0]",
	"fabric":         "f", "node": "sw", "port": "sw.ports[1]", "link": "f.links[0]", "problem": "None",
	"lft": "get_lft(sw)", "mft": "get_mft(sw)", "sl2vl": "get_sl2vl(sw)", "vlarb": "get_vlarb(sw.ports[1])", "pkeys": "get_pkeys(ca)", "guids": "get_guids(ca)",
	"choices": "f.graph().route('updn', adaptive=True).choices(sw, ca.lid)", "ar": "get_ar(sw)", "ar_entry": "get_ar(sw)[ca.lid]", "plft": "get_plft(sw)",
	"graph": "f.graph()", "routes": "r", "row": "r[sw]", "verdict": "r.verify()", "link_failure": "r.fail_each_link()[0]", "path": "r.trace(ca, f.cas[1])", "path_hop": "r.explain(ca, f.cas[-1])[0]", "graph_path": "f.graph().paths(sw, f.switches[1])[0]", "congestion": "r.congestion()", "phase_load": `r.congestion("ring", jobs={"a": "node-000[1,3]"}).phases[0]`, "collision": `r.congestion("incast", jobs={"a": "node-000[1-5]"}).collisions[0]`, "balance": "r.balance()", "adaptive_load": "f.graph().route(\"updn\", adaptive=True).balance().adaptive",
	"finding": `finding("a.b", sw, "x")`,
	"metric":  `metric("a", 1)`,
	"matrix":  "f.matrix()", "matrix_part": "f.matrix().parts[0]",
	"host_groups": "f.host_groups()", "host_group": "f.host_groups().roots[0]",
	"virtual_port": "discover(extended=True).virtual_ports[0]",
	"job":          `load_jobs("jobs.csv")[0]`, "job_traffic": "r.job_traffic({})", "job_load": `r.job_traffic({"a": "node-0001"}).jobs[0]`, "shared_link": `r.job_traffic({"a": "node-000[1,3]", "b": "node-000[1,3]"}).shared[0]`,
	"measurement": `load_measurements("pairs.csv")[0]`, "suspects": `r.suspects(load_measurements("pairs.csv"))`, "next_pair": "r.next_pairs([], 1)[0]",
	"suspect_fault": "r.suspects(" + slowPairs + ").faults[0]", "suspect": "r.suspects(" + slowPairs + ").faults[0].candidates[0]",
	"tenants": `load_tenants("tenants.csv")`, "tenant": `load_tenants("tenants.csv").tenants[0]`, "isolation": `f.isolation(load_tenants("tenants.csv"), {})`, "tenant_pair": `f.isolation(load_tenants("tenants.csv"), {}).pairs[0]`,
	"tenant_outsider":  `f.isolation(load_tenants("tenants.csv"), {p: [0x7fff] if p.node.name.startswith("node-000") else [0xffff] for p in f.end_ports}).outsiders[0]`,
	"tenant_deviation": `f.isolation(load_tenants("tenants.csv"), {p: [0xffff, 0x8099] for p in f.end_ports}).deviations[0]`,
	"fabric_diff":      "f.diff(f)", "change": `[sim.unlink("leaf-1/3"), f.diff(discover()), sim.link("leaf-1/3")][1].changes[0]`,
	"plan": "plan(lambda: set_lft(discover().switches[0], {9: 1}), static=True)", "link_effect": "plan(lambda: port_disable(discover().switches[0].ports[3])).effect", "plan_round": "plan(lambda: set_lft(discover().switches[0], {5: None}), static=True).rounds[0]", "planned_set": "plan(lambda: set_lft(discover().switches[0], {9: 1}), static=True).sets[0]",
	"cable_plan": `load_fabric("plan.csv").plan`, "plan_conflict": `load_fabric("plan.csv").plan.conflicts[0]`, "place": `load_fabric("plan.csv").switches[0].place`,
	"cabling": `cabling("plan.csv")`, "cabling_action": `[x for x in cabling("plan.csv").actions if x.verb != "remove"][0]`, "cabling_name": `cabling("plan.csv").names[0]`, "cabling_device": `cabling("plan.csv").devices[0]`,
	"impact": `f.impact("leaf-1/3")`, "job_impact": `f.impact("leaf-1", jobs = {"a": "node-[0001-0002]"}).jobs[0]`,
	"routes_diff": "r.diff(r)", "tree": "f.graph().tree()", "stats": "stats()", "error": `catch(fail, "x")`, "node_info": `smp_get("NodeInfo", sw)`, "node_record": `sa_gettable("NodeRecord")[0]`, "port_rates": "perf_rates(sw.ports[1])", "bit_errors": "perf_rates(sw.ports[1]).ber()", "port_counters": `perf_get("PortCounters", sw.ports[1])`,
}

// checkSchema: the JSON of v has the members, in their order, that SCHEMAS.md says.
func checkSchema(t *testing.T, v starlark.Value) {
	i := slices.IndexFunc(append(check.Types(), datagrams.StatsDoc()), func(d lang.TypeDoc) bool { return d.Name == v.Type() })
	if i < 0 {
		return // a record
	}
	d := append(check.Types(), datagrams.StatsDoc())[i]
	var got, want []string
	for _, f := range v.(lang.Factual).Facts() {
		got = append(got, f.Name)
	}
	for _, m := range d.Members {
		if m.Column {
			want = append(want, m.Name)
		}
	}
	if !slices.Equal(got, want) || d.Schema != v.(lang.Factual).Schema() {
		t.Errorf("%s has %v, documented is %s with %v", v.(lang.Factual).Schema(), got, d.Schema, want)
	}
}

// fieldName is a name of an attribute or a column.
var fieldName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// byPosition are the titles of columns that JSON has as positions, or as keys and values of an object.
var byPosition = map[string][]string{
	"guids": {"entry", "guid"}, "mft": {"mlid"}, "pkeys": {"entry", "pkey", "member"}, "verdict": {"verdict"}, "vlarb": {"entry"},
}

// checkTextInJSON: the JSON of v has each attribute and each column of a table that its text has.
func checkTextInJSON(t *testing.T, v starlark.Value) {
	display, ok := v.(interface{ Display() string })
	if !ok {
		return // its text is made from its facts, as is JSON
	}
	encoded, err := lang.EncodeJSON(v)
	if err != nil {
		t.Errorf("%s: %v", v.Type(), err)
		return
	}
	for line := range strings.Lines(display.Display()) {
		words := strings.Fields(line)
		titles := len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !fieldName.MatchString(w) }) && strings.Contains(strings.TrimSpace(line), "  ")
		for _, w := range words {
			if titles && !strings.Contains(string(encoded), strconv.Quote(w)) && !slices.Contains(byPosition[v.Type()], w) {
				t.Errorf("%s: its text has %q in %q, which JSON lacks:\n%s", v.Type(), w, line, encoded)
			}
		}
	}
}

// TestColumns: every column that a value shows is an attribute of it, with equal text.
func TestColumns(t *testing.T) {
	onSim(t, "fattree:k=4,levels=2,ar=updn,vports=1", nil, func(t *testing.T, f *fixture) {
		env := maps.Clone(f.Interpreter.Globals)
		run := func(code string) starlark.StringDict {
			globals, err := starlark.ExecFileOptions(&lang.Dialect, f.newThread(context.Background(), "test"), "test", code, env)
			if err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			return globals
		}
		write(t, f.fs, "/work/jobs.csv", "id,nodes\n7,a\n")
		write(t, f.fs, "/work/pairs.csv", pairsFile)
		write(t, f.fs, "/work/tenants.csv", "tenant,hosts,pkeys\nred,node-[0001-0002],0x0012\nblue,\"node-[0003,0004]\",0x0013\n")
		write(t, f.fs, "/work/plan.csv", "A-Rack,A-U,A-Node Name,A-Type,A-Model,A-Port,Z-Rack,Z-RU,Z-Node Name,Z-Type,Z-Port\n"+
			"R1,41,leaf-1,Switch,Q3400,3,R2,40,spine-1,Switch,2\nR1,41,leaf-1,Switch,Q3400,3,R2,41,spine-2,Switch,1\nR1,40,leaf-x,Switch,,3,R2,40,spine-1,Switch,4\n")
		for name, v := range run("f = discover()\nsw, ca = f.switches[0], f.cas[0]\nr = f.graph().route('ftree')") {
			env[name] = v
		}
		for want, code := range columnValues {
			v := run("x = " + code)["x"]
			if want == "problem" { // there is none in a fabric that is well
				continue
			}
			if v.Type() != want {
				t.Errorf("%s: got %s", want, v.Type())
			}
			checkSchema(t, v)
			checkTextInJSON(t, v)
			names := v.(starlark.HasAttrs).AttrNames()
			for _, fact := range v.(lang.Factual).Facts() {
				x, err := v.(starlark.HasAttrs).Attr(fact.Name)
				if x == nil || err != nil || !slices.Contains(names, fact.Name) {
					t.Errorf("%s shows %s, which is no attribute: %v", want, fact.Name, err)
					continue
				}
				if n, ok := x.(lang.Named); ok && fact.Value.Type() == "string" {
					x = starlark.String(n.Name())
				}
				if equal, err := starlark.Equal(x, fact.Value); !equal || err != nil {
					t.Errorf("%s.%s is %v, and shows as %v (%v)", want, fact.Name, x, fact.Value, err)
				}
			}
		}
		for _, d := range check.Types() {
			if _, ok := columnValues[d.Name]; !ok && !slices.Contains([]string{"lost", "audit_run", "action", "remedy_past", "remedy_link", "remedy_step", "this_host", "own_port"}, d.Name) && !strings.HasPrefix(d.Name, "history") && // which take a fabric that loses reports, an audit, a remedy, ports of the host, and a history (TestHistoryColumns)
				slices.ContainsFunc(d.Members, func(m lang.MemberDoc) bool { return m.Column }) {
				t.Errorf("no value of type %s is looked at", d.Name)
			}
		}
	})
}

// TestWrite writes below --out in real folders, through os.Root.
func TestWrite(t *testing.T) {
	for _, test := range []struct{ name, code, out, err string }{
		{"new", `fs.write("new.txt", "x")`, "\"out/new.txt\"\n", ""},
		{"bytes", `fs.write("b", b"\xff\x00"); fs.exists("out/b")`, "True\n", ""},
		{"replaced", `fs.write("old.txt", "new"); fs.read("out/old.txt")`, "\"new\"\n", ""},
		{"in folders", `fs.read(fs.write("a/b/c.txt", "x"))`, "\"x\"\n", ""},
		{"absolute", `fs.write(fs.read("where") + "/out/abs.txt", "x")`, "\"out/abs.txt\"\n", ""},
		{"a link in the folder is replaced", `fs.write("to-secret", "x"); fs.read("out/to-secret")`, "\"x\"\n", ""},
		{"through a link out", `fs.write("escape/x", "x")`, "", "out/escape/x: path escapes from parent"},
		{"through ..", `fs.write("../x", "x")`, "", "../x: scripts may write only below out, the directory of --out"},
		{"beside", `fs.write(fs.read("where") + "/x", "x")`, "", "DIR/work/x: scripts may write only below out, the directory of --out"},
		{"the folder itself", `fs.write("", "x")`, "", ": scripts may write only below out, the directory of --out"},
		{"over a folder", `fs.write("folder", "x")`, "", "out/folder: is not a regular file, so it cannot be replaced"},
		{"below a file", `fs.write("old.txt/x", "x")`, "", "out/old.txt/x: not a directory"},
		{"no text", `fs.write("x", 1)`, "", "fs.write: for parameter data: got int, want string or bytes; json.encode(x) and str(x) return strings"},
		{"read a link out", `fs.read("out/to-secret")`, "", "out/to-secret: path escapes from parent"},
		{"read outside", `fs.read("../secret")`, "", "../secret: scripts may not read here, only below ., out; allow its directory with -I"},
		{"exists outside", `fs.exists("../secret")`, "", "../secret: scripts may not read here, only below ., out; allow its directory with -I"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			work := filepath.Join(dir, "work")
			for _, d := range []string{"work/out/folder", "elsewhere"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, data := range map[string]string{"secret": "s", "work/out/old.txt": "old", "work/where": work} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, target := range map[string]string{"escape": "elsewhere", "to-secret": "secret"} {
				if err := os.Symlink(filepath.Join(dir, target), filepath.Join(work, "out", name)); err != nil {
					t.Fatal(err)
				}
			}
			f := plain(t, func(o *SessionOptions) { o.FS, o.Dir, o.Out = nil, work, "out" })
			out, explained, _ := f.run(test.code)
			want := test.err
			if test.name == "beside" {
				want = dir + want[len("DIR"):]
			}
			if diff := cmp.Diff([]string{test.out, want}, []string{out, firstLines(explained, want)}); diff != "" {
				t.Errorf("output, error (-want +got):\n%s", diff)
			}
			// What lies outside is as before, and no temporary file is left.
			if data, err := os.ReadFile(filepath.Join(dir, "secret")); string(data) != "s" {
				t.Error("the secret is", string(data), err)
			}
			for _, pattern := range []string{"elsewhere/*", "work/x", "work/out/.*", "work/out/*/.*"} {
				if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
					t.Error("left behind:", left)
				}
			}
		})
	}
}

func TestWriteWithoutOut(t *testing.T) {
	f := plain(t, nil)
	_, explained, status := f.run(`fs.write("x", "x")`)
	want := "x: scripts may write only to the directory of --out; give --out DIR"
	if firstLines(explained, want) != want || status != lang.StatusUsage {
		t.Errorf("status %d, %s", status, explained)
	}
}

// TestWriteWhileLoading: the refusal cannot be caught.
func TestWriteWhileLoading(t *testing.T) {
	f := plain(t, func(o *SessionOptions) {
		o.Out = "."
		write(t, o.FS, "/work/m.star", `x = catch(fs.write, "x", "x")`)
	})
	_, explained, status := f.run(`load("m.star", "x")`)
	want := "cannot load m.star: fs.write: refused: a module cannot write files while it is being loaded (m.star); write in a function that the script calls"
	if firstLines(explained, want) != want || status != lang.StatusUsage {
		t.Errorf("status %d, %s", status, explained)
	}
	if _, err := f.fs.Stat("/work/x"); err == nil {
		t.Error("the file is there")
	}
}

// TestSavePath: the error for arguments in the wrong order does not show all of the value.
func TestSavePath(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		out, explained, status := f.run(`print(catch(save, "a.csv", 5000 * "x").message)`)
		if want := "save: for parameter path: got a text of 5000 bytes, and a path has at most 4096; write save(VALUE, PATH)\n"; out != want || status != 0 {
			t.Errorf("status %d: %s%s", status, out, explained)
		}
	})
}
