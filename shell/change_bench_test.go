package shell

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// BenchmarkBringUp is how long bring_up.star takes for a bare subnet of 5,832 hosts,
// beside opensm -o on the same simulated subnet, each with a server of its own.
func BenchmarkBringUp(b *testing.B) {
	const spec = "pgft:m=18/18/18,w=1/18/18,p=1/1/1"
	f, _, err := sim.Parse(spec)
	if err != nil {
		b.Fatal(err)
	}
	path := builtFabsh(b)
	serve := func() string {
		name := fmt.Sprintf("bench-%d", rand.Uint32())
		c := exec.Command(path, "sim", spec, "--listen", name, "--bare")
		out, err := c.StderrPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Process.Kill(); c.Wait() })
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		return name
	}
	node := fmt.Sprintf("H-%016x", uint64(f.OfType(mad.NodeTypeCA)[0].GUID()))
	var ours, theirs time.Duration
	for b.Loop() {
		name := serve()
		start := time.Now()
		output(b, exec.Command(path, "-F", "ibsim:"+name, "--write", "../examples/bring_up.star", "--engine", "ftree"))
		ours += time.Since(start)
		on := ibsimtest.On(b, serve(), nil, nil)
		start = time.Now()
		sm := on.StartSM(b, ibsimtest.FixtureOptions{SM: node, SMArgs: []string{"-o", "-R", "ftree"}})
		sm.WaitLong(b, "SUBNET UP", 10*time.Minute)
		theirs += time.Since(start)
		sm.Stop()
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "s")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "opensm-s")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "of-opensm")
	b.ReportMetric(0, "ns/op")
}
