package builtins

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/mad/engine"
)

// BenchmarkSMPGet asks all 2,560 ports of a simulated tree at once, and decodes
// a field of each answer.
func BenchmarkSMPGet(b *testing.B) {
	_, transport := attachSubnet(b, "fattree:k=16,levels=3")
	engine := engine.New(transport, engine.Options{})
	defer engine.Close()
	var stdout, stderr bytes.Buffer
	s, err := NewSession(SessionOptions{Env: topology.Env{Engine: engine}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	code := fmt.Sprintf(`
ports = list(discover().ports)
start = time.now()
for i in range(%d):
    if [p for p in smp_get("PortInfo", ports) if p.port_state != "active"]:
        fail("not all are active")
print(%[1]d * len(ports) / (time.now() - start).seconds)`, b.N)
	if err := program.RunCode(b.Context(), s.Interpreter, "<bench>", code); err != nil {
		b.Fatal(s.Explain(err))
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(stdout.String()), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate, "MADs/s")
	b.ReportMetric(0, "ns/op") // with the discovery: of no use
}
