package shell

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
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
	"syscall"
	"testing"
	"time"

	"fabsh/mad"
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

// nothingOf are the expressions that no fabric has an element of, each with the reason.
var nothingOf = []struct{ expression, reason string }{
	{`\bnode_[a-z0-9]+`, "node_exporter's, of a host"},
	{`\bgo_build_info\{path=~"\.\*infiniband_exporter`, "of a program whose path says infiniband_exporter"},
	{`\binfiniband_switch_collect_duration_seconds\b`, "all devices are read side by side: none has a time of its own"},
	{`\binfiniband_exporter_collect_errors(_total)? *(\{collector="hca"\}|>)`, "agents that refuse to tell counters: neither ibsim's nor ours do"},
	{`\bfabsh:switch_port_used:max7d,`, "each port that goes down has a finding, which has the alert"},
	{`^infiniband:switch_(fan|power_supply_dc_power)_status_info`, "treydock's dashboard reads it, and none of its rules records it"},
	{`\binfiniband_switch_power_supply_status_info\{[^}]*status!`, "nothing public says what MSPS holds of a supply that is missing, so none of the simulator's is"},
}

// TestPrometheus: a Prometheus that scrapes the exporter takes the metrics, the shipped
// rules and the panels' queries; so it does the rules and dashboards of the exporters
// whose names we use, where FABSH_INCUMBENTS is a folder with clones of
// treydock/infiniband_exporter and SckyzO/infiniband_exporter, "treydock" and "SckyzO".
// Each expression has an element: of ibsim in order, of a damaged fabric, when the
// fabric or the exporter is gone; or nothingOf says why none has. What Prometheus has of
// ibsim is what perfquery says.
func TestPrometheus(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak unpacks Prometheus")
	}
	open, rules := allExpressions(t)
	number := len(open)
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}, RMPP: true})
	for i, name := range strings.Fields("SymbolErrorCounter LinkErrorRecoveryCounter LinkDownedCounter PortRcvErrors PortXmitDiscards VL15Dropped PortXmitWait") {
		f.Console(t, `PerformanceSet "spine-0"[1] PortCounters.%s=%d`, name, i+1)
	}
	p := new(promServer)
	p.scrape(t, rules, []string{"-F", "ibsim:" + f.Name}, []string{"--every", "1s"})
	ibsimtest.Poll(t, "rates", func() bool {
		list, err := p.query(`fabsh:tier_transmit_bytes:rate5m{tier="1"} > 0`)
		return err == nil && len(list) > 0
	})
	open = p.ask(t, open, 10*time.Second, nil) // a rule of a rule takes a second more
	t.Logf("%d expressions; %d have no element of a fabric in order", number, len(open))
	checkPerfquery(t, f, p)
	open = askDamaged(t, open, rules)

	used := map[string]bool{}
	for _, e := range open {
		why := ""
		for _, x := range nothingOf {
			if regexp.MustCompile(x.expression).MatchString(e.text) {
				why, used[x.expression] = x.reason, true
			}
		}
		if why == "" {
			t.Errorf("it never has an element: %s: %s", e.file, e.text)
		}
	}
	for _, x := range nothingOf {
		if os.Getenv("FABSH_INCUMBENTS") != "" && !used[x.expression] {
			t.Errorf("each that matches %s has an element, or there is none: take it off the list", x.expression)
		}
	}
	t.Logf("%d of them never have one, each for a reason that is told", len(open))
}

