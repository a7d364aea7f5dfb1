package command

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/fabric/format"
	"fabsh/shell/mcp"
)

// smallAnswer is the maximum length of an answer by default, in bytes.
const smallAnswer = 6 << 10

// tasks are what operators ask for, and the calls of tools that answer it.
var tasks = []struct {
	question string
	calls    []string // TOOL ARGUMENTS
}{
	{"what is in the fabric?", []string{`run {"script":"discover()"}`}},
	{"where is node-0012, what is it connected to?", []string{`find {"names":["node-0012"]}`}},
	{"is anything wrong?", []string{`audit {}`}},
	{"why is node-0012 slow?", []string{`find {"names":["node-0012"]}`, `audit {"node":"node-0012"}`}},
	{"what are the rates of leaf-3/4?", []string{`run {"script":"perf_rates(\"leaf-3/4\", over=\"2s\")"}`}},
	{"which way do packets take?", []string{`trace {"from":"node-0001 HCA-1","to":"node-0100 HCA-1"}`}},
	{"is it safe to take spine-2 out?", []string{`impact {"targets":["spine-2"]}`}},
	{"what should be done?", []string{`remedy {}`}},
	{"what changed since the begin?", []string{`diff {}`}},
	{"which links are there?", []string{`report {"name":"iblinkinfo"}`, `more {"at":"values[0]","from":20}`}},
	{"is the routing correct?", []string{`route_verify {}`}},
	{"disable a port, safely", []string{`plan {"script":"port_disable(discover().switches[-1].ports[1], force=True)"}`}},
}

// TestAgentTasks: ten tasks take one or two calls each, of at most 6 KB, and the list of tools 16 KB.
func TestAgentTasks(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=16,levels=2")
	list, err := a.client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(list)
	if t.Logf("tools/list: %d bytes", len(text)); len(text) > 16<<10 {
		t.Errorf("tools/list: %d bytes", len(text))
	}
	for _, task := range tasks {
		sum := 0
		for _, c := range task.calls {
			tool, args, _ := strings.Cut(c, " ")
			var v arguments
			if err := json.Unmarshal([]byte(args), &v); err != nil {
				t.Fatal(err)
			}
			got, err := a.try(tool, v)
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			text, _ := json.Marshal(got)
			shown := len(got.Content[0].(*sdk.TextContent).Text)
			sum += len(text)
			if shown > smallAnswer || got.IsError || got.StructuredContent != nil {
				t.Errorf("%s: %s: %d bytes, %.500s", task.question, c, shown, text)
			}
		}
		t.Logf("%-45s %d calls, %5d bytes", task.question, len(task.calls), sum)
	}
}

// TestAgentRemembers: the second call uses the sweep of the first, unless it wants a new one, and a
// port can be named in the first.
func TestAgentRemembers(t *testing.T) {
	a := startAgent(t, func(o *mcp.ServerOptions) { o.SweepInterval = time.Hour }, nil, "-F", "sim:fattree:k=16,levels=2")
	if r := a.run(`type(perf_rates("leaf-3/4", over="2s"))`); shownBy(r) != `"port_rates"` {
		t.Errorf("%+v", r)
	}
	began := time.Now()
	var calls sync.WaitGroup
	for range 12 {
		calls.Go(func() {
			got, err := a.try("run", arguments{"script": "len(discover().nodes)"})
			if err != nil {
				t.Error(err)
			} else if text := got.Content[0].(*sdk.TextContent).Text; !strings.Contains(text, `"age_s":`) || !strings.Contains(text, `"values":[152]`) {
				t.Error(text)
			}
		})
	}
	calls.Wait()
	t.Logf("12 calls: %v", time.Since(began))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := a.client.CallTool(ctx, &sdk.CallToolParams{Name: "run", Arguments: arguments{"script": "discover()", "max_age": 0}}); err == nil {
		t.Error("max_age 0 does not sweep: the next sweep is in an hour")
	}
}

