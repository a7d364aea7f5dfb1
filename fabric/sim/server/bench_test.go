//go:build linux

package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// servedSpec has the test's program serve a bare subnet instead, by the name that
// IBSIM_SOCKNAME gives, until its input ends: so its time is measured apart from the time of
// the client.
const servedSpec = "FABSH_SERVED_SPEC"

func serveAlone(spec string) {
	f, o, err := sim.Parse(spec)
	if err == nil {
		o.Bare = true
		var s *Server
		if s, err = Listen(sim.New(f, o), f, Options{Name: os.Getenv("IBSIM_SOCKNAME")}); err == nil {
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				io.Copy(io.Discard, os.Stdin)
				cancel()
			}()
			fmt.Println("serving")
			err = s.Serve(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startAlone starts such a process.
func startAlone(b testing.TB, spec string) (name string, pid int) {
	b.Helper()
	name = uniqueName()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), servedSpec+"="+spec, "IBSIM_SOCKNAME="+name)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); c.Wait() })
	if _, err := out.Read(make([]byte, 64)); err != nil {
		b.Fatal(err)
	}
	return name, c.Process.Pid
}

// cpuTime is the processor time of a process, all threads.
func cpuTime(b testing.TB, pid int) (sum time.Duration) {
	b.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range tasks {
		text, _ := os.ReadFile(path)
		ns, err := strconv.ParseInt(strings.Fields(string(text) + " 0")[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// BenchmarkSMP is the processor time of an SMP in the server, beside ibsim's: of a
// client that has 64 under way. They take turns.
func BenchmarkSMP(b *testing.B) {
	const spec, window, questions = "fattree:k=8,levels=3", 64, 50000
	f, _, err := sim.Parse(spec)
	if err != nil {
		b.Fatal(err)
	}
	theirs := ibsimtest.Start(b, text(b, f), ibsimtest.FixtureOptions{})
	name, pid := startAlone(b, spec)
	measure := func(socket string, pid int) float64 {
		t, err := ibsim.Attach(ibsim.Options{Socket: socket, Node: guidID(f, "node-0001 HCA-1")})
		if err != nil {
			b.Fatal(err)
		}
		defer t.Close()
		var request engine.Call
		d := engine.Datagram{MAD: make([]byte, mad.Size)}
		ask := func(i int) {
			request.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			request.SetRoute(mad.DirectedRoute{0, 1, 5, 5, 1 + byte(i%4), 1 + byte(i/4%4)})
			binary.BigEndian.PutUint64(request.MAD[8:], uint64(i))
			d = engine.Datagram{Address: request.To, MAD: append(d.MAD[:0], request.MAD[:]...)}
			if err := t.Send(&d); err != nil {
				b.Fatal(err)
			}
		}
		before := cpuTime(b, pid)
		for i := range window {
			ask(i)
		}
		for i := range questions {
			if err := t.Recv(&d); err != nil || d.Undelivered {
				b.Fatal(err, d.Undelivered)
			}
			if i+window < questions {
				ask(i + window)
			}
		}
		return float64(cpuTime(b, pid)-before) / questions
	}
	var ours, ibsims []float64
	for b.Loop() {
		for range 3 {
			ours = append(ours, measure(name, pid))
			ibsims = append(ibsims, measure(theirs.Name, theirs.SimPID()))
		}
	}
	slices.Sort(ours)
	slices.Sort(ibsims)
	b.ReportMetric(ours[len(ours)/2], "ns/SMP")
	b.ReportMetric(ibsims[len(ibsims)/2], "ibsim-ns/SMP")
	b.ReportMetric(100*ours[len(ours)/2]/ibsims[len(ibsims)/2], "%of-ibsim")
	b.ReportMetric(0, "ns/op") // of both: of no use
}

// BenchmarkSubnetUp is how long OpenSM takes to bring up 11,664 hosts, beside ibsim,
// and the processor time of the simulator for it, which a busy machine changes less.
func BenchmarkSubnetUp(b *testing.B) {
	if os.Getenv("FABSH_SOAK") == "" {
		b.Skip("minutes: in make soak")
	}
	f, _, err := sim.Parse(largeSpec)
	if err != nil {
		b.Fatal(err)
	}
	node := guidID(f, f.OfType(mad.NodeTypeCA)[0].Name())
	up := func(f *ibsimtest.Fixture, pid int) (took, cpu float64) {
		start, before := time.Now(), cpuTime(b, pid)
		sm := f.StartSM(b, ibsimtest.FixtureOptions{SM: node, SMArgs: []string{"-o", "-R", "ftree"}})
		defer sm.Stop()
		sm.WaitLong(b, "SUBNET UP", 10*time.Minute)
		return time.Since(start).Seconds(), (cpuTime(b, pid) - before).Seconds()
	}
	var ours, theirs, oursCPU, theirsCPU float64
	for b.Loop() {
		name, pid := startAlone(b, largeSpec)
		took, cpu := up(ibsimtest.On(b, name, nil, nil), pid)
		ours, oursCPU = ours+took, oursCPU+cpu
		peer := ibsimtest.Start(b, text(b, f), ibsimtest.FixtureOptions{})
		took, cpu = up(peer, peer.SimPID())
		theirs, theirsCPU = theirs+took, theirsCPU+cpu
	}
	n := float64(b.N)
	b.ReportMetric(ours/n, "s")
	b.ReportMetric(theirs/n, "ibsim-s")
	b.ReportMetric(100*ours/theirs, "%of-ibsim")
	b.ReportMetric(oursCPU/n, "cpu-s")
	b.ReportMetric(theirsCPU/n, "ibsim-cpu-s")
	b.ReportMetric(0, "ns/op") // of both: of no use
}
