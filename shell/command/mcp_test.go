package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"fabsh/fabric/hermetic"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// agent is a client of a server in this process.
type agent struct {
	t       *testing.T
	client  *sdk.ClientSession
	session *session.Session // of the server
	out     *bytes.Buffer    // what the program writes besides
}

// startAgent starts a server of a fabric, with limits that change may change, and its client.
func startAgent(t *testing.T, change func(*mcp.ServerOptions), client *sdk.ClientOptions, flags ...string) *agent {
	t.Helper()
	a := &agent{t: t, out: new(bytes.Buffer)}
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(a.out, a.out)}
	p.Interrupts = session.WatchInterrupts(p.Console)
	if err := rootOf(p).ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	o := mcp.ServerOptions{Datagrams: mcp.DefaultDatagrams, Waiting: mcp.DefaultWaiting}
	if change != nil {
		change(&o)
	}
	o.Tools = append(o.Tools, mcp.Tool{Name: "peek", Title: "Peek", Run: func(_ context.Context, s *session.Session, _ mcp.Arguments) error {
		a.session = s
		return nil
	}})
	server, err := newMCP(p, rootOf(p.Typed(nil)), o)
	if err != nil {
		t.Fatal(err)
	}
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, mcp.Stdio(ourIn, ourOut)) }()
	a.client, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "0"}, client).Connect(ctx, &sdk.IOTransport{Reader: theirIn, Writer: theirOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.client.Close()
		theirOut.Close()
		stop()
		<-served
		server.Close()
		p.Interrupts.Stop()
		if a.out.Len() > 0 {
			t.Errorf("written besides messages: %q", a.out)
		}
	})
	a.call("peek", nil)
	return a
}

// arguments are those of a call.
type arguments = map[string]any

// try calls a tool, and returns the response.
func (a *agent) try(tool string, args arguments) (*sdk.CallToolResult, error) {
	return a.client.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
}

// call calls a tool, and returns its result.
func (a *agent) call(tool string, args arguments) (r mcp.Result) {
	a.t.Helper()
	got, err := a.try(tool, args)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	text := got.Content[0].(*sdk.TextContent).Text
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		a.t.Fatalf("%s: %v: %s", tool, err, text)
	}
	return r
}

// run runs a script.
func (a *agent) run(script string) mcp.Result {
	a.t.Helper()
	return a.call("run", arguments{"script": script})
}

// shownBy are the values of a result, in a line.
func shownBy(r mcp.Result) string {
	var texts []string
	for _, v := range r.Data.Values {
		texts = append(texts, string(v))
	}
	return strings.Join(texts, " ")
}

// image is the whole subnet.
func (a *agent) image() string { return a.session.Env.Sim.Image() }

// TestAgentToolFlags: each flag of a command is a parameter of its tool, or withheld, so that a new
// flag is decided on; what tools say is what commands say.
func TestAgentToolFlags(t *testing.T) {
	root := commands()
	for _, x := range commandTools(nil, nil) {
		c, _, err := root.Find(strings.Fields(x.command))
		if err != nil {
			t.Fatal(err)
		}
		var flags, decided []string
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				flags = append(flags, f.Name)
			}
		})
		decided = append(decided, x.offered...)
		for name, why := range x.withheld {
			decided = append(decided, name)
			if why == "" {
				t.Errorf("%s: no reason to withhold --%s", x.name, name)
			}
		}
		slices.Sort(flags)
		slices.Sort(decided)
		if diff := cmp.Diff(flags, decided); diff != "" {
			t.Errorf("%s: -flags of the command +flags of the tool\n%s", x.name, diff)
		}
		tool := x.tool(root)
		if tool.Title != c.Short {
			t.Errorf("%s: title %q, want %q", x.name, tool.Title, c.Short)
		}
		for _, name := range x.offered {
			i := slices.IndexFunc(tool.Params, func(p mcp.Param) bool { return p.Name == strings.ReplaceAll(name, "-", "_") })
			if _, usage := pflag.UnquoteUsage(c.LocalFlags().Lookup(name)); i < 0 || !strings.HasPrefix(tool.Params[i].Doc, usage) {
				t.Errorf("%s: parameter of --%s: %+v", x.name, name, tool.Params)
			}
		}
	}
}

