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
	for end := time.Now().Add(20 * time.Second); !known["fabsh_link_ber"] && time.Now().Before(end); {
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
var variables = strings.NewReplacer("$__rate_interval", "5m", `=~"$instance"`, `=~".+"`, `=~"$switch"`, `=~".+"`, `="$switch"`, `="leaf-0"`, `="$hca"`, `=~".+"`, `="$guid"`, `=~".+"`)

// jobOfNames has names of theirs mean one exporter of several that are scraped.
func jobOfNames(text, job string) string {
	return regexp.MustCompile(`\binfiniband_(?:switch|hca)_\w+\{?`).ReplaceAllStringFunc(text, func(name string) string {
		if name, ok := strings.CutSuffix(name, "{"); ok {
			return fmt.Sprintf("%s{job=%q,", name, job)
		}
		return fmt.Sprintf("%s{job=%q}", name, job)
	})
}

// notOurs are metrics of other programs, what ibswinfo reads from registers, and what
// ibsim's ports do not have.
var notOurs = regexp.MustCompile(`\b(node|promhttp|go_build)_|_temperature_|_fan_|_power_supply_|_hardware_info|_uptime_seconds|exporter_build_info|_collect_duration_seconds|_qp1_dropped|collect_(errors|timeouts)_total\{`)

// notAlways are comparisons, which a fabric in order has no element of.
var notAlways = regexp.MustCompile(`[<>] *\S+( *\)*)*$|[!=]= *\d`)

// TestPrometheus: a Prometheus that scrapes the exporter takes the metrics, the shipped
// rules and the panels' queries; so it does the rules and dashboards of the exporters
// whose names we use, where FABSH_INCUMBENTS is a folder with clones of
// treydock/infiniband_exporter and SckyzO/infiniband_exporter, "treydock" and "SckyzO";
// and what it has then is what perfquery says.
func TestPrometheus(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak unpacks Prometheus")
	}
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.Options{SM: "host-3-3", SMArgs: []string{"-s", "0"}, RMPP: true})
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [\"*.rules.yml\"]\nscrape_configs:\n"
	exporters := map[string]*exporting{}
	for _, dialect := range []string{"", "treydock", "guilbaults"} {
		x := startExporter(t, []string{"-F", "ibsim:" + f.Name, "-o", strings.TrimSuffix("prom="+dialect, "=")}, "--every", "1s")
		exporters[dialect] = x
		job := "infiniband"
		if dialect != "" {
			job = dialect
		}
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, strings.TrimPrefix(x.url, "http://"))
		text, err := x.scrape()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(ibsimtest.Path(t, "promtool"), "check", "metrics")
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			// 3: it would name them otherwise, as the exporters whose names they are do.
			t.Logf("promtool check metrics, %q: %v\n%s", dialect, err, out)
			if c.ProcessState.ExitCode() != 3 {
				t.Fail()
			}
		}
	}
	rules := map[string]string{"recording": monitoring + "/recording.yml", "alerting": monitoring + "/alerting.yml"}
	all := shippedExpressions(t)
	clones := os.Getenv("FABSH_INCUMBENTS")
	if clones != "" {
		rules["treydock"] = clones + "/treydock/examples/infiniband.rules"
		rules["sckyzo"] = clones + "/SckyzO/examples/prometheus/rules/infiniband_recording.yml"
		rules["sckyzo-alerts"] = clones + "/SckyzO/examples/prometheus/rules/infiniband_alerts.yml"
		boards, _ := filepath.Glob(clones + "/*/examples/grafana*.json")
		more, _ := filepath.Glob(clones + "/*/examples/grafana/*.json")
		for _, path := range append(boards, more...) {
			all[path] = expressions(t, path)
		}
		for _, path := range rules {
			all[path] = expressions(t, path)
		}
		t.Logf("%d rules of treydock's, %d of SckyzO's, %d dashboards", len(all[rules["treydock"]]), len(all[rules["sckyzo"]]), len(boards)+len(more))
	}
	for name, path := range rules {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)^ *interval: .*\n`).ReplaceAllString(string(b), "")
		switch name {
		case "treydock":
			text = jobOfNames(text, "treydock")
		case "sckyzo":
			text = jobOfNames(text, "infiniband")
		}
		if err := os.WriteFile(filepath.Join(dir, name+".rules.yml"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(ibsimtest.Path(t, "promtool"), "check", "rules", path).CombinedOutput(); err != nil {
			t.Errorf("promtool check rules %s: %v\n%s", path, err, out)
		}
	}
	if err := os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	p := startPrometheus(t, dir)
	ibsimtest.Poll(t, "rates", func() bool {
		list, err := p.query(`fabsh:tier_transmit_bytes:rate5m{tier="1"} > 0`)
		return err == nil && len(list) > 0
	})
	var number, empty int
	var wrong []string
	for end := time.Now().Add(time.Minute); ; { // a rule of a rule takes a second more
		number, empty, wrong = 0, 0, nil
		for file, list := range all {
			for _, e := range list {
				switch number++; {
				case clones != "" && strings.HasPrefix(file, clones+"/treydock/"):
					e = jobOfNames(e, "treydock")
				case clones != "" && strings.HasPrefix(file, clones+"/SckyzO/"):
					e = jobOfNames(e, "infiniband")
				}
				result, err := p.query(variables.Replace(e))
				switch {
				case err != nil:
					t.Fatalf("%s: %s: %v", file, e, err)
				case len(result) > 0:
				case strings.Contains(file, "alert"), notOurs.MatchString(e), notAlways.MatchString(e):
					empty++
				default:
					wrong = append(wrong, file+": "+e)
				}
			}
		}
		if len(wrong) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, e := range wrong {
		t.Errorf("it has no element: %s", e)
	}
	t.Logf("%d expressions; %d without an element, which are alerts, comparisons, or of what is not ours", number, empty)
	checkPerfquery(t, f, p)
}

// checkPerfquery: the counters of the ports of a switch are those that perfquery reads,
// between a query before and one after. ibsim counts the packets that ask for them.
func checkPerfquery(t *testing.T, f *ibsimtest.Fixture, p *promServer) {
	t.Helper()
	names := map[string]string{"PortXmitPkts": "transmit_packets", "PortRcvPkts": "receive_packets", "PortXmitData": "transmit_data_bytes", "SymbolErrorCounter": "symbol_error", "LinkDownedCounter": "link_downed"}
	infos, err := p.query(`infiniband_switch_uplink_info{job="infiniband",uplink_type="SW"}`)
	if err != nil || len(infos) == 0 {
		t.Fatal(err, len(infos))
	}
	lids, _ := p.query(`infiniband_switch_info{job="infiniband"}`)
	lid := map[string]string{}
	for _, l := range lids {
		lid[l.Metric["guid"]] = l.Metric["lid"]
	}
	read := func() map[string]float64 {
		m := map[string]float64{}
		for name, x := range names {
			list, err := p.query(fmt.Sprintf(`infiniband_switch_port_%s_total{job="infiniband"}`, x))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				m[s.Metric["guid"]+"/"+s.Metric["port"]+" "+name] = s.number()
			}
		}
		return m
	}
	before, theirs := read(), map[string]float64{}
	for _, info := range infos {
		guid, port := info.Metric["guid"], info.Metric["port"]
		for _, args := range [][]string{{lid[guid], port}, {"-x", lid[guid], port}} {
			for _, m := range regexp.MustCompile(`(?m)^(\w+):\.+(\d+)$`).FindAllStringSubmatch(f.Run(t, "perfquery", args...), -1) {
				if v, err := strconv.ParseFloat(m[2], 64); err == nil && names[m[1]] != "" {
					if m[1] == "PortXmitData" {
						v *= 4
					}
					theirs[guid+"/"+port+" "+m[1]] = v
				}
			}
		}
	}
	since := time.Now().Unix() + 1
	ibsimtest.Poll(t, "a cycle, and a scrape", func() bool {
		list, err := p.query(fmt.Sprintf(`infiniband_exporter_last_execution{job="infiniband",collector="switch"} > %d`, since))
		return err == nil && len(list) > 0
	})
	after := read()
	for key, want := range theirs {
		if want < before[key] || want > after[key] {
			t.Errorf("%s: perfquery says %v, and Prometheus %v before and %v after", key, want, before[key], after[key])
		}
	}
	if len(theirs) != len(infos)*len(names) {
		t.Errorf("%d counters are compared with perfquery's, want %d", len(theirs), len(infos)*len(names))
	}
}
