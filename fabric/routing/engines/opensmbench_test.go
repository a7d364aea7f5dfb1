package engines

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad/ibsim/ibsimtest"
)

// BenchmarkOpenSM is the CPU time of our engines with lanes on tori, beside that which
// OpenSM's own take on the same, from its lines "building routing with" to "tables
// configured"; it is ended after openSMLimit. Measured on 2 cores, in ms: lash 5/5/5 4
// (OpenSM 290), 6/6/6 24 (OpenSM refuses: 8 lanes do not suffice it), 16/16/16 4,130
// (OpenSM not done after 120,000); torus-2QoS 16/16/16 830 (OpenSM 11,390).
func BenchmarkOpenSM(b *testing.B) {
	for _, x := range []struct {
		engine string // OpenSM's spelling
		dims   []int
	}{
		{"lash", []int{5, 5, 5}}, {"lash", []int{6, 6, 6}}, {"lash", []int{16, 16, 16}}, {"torus-2QoS", []int{16, 16, 16}},
	} {
		spec := strings.ReplaceAll(strings.Trim(fmt.Sprint(x.dims), "[]"), " ", "/")
		b.Run(x.engine+"/"+spec, func(b *testing.B) {
			if x.engine == "lash" && x.dims[0] > 8 && os.Getenv("FABSH_SOAK") == "" {
				b.Skip("minutes, and 4 GB: with FABSH_SOAK=1")
			}
			f := routingtest.Topology(b, "torus:hosts=1,dims="+spec)
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				b.Fatal(err)
			}
			before := routingtest.UsedTime(b)
			for b.Loop() {
				compute(b, g, strings.ToLower(x.engine), Options{})
			}
			ours := (routingtest.UsedTime(b) - before) / time.Duration(b.N)
			args := []string{"-o", "-Q", "-D", "0x07", "-R", x.engine}
			if x.engine == "torus-2QoS" {
				config, _ := torusConfig(b, f, x.dims)
				args = append(args, "--torus_config", config)
			}
			var net bytes.Buffer
			if err := format.Dump(&net, f, "ibnetdiscover"); err != nil {
				b.Fatal(err)
			}
			node := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
			theirs, end := routingTime(b, ibsimtest.Start(b, net.String(), ibsimtest.FixtureOptions{}).StartSM(b, ibsimtest.FixtureOptions{SM: node, SMArgs: args}))
			b.ReportMetric(ours.Seconds()*1e3, "cpu-ms")
			b.ReportMetric(theirs.Seconds()*1e3, "OpenSM-"+end+"-cpu-ms")
		})
	}
}

// openSMLimit is how long OpenSM may compute tables, in CPU time.
const openSMLimit = 2 * time.Minute

// routingTime is the CPU time in which an OpenSM computes and sends tables, and how that
// ended: where its engine refuses, it goes on to minhop.
func routingTime(b *testing.B, sm *ibsimtest.SM) (used time.Duration, end string) {
	b.Helper()
	defer sm.Kill()
	sm.WaitLong(b, "uilding routing with", 5*time.Minute)
	before := processTime(b, sm.PID())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		<-tick.C
		used = processTime(b, sm.PID()) - before
		switch log := sm.Log(); {
		case strings.Contains(log, "minhop tables configured on all switches"):
			return used, "refuses"
		case strings.Contains(log, "tables configured on all switches"):
			return used, "done"
		case used > openSMLimit:
			return used, "not-done"
		}
	}
}

// processTime is the CPU time of a process so far, in ticks of 10 ms (proc_pid_stat(5)).
func processTime(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
