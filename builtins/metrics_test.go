package builtins

import (
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/afero"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/fabric/audit"
)

// portCounters are the counters of treydock/infiniband_exporter 0.10.0, behind
// infiniband_switch_port_ and infiniband_hca_port_ (collectors/switch.go,
// NewSwitchCollector; collectors/hca.go, NewHCACollector).
const portCounters = `transmit_data_bytes receive_data_bytes transmit_packets receive_packets unicast_transmit_packets unicast_receive_packets
multicast_transmit_packets multicast_receive_packets symbol_error link_error_recovery link_downed receive_errors receive_remote_physical_errors
receive_switch_relay_errors transmit_discards transmit_constraint_errors receive_constraint_errors local_link_integrity_errors
excessive_buffer_overrun_errors vl15_dropped transmit_wait qp1_dropped local_physical_errors malformed_packet_errors buffer_overrun_errors
dli_mapping_errors vl_mapping_errors looping_errors`

// guilbaultsCounters are the counters of guilbaults/infiniband-exporter 0.0.6, behind
// infiniband_ (infiniband-exporter.py, counter_info).
const guilbaultsCounters = `linkdownedcounter symbolerrorcounter portxmitconstrainterrors portmalformedpkterrors portswlifetimelimitdiscards
portxmitdiscards portswhoqlifetimelimitdiscards portxmitwait portxmitdata portrcvdata portxmitpkts portrcvpkts portrcverrors portunicastxmitpkts
portunicastrcvpkts portmulticastxmitpkts portmulticastrcvpkts portbufferoverrunerrors portlocalphysicalerrors portrcvremotephysicalerrors
portinactivediscards portdlidmappingerrors linkerrorrecoverycounter locallinkintegrityerrors vl15dropped portneighbormtudiscards
portrcvconstrainterrors excessivebufferoverrunerrors`

// incumbents are the metrics of each dialect, with type and labels.
func incumbents(dialect string) map[string]string {
	m := map[string]string{}
	add := func(kind, labels string, names ...string) {
		for _, name := range names {
			m["infiniband_"+name] = kind + " " + labels
		}
	}
	uplink := ",uplink,uplink_guid,uplink_type,uplink_port,uplink_lid"
	switch dialect {
	case "guilbaults":
		const labels = "component,local_name,local_guid,local_port,remote_guid,remote_port,remote_name"
		for _, c := range strings.Fields(guilbaultsCounters) {
			add("COUNTER", labels, c+"_total")
		}
		add("GAUGE", labels, "speed", "width")
		add("GAUGE", "", "scrape_ok", "scrape_duration_seconds", "ibqueryerrors_duration_seconds")
		return m // examples/monitoring/README.md lists the others
	case "treydock":
		for _, c := range strings.Fields(portCounters) {
			add("COUNTER", "guid,port", "switch_port_"+c+"_total", "hca_port_"+c+"_total")
		}
		add("GAUGE", "guid,port", "switch_port_rate_bytes_per_second", "switch_port_raw_rate_bytes_per_second")
		add("GAUGE", "guid", "hca_rate_bytes_per_second", "hca_raw_rate_bytes_per_second")
		add("GAUGE", "guid,port,switch"+uplink, "switch_uplink_info")
		add("GAUGE", "guid,port,hca"+uplink, "hca_uplink_info")
		add("GAUGE", "collector", "exporter_collect_errors", "exporter_collect_timeouts")
	case "": // SckyzO 2.0: collectors/port_counters.go, switch.go, hca.go
		for _, c := range append(strings.Fields(portCounters), "dlid_mapping_errors") {
			add("COUNTER", "guid,port,switch", "switch_port_"+c+"_total")
			add("COUNTER", "guid,hca,port,switch", "hca_port_"+c+"_total")
		}
		add("GAUGE", "guid,port,switch", "switch_port_rate_bytes_per_second", "switch_port_raw_rate_bytes_per_second", "switch_port_state")
		add("GAUGE", "guid,hca", "hca_port_rate_bytes_per_second", "hca_port_raw_rate_bytes_per_second", "hca_up")
		add("GAUGE", "guid,switch", "switch_up")
		add("GAUGE", "guid,port,switch"+uplink, "switch_uplink_info")
		add("GAUGE", "guid,hca,port,switch"+uplink, "hca_uplink_info")
		add("COUNTER", "collector", "exporter_collect_errors_total", "exporter_collect_timeouts_total")
	}
	add("GAUGE", "guid,switch,lid", "switch_info")
	add("GAUGE", "guid,hca,lid", "hca_info")
	add("GAUGE", "guid,collector", "switch_collect_error", "switch_collect_timeout", "hca_collect_error", "hca_collect_timeout")
	add("GAUGE", "collector", "exporter_last_execution", "exporter_collector_duration_seconds")
	return m // examples/monitoring/README.md lists the others
}

