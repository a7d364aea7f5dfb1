package builtins

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/mad/engine"
)

// TestExitStatus: 130 goes before 2 before 3 before 1.
func TestExitStatus(t *testing.T) {
	for _, test := range []struct {
		name, code string
		want       int
	}{
		{"clean", "1", 0},
		{"exit", "exit()", 0},
		{"findings", "exit(1)", 1},
		{"other", "exit(7)", 7},
		{"exit 2", "exit(2)", 2},
		{"fail", "fail('x')", 2},
		{"syntax", "(", 2},
		{"undefined", "x", 2},
		{"type", "1 + 'x'", 2},
		{"no answer", "smp_get('NodeInfo', 999)", 3},
		{"refused by the agent", "sa_get('NodeRecord', lid=999)", 3},
		{"no such name", "discover(); smp_get('NodeInfo', 'nobody')", 2},
		{"no answer in a list", "smp_get('NodeInfo', [1, 999])", 3},
		{"no answer in a list, exit(0)", "smp_get('NodeInfo', [1, 999]); exit(0)", 3},
		{"no answer in a list, exit(1)", "smp_get('NodeInfo', [1, 999]); exit(1)", 3},
		{"no answer in a list, fail", "smp_get('NodeInfo', [1, 999]); fail('x')", 2},
		{"caught", "catch(smp_get, 'NodeInfo', 999)", 0},
		{"caught list", "catch(smp_get, 'NodeInfo', [999])", 0},
		{"caught, exit(1)", "catch(smp_get, 'NodeInfo', 999); exit(1)", 1},
		{"caught around parallel", "catch(parallel, lambda i: smp_get('NodeInfo', [i]), [999])", 0},
		{"caught inside parallel", "parallel(lambda i: catch(smp_get, 'NodeInfo', i), [999])", 0},
		{"in parallel", "parallel(lambda i: smp_get('NodeInfo', [i]), [999])", 3},
		{"raised by reading", "smp_get('NodeInfo', [999])[0].num_ports", 3},
		{"caught, raised later", "catch(smp_get, 'NodeInfo', 999).num_ports", 3},
		{"no table", "get_lft([999])", 3},
		{"no such port", "set_lft(1, {3: 99})", 2},
		{"no such row", "set_sl2vl(1, {(1, 99): [0] * 16})", 2},
		{"no such entry", "set_pkeys(3, [0xffff] * 200)", 2},
		{"too many weights", "set_vlarb(3, {'high': [(0, 1)] * 99})", 2},
		{"no switch", "get_lft(3)", 2},
		{"no port named", "port_disable(1)", 2},
		{"no such width", "port_set(1, 1, width='12x')", 2},
		{"closed", "s = sa_subscribe(trap=128); s.close(); s.next()", 2},
		{"no counters", "perf_get('PortCounters', [999], 1)", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
				if _, explained, got := f.run(test.code); got != test.want {
					t.Errorf("status %d, want %d: %s", got, test.want, explained)
				}
			})
		})
	}
}

// TestDeadPort: one retry ladder in all, the sweep goes on, and the warning and the exit status
// report the port.
func TestDeadPort(t *testing.T) {
	onSim(t, "ring:n=3,dead=1", nil, func(t *testing.T, f *fixture) {
		out, explained, status := f.run("f = discover(); print(f.complete, len(f.problems))")
		if explained != "" || status != lang.StatusFabric || !strings.HasPrefix(out, "False ") || !strings.Contains(f.stderr.String(), "warning: discover: ") {
			t.Errorf("printed %q, warned %q, error %q, status %d", out, f.stderr.String(), explained, status)
		}
		if _, _, status := f.run("1"); status != lang.StatusFabric {
			t.Errorf("forgotten: status %d", status)
		}
	})
}