// TestAgentTables: the second call uses the tables of the first, unless it wants a new sweep; within a
// call, tables are read again.
func TestAgentTables(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=8,levels=2")
	sent := func(tool string, args arguments) int {
		t.Helper()
		before := a.session.Engine.Stats().Sent
		if r := a.call(tool, args); r.Status != 0 || r.Age == nil {
			t.Errorf("%s: %+v", tool, r)
		}
		return int(a.session.Engine.Stats().Sent - before)
	}
	const read = "t = get_routes(lanes=True)\nt.set_sl([(None, None)], 3)\nt.lanes"
	first := sent("run", arguments{"script": read})
	again := sent("run", arguments{"script": read})
	fresh := sent("run", arguments{"script": read, "max_age": 0})
	twice := sent("run", arguments{"script": read + "\nget_routes()"})
	verified := sent("route_verify", nil)
	verifiedAgain := sent("route_verify", nil)
	t.Logf("datagrams: %d, then %d; max_age 0: %d; read twice in a call: %d; route_verify: %d, then %d", first, again, fresh, twice, verified, verifiedAgain)
	if again > first/10 || fresh < first*9/10 || twice < 30 || verified < 30 || verifiedAgain > 10 { // some requests are sent again on a machine with much load
		t.Error("tables are not kept, or not read")
	}
	if text := shownBy(a.run("f = discover()\nget_routes(f).trace(f.cas[0].lid, f.cas[1].lid).sl")); text != "0" {
		t.Errorf("service level %s: a script has changed the tables that are kept", text)
	}
}

// TestAgentCounters: the second call uses the counters of the first, unless it wants a new sweep, the port
// is of another sweep or did not answer, or it measures growth.
func TestAgentCounters(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=8,levels=2")
	call := func(tool string, args arguments) (mcp.Result, int) {
		t.Helper()
		before := a.session.Engine.Stats().Sent
		r := a.call(tool, args)
		return r, int(a.session.Engine.Stats().Sent - before)
	}
	sent := func(want bool, tool string, args arguments) int {
		t.Helper()
		r, n := call(tool, args)
		if r.Status > 1 || r.Age == nil || (r.CountersAge != nil) != want {
			t.Errorf("%s %v: counters of earlier calls %v, want %v: %+v", tool, args, r.CountersAge != nil, want, r)
		}
		return n
	}
	report := arguments{"name": "ibqueryerrors"}
	a.run("discover()")
	first := sent(false, "report", report)
	again := sent(true, "report", report)
	fresh := sent(false, "report", arguments{"name": "ibqueryerrors", "max_age": 0})
	const read = `[c.symbol_error_counter for c in perf_get("PortCounters", discover().switches[0].ports)]`
	script := sent(true, "run", arguments{"script": read})
	sent(false, "audit", arguments{"audits": []any{"counters"}, "options": map[string]any{"over": "2s"}, "max_age": 0})
	afterAudit := sent(true, "report", report)
	t.Logf("datagrams of ibqueryerrors: %d, then %d; max_age 0: %d; perf_get of its ports: %d; after an audit: %d", first, again, fresh, script, afterAudit)
	if first < 100 || again > first/10 || fresh < first || script > 10 || afterAudit > first/2 { // some requests are sent again on a machine with much load
		t.Error("counters are not kept, or not read")
	}

	leaf := a.session.Env.Sim.NodeGUIDs("leaf-2")[0]
	const count = "def count():\n    return perf_get(\"PortCounters\", \"leaf-2/1\").symbol_error_counter\ndiscover()\n"
	check := func(script, want string, kept bool) {
		t.Helper()
		r := a.run(count + script)
		if r.Status != 0 || shownBy(r) != want || (r.CountersAge != nil) != kept || len(r.Data.Messages) > 0 {
			t.Errorf("%s: want %s: %+v", script, want, r)
		}
	}
	check("count()", "0", true)
	if err := a.session.Env.Sim.Counters.Add(leaf, 1, "SymbolErrorCounter", 5); err != nil {
		t.Fatal(err)
	}
	check("count()", "0", true)
	for _, script := range []string{ // growth is between two reads of the call; the first attempt has shown nothing
		"show(\"once\")\nb = count()\nshow(\"between\")\ncount() - b", "show(\"once\")\nshow(\"between\")\nb = catch(count)\ncatch(count) - b", "show(\"once\")\nshow(\"between\")\nb, c = parallel(lambda _: count(), [1, 2])\nb - c",
		"show(\"once\")\nshow(\"between\")\nb = count()\nperf_rates(\"leaf-2/1\", over=\"2s\")\nb - count()", "show(\"once\")\nshow(\"between\")\nb = [x.symbol_error_counter for x in perf_get(\"PortCounters\", [\"leaf-2/1\"] * 2)]\nb[0] - b[1]",
	} {
		check(script, `"once" "between" 0`, false)
	}
	check("count()", "5", true)

	// A port that does not answer is read each time, and so is another fabric.
	check("len(discover().nodes) - len(discover().nodes)", "0", false)
	check("count()", "5", false)
	if err := a.session.Env.Sim.Cables.Kill(leaf); err != nil {
		t.Fatal(err)
	}
	check("count()", "5", true)
	for range 2 {
		if r, n := call("run", arguments{"script": count + `perf_get("PortCounters", "leaf-2/2")`}); r.Status != 2 && r.Status != 3 || n == 0 || r.CountersAge != nil {
			t.Errorf("a port that does not answer: %d datagrams, %+v", n, r)
		}
	}
	if r, _ := call("run", arguments{"script": count + "count()", "max_age": 0}); r.Status != 2 || r.CountersAge != nil {
		t.Errorf("a port that is gone: %+v", r)
	}
}

