package hosts

import (
	"fmt"
	"strings"

	"fabsh/fabric"
)

// SchedulerFormat is an output for another program.
type SchedulerFormat struct {
	Name string
	Doc  string
	// write returns the text, and hosts that it refuses to write.
	write func(r *HealthReport, o *Output) (string, []Refused)
}

// Refused is a host that an output does not have.
type Refused struct {
	Name string
	Err  error
}

// Output are the settings of an output.
type Output struct {
	// Drained are the nodes that Slurm has drained, with their reasons; nil: no drain is lifted.
	Drained []Drained
	// Subnet is the name of the subnet that was audited; "": unnamed. It is in the reasons of
	// drains: a run of another subnet does not lift or replace them.
	Subnet string
	// Host is the host of an output that is about one.
	Host string
}

// SchedulerFormats are the outputs for other programs.
var SchedulerFormats = []SchedulerFormat{
	{"slurm", "commands that drain unhealthy nodes: scontrol update", writeSlurm},
	{"npd", "the line of a custom plugin of node-problem-detector; exit status 0: ok, 1: degraded or unhealthy, 2: unknown", writeNPD},
	{"nvsentinel", "HealthEvents of NVSentinel, as JSON", writeNVSentinel},
}

// SchedulerFormatByName returns a format. The error lists all, and others.
func SchedulerFormatByName(name string, others ...string) (*SchedulerFormat, error) {
	names := others
	for i := range SchedulerFormats {
		if SchedulerFormats[i].Name == name {
			return &SchedulerFormats[i], nil
		}
		names = append(names, SchedulerFormats[i].Name)
	}
	return nil, fmt.Errorf("unsupported program %q%s; supported: %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
}

// Write returns the text of a format, and the hosts that it does not contain because of their
// names.
func (f *SchedulerFormat) Write(r *HealthReport, o Output) (string, []Refused) { return f.write(r, &o) }

// summary returns the reasons of a host in one line.
func (h *HostHealth) summary() string {
	parts := make([]string, 0, len(h.Reasons))
	for _, r := range h.Reasons {
		text := r.Text
		if r.ID != "" {
			text = r.Check + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