// TestInterrupt: whatever a script does, it ends at once and with 130, and
// nothing catches that.
func TestInterrupt(t *testing.T) {
	for _, code := range []string{
		"while True: pass",
		"sleep('1h')",
		"catch(sleep, '1h')",
		"parallel(lambda i: sleep('1h'), range(100))",
		"parallel(lambda i: catch(sleep, '1h'), range(100))",
		"catch(parallel, lambda i: parallel(lambda j: sleep('1h'), range(3)), range(3))",
		"def f():\n    while True:\n        smp_get('NodeInfo', 1)\nf()",
		"[discover() for i in range(1 << 40)]",
		"smp_get('NodeInfo', [999] * 100)",
		"smp_get('NodeInfo', 999)",
		"get_lft(999)",
		"set_lft(999, {1: 1})",
		"smp_set('SwitchInfo', 999, life_time_value=1)",
		"perf_get('PortCounters', 999, 1)",
	} {
		t.Run(code, func(t *testing.T) {
			onSim(t, "ring:n=2,delay=100ms", nil, func(t *testing.T, f *fixture) {
				ctx, cancel := context.WithCancelCause(context.Background())
				if strings.HasPrefix(code, "while") { // it never sleeps, so virtual time stands still
					go cancel(lang.ErrInterrupted)
				} else {
					time.AfterFunc(50*time.Millisecond, func() { cancel(lang.ErrInterrupted) })
				}
				before := time.Now()
				err := program.RunCode(ctx, f.Interpreter, "<test>", code)
				if status := audits.ExitStatus(f.Runtime, err); status != lang.StatusInterrupted || !errors.Is(err, lang.ErrInterrupted) {
					t.Errorf("status %d: %v", status, err)
				}
				if d := time.Since(before); d > 60*time.Millisecond {
					t.Errorf("ended only after %v", d)
				}
			})
		})
	}
}

// TestBug: a panic in a builtin ends the script, not the session.
func TestBug(t *testing.T) {
	f := plain(t, nil)
	f.Interpreter.Globals["broken"] = &lang.Function{Builtin: &lang.Builtin{Name: "broken", Run: lang.Do(func(*lang.Call, *struct{}) (starlark.Value, error) { panic("oops") })}}
	for _, code := range []string{"broken()", "parallel(lambda i: broken(), [1])"} {
		if _, explained, status := f.run(code); status != lang.StatusUsage || !strings.Contains(explained, "broken: internal error: oops") {
			t.Errorf("%s: status %d, %s", code, status, explained)
		}
	}
	if out, _, _ := f.run("1"); out != "1\n" {
		t.Errorf("the session is gone: %q", out)
	}
}

// TestServiceLevels: where the service level is unknown, SL 0 is used, with one warning.
func TestServiceLevels(t *testing.T) {
	noSM := func(o *SessionOptions) {
		o.Engine.Close()
		o.Engine = engine.New(withoutSM{attach(t, "ring:n=2")}, engine.Options{})
	}
	onSim(t, "ring:n=2", noSM, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		f.run("perf_get('PortCounters', 1, 1); perf_get('PortCounters', 2, 1)")
		want := "warning: the service level of paths is unknown; using 0 (--sl sets another): the local port has no subnet manager (its SM LID is 0); start one (systemctl start opensm on one host, or in a managed switch) or give its LID with --sm-lid; discover() works without one\n"
		if got := f.stderr.String(); got != want {
			t.Errorf("warned\n%swant\n%s", got, want)
		}
	})
	// One request each for few targets, one table for many.
	onSim(t, "fattree:k=8,levels=3", nil, func(t *testing.T, f *fixture) {
		sent := func(code string) uint64 {
			before := f.Env.Engine.Stats().Answered
			if _, explained, _ := f.run(code); explained != "" {
				t.Fatal(explained)
			}
			return f.Env.Engine.Stats().Answered - before
		}
		f.run("f = discover()")
		if got := sent("perf_get('PortCounters', [1, 2, 1], 1)"); got != 5 {
			t.Errorf("%d MADs for 3 targets of 2 LIDs, want 2 paths and 3 counters", got)
		}
		if got := sent("perf_get('PortCounters', range(1, 101), 1)"); got != 101 {
			t.Errorf("%d MADs for 100 targets, want 1 table of paths and 100 counters", got)
		}
		if got := sent("perf_get('PortCounters', range(1, 101), 1)"); got != 100 {
			t.Errorf("%d MADs for 100 targets whose paths are known, want 100", got)
		}
	})
}

