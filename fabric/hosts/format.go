package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

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
	// Degraded and Absent choose hosts that are drained besides those that are unhealthy or down:
	// degraded ones, and those that are expected and not in the fabric after complete sweeps.
	Degraded, Absent bool
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

// drained reports whether the host is to be drained.
func (o *Output) drained(r *HealthReport, h *HostHealth) bool {
	switch {
	case h.State >= Unhealthy:
		return true
	case h.State == Degraded:
		return o.Degraded
	}
	return o.Absent && h.Absent && r.Incomplete == ""
}

// brief returns what is wrong with a host in at most n bytes: its messages, and where there is room
// the subject of a single one.
func (h *HostHealth) brief(n int) string {
	var parts []string
	for _, r := range h.Reasons {
		text := r.Text
		if r.Message != "" {
			text = r.Check + ": " + r.Message
			where := strings.TrimSuffix(r.Text, ": "+r.Message)
			if len(h.Reasons) == 1 && len(text)+len(where) <= n-len(" ()") {
				text += " (" + where + ")"
			}
		}
		parts = append(parts, text)
	}
	return printableASCII(strings.Join(parts, "; "), n)
}

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

// plainName matches names that need no quotes in a shell and are not options.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._-]*$`) })

// checkSlurmName returns an error for a name that is not written where a shell or Slurm reads it.
func checkSlurmName(name string) error {
	switch {
	case !plainName().MatchString(name):
		return errors.New("invalid host name; want letters, digits, . _ and -, and no - at the beginning")
	case strings.EqualFold(name, "all"): // scontrol(1), NodeName
		return errors.New("invalid host name: Slurm takes it for all nodes")
	}
	return nil
}

// checkDNSName returns an error for a name that no node of Kubernetes has.
func checkDNSName(name string) error {
	if !fabric.IsDNSName(name) {
		return errors.New("invalid name of a Kubernetes node; want lower-case letters, digits, . and -")
	}
	return nil
}

// printableASCII returns text in printable ASCII, at most n bytes.
func printableASCII(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > n {
		text = strings.TrimRight(text[:n-3], " ") + "..."
	}
	return text
}

// shellQuote returns text as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// maxNPDMessage is how much of the output node-problem-detector keeps by default, in bytes
// (defaultMaxOutputLength in pkg/custompluginmonitor/types/config.go).
const maxNPDMessage = 80

// writeNPD returns one line about one host.
func writeNPD(r *HealthReport, o *Output) (string, []Refused) {
	h := r.Host(o.Host)
	if h == nil {
		h = &HostHealth{Name: o.Host, State: Unknown, Reasons: []Reason{{State: Unknown, Text: "not in the fabric"}}}
	}
	// The exit status has the state, and the plugin the node: the bytes are for the message.
	text := h.State.String()
	if len(h.Reasons) > 0 {
		text = h.brief(maxNPDMessage)
	}
	return text + "\n", nil
}

// NPDStatus returns the exit status of a custom plugin: OK, NonOK or Unknown
// (pkg/custompluginmonitor/types/types.go).
func NPDStatus(r *HealthReport, host string) int {
	h := r.Host(host)
	switch {
	case h == nil || h.State == Unknown:
		return 2
	case h.State == OK:
		return 0
	}
	return 1
}

// healthEvents is the message HealthEvents of NVSentinel's
// data-models/protobufs/health_event.proto, in the JSON form of protocol buffers.
type healthEvents struct {
	Version int           `json:"version"`
	Events  []healthEvent `json:"events"`
}

type healthEvent struct {
	Version            int               `json:"version"`
	Agent              string            `json:"agent"`
	ComponentClass     string            `json:"componentClass"`
	CheckName          string            `json:"checkName"`
	IsFatal            bool              `json:"isFatal"`
	IsHealthy          bool              `json:"isHealthy"`
	Message            string            `json:"message"`
	RecommendedAction  string            `json:"recommendedAction"`
	ErrorCode          []string          `json:"errorCode"`
	EntitiesImpacted   []struct{}        `json:"entitiesImpacted"`
	Metadata           map[string]string `json:"metadata"`
	GeneratedTimestamp string            `json:"generatedTimestamp"`
	NodeName           string            `json:"nodeName"`
	ProcessingStrategy string            `json:"processingStrategy"`
}

// maxEventMessage is the maximum length of a message, in bytes.
const maxEventMessage = 1024

// writeNVSentinel returns an event for each host. Of one that was not judged, NVSentinel only
// stores the event: it is neither healthy nor at fault.
func writeNVSentinel(r *HealthReport, _ *Output) (string, []Refused) {
	doc := healthEvents{Version: 1, Events: []healthEvent{}}
	var refused []Refused
	count := map[string]int{} // hosts, by the name of the node
	for i := range r.Hosts {
		count[strings.ToLower(r.Hosts[i].Name)]++
	}
	for i := range r.Hosts {
		h := &r.Hosts[i]
		name := strings.ToLower(h.Name)
		err := checkDNSName(name)
		if count[name] > 1 { // one of them could make a node healthy that the other is
			err = errors.New("the name of another host differs only in case; Kubernetes has one node for both")
		}
		if err != nil {
			refused = append(refused, Refused{h.Name, err})
			continue
		}
		e := healthEvent{
			Version: 1, Agent: "fabsh", ComponentClass: "NIC", CheckName: "InfiniBandFabricCheck",
			IsFatal: h.State >= Unhealthy, IsHealthy: h.State == OK,
			Message: printableASCII(strings.TrimSuffix(h.State.String()+": "+h.summary(), ": "), maxEventMessage), RecommendedAction: "NONE",
			ErrorCode: []string{}, EntitiesImpacted: []struct{}{}, Metadata: map[string]string{"state": h.State.String()},
			GeneratedTimestamp: r.Time.UTC().Format(time.RFC3339Nano), NodeName: name, ProcessingStrategy: "EXECUTE_REMEDIATION",
		}
		switch h.State {
		case Unhealthy, Down:
			e.RecommendedAction = "CONTACT_SUPPORT"
		case Unknown:
			e.ProcessingStrategy = "STORE_ONLY"
		}
		var ids []string
		for _, reason := range h.Reasons {
			if reason.ID == "" {
				continue
			}
			ids = append(ids, reason.ID)
			if !slices.Contains(e.ErrorCode, reason.Check) {
				e.ErrorCode = append(e.ErrorCode, reason.Check)
			}
		}
		if ids != nil {
			e.Metadata["findings"] = strings.Join(ids, " ")
		}
		doc.Events = append(doc.Events, e)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil { // impossible: strings and numbers
		return "", refused
	}
	return string(text) + "\n", refused
}