// TestAgentMore: what an answer leaves out can be read, by its own session only.
func TestAgentMore(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=8,levels=2")
	r := a.run(`[{"n": i, "text": "x" * 1000} for i in range(50)]`)
	if len(r.Data.Cut) == 0 || r.Name == "" {
		t.Fatalf("%+v", r)
	}
	for _, x := range []struct{ args, want string }{
		{`{"at":"values[0]","from":48}`, `{"n":48,`},
		{`{"at":"values[0][49].n"}`, `49`},
		{`{"at":"values[0][3].text","result":"` + r.Name + `"}`, `"xxx`},
		{`{"at":"values[0]","rows":50}`, `{"n":0,`},
		{`{"at":"values[0]","from":4000}`, ``},
	} {
		var v arguments
		json.Unmarshal([]byte(x.args), &v)
		if got := a.call("more", v); got.Status != 0 || !strings.HasPrefix(shownBy(got), x.want) {
			t.Errorf("%s: %+v", x.args, got)
		}
	}
	for _, args := range []string{`{"at":"values[1]"}`, `{"at":"value"}`, `{"at":"values[0].x"}`, `{"at":"values[0][-1]"}`, `{"at":"values[0]","result":"r999"}`} {
		var v arguments
		json.Unmarshal([]byte(args), &v)
		if got := a.call("more", v); got.Status != 2 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestAgentState: a server that takes the place of another has its sweep and its count of datagrams.
func TestAgentState(t *testing.T) {
	limit := func(o *mcp.ServerOptions) { o.Datagrams = 2000 }
	a := startAgent(t, limit, nil, "-F", "sim:fattree:k=8,levels=2")
	a.run("discover()")
	frames := make(chan []byte, 1)
	ctx, stop := context.WithCancel(t.Context())
	go a.server.Keep(ctx, frameWriter(frames))
	frame := <-frames
	stop()
	b := startAgent(t, limit, nil, "-F", "sim:fattree:k=8,levels=2")
	if err := b.server.Restore(frame); err != nil {
		t.Fatal(err)
	}
	if r := b.run("len(discover().nodes)"); r.Age == nil || shownBy(r) != shownBy(a.run("len(discover().nodes)")) {
		t.Errorf("%+v", r)
	}
	if text := strings.Join(b.run("while True:\n    discover()").Data.Messages, " "); !strings.Contains(text, "limit of 2000 datagrams per minute exceeded") {
		t.Error(text)
	}
	for _, bad := range []string{"", "x", "{}", "{}\nx", "null\n" + strings.Repeat("\xff", 100)} {
		if err := b.server.Restore([]byte(bad)); err == nil && bad != "{}" {
			t.Logf("%q: accepted without a sweep", bad)
		}
	}
}

// frameWriter receives frames without their length.
type frameWriter chan []byte

func (w frameWriter) Write(p []byte) (int, error) {
	select {
	case w <- append([]byte{}, p[8:]...):
	default:
	}
	return len(p), nil
}

// TestAgentSnapshots: earlier states are listed, and compared by name and by time.
func TestAgentSnapshots(t *testing.T) {
	dir := t.TempDir()
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=4,levels=2", "-I", dir)
	a.run("discover()")
	f, err := os.Create(filepath.Join(dir, "old.snap"))
	if err != nil {
		t.Fatal(err)
	}
	if err := format.WriteSnapshot(f, a.server.First()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	day := time.Now().Add(-24 * time.Hour)
	os.Chtimes(f.Name(), day, day)
	os.WriteFile(filepath.Join(dir, "other.txt"), []byte("x"), 0o600)
	if got := shownBy(a.call("snapshots", nil)); !strings.Contains(got, `"name":"old.snap"`) || strings.Contains(got, "other.txt") {
		t.Error(got)
	}
	for _, by := range []string{"old.snap", "12h"} {
		if r := a.call("snapshots", arguments{"diff": by}); r.Status != 0 || !strings.Contains(shownBy(r), `"same":true`) {
			t.Errorf("%s: %+v", by, r)
		}
	}
	for _, by := range []string{"30d", "new.snap", "../old.snap"} {
		if r := a.call("snapshots", arguments{"diff": by}); r.Status != 2 {
			t.Errorf("%s: %+v", by, r)
		}
	}
}

// TestAgentCompletion: names of the latest sweep, and resources by them.
func TestAgentCompletion(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:fattree:k=4,levels=2")
	complete := func(argument, typed string) string {
		r, err := a.client.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "link_is_bad"}, Argument: sdk.CompleteParamsArgument{Name: argument, Value: typed}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(r.Completion.Values, " ")
	}
	if got := complete("node", "leaf"); got != "" {
		t.Error(got)
	}
	a.run("discover()")
	for _, x := range []struct{ argument, typed, want string }{
		{"node", "leaf", "leaf-1 leaf-2 leaf-3 leaf-4"}, {"port", "leaf-1/", "leaf-1/1 leaf-1/2 leaf-1/3 leaf-1/4"}, {"topic", "perf_ra", "perf_rates"}, {"other", "x", ""},
	} {
		if diff := cmp.Diff(x.want, complete(x.argument, x.typed)); diff != "" {
			t.Errorf("%s %s: -want +got\n%s", x.argument, x.typed, diff)
		}
	}
	for uri, want := range map[string]string{"fabsh://node/leaf-1": `"name":"leaf-1/1"`, "fabsh://help/perf_rates": "perf_rates(", "fabsh://usage": `"tool":"run","status":"0","calls":1`} {
		r, err := a.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("%s: %v %+v", uri, err, r)
		}
	}
	for _, uri := range []string{"fabsh://node/nothing", "fabsh://node/..%2f..%2fetc%2fpasswd", "fabsh://help/", "fabsh://nothing/x"} {
		if _, err := a.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s was read", uri)
		}
	}
}

