package builtins

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/mad/engine"
)

// TestEvidence: the page has both ends, serial numbers, the opcode and the counters, and neither keys nor the
// names of hosts that are not concerned.
func TestEvidence(t *testing.T) {
	const key, vsKey = 0x5ec2e7fade0ddba1, 0x7ec2e7fade0ddba3
	onSimWith(t, "fattree:k=4,registers=yes,mkey=0x5ec2e7fade0ddba1,mkey_level=2", &engine.Keys{M: key, Vendor: vsKey}, nil, nil, func(t *testing.T, f *fixture) {
		if _, failed, _ := f.run(`
discover()
perf_set("PortCountersExtended", "leaf-1/1", symbol_error_counter = 77)
perf_set("PortCounters", "leaf-1/1", symbol_error_counter = 77)`); failed != "" {
			t.Fatal(failed)
		}
		page := func(target string) string {
			e, err := remedies.CollectEvidence(t.Context(), f.Interpreter, remedies.EvidenceOptions{Target: target, Over: "2s"})
			if err != nil {
				t.Fatal(err)
			}
			data, err := audits.RenderMetrics(remedies.WrapEvidence(e), lang.FormatJSON, "evidence")
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := e.WriteHTML(&b, []byte(data)); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		got := page("leaf-1/1 - node-0001 HCA-1/1")
		for _, want := range []string{"node-0001", "vendor_sn", "serial_number", "status_opcode", "symbol_error_counter", ">77<", "effective_ber", "pairs lost", `<script type="application/json" id="data">{"schema":"evidence/1"`, "not read: no history"} {
			if !strings.Contains(got, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		for _, other := range []string{"node-0002", "node-0008"} {
			if strings.Contains(got, other) {
				t.Errorf("the page has %q, a host that is not concerned", other)
			}
		}
		got += page("leaf-1") + page("node-0002")
		if !strings.Contains(got, "(other host)") {
			t.Error("no name was removed from the page of a leaf")
		}
		got = strings.ToLower(got)
		for _, k := range []uint64{key, vsKey} {
			for _, secret := range []string{fmt.Sprintf("%x", k), fmt.Sprint(k), string(binary.BigEndian.AppendUint64(nil, k))} {
				if strings.Contains(got, secret) {
					t.Errorf("the page has a key: %q", secret)
				}
			}
		}
	})
}