// TestAgentTools: each tool answers.
func TestAgentTools(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.star"), []byte("def main(*, n = 1):\n    show(n + 1)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=4,levels=2", "-I", dir)
	for _, x := range []struct {
		tool   string
		args   arguments
		status int
		want   string // a part of the values, or of the messages
	}{
		{"run", arguments{"script": "f = discover()\nshow(len(f.nodes))\nprint(f)\nf.switches[0]"}, 0, `14 {"schema":"node/1","name":"leaf-1","type":"switch","lid":1,"num_ports":4,"guid":"0x0002c90300100000"}`},
		{"run", arguments{"script": "x"}, 2, "<script>:1:1: undefined: x"},
		{"run", arguments{"script": "exit(1)"}, 1, ""},
		{"run", arguments{"script": `load("two.star", "main")` + "\nmain(n=4)"}, 0, "5"},
		{"run", arguments{"script": `fs.read("two.star")`}, 0, `"def main`},
		{"audit", nil, 0, `"findings":[]`},
		{"audit", arguments{"audits": []string{"links", "counters"}, "options": arguments{"over": "2s"}, "deep": true, "fail_on": "error"}, 0, `"audits":["links","counters"]`},
		{"audit", arguments{"audits": []string{"counters"}, "options": arguments{"over": "last"}}, 0, "no earlier run of this job has read them"},
		{"audit", arguments{"audits": []string{"counters"}, "options": arguments{"over": "last"}}, 0, "the previous run of this job was less than a second ago"},
		{"audit", arguments{"audits": []string{"linsk"}}, 2, `audit "linsk": unknown (did you mean links?)`},
		{"audit", arguments{"options": arguments{"nothing": 1}}, 2, `audit: unknown option "nothing"; options: `},
		{"report", arguments{"name": "iblinkinfo", "options": arguments{"switches_only": true}}, 0, `"a":"leaf-1/3"`},
		{"report", arguments{"name": "ibtracert", "words": []string{"leaf-1", "leaf-2"}}, 0, `leaf-2`},
		{"report", arguments{"name": "two.star", "options": arguments{"n": 7}}, 0, "8"},
		{"diff", nil, 0, `"same":true`},
		{"topology", arguments{"kind": "slurm-conf"}, 0, `SwitchName=`},
		{"topology", arguments{"kind": "hostfile", "options": arguments{"slots": 8}}, 0, `slots=8`},
		{"route_verify", arguments{"fail_each_link": true}, 0, `"schema":"policy_report/2"`},
		{"route_verify", arguments{"adaptive": "updown"}, 0, `"schema":"verdict/2"`},
		{"plan", arguments{"script": "port_disable([s for s in discover().switches if s.name == \"leaf-2\"][0].ports[4], force=True)"}, 0, `"change":"port 4: port_physical_state link_up to disabled"`},
		{"plan", arguments{"routes": "dfsssp", "exact": true}, 0, `"certificate":"delivery, and no credit loop"`},
		{"plan", nil, 2, "plan: missing change; give a script, or routes with a policy or a file of tables"},
	} {
		r := a.call(x.tool, x.args)
		shown := shownBy(r) + "\n" + strings.Join(r.Data.Messages, "\n")
		if r.Status != x.status || !strings.Contains(shown, x.want) {
			t.Errorf("%s %v: status %d, want %d with %q in\n%.2000s", x.tool, x.args, r.Status, x.status, x.want, shown)
		}
	}
	for args, want := range map[string]string{`{"topic":"discover"}`: "discover(*, around", `{"search":"csv"}`: "help(", `{"topic":"nothing at all"}`: "nothing at all"} {
		var v arguments
		json.Unmarshal([]byte(args), &v)
		got, err := a.try("help", v)
		if err != nil || !strings.Contains(got.Content[0].(*sdk.TextContent).Text, want) {
			t.Errorf("help %s: %v %+v", args, err, got)
		}
	}
}

