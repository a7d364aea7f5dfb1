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
// first request to the text, beside what the incumbents run for one: treydock's
// infiniband_exporter ibnetdiscover, and perfquery of the ports of each switch, one
// process after the other (collectors/perfquery.go: -l -x -G GUID PORTS, one at a time
// unless told otherwise); guilbaults's one ibqueryerrors, which asks
// a switch for the sums of its ports, and where these are below its thresholds tells
// no counter at all. Ours reads HCAs, too, which
// treydock's does when it is told to, by 648 processes more.
func BenchmarkExporterIbsim(b *testing.B) {
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.Options{SM: "host-35-17", RMPP: true})
	x := startExporter(b, []string{"-F", "ibsim:" + f.Name}, "--every", "1s")
	var ours, treydock, guilbaults time.Duration
	for b.Loop() {
		cycles := value(x.metrics(b), "fabsh_exporter_cycles_total", "outcome=whole")
		ibsimtest.Poll(b, "a cycle", func() bool { return value(x.metrics(b), "fabsh_exporter_cycles_total", "outcome=whole") > cycles })
		ours += time.Duration(value(x.metrics(b), "fabsh_exporter_cycle_duration_seconds") * float64(time.Second))
		x.Process.Signal(syscall.SIGSTOP) // so that each has ibsim to itself
		start := time.Now()
		for _, sw := range switchesOf(f.Run(b, "ibnetdiscover")) {
			f.Run(b, "perfquery", "-l", "-x", "-G", sw.guid, sw.ports)
		}
		treydock += time.Since(start)
		start = time.Now()
		f.Run(b, "ibqueryerrors", "--verbose", "--details", "--suppress-common", "--skip-sl", "--data", "--report-port", "--switch", "--ca")
		guilbaults += time.Since(start)
		x.Process.Signal(syscall.SIGCONT)
	}
	report(b, ours, "fabsh-cycle-sec")
	report(b, treydock, "perfquery-processes-sec")
	report(b, guilbaults, "ibqueryerrors-sec")
	b.ReportMetric(100*ours.Seconds()/treydock.Seconds(), "%of-perfquery-processes")
	b.ReportMetric(100*ours.Seconds()/guilbaults.Seconds(), "%of-ibqueryerrors")
	b.ReportMetric(0, "ns/op") // of all: of no use
}

// asked is what perfquery is asked for.
type asked struct{ guid, ports string }

// switchesOf are the switches that ibnetdiscover tells, with the ports that have a link.
func switchesOf(text string) (list []asked) {
	for _, block := range strings.Split(text, "\n\n") {
		guid := regexp.MustCompile(`(?m)^Switch\t.*"S-(\w+)"`).FindStringSubmatch(block)
		if guid == nil {
			continue
		}
		var ports []string
		for _, m := range regexp.MustCompile(`(?m)^\[(\d+)\]`).FindAllStringSubmatch(block, -1) {
			ports = append(ports, m[1])
		}
		list = append(list, asked{"0x" + guid[1], strings.Join(ports, ",")})
	}
	return list
}
