package shell

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

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