// parsed are the metrics of a text, as Prometheus reads it.
func parsed(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	m, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return m
}

// promOf are reports as metrics.
func promOf(t *testing.T, format lang.Format, reports ...*audit.Report) string {
	t.Helper()
	var b strings.Builder
	if err := audits.WriteReportMetrics(&b, reports, format, func(v starlark.Value) (starlark.Value, error) { return v, nil }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// labelsOf are the names of the labels of a value, in their order.
func labelsOf(m *dto.Metric) string {
	var names []string
	for _, l := range m.Label {
		names = append(names, l.GetName())
	}
	return strings.Join(names, ",")
}

// TestPromNames: each name of the dialects is there, with the type and the labels
// that it has there; and no other name begins with infiniband_.
func TestPromNames(t *testing.T) {
	for _, dialect := range []string{"", "treydock", "guilbaults"} {
		t.Run("prom="+dialect, func(t *testing.T) {
			format := lang.Format(strings.TrimSuffix("prom="+dialect, "="))
			onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
				r := audited(t, f, audits.RunOptions{}, "counters", "--over=2s")
				text := promOf(t, format, r)
				want, got := incumbents(dialect), parsed(t, text)
				for name, is := range want {
					if got[name] == nil {
						t.Errorf("no %s", name)
					} else if have := got[name].GetType().String() + " " + labelsOf(got[name].Metric[0]); have != is {
						t.Errorf("%s: got %s, want %s", name, have, is)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(got)) {
					if _, ok := want[name]; !ok && strings.HasPrefix(name, "infiniband_") {
						t.Errorf("%s is no name of the dialect", name)
					}
				}
			})
		})
	}
}

// TestPromUnits: data is in bytes, but for guilbaults, whose unit is 4 bytes; rates
// are bytes per second.
func TestPromUnits(t *testing.T) {
	const code = `
f = discover()
sim.set_counters("leaf-1/3", port_xmit_data=1000, symbol_error_counter=7)
show(perf_get("PortCountersExtended", f.switches[0].ports[3]))
show(f)
`
	for dialect, want := range map[string]string{
		"":           `infiniband_switch_port_transmit_data_bytes_total{guid="0x0002c90300100000",port="3",switch="leaf-1"} 4000`,
		"treydock":   `infiniband_switch_port_transmit_data_bytes_total{guid="0x0002c90300100000",port="3"} 4000`,
		"guilbaults": `infiniband_portxmitdata_total{component="switch",local_name="leaf-1",local_guid="0x2c90300100000",local_port="3",remote_guid="0x0002c90310000021",remote_port="1",remote_name="node-0003 HCA-1"} 1000`,
	} {
		text := metricsOf(t, lang.Format(strings.TrimSuffix("prom="+dialect, "=")), code)
		parsed(t, text)
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%q: no %s in\n%s", dialect, want, text)
		}
		if rate := `infiniband_switch_port_rate_bytes_per_second{guid="0x0002c90300100000",port="3",switch="leaf-1"} 25000000000`; dialect == "" && !strings.Contains(text, rate) {
			t.Errorf("no %s", rate)
		}
	}
}

// metricsOf is what a script writes as metrics.
func metricsOf(t *testing.T, format lang.Format, code string) (text string) {
	t.Helper()
	onSim(t, "fattree", func(o *SessionOptions) { o.Format = format }, func(t *testing.T, f *fixture) {
		if err := program.RunCode(t.Context(), f.Interpreter, "<command>", code); err != nil {
			t.Fatal(f.Explain(err))
		}
		if err := audits.WriteMetrics(f.Runtime); err != nil {
			t.Fatal(err)
		}
		text = f.stdout.String()
	})
	return text
}

