package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// nothingOf are the expressions that no fabric has an element of, each with the reason.
var nothingOf = []struct{ expression, reason string }{
	{`\bnode_[a-z0-9]+`, "node_exporter's, of a host"},
	{`\bgo_build_info\{path=~"\.\*infiniband_exporter`, "of a program whose path says infiniband_exporter"},
	{`\binfiniband_switch_collect_duration_seconds\b`, "all devices are read side by side: none has a time of its own"},
	{`\binfiniband_exporter_collect_errors(_total)? *(\{collector="hca"\}|>)`, "agents that refuse to tell counters: neither ibsim's nor ours do"},
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

// allExpressions are those of all rules and dashboards, and the files of rules by name.
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
// is up, and gives those that have had none. Between, it does something.
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
