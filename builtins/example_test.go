package builtins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/fabric/change/apply"
)

// TestExamples types every documented example at a prompt on the simulated
// fabric that `fabsh -F sim` opens, and compares what comes back.
func TestExamples(t *testing.T) {
	for _, b := range documentedBuiltins() {
		t.Run(b.Name, func(t *testing.T) {
			if strings.TrimSpace(b.Example) == "" {
				t.Fatal("has no example")
			}
			onSim(t, "", func(o *SessionOptions) {
				writeExamples(t, o.FS)
				o.Out = "out"
				o.StartGuard = func(context.Context, string) (apply.Guard, error) {
					return nil, errors.New("a simulated fabric needs no guard")
				}
			}, func(t *testing.T, f *fixture) {
				globals := maps.Clone(f.Interpreter.Globals)
				var got strings.Builder
				for line := range strings.Lines(strings.TrimSpace(b.Example) + "\n") {
					input, ok := strings.CutPrefix(line, "> ")
					if !ok {
						continue
					}
					got.WriteString(line)
					f.stdout.Reset()
					err := typed(f, globals, input)
					got.WriteString(f.stdout.String())
					if text := f.Explain(err); text != "" {
						got.WriteString(text + "\n")
					}
				}
				if diff := cmp.Diff(strings.TrimSpace(b.Example)+"\n", got.String()); diff != "" {
					t.Errorf("(-documented +got):\n%s", diff)
				}
			})
		})
	}
}

// typed runs one line as a prompt does.
func typed(f *fixture, globals starlark.StringDict, input string) error {
	file, err := lang.Dialect.Parse("<example>", input, syntax.RetainComments)
	if err != nil {
		return err
	}
	const lastName = "_"
	i := len(file.Stmts) - 1
	last, ok := file.Stmts[max(i, 0)].(*syntax.ExprStmt)
	if ok {
		start, _ := last.Span()
		file.Stmts[i] = &syntax.AssignStmt{OpPos: start, Op: syntax.EQ, LHS: &syntax.Ident{NamePos: start, Name: lastName}, RHS: last.X}
	}
	thread := f.newThread(context.Background(), "<example>")
	f.Typed = &lang.Typed{Thread: thread, File: "<example>", Source: func() string { return input }}
	if err := starlark.ExecREPLChunk(file, thread, globals); err != nil {
		return err
	}
	if ok && globals[lastName] != starlark.None {
		return f.Show(globals[lastName])
	}
	return nil
}

// writeExamples makes the files that examples read.
func writeExamples(t *testing.T, fs afero.Fs) {
	write(t, fs, "/work/net.topo", exampleTopology)
	write(t, fs, "/work/tenants.csv", "tenant,hosts,pkeys\nred,node-[0001-0002],0x0012\nblue,\"node-[0003,0004]\",0x0013\n")
	write(t, fs, "/work/pairs.csv", pairsFile)
	write(t, fs, "/work/jobs.csv", "JOBID,NAME,STATE,NODELIST\n7,cfd,RUNNING,node-[0001-0004]\n")
	write(t, fs, "/work/error_thresholds", "SymbolErrorCounter=10\nLinkErrorRecoveryCounter=5/min\n")
	write(t, fs, "/work/net.lfts", "Unicast lids [0-2] of switch Lid 1 guid 0x0002c90300000100 ('leaf-1'):\n0x0001 000 # Switch portguid 0x0002c90300000100: 'leaf-1'\n0x0002 001\n2 lids dumped\n")
	write(t, fs, "/work/roots.guids", "0x2c90300000100 # leaf-1\n")
	write(t, fs, "/work/chains.conf", "unicast-step\nid: 1\nengine: ftree\nend-unicast-step\nunicast-step\nid: 2\nengine: updn\ntopology: 1\nend-unicast-step\n")
	write(t, fs, "/work/topologies.conf", "topology\nid: 1\nsw-grp: not-spine-4\nhca-grp: ALL_CAS\nend-topology\n")
	write(t, fs, "/work/groups.conf", "port-group\nname: not-spine-4\nsubtract-rule: ALL_SWITCHES, spine-4\nend-port-group\nport-group\nname: spine-4\nport-regexp: ^spine-4$\nend-port-group\n")
	write(t, fs, "/work/weights.guids", "0x2c90300000100 1 3\n")
	write(t, fs, "/work/opensm.mcfdbs", "\nSwitch 0x0002c90300000100\nLID    : Out Port(s)\n0xC000 : 0x001  0x002 \n")
	write(t, fs, "/work/opensm-lid-matrix.dump", "Switch: guid 0x0002c90300000100\n0x0002: 01 ff 01\n")
}

// pairsFile are benchmarks of pairs.
const pairsFile = "from,to,gbps\nnode-0001,node-0005,391\nnode-0002,node-0006,388\nnode-0003,node-0007,393\nnode-0004,node-0008,390\nnode-0001,node-0006,389\nnode-0002,node-0005,\n"

