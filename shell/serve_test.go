package shell

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// startServe starts fabsh serve at any port, and waits for its first result.
func startServe(t testing.TB, flags []string, words ...string) *exporting {
	t.Helper()
	x := &exporting{log: make(chan string, 1000), client: startClient()}
	x.launch(t, append(append(flags, "serve", "--listen", "127.0.0.1:0"), words...))
	x.wait(t, "ready: ")
	return x
}

// startClient returns a client of one process.
func startClient() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
}

// page returns a page, and its status.
func (x *exporting) page(t testing.TB, path string) (string, int) {
	t.Helper()
	r, err := x.client.Get(x.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r.StatusCode
}

// TestServe: one process has pages, metrics and a history of a simulated fabric; the pages have the
// findings of the audits and are of the history too; SIGTERM ends it. With --acks a user of the password
// file acknowledges a finding, and no one else.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	config := dir + "/web.yml"
	// The password is "right", by htpasswd -nbBC 4.
	if err := os.WriteFile(config, []byte("basic_auth_users:\n  mira: $2a$04$W1FrgFMx1IkGQwFLBfP/reATv3G8dMerMLE7rl7C6NOYWaoBA2GV.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := startServe(t, []string{"--state", dir, "-F", "sim:fattree:k=4,levels=2,remove_links=1,seed=3"}, "--every", "1s", "--web.config.file", config, "--acks")
	for _, path := range []string{"/now", "/map", "/link/leaf-1/1", "/help", "/ack?id=x", "/style.css", "/nothing", "/api/audit_report", "/metrics", "/metrics?shard=1/2", "/-/healthy", "/-/ready"} {
		if body, status := x.page(t, path); status != http.StatusUnauthorized || strings.Contains(body, "leaf-1") {
			t.Errorf("%s without a password: %d %.200s", path, status, body)
		}
	}
	x.url = strings.Replace(x.url, "http://", "http://mira:right@", 1)
	eventually(t, func() bool { _, status := x.page(t, "/now?at=1s"); return status == 200 })
	for path, want := range map[string]string{
		"/now":                  "topo|link|No findings",
		"/map":                  `class="tile`,
		"/link/leaf-1/1":        "<h1><bdi>leaf-1/1 – ",
		"/node/leaf-1":          "<h1><bdi>leaf-1</bdi>",
		"/time":                 "[0-9] readings?<",
		"/changes":              "What changed",
		"/help/serve":           "Watch a fabric",
		"/help/check/link.down": "link.down",
		"/api/audit_report":     `"schema": ?"audit_report/1"`,
		"/metrics":              "infiniband_",
	} {
		if body, status := x.page(t, path); status != 200 || !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("%s: %d, without %s: %.2000s", path, status, want, body)
		}
	}
	for _, path := range []string{"/now", "/metrics", "/api/audit_report"} { // to which another site lets its name lead
		r, err := http.NewRequest("GET", x.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		answer, err := x.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s by another name: %s", path, answer.Status)
		}
	}
	if err := x.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range x.log {
	}
	if err := x.Wait(); err == nil || x.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, exit status %d, want 130", err, x.ProcessState.ExitCode())
	}
}

// TestServePast: a fabric of a file is read once, and served.
func TestServePast(t *testing.T) {
	dir := t.TempDir()
	runFabshIn(t, "-F", "sim:ring:n=4", "snapshot", dir+"/old.fab")
	x := startServe(t, []string{"-F", "file:" + dir + "/old.fab"}, "--audits", "config")
	if body, status := x.page(t, "/now"); status != 200 || !strings.Contains(body, "No history is kept") {
		t.Errorf("%d: %.2000s", status, body)
	}
}

// runFabshIn runs fabsh, which must succeed.
func runFabshIn(t testing.TB, words ...string) {
	t.Helper()
	c := exec.Command("fabsh", append([]string{"-q"}, words...)...)
	c.Env = testEnv(t)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("fabsh %s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// TestServeNames: names of nodes that are markup, lines of metrics or escape sequences stay values of
// labels in the metrics, texts in JSON, and texts on pages.
func TestServeNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	t.Parallel()
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(t, name, "fattree:k=4,levels=2")
	names := map[string]string{"leaf-1": "<script>alert(1)</script>", "leaf-2": "a\"} 1\nevil_metric{x=\"y", "leaf-3": "\x1b[31mred\x07", "leaf-4": "\u202egnp.exe", "spine-1": "x\\\n# HELP evil_metric"}
	code := ""
	for _, old := range slices.Sorted(maps.Keys(names)) {
		code += fmt.Sprintf("sim.rename(%q, %q)\n", old, names[old])
	}
	runFabsh(t, "-F", "ibsim:"+name, "-t", "2s", "-c", code)
	x := startServe(t, []string{"-F", "ibsim:" + name, "-C", "node-0007 HCA-1", "-t", "2s"}, "--no-history")
	m := x.metrics(t) // which a parser reads
	found := false
	for family, list := range m {
		for _, metric := range list.Metric {
			for _, l := range metric.Label {
				found = found || l.GetValue() == names["leaf-1"]
			}
		}
		if strings.Contains(family, "evil") {
			t.Errorf("a name became the metric %s", family)
		}
	}
	if !found {
		t.Error("the name of leaf-1 is not the value of a label")
	}
	body, status := x.page(t, "/api/audit_report")
	if status != http.StatusOK || !json.Valid([]byte(body)) || strings.ContainsAny(body, "\x1b\x07\u202e") {
		t.Errorf("JSON: %d %.500s", status, body)
	}
	for _, path := range []string{"/now", "/map", "/find?q=0x0", "/link/node-0001%20HCA-1/1", "/changes", "/time", "/help"} {
		body, _ := x.page(t, path)
		if strings.Contains(body, "<script>alert") || strings.ContainsAny(body, "\x1b\x07\u202e") {
			t.Errorf("%s: %s", path, body)
		}
	}
}
