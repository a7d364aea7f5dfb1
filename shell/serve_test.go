package shell

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// startServe starts fabsh serve at any port, and waits for its first result.
func startServe(t testing.TB, flags []string, words ...string) *exporting {
	t.Helper()
	x := &exporting{log: make(chan string, 1000), client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	x.launch(t, append(append(flags, "serve", "--listen", "127.0.0.1:0"), words...))
	x.wait(t, "ready: ")
	return x
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
	if _, status := x.page(t, "/now"); status != http.StatusUnauthorized {
		t.Errorf("without a password: %d", status)
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
