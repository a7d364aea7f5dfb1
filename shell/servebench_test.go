//go:build linux

package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// BenchmarkServeCycle is the processor time of a cycle at 11,664 hosts of fabsh exporter, and of fabsh serve
// whose first page and map are opened in each cycle, with the same audits and a history; and the memory of both.
// FABSH_SMALL: 128 hosts.
func BenchmarkServeCycle(b *testing.B) {
	spec := "fattree:k=36,levels=3"
	if os.Getenv("FABSH_SMALL") != "" {
		spec = "fattree:k=8,levels=3"
	}
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(b, name, spec)
	const cycles = 3
	measure := func(command string, pages ...string) (perCycle time.Duration, resident float64) {
		dir := b.TempDir()
		x := &exporting{log: make(chan string, 1000), client: startClient()}
		words := []string{"-F", "ibsim:" + name, "-t", "10s", "--state", dir, command, "--listen", "127.0.0.1:0", "--every", "1s", "--audits", "counters,links,sm"}
		if command == "exporter" {
			words = append(words, "--history")
		}
		x.launch(b, words)
		x.wait(b, "ready: ")
		done := func() int {
			text, _ := x.page(b, "/metrics?collect[]=exporter")
			p := expfmt.NewTextParser(model.LegacyValidation)
			m, err := p.TextToMetricFamilies(strings.NewReader(text))
			if err != nil {
				b.Fatal(err)
			}
			return int(value(m, "fabsh_exporter_cycles_total", "outcome=whole"))
		}
		next := func(n int) {
			for end := time.Now().Add(5 * time.Minute); done() < n; time.Sleep(50 * time.Millisecond) { // a process is measured
				if time.Now().After(end) {
					b.Fatal("no cycle")
				}
			}
		}
		next(2) // the history is made with the first, rates with the second
		first := done()
		before := processorTime(b, x.Process.Pid)
		for i := range cycles {
			for _, p := range pages {
				if body, status := x.page(b, p); status != 200 {
					b.Fatalf("%s: %d %.500s", p, status, body)
				}
			}
			next(first + i + 1)
		}
		used := processorTime(b, x.Process.Pid) - before
		resident = residentMemory(b, x.Process.Pid)
		n := done() - first
		x.Process.Kill()
		x.Wait()
		return used / time.Duration(n), resident
	}
	for b.Loop() {
		without, small := measure("exporter")
		with, large := measure("serve", "/now", "/map")
		b.ReportMetric(without.Seconds(), "exporter-cpu-s/cycle")
		b.ReportMetric(with.Seconds(), "serve-cpu-s/cycle")
		b.ReportMetric(100*with.Seconds()/without.Seconds(), "%of-exporter")
		b.ReportMetric(small, "exporter-MB")
		b.ReportMetric(large-small, "more-MB")
		b.ReportMetric(0, "ns/op")
	}
}

// processorTime returns the processor time of a process, by proc(5).
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] { // utime and stime, in 1/100 s
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// residentMemory returns the largest resident memory of a process, in MB.
func residentMemory(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	return numberIn(b, string(text), `VmHWM:\s+(\d+) kB`) / 1e3
}
