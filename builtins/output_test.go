package builtins

import (
	"strings"
	"testing"

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