const exampleTopology = `vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90300000100
switchguid=0x2c90300000100(2c90300000100)
Switch	2 "S-0002c90300000100"		# "leaf-1" enhanced port 0 lid 1 lmc 0
[1]	"H-0002c90300000200"[1](2c90300000201) 		# "host-1 HCA-1" lid 2 4xEDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x2c90300000200
caguid=0x2c90300000200
Ca	1 "H-0002c90300000200"		# "host-1 HCA-1"
[1](2c90300000201) 	"S-0002c90300000100"[1]		# lid 2 lmc 0 "leaf-1" lid 1 4xEDR
`

// TestStar runs testdata/*.star. A file is chunks, divided by lines "---",
// each of which runs in a session of its own on the simulated fabric that the
// file's first line names ("# fabric: ring:n=2"). A comment ### "regexp" says
// that the chunk fails on that line with a message that matches.
func TestStar(t *testing.T) {
	files, err := filepath.Glob("testdata/*.star")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata/*.star", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { runStar(t, path) })
	}
}

var expectation = regexp.MustCompile(`### ("(?:[^"\\]|\\.)*"|` + "`[^`]*`)")

func runStar(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	spec, ok := strings.CutPrefix(first, "# fabric: ")
	if !ok {
		t.Fatalf("%s: the first line must be # fabric: SPEC", path)
	}
	line := 0
	for chunk := range strings.SplitSeq(string(data), "\n---\n") {
		src := strings.Repeat("\n", line) + chunk
		line += strings.Count(chunk, "\n") + 2
		onSim(t, spec, nil, func(t *testing.T, f *fixture) { runChunk(t, f, path, src) })
	}
}

func runChunk(t *testing.T, f *fixture, path, src string) {
	var wantLine int
	var want *regexp.Regexp
	for i, l := range strings.Split(src, "\n") {
		if m := expectation.FindStringSubmatch(l); m != nil {
			if want != nil {
				t.Fatalf("%s:%d: the chunk ends where line %d fails: put this one after a line ---", path, i+1, wantLine)
			}
			pattern, err := strconv.Unquote(m[1])
			if err != nil {
				t.Fatalf("%s:%d: %v", path, i+1, err)
			}
			wantLine, want = i+1, regexp.MustCompile(pattern)
		}
	}
	env := maps.Clone(f.Interpreter.Globals)
	env["assert"] = assertModule
	env["written"] = written(f)
	thread := f.newThread(context.Background(), path)
	file, prog, err := starlark.SourceProgramOptions(&lang.Dialect, path, src, env.Has)
	if err == nil {
		f.WarnComparisons(file, env)
		_, err = prog.Init(thread, env)
	}
	switch {
	case err == nil && want != nil:
		t.Errorf("%s:%d: no error, want one that matches %q", path, wantLine, want)
	case err != nil && want == nil:
		t.Errorf("%s\n%s", path, f.Explain(err))
		var ee *starlark.EvalError
		if errors.As(err, &ee) {
			t.Log(ee.Backtrace())
		}
	case err != nil:
		if got := errorLine(err, path); got != wantLine || !want.MatchString(err.Error()) {
			t.Errorf("%s:%d: %v\nwant an error on line %d that matches %q", path, got, err, wantLine, want)
		}
	}
}

// errorLine is the innermost line of the file in an error.
func errorLine(err error, path string) int {
	var se syntax.Error
	var re resolve.ErrorList
	var ee *starlark.EvalError
	switch {
	case errors.As(err, &se):
		return int(se.Pos.Line)
	case errors.As(err, &re):
		return int(re[0].Pos.Line)
	case errors.As(err, &ee):
		for i := len(ee.CallStack) - 1; i >= 0; i-- {
			if fr := ee.CallStack[i]; fr.Pos.Filename() == path {
				return int(fr.Pos.Line)
			}
		}
	}
	return 0
}

// written returns what went to the two streams so far.
func written(f *fixture) *starlark.Builtin {
	return starlark.NewBuiltin("written", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return starlark.Tuple{starlark.String(f.stdout.String()), starlark.String(f.stderr.String())}, nil
	})
}

var assertModule = &starlarkstruct.Module{Name: "assert", Members: starlark.StringDict{
	"eq": starlark.NewBuiltin("assert.eq", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if ok, err := starlark.Equal(args[0], args[1]); err != nil || !ok {
			return nil, fmt.Errorf("%v != %v", args[0], args[1])
		}
		return starlark.None, nil
	}),
	"true": starlark.NewBuiltin("assert.true", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if !args[0].Truth() {
			return nil, fmt.Errorf("%v is not true", args[0])
		}
		return starlark.None, nil
	}),
	// fails(fn, pattern): fn() fails with a message that matches.
	"fails": starlark.NewBuiltin("assert.fails", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		_, err := starlark.Call(t, args[0], nil, nil)
		pattern, _ := starlark.AsString(args[1])
		if err == nil {
			return nil, fmt.Errorf("no error, want one that matches %q", pattern)
		}
		if !regexp.MustCompile(pattern).MatchString(err.Error()) {
			return nil, fmt.Errorf("error %q, want one that matches %q", err, pattern)
		}
		return starlark.None, nil
	}),
}}