// TestOnlyBlockWaits: nothing here or in the packages below waits but through Block, or the
// fibers would stand still. Functions that can wait are known by their names.
func TestOnlyBlockWaits(t *testing.T) {
	waits := []string{"Do", "Sweep", "ViaSA", "FindSM", "LearnPaths", "Path", "Table", "SetAttributes", "ReadLFTs", "ReadRoutes", "Read", "ReadTables", "Write", "WriteTables", "SetPortStates", "SetLinks", "Sleep", "Wait", "Port", "NewTimer", "After", "Lock"}
	// Where they may stand: inside the function that Block or yield is given, and in the files that implement these.
	allowed := map[string]bool{
		"lang/fiber.go": true, "lang/clock.go": true,
		"lang/openfile.go":   true, // opens what the command line names, before scripts run
		"audits/reader.go":   true, // what perf_rates does in Block
		"script/scenario.go": true, // beside the fibers
		"topology/fabric.go": true, // while a list is made
		"audits/fabric.go":   true, // the command audit, between the scripts that it runs
		"remedies/case.go":   true, // the command remedy, before the scripts that it runs
		"accept/run.go":      true, // the command accept, between the runs of audits
		"topology/recent.go": true, // locks a map for an entry
	}
	var names []string
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, list...)
	}
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || allowed[name] {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var path []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, n)
			if arrow, ok := n.(*ast.UnaryExpr); ok && arrow.Op == token.ARROW {
				t.Errorf("%v: receives from a channel", set.Position(n.Pos()))
			}
			if _, ok := n.(*ast.SelectStmt); ok {
				t.Errorf("%v: selects", set.Position(n.Pos()))
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(waits, sel.Sel.Name) || insideBlock(path) || harmless(sel) {
				return true
			}
			t.Errorf("%v: calls %s outside block", set.Position(n.Pos()), sel.Sel.Name)
			return true
		})
	}
}

// insideBlock: one of the calls around is Block, topology.Change, which is Block too,
// or yield.
func insideBlock(path []ast.Node) bool {
	return slices.ContainsFunc(path[:len(path)-1], func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		switch fn := call.Fun.(type) {
		case *ast.Ident:
			return fn.Name == "Block" || fn.Name == "yield"
		case *ast.SelectorExpr:
			return fn.Sel.Name == "Block" || fn.Sel.Name == "Change"
		}
		return false
	})
}

// harmless: what has that name does not wait: Node.Port of a fabric, Time.After,
// the baton of a fiber that begins.
func harmless(sel *ast.SelectorExpr) bool {
	switch sel.Sel.Name {
	case "Port":
		x, ok := sel.X.(*ast.Ident)
		return !ok || x.Name != "e"
	case "After": // of two times
		x, ok := sel.X.(*ast.Ident)
		return !ok || x.Name != "time"
	case "Table": // of adaptive routing that has been read
		x, ok := sel.X.(*ast.SelectorExpr)
		return ok && x.Sel.Name == "Tables"
	case "ReadLFTs": // of a file
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "format"
	case "Sleep": // of a lang.Call: it is inside Block
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "c"
	case "Read", "Write": // of a file
		x, ok := sel.X.(*ast.Ident)
		return !ok || x.Name != "device"
	case "Sweep", "LearnPaths", "ReadRoutes": // of topology, routing (values) and audits: they wait inside Block
		x, ok := sel.X.(*ast.Ident)
		return ok && slices.Contains([]string{"topology", "values", "audits"}, x.Name)
	case "Do": // of a sync.Once; the function of a builtin
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name == "lang"
		}
		x, ok := sel.X.(*ast.SelectorExpr)
		return ok && x.Sel.Name == "once"
	case "Lock": // of the state between runs: it does not wait
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "st"
	}
	return false
}

// withoutSM hides that a subnet manager has been there.
type withoutSM struct{ engine.Transport }

func (w withoutSM) Port() (engine.Port, error) {
	p, err := w.Transport.Port()
	p.SMLID = 0
	return p, err
}

// TestLoss: with 5 % of all datagrams lost, the answers are equal, and come later.
func TestLoss(t *testing.T) {
	const code = `
f = discover()
ports = [p for p in f.ports if p.peer]
show([
    f,
    smp_get("PortInfo", ports),
    perf_get("PortCounters", ports),
    get_lft(f.switches),
    parallel(lambda n: smp_get("NodeInfo", n), f.nodes),
    sa_gettable("PathRecord", slid=f.cas[0].lid),
])
`
	var want string
	for _, faults := range []string{"", ",loss=0.05,delay=20ms,seed=1", ",loss=0.05,delay=20ms,jitter=15ms,dup=0.05,seed=2", ",loss=0.05,busy=0.05,delay=20ms,seed=3"} {
		onSim(t, "fattree:k=8,levels=2"+faults, func(o *SessionOptions) { o.Format = lang.FormatJSONL }, func(t *testing.T, f *fixture) {
			out, explained, status := f.run(code)
			if explained != "" || status != lang.StatusClean {
				t.Errorf("%s: status %d %s", faults, status, explained)
			}
			if want == "" {
				want = out
			}
			if out != want {
				t.Errorf("%s: other answers than without loss", faults)
			}
		})
	}
}
