package shell

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// monitoring is the folder of what is shipped for Prometheus and Grafana.
const monitoring = "../examples/monitoring"

// expressions are those in the file of a dashboard, or of rules.
func expressions(t *testing.T, path string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) != ".json" {
		for _, m := range regexp.MustCompile(`(?m)^ *expr: (?:\|\n((?:\s{8,}.*\n)+)|(.*))`).FindAllStringSubmatch(string(b), -1) {
			list = append(list, m[1]+m[2])
		}
		return list
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if e, ok := v["expr"].(string); ok && e != "" {
				list = append(list, e)
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	slices.Sort(list)
	return slices.Compact(list)
}

// shippedExpressions are all in the folder, by file.
func shippedExpressions(t *testing.T) map[string][]string {
	all := map[string][]string{}
	for _, name := range []string{"recording.yml", "alerting.yml", "grafana-fabric.json", "grafana-links.json"} {
		if all[name] = expressions(t, filepath.Join(monitoring, name)); len(all[name]) < 10 {
			t.Fatalf("%s has %d expressions", name, len(all[name]))
		}
	}
	return all
}

// TestMonitoring: the dashboards and rules that are shipped read metrics that the
// exporter has, or that a rule records.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	x := startExporter(t, []string{"-F", "sim:ring:n=3"}, "--every", "1s")
	known := map[string]bool{"up": true, "fabsh_audit_findings_total": true, "fabsh_audit_finding": true}
	for end := time.Now().Add(time.Minute); !known["fabsh_link_ber"] && time.Now().Before(end); {
		for name := range x.metrics(t) {
			known[name] = true
		}
	}
	b, err := os.ReadFile(filepath.Join(monitoring, "recording.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(string(b), -1) {
		known[m[1]] = true
	}
	name := regexp.MustCompile(`\b(?:infiniband|fabsh|process)[_:][a-z0-9_:]+`)
	for file, list := range shippedExpressions(t) {
		for _, e := range list {
			for _, n := range name.FindAllString(e, -1) {
				if !known[n] {
					t.Errorf("%s: nothing is called %s in %s", file, n, e)
				}
			}
		}
	}
}

// promServer is a Prometheus of Debian's that scrapes exporters.
type promServer struct{ url string }

// startPrometheus starts one in dir, which has its configuration.
func startPrometheus(t *testing.T, dir string) *promServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it takes no port 0
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := exec.Command(ibsimtest.Path(t, "prometheus"), "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+address)
	log, err := os.Create(dir + "/prometheus.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	p := &promServer{"http://" + address}
	ibsimtest.Poll(t, "Prometheus to be ready", func() bool {
		r, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return p
}

// sample is an element of an instant vector.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// number is its value.
func (s sample) number() float64 {
	text, _ := s.Value[1].(string)
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// query is what an expression comes to now.
func (p *promServer) query(expr string) (list []sample, err error) {
	r, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error string
		Data  struct{ Result []sample }
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, fmt.Errorf("%w in %s", err, b)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	return answer.Data.Result, nil
}

// variables stands for what Grafana puts in the place of variables.
var variables = strings.NewReplacer("$__rate_interval", "5m", `=~"$instance"`, `=~".+"`, `=~"$switch"`, `=~".+"`, `="$switch"`, `=~"leaf-[01]"`, `="$hca"`, `=~".+"`, `="$guid"`, `=~".+"`)

// jobOfNames has names of theirs mean one exporter of several that are scraped.
func jobOfNames(text, job string) string {
	return regexp.MustCompile(`\binfiniband_(?:switch|hca)_\w+\{?`).ReplaceAllStringFunc(text, func(name string) string {
		if name, ok := strings.CutSuffix(name, "{"); ok {
			return fmt.Sprintf("%s{job=%q,", name, job)
		}
		return fmt.Sprintf("%s{job=%q}", name, job)
	})
}
