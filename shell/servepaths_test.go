package shell

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestServeSends: no request of a page, of the API or of an agent sends a datagram: with and without them,
// fabsh serve sends the same number.
func TestServeSends(t *testing.T) {
	sent := func(asks bool) (text string) {
		x := startServe(t, []string{"-v", "--state", t.TempDir(), "-F", "sim:fattree:k=4,levels=2"}, "--every", "1h")
		if asks {
			for _, path := range []string{
				"/now", "/map?order=racks", "/paths?from=node-0001&to=node-0007&without=leaf-1", "/link/leaf-1/1", "/node/leaf-1", "/time", "/changes", "/evidence/leaf-1/1", "/evidence/leaf-1",
				"/api/path?from=node-0001&to=node-0007", "/api/impact?without=spine-1", "/api/links", "/api/findings", "/metrics",
			} {
				if body, status := x.page(t, path); status != 200 {
					t.Errorf("%s: %d: %.500s", path, status, body)
				}
			}
			r, err := http.NewRequest("POST", x.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trace","arguments":{"from":"node-0001","to":"node-0007"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			answer, err := x.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
		if err := x.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		for line := range x.log {
			if rest, ok := strings.CutPrefix(line, "MADs: "); ok {
				text, _, _ = strings.Cut(rest, ",")
			}
		}
		x.Wait()
		return text
	}
	with, without := sent(true), sent(false)
	if with == "" || with != without {
		t.Errorf("with requests: %q, without: %q", with, without)
	}
}

// TestServeChoices: where adaptive routing is on, Paths has the ports that switches choose from; --routes keeps
// the tables, so that an earlier time has paths.
func TestServeChoices(t *testing.T) {
	x := startServe(t, []string{"--state", t.TempDir(), "-F", "sim:fattree:k=4,levels=2,ar=updn,ar_with=free"}, "--every", "1s", "--routes")
	const path = "/paths?from=node-0001&to=node-0007"
	if body, status := x.page(t, path); status != 200 || !strings.Contains(body, "Choices at") || !strings.Contains(body, "chosen from ports 3-4 of leaf-1") {
		t.Errorf("%d: %.3000s", status, body)
	}
	eventually(t, func() bool {
		body, status := x.page(t, path+"&at=1s")
		return status == 200 && strings.Contains(body, "over 4 links")
	})
}

// TestServeFile: paths of a file, with its lanes.
func TestServeFile(t *testing.T) {
	dir := t.TempDir()
	runFabshIn(t, "-F", "sim:fattree:k=4,levels=2", "snapshot", "--all", dir+"/all.fab")
	x := startServe(t, []string{"--state", dir, "-F", "file:" + dir + "/all.fab"})
	if body, status := x.page(t, "/paths?from=node-0001&to=node-0007"); status != 200 || !strings.Contains(body, "over 4 links") || !strings.Contains(body, `data-k="Lane">VL 0`) {
		t.Errorf("%d: %.3000s", status, body)
	}
}

// TestServeMCP: agents at /mcp read the last reading: tools without those that write, run scripts or read
// files; requests of pages of other sites are refused, as are other methods.
func TestServeMCP(t *testing.T) {
	x := startServe(t, []string{"--state", t.TempDir(), "-F", "sim:fattree:k=4,levels=2"}, "--every", "1h")
	post := func(method, params string, header ...string) (result struct {
		Result struct {
			Tools   []struct{ Name string }
			Content []struct{ Text string }
		}
		Error struct{ Message string }
	}, status int) {
		t.Helper()
		r, err := http.NewRequest("POST", x.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := x.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode == 200 {
			if err := json.Unmarshal(data, &result); err != nil {
				t.Fatalf("%s: %v: %s", method, err, data)
			}
		}
		return result, answer.StatusCode
	}
	list, _ := post("tools/list", "{}")
	var names []string
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	if slices.Sort(names); strings.Join(names, " ") != "evidence find findings help impact more trace" {
		t.Errorf("tools: %v", names)
	}
	for params, want := range map[string]string{
		`{"name":"findings","arguments":{}}`:                                                                    `"schema":"audit_report/1"`,
		`{"name":"find","arguments":{"names":["leaf-1"]}}`:                                                      `leaf-1/1`,
		`{"name":"trace","arguments":{"from":"node-0001","to":"node-0007"}}`:                                    `"hop":4`,
		`{"name":"impact","arguments":{"targets":["leaf-1"]}}`:                                                  `"hosts_lost":["node-0001","node-0002"]`,
		`{"name":"evidence","arguments":{"target":"leaf-1/1"}}`:                                                 `"schema":"evidence/1"`,
		`{"name":"impact","arguments":{"targets":["leaf-1"],"options":{"jobs":"/etc/passwd"}}}`:                 `/etc/passwd`,
		`{"name":"trace","arguments":{"from":"node-0001","to":"node-0007","options":{"over":"/etc/hostname"}}}`: `the file has no counters`,
		`{"name":"trace","arguments":{"from":"node-0001","to":"nothing"}}`:                                      `nothing`,
		`{"name":"evidence","arguments":{"target":"leaf-1/1","out":"x.html"}}`:                                  `out`,
	} {
		x, status := post("tools/call", params)
		text := x.Error.Message
		for _, c := range x.Result.Content {
			text += c.Text
		}
		if status != 200 || !strings.Contains(text, want) || strings.Contains(text, "root:") {
			t.Errorf("%s: %d: %.600s", params, status, text)
		}
	}
	if x, _ := post("tools/call", `{"name":"run","arguments":{"script":"1"}}`); !strings.Contains(x.Error.Message, "unknown tool") {
		t.Errorf("%+v", x)
	}
	if _, status := post("tools/list", "{}", "Origin", "http://other.example"); status != http.StatusForbidden {
		t.Errorf("of another site: %d", status)
	}
	if _, status := post("tools/list", `{"x":"`+strings.Repeat("x", 70<<10)+`"}`); status == 200 {
		t.Error("70 KB are taken")
	}
	if _, status := x.page(t, "/mcp"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
}