// TestPromValues: what scripts show and measure.
func TestPromValues(t *testing.T) {
	for code, want := range map[string]string{
		`metric("a_total", 3, help="of \\ two\nlines", who="x\"y\n\\z", n=1)`: "# HELP a_total of \\\\ two\\nlines\n# TYPE a_total counter\na_total{who=\"x\\\"y\\n\\\\z\",n=\"1\"} 3\n",
		`metric("b", None); metric("c", True, x=None)`:                        "# TYPE c gauge\nc 1\n",
		`[metric("d", x, x=x) for x in [2.5, 1]]; show(metric("d", 1, x=1))`:  "# TYPE d gauge\nd{x=\"1\"} 1\nd{x=\"2.5\"} 2.5\n",
		`show(5)`:  "# TYPE fabsh_value gauge\nfabsh_value 5\n",
		`show([])`: "",
		`show(table([{"Name": "a\x1b\u200b", "num": 3, "up %": 1, "none": None, "ok": True}]))`: "# TYPE fabsh_value_ok gauge\nfabsh_value_ok{name=\"a\uFFFD\uFFFD\",num=\"3\"} 1\n# TYPE fabsh_value_up__ gauge\nfabsh_value_up__{name=\"a\uFFFD\uFFFD\",num=\"3\"} 1\n",
	} {
		if text := metricsOf(t, lang.FormatProm, code); text != want {
			t.Errorf("%s:\n%s\nwant\n%s", code, text, want)
		} else {
			parsed(t, text)
		}
	}
	for code, want := range map[string]string{
		`metric("a b", 1)`:                               `invalid metric name "a b"`,
		`metric("a", "1")`:                               `value: got string, want a number, a bool or None`,
		`metric("a", 1, **{"__x": 1})`:                   `invalid label name "__x"`,
		`metric("a", 1); metric("a", 2)`:                 `a has the value 1 already`,
		`show("text")`:                                   `string has no numbers`,
		`show([{"a": "x", "n": 1}, {"a": "x", "n": 2}])`: `fabsh_value_n{a="x"} is both 1 and 2`,
	} {
		onSim(t, "ring:n=2", func(o *SessionOptions) { o.Format = lang.FormatProm }, func(t *testing.T, f *fixture) {
			if err := program.RunCode(t.Context(), f.Interpreter, "<command>", code); err == nil || !strings.Contains(f.Explain(err), want) {
				t.Errorf("%s: %v, want %s", code, err, want)
			}
		})
	}
}

// TestPromSilence: of a port that does not answer there is no counter, and the
// metrics say that it did not.
func TestPromSilence(t *testing.T) {
	const script = `
def audit(fabric):
    sim.kill(fabric.cas[1])
    perf_rates([p for n in fabric.cas for p in n.ports], over = "2s")
    metric("site_hosts", len(fabric.cas))
`
	for format, want := range map[lang.Format][]string{
		"prom": {
			`infiniband_hca_up{guid="0x0002c90310000001",hca="node-0001 HCA-1"} 1`,
			`infiniband_hca_up{guid="0x0002c90310000011",hca="node-0002 HCA-1"} 0`,
			`infiniband_hca_collect_timeout{guid="0x0002c90310000011",collector="hca-runonce"} 1`,
			`infiniband_exporter_collect_timeouts_total{collector="hca-runonce"} 1`,
			`site_hosts 32`,
		},
		"prom=treydock":   {`infiniband_exporter_collect_timeouts{collector="hca-runonce"} 1`},
		"prom=guilbaults": {`infiniband_scrape_ok 0`, `infiniband_query_failed_error{counter_name="PortCounters",local_name="node-0002 HCA-1",lid="14",port="1"} 1`},
	} {
		onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
			if err := afero.WriteFile(f.fs, "/work/mine.star", []byte(script), 0o644); err != nil {
				t.Fatal(err)
			}
			text := promOf(t, format, audited(t, f, audits.RunOptions{}, "mine.star"))
			for _, line := range want {
				if !strings.Contains(text, line+"\n") {
					t.Errorf("%s: no %s", format, line)
				}
			}
			for _, no := range []string{`symbol_error_total{guid="0x0002c90310000011"`, `symbolerrorcounter_total{component="ca",local_name="node-0002 HCA-1"`, "fabsh_audit_last_success"} {
				if strings.Contains(text, no) {
					t.Errorf("%s: there is %s", format, no)
				}
			}
			parsed(t, text)
		})
	}
}

// TestPromRails: reports from several ports differ by a label.
func TestPromRails(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		a, b := audited(t, f, audits.RunOptions{}, "links"), audited(t, f, audits.RunOptions{}, "links")
		a.Rail, b.Rail = "mlx5_0/1", "mlx5_1/1"
		text := promOf(t, lang.FormatProm, a, b)
		for _, want := range []string{"fabsh_fabric_nodes{rail=\"mlx5_0/1\",type=\"ca\"} 2\n", "fabsh_fabric_nodes{rail=\"mlx5_1/1\",type=\"ca\"} 2\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	})
}
