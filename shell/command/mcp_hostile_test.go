package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/fabric/hermetic"
	"fabsh/shell/mcp"
)

// hostileValues are arguments that each parameter of each tool gets.
var hostileValues = []any{
	"", "/etc/passwd", "../secret", "link.star", "//../../etc/passwd", "@std//../../etc/passwd", "file:///etc/passwd", "/proc/self/environ", "-", "--out=x", "--write", "$(id)", "\x00", "\x1b]0;x\x07", "\u202e", "{{7*7}}",
	strings.Repeat("A", 100_000), strings.Repeat("*", 2000), strings.Repeat("[", 2000), -1, 0, 1e308, 1 << 53, true, nil, []any{}, []any{[]any{[]any{}}}, []any{"/etc/passwd", "leaf-1"}, map[string]any{}, map[string]any{"out": "x", "--write": true, "/etc/passwd": "/etc/passwd"},
}

// validArguments are those that a tool requires.
var validArguments = map[string]arguments{
	"find": {"names": []any{"leaf-1"}}, "trace": {"from": "node-0001 HCA-1", "to": "node-0002 HCA-1"}, "impact": {"targets": []any{"spine-1"}}, "report": {"name": "iblinkinfo"}, "run": {"script": "1"}, "more": {"at": "values[0]"},
	"topology": {"kind": "slurm"}, "cabling": {"plan": []any{"plan.csv"}}, "accept": {"profile": "site"}, "evidence": {"target": "leaf-1"}, "history": {"question": "overview"},
}

// TestAgentHostile: whatever the arguments of a tool are, nothing changes, no file of the host is read,
// and an answer stays small. FABSH_SOAK tries all values for each parameter.
func TestAgentHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("some thousand calls")
	}
	every := 10
	if os.Getenv("FABSH_SOAK") != "" {
		every = 1
	}
	t.Run("stdio", func(t *testing.T) { testHostile(t, every, startAgent) })
	t.Run("http", func(t *testing.T) { testHostile(t, every, startHTTPAgent) })
}

// testHostile tries one of so many values for each parameter, in turn.
func testHostile(t *testing.T, every int, start func(*testing.T, func(*mcp.ServerOptions), *sdk.ClientOptions, ...string) *agent) {
	home := t.TempDir()
	for _, kv := range hermetic.Environ(home) {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	dir, outside := filepath.Join(home, "scripts"), filepath.Join(home, "secret")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(outside, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, dir+"/link.star"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	a := start(t, nil, nil, "-F", "sim:fattree:k=4,levels=2", "-I", dir, "--deadline", "10s")
	a.run("discover()")
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
	list, err := a.client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	calls, statuses := 0, map[string]int{}
	try := func(tool string, args arguments) {
		calls++
		got, err := a.try(tool, args)
		if err != nil {
			statuses["refused by the protocol"]++
			return
		}
		text := got.Content[0].(*sdk.TextContent).Text
		var r mcp.Result
		json.Unmarshal([]byte(text), &r)
		if statuses[fmt.Sprint(r.Status)]++; got.IsError {
			statuses["error"]++
		}
		shown, _ := json.Marshal(args)
		if strings.Contains(text, "root:x:0") || strings.Contains(text, "the secret") || strings.Contains(text, "HOME="+home) {
			t.Errorf("%s %.200s: a file of the host was read: %.500s", tool, shown, text)
		}
		if len(text) > 16<<10 {
			t.Errorf("%s %.200s: answer of %d bytes", tool, shown, len(text))
		}
	}
	for _, tool := range list.Tools {
		schema, _ := json.Marshal(tool.InputSchema)
		var of struct {
			Properties map[string]struct{ Type string }
		}
		if err := json.Unmarshal(schema, &of); err != nil {
			t.Fatal(err)
		}
		names := append(slices.Sorted(maps.Keys(of.Properties)), "write")
		for _, name := range names {
			for i, v := range hostileValues {
				if (i+len(name))%every > 0 {
					continue
				}
				args := maps.Clone(validArguments[tool.Name])
				if args == nil {
					args = arguments{}
				}
				if text, ok := v.(string); ok && of.Properties[name].Type == "array" {
					v = []any{text}
				} else if ok && of.Properties[name].Type == "object" {
					v = map[string]any{"over": text, text: text}
				}
				args[name] = v
				if name != "max_age" {
					args["max_age"] = 3600 // without a sweep for each call
				}
				if _, ok := of.Properties["max_age"]; !ok && name != "max_age" {
					delete(args, "max_age")
				}
				try(tool.Name, args)
			}
		}
		if now := a.image(); now != before {
			t.Fatalf("%s: the subnet has changed", tool.Name)
		}
		if now := files(); now != were {
			t.Fatalf("%s: files have changed:\n%s\n%s", tool.Name, were, now)
		}
	}
	t.Logf("%d calls of %d tools: %v", calls, len(list.Tools), statuses)
	if r := a.run("1 + 1"); shownBy(r) != "2" {
		t.Errorf("the next call: %+v", r)
	}
}

// TestAgentSessions: of two sessions at a time, each gets its own answers, and no names of the scripts of
// the other.
func TestAgentSessions(t *testing.T) {
	var log bytes.Buffer
	a := startHTTPAgent(t, func(o *mcp.ServerOptions) { o.Log, o.Waiting = slog.New(slog.NewJSONHandler(&log, nil)), 100 }, nil, "-F", "sim:fattree:k=4,levels=2")
	a.run("discover()")
	var running sync.WaitGroup
	for n, client := range []*sdk.ClientSession{a.client, a.connect()} {
		running.Go(func() {
			own, other := fmt.Sprintf("secret-%d-", n), fmt.Sprintf("secret-%d-", 1-n)
			call := func(tool string, args arguments) string {
				got, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
				if err != nil {
					t.Error(err)
					return ""
				}
				text := got.Content[0].(*sdk.TextContent).Text
				if strings.Contains(text, other) {
					t.Errorf("session %d: %s %v: the answer of another session: %.300s", n, tool, args, text)
				}
				return text
			}
			for i := range 40 {
				mark := fmt.Sprint(own, i, ".")
				if text := call("run", arguments{"script": fmt.Sprintf("kept = %q\n[kept + \"x\" * 400 for i in range(50)]", mark)}); !strings.Contains(text, mark) {
					t.Errorf("session %d, call %d: %.300s", n, i, text)
				}
				if text := call("more", arguments{"at": "values[0]", "from": 30}); !strings.Contains(text, mark) {
					t.Errorf("session %d, more of call %d: %.300s", n, i, text)
				}
				if text := call("run", arguments{"script": "kept"}); !strings.Contains(text, "undefined: kept") {
					t.Errorf("session %d: a name of an earlier call: %.300s", n, text)
				}
				call("help", arguments{"topic": "kept"})
			}
		})
	}
	running.Wait()
	var lines int
	clients := map[string]bool{}
	for line := range strings.Lines(log.String()) {
		var x struct {
			Msg, Who, Tool, Arguments, Status string
			Seconds                           *float64
			Datagrams                         *int
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil || x.Msg != "call" || x.Who == "" || x.Tool == "" || x.Status == "" || x.Seconds == nil || x.Datagrams == nil {
			t.Fatalf("%v: %s", err, line)
		}
		if lines++; lines == 2 && (x.Arguments != `{"script":"discover()"}` || *x.Datagrams == 0) { // the first is peek
			t.Errorf("log of a sweep: %s", line)
		}
		clients[x.Who] = true
	}
	if lines < 2*80+2 || len(clients) < 2 {
		t.Errorf("log of %d calls of %v", lines, clients)
	}
}
