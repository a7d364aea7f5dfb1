package hosts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/audit"
)

func sample() *HealthReport {
	return &HealthReport{
		Time: time.Date(2026, 2, 3, 4, 5, 6, 7000000, time.UTC),
		Hosts: []HostHealth{
			{Name: "Node-1", State: OK},
			{Name: "node-2", State: Unhealthy, Reasons: []Reason{
				{State: Unhealthy, ID: "link.width:0x1/1", Check: "link.width", Severity: audit.Error, Text: "leaf/1 - node-2 HCA-1/1: 1x, could be 4x", Message: "1x, could be 4x"},
				{State: Degraded, ID: "link.width:0x2/1", Check: "link.width", Severity: audit.Warning, Text: "m"},
				{State: Unknown, Text: "PortCounters of counters: no answer"},
			}},
			{Name: "node-3", State: Unknown, Reasons: []Reason{{State: Unknown, Text: "not\nin the f\x1babric"}}},
			{Name: "node_4", State: Degraded},
		},
	}
}

// TestNPD: one line of at most 80 bytes, and the exit status of a custom plugin.
func TestNPD(t *testing.T) {
	for _, test := range []struct {
		host, want string
		status     int
	}{
		{"Node-1", "ok\n", 0},
		{"node-2", "link.width: 1x, could be 4x; m; PortCounters of counters: no answer\n", 1},
		{"node-3", "not?in the f?abric\n", 2},
		{"node_4", "degraded\n", 1},
		{"node-5", "not in the fabric\n", 2},
		{"node-6", "link.width: 1x, could be 4x (leaf-1/3 - node-6 HCA-1/1)\n", 1},
	} {
		r := sample()
		r.Hosts = append(r.Hosts, HostHealth{Name: "node-6", State: Unhealthy, Reasons: []Reason{{State: Unhealthy, ID: "x", Check: "link.width", Text: "leaf-1/3 - node-6 HCA-1/1: 1x, could be 4x", Message: "1x, could be 4x"}}})
		got, refused := writeNPD(r, &Output{Host: test.host})
		if status := NPDStatus(r, test.host); got != test.want || refused != nil || status != test.status || len(got) > 81 {
			t.Errorf("%s: %q, %d, %v; want %q, %d", test.host, got, status, refused, test.want, test.status)
		}
	}
}

func TestNVSentinel(t *testing.T) {
	const want = `{
  "version": 1,
  "events": [
    {
      "version": 1,
      "agent": "fabsh",
      "componentClass": "NIC",
      "checkName": "InfiniBandFabricCheck",
      "isFatal": false,
      "isHealthy": true,
      "message": "ok",
      "recommendedAction": "NONE",
      "errorCode": [],
      "entitiesImpacted": [],
      "metadata": {
        "state": "ok"
      },
      "generatedTimestamp": "2026-02-03T04:05:06.007Z",
      "nodeName": "node-1",
      "processingStrategy": "EXECUTE_REMEDIATION"
    },
    {
      "version": 1,
      "agent": "fabsh",
      "componentClass": "NIC",
      "checkName": "InfiniBandFabricCheck",
      "isFatal": true,
      "isHealthy": false,
      "message": "unhealthy: link.width leaf/1 - node-2 HCA-1/1: 1x, could be 4x; link.width m; PortCounters of counters: no answer",
      "recommendedAction": "CONTACT_SUPPORT",
      "errorCode": [
        "link.width"
      ],
      "entitiesImpacted": [],
      "metadata": {
        "findings": "link.width:0x1/1 link.width:0x2/1",
        "state": "unhealthy"
      },
      "generatedTimestamp": "2026-02-03T04:05:06.007Z",
      "nodeName": "node-2",
      "processingStrategy": "EXECUTE_REMEDIATION"
    },
    {
      "version": 1,
      "agent": "fabsh",
      "componentClass": "NIC",
      "checkName": "InfiniBandFabricCheck",
      "isFatal": false,
      "isHealthy": false,
      "message": "unknown: not?in the f?abric",
      "recommendedAction": "NONE",
      "errorCode": [],
      "entitiesImpacted": [],
      "metadata": {
        "state": "unknown"
      },
      "generatedTimestamp": "2026-02-03T04:05:06.007Z",
      "nodeName": "node-3",
      "processingStrategy": "STORE_ONLY"
    }
  ]
}
`
	got, refused := writeNVSentinel(sample(), &Output{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(refused) != 1 || refused[0].Name != "node_4" || !strings.Contains(refused[0].Err.Error(), "Kubernetes") {
		t.Errorf("refused %v", refused)
	}
}

// TestNVSentinelCase: of hosts whose names differ only in case, none makes the other's node healthy.
func TestNVSentinelCase(t *testing.T) {
	r := &HealthReport{Hosts: []HostHealth{{Name: "N1", State: OK}, {Name: "n1", State: Unhealthy}, {Name: "n2", State: OK}}}
	text, refused := writeNVSentinel(r, &Output{})
	if strings.Contains(text, `"n1"`) || !strings.Contains(text, `"n2"`) || len(refused) != 2 || refused[0].Name != "N1" || refused[1].Name != "n1" {
		t.Errorf("refused %v of\n%s", refused, text)
	}
}

func TestFormatByName(t *testing.T) {
	_, err := SchedulerFormatByName("slrum", "text")
	if want := `unsupported program "slrum" (did you mean slurm?); supported: text, slurm, npd, nvsentinel`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