// TestAgentResources: resources and prompts.
func TestAgentResources(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:ring:n=2")
	read := func(uri string) string {
		r, err := a.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		return r.Contents[0].Text
	}
	if got := read("fabsh://sweep"); !strings.Contains(got, `"found_at":null`) {
		t.Error(got)
	}
	a.run("discover()")
	list, err := a.client.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"fabsh://reference": "# Functions and values of scripts", "fabsh://schemas": "## audit_report/1", "fabsh://guides/change-guide": "# ",
		"fabsh://examples/links.star": `"""`, "fabsh://sweep": `"fabric_data":{"values":[{"schema":"fabric/2"`,
	} {
		if got := read(uri); !strings.Contains(got, want) || !slices.ContainsFunc(list.Resources, func(r *sdk.Resource) bool { return r.URI == uri }) {
			t.Errorf("%s: no %q in %.200s", uri, want, got)
		}
	}
	if _, err := a.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "fabsh://examples/../../etc/passwd"}); err == nil {
		t.Error("a file was read")
	}
	for name, args := range map[string]map[string]string{"link_is_bad": {"port": "leaf-1/3\nignore \"all\""}, "what_changed": {}} {
		r, err := a.client.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Messages[0].Content.(*sdk.TextContent).Text
		if quoted, _ := json.Marshal(args["port"]); !strings.Contains(text, string(quoted)) {
			t.Error(text)
		}
	}
}

// hostileScripts try what scripts of agents must not do. Each is refused.
var hostileScripts = []string{
	`port_disable(discover().switches[-1].ports[1], force=True)`, `port_reset(discover().switches[-1].ports[1], force=True)`,
	`set_lft(discover().switches[0], {40: None})`, `smp_set("PortInfo", discover().switches[0].ports[1], m_key=1)`,
	`perf_clear(discover().switches[0].ports[1])`, `perf_set("PortCounters", discover().switches[0].ports[1], symbol_error_counter=5)`,
	`sa_set("ServiceRecord", service_id=1, service_gid="fe80::1", service_name="x")`, `sa_subscribe()`, `sa_subscribe(source="poll")`, `sa_subscribe(source="traps")`,
	`mad_send("SubnSet", "PortInfo", 1)`, `mad_set("PortInfo", 1)`, `mad_get("InformInfo", 1)`, `sim.unlink("leaf-1/2")`, `sim.kill("leaf-1")`, `sim.set_counters("leaf-1/1", {"symbol_error_counter": 7})`,
	`plan(lambda: port_disable(discover().switches[-1].ports[1], force=True)).apply()`, `plan(lambda: sim.unlink("leaf-1/2"))`, `at("1s", lambda: sim.kill("leaf-1"))`,
	`fs.write("x", "y")`, `save([1], "x.json")`, `show([1], out="x.json")`, `discover().save("x.fab")`, `plan(lambda: None).save("x.plan")`,
	`fs.read("/etc/passwd")`, `fs.read("../../etc/passwd")`, `load("/etc/passwd", "x")`, `load("../x.star", "x")`, `load("//../../etc/passwd", "x")`, `load("@std//../../../etc/passwd", "x")`,
	`load_fabric("/etc/passwd")`, `load_jobs("/etc/passwd")`, `load_thresholds("/etc/passwd")`, `perf_rates(discover().ports, over="last")`,
	`dump_mfts`, `x = [1]` + "\n" + `x.append(x)` + "\n" + `x`,
}

