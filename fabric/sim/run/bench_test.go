//go:build linux && (amd64 || arm64)

package run_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad/ibsim/ibsimtest"
)

// large has 702 nodes.
const large = "fattree:k=36"

// net is a topology for ibsim.
func net(b *testing.B, spec string) string {
	f, _, err := sim.Parse(spec)
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	if err := format.Dump(&text, f, format.KindIbnetdiscover); err != nil {
		b.Fatal(err)
	}
	return text.String()
}

// shell runs a command whenever it is asked to.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

// start starts c, a shell, which runs the command for each line that it reads.
func start(b *testing.B, c *exec.Cmd) *shell {
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); c.Wait() })
	return &shell{in, bufio.NewReader(out)}
}

// time returns how long one execution takes.
func (s *shell) time(b *testing.B) float64 {
	began := time.Now()
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		b.Fatal(err)
	}
	if line, err := s.out.ReadString('\n'); line != "0\n" {
		b.Fatalf("status %q, %v", line, err)
	}
	return time.Since(began).Seconds()
}

// loop is a shell's script that runs a command for each line that it reads.
func loop(command string) string {
	return "while read line; do " + command + " >/dev/null 2>&1; echo $?; done"
}

// report reports medians and their ratio.
func report(b *testing.B, ours, theirs []float64) {
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, other := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(1e3*mine, "ms")
	b.ReportMetric(1e3*other, "ibsim-ms")
	b.ReportMetric(100*mine/other, "%of-ibsim")
	b.ReportMetric(0, "ns/op") // of both: of no use
}

// BenchmarkDiscover is ibnetdiscover with 32 requests outstanding, at 702 nodes, beside
// ibsim with libumad2sim. They take turns.
func BenchmarkDiscover(b *testing.B) {
	s := on(b, large)
	tool := ibsimtest.Path(b, "ibnetdiscover")
	ours := start(b, s.command(b, "sh", "-c", loop(tool+" -o 32")))
	preloaded := ibsimtest.Start(b, net(b, large), ibsimtest.FixtureOptions{}).Command(b, "", "ibnetdiscover", "-o", "32")
	c := exec.Command("/bin/sh", "-c", loop(tool+" -o 32"))
	c.Dir, c.Env = preloaded.Dir, preloaded.Env
	theirs := start(b, c)
	var a, t []float64
	for b.Loop() {
		for range 5 {
			a, t = append(a, ours.time(b)), append(t, theirs.time(b))
		}
	}
	report(b, a, t)
}

// BenchmarkOpenSM is opensm -o, from bare to up, at 702 nodes, beside ibsim with
// libumad2sim.
func BenchmarkOpenSM(b *testing.B) {
	s := on(b, large)
	s.bare = true
	text, opensm := net(b, large), ibsimtest.Path(b, "opensm")+" -o -e -f log"
	var a, t []float64
	for b.Loop() {
		for range 3 {
			a = append(a, start(b, s.command(b, "sh", "-c", loop(opensm))).time(b))
			preloaded := ibsimtest.Start(b, text, ibsimtest.FixtureOptions{}).Command(b, "", "opensm")
			c := exec.Command("/bin/sh", "-c", loop(opensm))
			c.Dir, c.Env = preloaded.Dir, append(preloaded.Env, "OSM_TMP_DIR="+preloaded.Dir, "OSM_CACHE_DIR="+preloaded.Dir)
			t = append(t, start(b, c).time(b))
		}
	}
	report(b, a, t)
}
