package hosts

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

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

// longestEvent is the maximum length of a message, in bytes.
const longestEvent = 1024

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
			IsFatal: h.State == Unhealthy, IsHealthy: h.State == OK,
			Message: plain(strings.TrimSuffix(h.State.String()+": "+h.summary(), ": "), longestEvent), RecommendedAction: "NONE",
			ErrorCode: []string{}, EntitiesImpacted: []struct{}{}, Metadata: map[string]string{"state": h.State.String()},
			GeneratedTimestamp: r.Time.UTC().Format(time.RFC3339Nano), NodeName: name, ProcessingStrategy: "EXECUTE_REMEDIATION",
		}
		switch h.State {
		case Unhealthy:
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