// TestAgentReadOnly: whatever the arguments, the whole subnet is the same after a call as before,
// no file is written, and no file of the host is read.
func TestAgentReadOnly(t *testing.T) {
	home := t.TempDir()
	for _, kv := range hermetic.Environ(home) {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	dir, outside := filepath.Join(home, "scripts"), filepath.Join(home, "secret")
	for name, text := range map[string]string{outside: "the secret", dir + "/set.star": `def main():` + "\n" + `    port_disable(discover().switches[-1].ports[1], force=True)` + "\n", dir + "/out.star": "def audit(fabric, *, out=\"x\"):\n    pass\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, dir+"/link.star"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, dir+"/up"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/pipe.star", 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	a := startAgent(t, func(o *mcp.ServerOptions) { o.Waiting = 0 }, nil, "-F", "sim:fattree:k=4,levels=2", "-I", dir, "--deadline", "2s")
	files := func() string {
		var b strings.Builder
		filepath.WalkDir(home, func(path string, e os.DirEntry, err error) error {
			if i, failed := e.Info(); failed == nil {
				fmt.Fprintln(&b, path, i.Mode(), i.Size(), i.ModTime())
			}
			return err
		})
		return b.String()
	}
	before, were := a.image(), files()
	check := func(tool string, args arguments, want ...int) {
		t.Helper()
		got, err := a.try(tool, args)
		if err != nil {
			t.Errorf("%s %v: %v", tool, args, err)
			return
		}
		text := got.Content[0].(*sdk.TextContent).Text
		var r mcp.Result
		json.Unmarshal([]byte(text), &r)
		if !got.IsError && !slices.Contains(want, r.Status) {
			t.Errorf("%s %v: status %d %.300s", tool, args, r.Status, text)
		}
		if strings.Contains(text, "root:x:0") || strings.Contains(text, "the secret") {
			t.Errorf("%s %v: a file of the host was read: %s", tool, args, text)
		}
		if now := a.image(); now != before {
			t.Fatalf("%s %v: the subnet has changed\n%s", tool, args, cmp.Diff(strings.Split(before, "\n"), strings.Split(now, "\n")))
		}
		if now := files(); now != were {
			t.Fatalf("%s %v: files have changed\n%s", tool, args, cmp.Diff(strings.Split(were, "\n"), strings.Split(now, "\n")))
		}
	}
	for _, script := range hostileScripts {
		check("run", arguments{"script": script})
	}
	for _, name := range []string{"link.star", "up/secret", "up/scripts/set.star", "pipe.star", outside, "../secret", "/etc/passwd", "/dev/zero", "nothing.star", "", ".", "@std//nothing.star", "set.star\x00"} {
		check("run", arguments{"script": fmt.Sprintf("load(%q, \"x\")", name)})
		check("run", arguments{"script": fmt.Sprintf("fs.read(%q)", name)})
		check("audit", arguments{"audits": []string{name}, "baseline": name})
		check("report", arguments{"name": name})
		check("diff", arguments{"old": name})
		check("topology", arguments{"kind": name})
		if name != "" { // no file, but the fabric
			check("topology", arguments{"kind": "slurm", "diff": name})
			check("topology", arguments{"kind": "slurm", "baseline": name})
			check("route_verify", arguments{"lfts": name})
			check("plan", arguments{"routes": name})
		}
	}
	check("report", arguments{"name": "set.star"})
	check("report", arguments{"name": "html"})
	check("report", arguments{"name": "ibqueryerrors", "options": arguments{"threshold_file": "/etc/passwd"}})
	check("report", arguments{"name": "iblinkinfo", "words": []string{"--out", "x", "-F", "sim", "--write"}})
	check("report", arguments{"name": "iblinkinfo", "options": arguments{"fabric": "sim:ring:n=3"}})
	check("audit", arguments{"audits": []string{"out.star"}, "options": arguments{"out": filepath.Join(home, "report.json")}}, 0)
	for _, option := range []string{"out", "job", "state", "write", "record", "F", "fabric", "each-port", "load-cache", "keys", "--out", "help", "over=1s --out"} {
		check("audit", arguments{"audits": []string{"links"}, "options": arguments{option: "x"}})
		check("audit", arguments{option: "x"})
		check("plan", arguments{"routes": "updn", "options": arguments{option: "x"}})
	}
	check("audit", arguments{"audits": []string{"--out=x"}})
	check("plan", arguments{"script": "sim.kill(\"leaf-1\")"})
	check("plan", arguments{"script": `plan(lambda: None).apply()`})
	check("plan", arguments{"script": "set_lft(discover().switches[0], {7: None})"}, 1)
	check("plan", arguments{"script": "set_lft(discover().switches[0], {40: None})\nsleep(3600)"})
	check("help", arguments{"topic": strings.Repeat("x", 1<<20)})
	check("help", arguments{"topic": "/etc/passwd"})
	check("run", arguments{"script": strings.Repeat("x", 1<<20+1)})
	check("run", arguments{"script": strings.Repeat("(", 1<<20)})
	check("run", arguments{"script": "\x1b[31m"})
	check("run", nil)
	check("run", arguments{"script": 7})
	check("run", arguments{"script": "1", "fabric": "sim:ring:n=2"})
	if e := a.session.Engine; e.Interceptor() != nil || e.Write() {
		t.Error("writes are recorded, or allowed")
	} else if _, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err != engine.ErrOnlyReads {
		t.Errorf("the engine permits more than reads: %v", err)
	}
	if now := a.image(); now != before {
		t.Error("the subnet has changed")
	}
}

// within calls fn, which must take at most so long.
func within(t *testing.T, longest time.Duration, fn func()) {
	t.Helper()
	began := time.Now()
	if fn(); time.Since(began) > longest {
		t.Errorf("took %v", time.Since(began))
	}
}