// TestAgentHTTP: sessions are apart, pages of other sites are refused, and metrics have the calls.
func TestAgentHTTP(t *testing.T) {
	a := startHTTPAgent(t, nil, nil, "-F", "sim:fattree:k=4,levels=2")
	r := a.run(`["x" * 200 for i in range(100)]`)
	other := a.connect()
	got, err := other.CallTool(t.Context(), &sdk.CallToolParams{Name: "more", Arguments: arguments{"at": "values[0]", "result": r.Name}})
	if err != nil || !strings.Contains(got.Content[0].(*sdk.TextContent).Text, "unknown result") {
		t.Errorf("another session: %v %+v", err, got)
	}
	for origin, want := range map[string]int{"https://evil.example": http.StatusForbidden, "null": http.StatusForbidden, "": http.StatusBadRequest} {
		q, _ := http.NewRequestWithContext(t.Context(), "POST", a.url+"/mcp", strings.NewReader("{"))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		if origin != "" {
			q.Header.Set("Origin", origin)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("origin %q: status %d, want %d", origin, answer.StatusCode, want)
		}
	}
	q, _ := http.NewRequestWithContext(t.Context(), "GET", a.url+"/metrics", nil)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := new(strings.Builder)
	if _, err := fmt.Fprint(text, readAll(answer)); err != nil || !strings.Contains(text.String(), `fabsh_mcp_calls_total{tool="run",status="0"} 1`) {
		t.Errorf("%v %s", err, text)
	}
}

