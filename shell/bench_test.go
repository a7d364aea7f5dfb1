package shell

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// The benchmarks here run whole processes, from start to exit. What their names
// say as key=value is to be compared: benchstat -col /program.

// program builds fabsh, for the test's own binary is larger and starts more
// slowly.
func program(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fabsh")
	build := exec.Command("go", "build", "-o", path, "./fabsh")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// output runs a command that must succeed.
func output(b *testing.B, c *exec.Cmd) string {
	b.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v\n%s", c, err, out)
	}
	return string(out)
}

// numberIn finds pattern's group in text.
func numberIn(b *testing.B, text, pattern string) float64 {
	b.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		b.Fatalf("no %q in:\n%s", pattern, text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkStart(b *testing.B) {
	path := program(b)
	for b.Loop() {
		if out := output(b, exec.Command(path, "-F", "sim:ring:n=2", "-c", "1")); out != "1\n" {
			b.Fatal(out)
		}
	}
}

// BenchmarkDiscoverIbsim sweeps 648 hosts and 54 switches of 36 ports on ibsim.
// ibnetdiscover keeps 2 MADs on their way if not told otherwise.
func BenchmarkDiscoverIbsim(b *testing.B) {
	path := program(b)
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.Options{})
	const fabric = "fabric: 702 nodes (54 switches, 648 CAs), 1296 links, complete\n"
	fabsh := func(code string) string {
		return output(b, exec.Command(path, "-F", "ibsim:"+f.Name, "-c", code))
	}
	b.Run("program=fabsh", func(b *testing.B) {
		for b.Loop() {
			if out := fabsh("discover()"); out != fabric {
				b.Fatal(out)
			}
		}
		b.ReportMetric(numberIn(b, fabsh("print(discover(), stats())"), `sent=(\d+)`), "MADs")
	})
	for _, args := range [][]string{{"-o", "64"}, nil} {
		b.Run("program=ibnetdiscover"+strings.Join(args, ""), func(b *testing.B) {
			for b.Loop() {
				if err := f.Command(b, "", "ibnetdiscover", args...).Run(); err != nil { // to /dev/null
					b.Fatal(err)
				}
			}
			report := output(b, f.Command(b, "", "ibnetdiscover", append(args, "-m")...))
			b.ReportMetric(numberIn(b, report, `Total MADs used: (\d+)`), "MADs")
		})
	}
}

// BenchmarkParallel asks 208 nodes, 5 ms away, one after the other and at once.
func BenchmarkParallel(b *testing.B) {
	path := program(b)
	const script = `
f = discover()
get = lambda n: smp_get("NodeInfo", n)
start = time.now()
answers = %s
print(len(answers), "answers in", (time.now() - start).seconds)`
	for _, c := range []struct{ how, code string }{
		{"loop", "[get(n) for n in f.nodes]"},
		{"parallel", "parallel(get, f.nodes)"},
	} {
		b.Run("how="+c.how, func(b *testing.B) {
			var seconds float64
			for b.Loop() {
				out := output(b, exec.Command(path, "-F", "sim:fattree:k=8,levels=3,delay=5ms", "--window", "64", "-c", fmt.Sprintf(script, c.code)))
				seconds += numberIn(b, out, `^208 answers in ([0-9.e-]+)`)
			}
			b.ReportMetric(seconds*1e9/float64(b.N), "ns/op") // without start and discovery
		})
	}
}
