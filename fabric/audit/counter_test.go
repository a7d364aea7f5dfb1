package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestThresholds: infiniband-diags' format, and what is wrong with a file.
func TestThresholds(t *testing.T) {
	const file = `# Define error thresholds here

SymbolErrorCounter=10
 LinkErrorRecoveryCounter = 0x10 # of the old switches
PortRcvErrors=5/min
port_xmit_discards=100/s
PortXmitWait=010
PortDLIDMappingErrors=3/h
SymbolErrorCounter=7`
	got, err := ReadThresholds(strings.NewReader(file), "thresholds")
	want := []Threshold{
		{"symbol_error_counter", 10, 0}, {"link_error_recovery_counter", 16, 0}, {"port_rcv_errors", 5, time.Minute}, {"port_xmit_discards", 100, time.Second},
		{"port_xmit_wait", 8, 0}, {"port_dlid_mapping_errors", 3, time.Hour}, {"symbol_error_counter", 7, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	for file, want := range map[string]string{
		"\nSymbolErrors":            `x:2: expected NAME=NUMBER, got "SymbolErrors"`,
		"SymbolErrorCounters=1":     `x:1: unknown error counter "SymbolErrorCounters" (did you mean symbol_error_counter?)`,
		"PortXmitData=1":            `x:1: unknown error counter "PortXmitData"`,
		"SymbolErrorCounter=-1":     `x:1: symbol_error_counter: expected a number, or one per time such as 5/min, got "-1"`,
		"SymbolErrorCounter=1/day":  `x:1: symbol_error_counter: a number may be per s, min or h, got "1/day"`,
		"SymbolErrorCounter=1/":     `x:1: symbol_error_counter: a number may be per s, min or h, got "1/"`,
		"\x1b[2J\xff=1":             `x:1: unknown error counter "\x1b[2J\xff"`,
		strings.Repeat("x", 1<<17):  "x: a line is longer than 65536 bytes",
		strings.Repeat("\n", 2<<20): "x: expected at most 1 MB",
	} {
		list, err := ReadThresholds(strings.NewReader(file), "x")
		if err == nil || !strings.HasPrefix(err.Error(), want) || list != nil {
			t.Errorf("%.40q: %v, want %s", file, err, want)
		}
	}
}

// FuzzThresholds: any bytes.
func FuzzThresholds(f *testing.F) {
	f.Add([]byte("SymbolErrorCounter=10\nPortRcvErrors=5/min # x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ReadThresholds(strings.NewReader(string(data)), "x")
		for _, x := range list {
			if err == nil && CounterIndex(x.Counter) < 0 {
				t.Errorf("%q is no counter", x.Counter)
			}
		}
	})
}