// TestListenRefused: an address that other hosts reach needs TLS and passwords.
func TestListenRefused(t *testing.T) {
	web := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(web, []byte("basic_auth_users:\n  a: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		v    mcpServing
		want string
	}{
		{mcpServing{listen: []string{"127.0.0.1:0"}}, ""}, {mcpServing{listen: []string{"[::1]:9317"}}, ""}, {mcpServing{listen: []string{"localhost:9317"}}, ""},
		{mcpServing{listen: []string{":9317"}}, "other hosts reach this address"}, {mcpServing{listen: []string{"192.0.2.1:9317"}}, "other hosts reach this address"},
		{mcpServing{listen: []string{":9317"}, config: web}, "other hosts reach this address"}, // no TLS
		{mcpServing{listen: []string{"nothing"}}, "give an address"}, {mcpServing{config: web}, "needs --listen"},
	} {
		if err := x.v.check(); (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x.v, err)
		}
	}
}

// phrasings are questions, and the tool for each.
var phrasings = []struct{ question, tool string }{
	{"where is node-0012", "find"}, {"what is leaf-3/7 connected to", "find"}, {"which switch is this host on", "find"}, {"which node has this GUID", "find"}, {"show the neighbours of spine-2", "find"},
	{"is anything wrong with the fabric", "audit"}, {"why is node-0012 slow", "audit"}, {"are there bad links or errors", "audit"}, {"is the fabric healthy", "audit"}, {"audit the counters over ten seconds", "audit"},
	{"is it safe to take spine-2 out", "impact"}, {"which hosts lose paths if I reboot leaf-3", "impact"}, {"trace the path from node-0001 to node-0100", "trace"}, {"which way do packets take", "trace"},
	{"what should be done about the findings", "remedy"}, {"isolate the bad links", "remedy"}, {"restore repaired links", "remedy"},
	{"what changed since yesterday", "snapshots"}, {"list the saved snapshots", "snapshots"}, {"compare two files of the fabric", "diff"},
	{"what happened to this link over the last months", "history"}, {"which links flap", "history"}, {"the life of a cable by serial number", "history"},
	{"is the routing free of credit loops", "route_verify"}, {"verify the forwarding tables", "route_verify"},
	{"prove that disabling this port is safe", "plan"}, {"plan a change of the tables", "plan"},
	{"run iblinkinfo", "report"}, {"show errors as ibqueryerrors does", "report"},
	{"write topology.conf for slurm", "topology"}, {"is the cabling as planned", "cabling"}, {"accept the new fabric by a profile", "accept"},
	{"explain the function perf_rates", "help"}, {"run a script in starlark", "run"}, {"show the rest of the answer", "more"},
}

// wordsOf returns the words of a text, without their endings.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' }) {
		for _, end := range []string{"ing", "ed", "s"} {
			if len(w) > len(end)+3 {
				w = strings.TrimSuffix(w, end)
			}
		}
		words[w] = true
	}
	return words
}

// TestAgentPhrasings: the description of the right tool has the words of a question, rather than
// those of others.
func TestAgentPhrasings(t *testing.T) {
	a := startAgent(t, nil, nil, "-F", "sim:ring:n=2")
	list, err := a.client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	texts, count := map[string]map[string]float64{}, map[string]float64{}
	for _, tool := range list.Tools {
		if tool.Name == "peek" {
			continue
		}
		schema, _ := json.Marshal(tool.InputSchema)
		texts[tool.Name] = map[string]float64{}
		for w := range wordsOf(string(schema)) {
			texts[tool.Name][w] = 1
		}
		for w := range wordsOf(tool.Name + " " + tool.Description) {
			texts[tool.Name][w] = 3
		}
		for w, weight := range texts[tool.Name] {
			count[w] += weight
		}
	}
	for _, p := range phrasings {
		best, most := "", 0.0
		for _, tool := range list.Tools {
			sum := 0.0
			for w := range wordsOf(p.question) {
				if weight := texts[tool.Name][w]; weight > 0 {
					sum += weight * math.Log(3*float64(len(texts)+1)/count[w])
				}
			}
			if sum > most {
				best, most = tool.Name, sum
			}
		}
		if best != p.tool {
			t.Errorf("%q: %s, want %s", p.question, best, p.tool)
		}
	}
}