// TestOneAlert: a pulled cable between switches is one alert, that of the finding, or without one that
// of its first end; a port that went down without a finding has one of its own. A single lost host and
// a degraded link are one alert each.
func TestOneAlert(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak unpacks Prometheus")
	}
	dir, err := filepath.Abs(monitoring)
	if err != nil {
		t.Fatal(err)
	}
	state := func(guid, port, name string) string {
		return fmt.Sprintf("    - {series: 'infiniband_switch_port_state{job=\"infiniband\",instance=\"a\",guid=%q,port=%q,switch=%q}', values: '1x10 0x30'}\n", guid, port, name)
	}
	info := func(guid, port, name, peer, peerPort, end string) string {
		return fmt.Sprintf("    - {series: 'infiniband_switch_uplink_info{job=\"infiniband\",instance=\"a\",guid=%q,port=%q,switch=%q,uplink=\"x\",uplink_guid=%q,uplink_type=\"SW\",uplink_port=%q,uplink_lid=\"4\"}', values: '1x10'}\n"+
			"    - {series: 'fabsh_link_tier_info{job=\"infiniband\",instance=\"a\",guid=%[1]q,port=%[2]q,tier=\"1\",peer_tier=\"2\",end=%[6]q}', values: '1x10'}\n", guid, port, name, peer, peerPort, end)
	}
	text := fmt.Sprintf("rule_files: [%q, %q]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n", filepath.Join(dir, "recording.yml"), filepath.Join(dir, "alerting.yml")) +
		state("0x1", "3", "leaf-1") + state("0x2", "7", "spine-1") + state("0x1", "4", "leaf-1") +
		state("0x1", "5", "leaf-1") + state("0x2", "8", "spine-1") + state("0x1", "6", "leaf-1") +
		info("0x1", "5", "leaf-1", "0x2", "8", "1") + info("0x2", "8", "spine-1", "0x1", "5", "2") +
		"    - {series: 'fabsh_audit_finding{job=\"infiniband\",instance=\"a\",id=\"link.down:0x1/6\",check=\"link.down\",severity=\"error\",subject=\"leaf-1/6\",peer=\"\"}', values: '_x11 1x30'}\n" +
		"    - {series: 'fabsh_audit_finding{job=\"infiniband\",instance=\"a\",id=\"link.width:0x1/9\",check=\"link.width\",severity=\"error\",subject=\"leaf-1/9\",peer=\"spine-1/9\"}', values: '_x11 1x30'}\n" +
		"    - {series: 'fabsh_fabric_nodes{job=\"infiniband\",instance=\"a\",type=\"ca\"}', values: '8x10 7x30'}\n" +
		"    - {series: 'fabsh_fabric_nodes{job=\"infiniband\",instance=\"b\",type=\"ca\"}', values: '8x10 6x30'}\n" +
		"    - {series: 'fabsh_audit_finding{job=\"infiniband\",instance=\"a\",id=\"link.down:0x1/3\",check=\"link.down\",severity=\"critical\",subject=\"leaf-1/3\",peer=\"spine-1/7\"}', values: '_x11 1x30'}\n" +
		`  alert_rule_test:
  - eval_time: 25m
    alertname: FabricPortDown
    exp_alerts:
    - exp_labels: {severity: warning, job: infiniband, instance: a, guid: "0x1", port: "4", switch: leaf-1, subject: leaf-1/4, peer: leaf-1/4}
      exp_annotations: {summary: leaf-1/4 is down; it was up in the last 7 days}
    - exp_labels: {severity: warning, job: infiniband, instance: a, guid: "0x1", port: "5", switch: leaf-1, subject: leaf-1/5, peer: leaf-1/5}
      exp_annotations: {summary: leaf-1/5 is down; it was up in the last 7 days}
  - eval_time: 25m
    alertname: FabricFindingError
    exp_alerts:
    - exp_labels: {severity: warning, job: infiniband, instance: a, id: "link.down:0x1/6", check: link.down, subject: leaf-1/6}
      exp_annotations: {summary: "link.down leaf-1/6 "}
    - exp_labels: {severity: warning, job: infiniband, instance: a, id: "link.width:0x1/9", check: link.width, subject: leaf-1/9, peer: spine-1/9}
      exp_annotations: {summary: link.width leaf-1/9 spine-1/9}
  - eval_time: 25m
    alertname: FabricNodesGone
    exp_alerts:
    - exp_labels: {severity: critical, job: infiniband, instance: b, type: ca}
      exp_annotations: {summary: only 6 nodes of type ca were found; more than 5 % are missing}
  - eval_time: 25m
    alertname: FabricFindingCritical
    exp_alerts:
    - exp_labels: {severity: critical, job: infiniband, instance: a, id: "link.down:0x1/3", check: link.down, subject: leaf-1/3, peer: spine-1/7}
      exp_annotations: {summary: link.down leaf-1/3 spine-1/7}
`
	path := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(ibsimtest.Path(t, "promtool"), "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// askDamaged asks for those of open of a fabric that breaks while it is looked at: its
// switches are hot, fans and supplies fail, counters grow, links go, agents are silent;
// then the fabric is gone, and then the exporters are.
func askDamaged(t *testing.T, open []expression, rules map[string]string) []expression {
	name := fmt.Sprintf("fabsh-damaged-%d", os.Getpid())
	sim := exec.Command("fabsh", "sim", "fattree:k=4,levels=2,registers=fan@leaf-1+supply@leaf-1+hot@leaf-2,errors=leaf-1/3@200/s,traffic=1GB/s", "--listen", name, "--console")
	console, err := sim.StdinPipe()
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end := func() { sim.Process.Kill(); sim.Wait() }
	t.Cleanup(end)
	many := filepath.Join(t.TempDir(), "many.star")
	if err := os.WriteFile(many, []byte("def audit(fabric):\n    for i in range(1001):\n        finding(\"site.number%d\" % i, fabric.switches[0], \"one of many\", severity = \"info\")\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := new(promServer)
	flags := []string{"-F", "ibsim:" + name, "-t", "100ms", "--retries", "1"}
	words := []string{"--every", "3s", "--audits", "counters,links,health," + many, "--over", "2s"}
	silent := launchExporter(t, []string{"-F", "sim:ring:n=3,loss=1", "-t", "100ms"}, "--every", "1s")
	exporters := p.scrape(t, rules, flags, words, silent)
	ibsimtest.Poll(t, "two cycles of the fabric as it was", func() bool {
		list, err := p.query(`changes(infiniband_exporter_last_execution{job="infiniband",collector="switch"}[1m]) >= 2`)
		return err == nil && len(list) > 0
	})
	say := func(format string, args ...any) { fmt.Fprintf(console, format+"\n", args...) }
	say(`Unlink "leaf-2"[1]`)
	say(`Error "leaf-3" 100 18`)
	say(`Error "node-0005 HCA-1" 100 18`)
	round := 0
	open = p.ask(t, open, 90*time.Second, func() {
		round++
		for _, port := range []string{`"leaf-1"[3]`, `"leaf-1"[4]`, `"node-0001 HCA-1"[1]`} {
			say(`PerformanceSet %s PortCountersExtended.PortXmitWait=%d`, port, round*9e12)
			for _, wide := range strings.Fields("PortRcvErrors PortXmitDiscards QP1Dropped PortRcvRemotePhysicalErrors") {
				say(`PerformanceSet %s PortCounters.%s=%d`, port, wide, min(2000*round, 65000))
			}
			say(`PerformanceSet %s PortCounters.LinkDownedCounter=%d`, port, min(round, 250))
			say(`PerformanceSet %s PortCounters.LocalLinkIntegrityErrors=%d`, port, min(round, 14))
			if port != `"leaf-1"[3]` {
				say(`PerformanceSet %s PortCounters.SymbolErrorCounter=%d`, port, min(2000*round, 65000))
			}
		}
	})
	t.Logf("%d have no element of a damaged fabric", len(open))
	end()
	open = p.ask(t, open, 40*time.Second, nil)
	t.Logf("%d have no element when the fabric is gone", len(open))
	for _, x := range append(exporters, silent) {
		x.Process.Signal(syscall.SIGTERM)
	}
	open = p.ask(t, open, 20*time.Second, nil)
	return open
}

// expression is one of a file, as it is asked for.
type expression struct{ file, text string }

// allExpressions are the expressions of all rules and dashboards, and the files of rules by name.
// What is meant for an exporter is asked of the one with its names.
func allExpressions(t *testing.T) (list []expression, rules map[string]string) {
	rules = map[string]string{"recording": monitoring + "/recording.yml", "alerting": monitoring + "/alerting.yml"}
	all := shippedExpressions(t)
	if clones := os.Getenv("FABSH_INCUMBENTS"); clones != "" {
		rules["treydock"] = clones + "/treydock/examples/infiniband.rules"
		rules["sckyzo"] = clones + "/SckyzO/examples/prometheus/rules/infiniband_recording.yml"
		rules["sckyzo-alerts"] = clones + "/SckyzO/examples/prometheus/rules/infiniband_alerts.yml"
		boards, _ := filepath.Glob(clones + "/*/examples/grafana*.json")
		more, _ := filepath.Glob(clones + "/*/examples/grafana/*.json")
		boards = append(boards, more...)
		for _, path := range boards {
			all[path] = expressions(t, path)
		}
		for _, name := range []string{"treydock", "sckyzo", "sckyzo-alerts"} {
			all[rules[name]] = expressions(t, rules[name])
		}
		t.Logf("%d rules of treydock's, %d of SckyzO's, %d dashboards", len(all[rules["treydock"]]), len(all[rules["sckyzo"]]), len(boards))
	}
	for file, texts := range all {
		for _, e := range texts {
			switch {
			case strings.Contains(file, "/treydock/"):
				e = jobOfNames(e, "treydock")
			case strings.Contains(file, "/SckyzO/"):
				e = jobOfNames(e, "infiniband")
			}
			list = append(list, expression{file, variables.Replace(e)})
		}
	}
	return list, rules
}

// scrape starts exporters of a fabric, one for each dialect, and Prometheus with rules,
// which scrapes them and more.
func (p *promServer) scrape(t *testing.T, rules map[string]string, flags, words []string, more ...*exporting) (exporters []*exporting) {
	t.Helper()
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [\"*.rules.yml\"]\nscrape_configs:\n"
	job := func(name string, x *exporting) {
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: [%q]}]}\n", name, strings.TrimPrefix(x.url, "http://"))
	}
	for i, x := range more {
		job(fmt.Sprintf("more%d", i), x)
	}
	for _, dialect := range []string{"infiniband", "treydock", "guilbaults"} {
		format := "prom=" + dialect
		if dialect == "infiniband" {
			format = "prom"
		}
		x := startExporter(t, append([]string{"-o", format}, flags...), words...)
		exporters = append(exporters, x)
		job(dialect, x)
		text, err := x.scrape()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(ibsimtest.Path(t, "promtool"), "check", "metrics")
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			// 3: it would name them otherwise, as the exporters whose names they are do.
			t.Logf("promtool check metrics, %s: %v\n%s", dialect, err, out)
			if c.ProcessState.ExitCode() != 3 {
				t.Fail()
			}
		}
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
	*p = *startPrometheus(t, dir)
	return exporters
}

// sooner has what alerts wait for, minutes, be seconds.
var sooner = strings.NewReplacer("> 900", "> 5", "> 300", "> 5", "> 600", "> 1", "[30m]", "[3s]")

// ask asks for expressions again and again, until each has had an element or the time
// is up, and returns the ones without an answer. Between, it does something. Prometheus, a
// process, has no event to wait for: it is polled each second.
func (p *promServer) ask(t *testing.T, open []expression, lasts time.Duration, between func()) []expression {
	t.Helper()
	for end := time.Now().Add(lasts); len(open) > 0 && time.Now().Before(end); time.Sleep(time.Second) {
		var left []expression
		for _, e := range open {
			result, err := p.query(e.text)
			if soon := sooner.Replace(e.text); err == nil && len(result) == 0 && soon != e.text {
				result, err = p.query(soon)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", e.file, e.text, err)
			}
			if len(result) == 0 {
				left = append(left, e)
			}
		}
		if open = left; between != nil {
			between()
		}
	}
	return open
}

// checkPerfquery: the counters of the ports with a cable are those that perfquery reads,
// between a query before and one after, for ibsim counts the packets that ask for them;
// in the words of each exporter.
func checkPerfquery(t *testing.T, f *ibsimtest.Fixture, p *promServer) {
	t.Helper()
	names := map[string]string{
		"PortXmitData": "transmit_data_bytes", "PortRcvData": "receive_data_bytes", "PortXmitPkts": "transmit_packets", "PortRcvPkts": "receive_packets",
		"PortUnicastXmitPkts": "unicast_transmit_packets", "PortUnicastRcvPkts": "unicast_receive_packets",
		"PortMulticastXmitPkts": "multicast_transmit_packets", "PortMulticastRcvPkts": "multicast_receive_packets",
		"SymbolErrorCounter": "symbol_error", "LinkErrorRecoveryCounter": "link_error_recovery", "LinkDownedCounter": "link_downed",
		"PortRcvErrors": "receive_errors", "PortRcvRemotePhysicalErrors": "receive_remote_physical_errors", "PortRcvSwitchRelayErrors": "receive_switch_relay_errors",
		"PortXmitDiscards": "transmit_discards", "PortXmitConstraintErrors": "transmit_constraint_errors", "PortRcvConstraintErrors": "receive_constraint_errors",
		"LocalLinkIntegrityErrors": "local_link_integrity_errors", "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
		"VL15Dropped": "vl15_dropped", "PortXmitWait": "transmit_wait",
	}
	type at struct{ job, guid, port, name string }
	read := func() map[at]float64 {
		m := map[at]float64{}
		for name, x := range names {
			for _, q := range []string{"infiniband_switch_port_" + x + "_total", "infiniband_hca_port_" + x + "_total", "infiniband_" + strings.ToLower(name) + "_total"} {
				list, err := p.query(q)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list {
					v := s.number()
					if strings.HasPrefix(name, "Port") && strings.HasSuffix(name, "Data") && s.Metric["job"] != "guilbaults" {
						v /= 4
					}
					guid, err := strconv.ParseUint(s.Metric["guid"]+s.Metric["local_guid"], 0, 64)
					if err != nil {
						t.Fatal(err)
					}
					m[at{s.Metric["job"], mad.GUID(guid).String(), s.Metric["port"] + s.Metric["local_port"], name}] = v
				}
			}
		}
		return m
	}
	infos, err := p.query(`{__name__=~"infiniband_(switch|hca)_uplink_info",job="infiniband"} * on (guid) group_left(lid) {__name__=~"infiniband_(switch|hca)_info",job="infiniband"}`)
	if err != nil || len(infos) == 0 {
		t.Fatal(err, len(infos))
	}
	before, theirs := read(), map[at]float64{}
	for _, info := range infos {
		guid, port, lid := info.Metric["guid"], info.Metric["port"], info.Metric["lid"]
		for _, args := range [][]string{{lid, port}, {"-x", lid, port}} {
			for _, m := range regexp.MustCompile(`(?m)^(\w+):\.+(\d+)$`).FindAllStringSubmatch(f.Run(t, "perfquery", args...), -1) {
				if v, err := strconv.ParseFloat(m[2], 64); err == nil && names[m[1]] != "" {
					theirs[at{"", guid, port, m[1]}] = v
				}
			}
		}
	}
	since := time.Now().Unix() + 1
	ibsimtest.Poll(t, "a cycle, and a scrape", func() bool {
		list, err := p.query(fmt.Sprintf(`count(infiniband_exporter_last_execution{collector="switch"} > %d) == 2`, since))
		return err == nil && len(list) > 0
	})
	after := read()
	compared, moved := map[string]int{}, 0
	for key, want := range theirs {
		for _, job := range []string{"infiniband", "treydock", "guilbaults"} {
			key.job = job
			now, has := after[key]
			if !has {
				continue
			}
			if compared[job]++; want > 0 {
				moved++
			}
			if want < before[key] || want > now {
				t.Errorf("%v: perfquery says %v, and Prometheus %v before and %v after", key, want, before[key], now)
			}
		}
	}
	t.Logf("%d counters of %d ports are perfquery's: %v; %d of them are not 0", len(theirs), len(infos), compared, moved)
	for job, least := range map[string]int{"infiniband": len(theirs), "treydock": len(theirs), "guilbaults": len(theirs) * 9 / 10} {
		if compared[job] < least || least == 0 {
			t.Errorf("%s: %d of perfquery's %d counters", job, compared[job], len(theirs))
		}
	}
}

// TestAlertsEndToEnd: a scenario, the exporter, and Prometheus with the shipped rules: a pulled cable,
// a degraded link and a lost host are one alert each.
func TestAlertsEndToEnd(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak unpacks Prometheus")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	scenario := write("faults.star", `def scenario(sim):
    at("30s", lambda: sim.unlink("leaf-2/3"))
    at("30s", lambda: sim.speed("leaf-3/4", width = "1x"))
    at("30s", lambda: sim.kill("node-0007 HCA-1"))
`)
	name, log := fmt.Sprintf("fabsh-%016x", rand.Uint64()), filepath.Join(dir, "log")
	serveSim(t, name, "fattree:k=4,levels=2", "--scenario", scenario, "--log", log)
	x := startExporter(t, []string{"-F", "ibsim:" + name, "-t", "1s", "--state", filepath.Join(dir, "state")}, "--every", "1s")
	for _, file := range []string{"recording.yml", "alerting.yml"} {
		text, err := os.ReadFile(filepath.Join(monitoring, file))
		if err != nil {
			t.Fatal(err)
		}
		// Minutes are seconds; a finding of one cycle, as that of a link that went down once, is no alert.
		write(file, regexp.MustCompile(`for: \d+m`).ReplaceAllString(string(text), "for: 6s"))
	}
	write("prometheus.yml", fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [recording.yml, alerting.yml]\nscrape_configs:\n- {job_name: infiniband, static_configs: [{targets: [%q]}]}\n", strings.TrimPrefix(x.url, "http://")))
	p := startPrometheus(t, dir)
	want := []string{
		"FabricFindingCritical link.down leaf-2/3",
		"FabricFindingError link.down leaf-4/1",
		"FabricFindingError link.width leaf-3/4",
	}
	firing := func() (list []string) {
		found, err := p.query(`ALERTS{alertstate="firing",alertname=~"Fabric.*"}`)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			list = append(list, strings.TrimSpace(s.Metric["alertname"]+" "+s.Metric["check"]+" "+s.Metric["subject"]))
		}
		slices.Sort(list)
		return list
	}
	for end := time.Now().Add(2 * time.Minute); !slices.Equal(firing(), want); time.Sleep(time.Second) { // Prometheus is polled: it has no event to wait for
		if len(readLog(t, log)) < 3 {
			if early := firing(); early != nil {
				t.Fatalf("before the faults: %v", early)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("firing %q, want %q", firing(), want)
		}
	}
	for range 15 { // further alerts would wait no longer
		time.Sleep(time.Second)
		if got := firing(); !slices.Equal(got, want) {
			t.Fatalf("firing %q, want %q", got, want)
		}
	}
}
