package shell

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// BenchmarkExporterIbsim is a cycle of the exporter at 702 nodes on ibsim, from the
// first request to the text, beside the processes that the incumbents run for one; what
// these do with the output is not counted.
//
// treydock 0.10.0 as it comes: ibnetdiscover --ports, then for each switch perfquery -l
// -x -G GUID PORTS, one at a time (collectors/ibnetdiscover.go, ibnetdiscoverArgs;
// switch.go, collect; perfquery.go, perfqueryArgs, --perfquery.max-concurrent). With
// --collector.hca it runs perfquery -l -x -G GUID PORT for each HCA, too (hca.go): only
// then does it read all that ours reads. guilbaults: one ibqueryerrors
// (infiniband-exporter.py, collect), which asks a switch for the sums of its ports, and
// where these are below its thresholds tells no counter at all.
func BenchmarkExporterIbsim(b *testing.B) {
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.FixtureOptions{SM: "host-35-17", RMPP: true})
	x := startExporter(b, []string{"-F", "ibsim:" + f.Name}, "--every", "1s")
	var ours, switches, hcas, guilbaults time.Duration
	for b.Loop() {
		cycles := value(x.metrics(b), "fabsh_exporter_cycles_total", "outcome=whole")
		ibsimtest.Poll(b, "a cycle", func() bool { return value(x.metrics(b), "fabsh_exporter_cycles_total", "outcome=whole") > cycles })
		ours += time.Duration(value(x.metrics(b), "fabsh_exporter_cycle_duration_seconds") * float64(time.Second))
		x.Process.Signal(syscall.SIGSTOP) // so that each has ibsim to itself
		start := time.Now()
		devices := devicesOf(f.Run(b, "ibnetdiscover", "--ports"))
		if len(devices["SW"]) != 54 || len(devices["CA"]) != 648 {
			b.Fatalf("ibnetdiscover --ports tells %d switches and %d HCAs", len(devices["SW"]), len(devices["CA"]))
		}
		perfquery := func(kind string) {
			for guid, ports := range devices[kind] {
				f.Run(b, "perfquery", "-l", "-x", "-G", guid, strings.Join(ports, ","))
			}
		}
		perfquery("SW")
		switches += time.Since(start)
		perfquery("CA")
		hcas += time.Since(start)
		start = time.Now()
		f.Run(b, "ibqueryerrors", "--verbose", "--details", "--suppress-common", "--skip-sl", "--data", "--report-port", "--switch", "--ca")
		guilbaults += time.Since(start)
		x.Process.Signal(syscall.SIGCONT)
	}
	report(b, ours, "fabsh-cycle-sec")
	report(b, switches, "treydock-switches-sec")
	report(b, hcas, "treydock-with-hcas-sec")
	report(b, guilbaults, "ibqueryerrors-sec")
	b.ReportMetric(100*ours.Seconds()/switches.Seconds(), "%of-treydock-switches")
	b.ReportMetric(100*ours.Seconds()/hcas.Seconds(), "%of-treydock-with-hcas")
	b.ReportMetric(100*ours.Seconds()/guilbaults.Seconds(), "%of-ibqueryerrors")
	b.ReportMetric(0, "ns/op") // of all: of no use
}

// devicesOf are the ports with a link that ibnetdiscover --ports tells, by type of
// node and GUID: TYPE LID PORT GUID WIDTH SPEED - ...
func devicesOf(text string) map[string]map[string][]string {
	all := map[string]map[string][]string{"SW": {}, "CA": {}}
	for _, m := range regexp.MustCompile(`(?m)^(SW|CA)\s+\d+\s+(\d+)\s+(0x\w+)\s+\S+\s+\S+\s+-`).FindAllStringSubmatch(text, -1) {
		all[m[1]][m[3]] = append(all[m[1]][m[3]], m[2])
	}
	return all
}
