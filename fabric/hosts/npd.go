package hosts

// longestMessage is how much of the output node-problem-detector keeps by default, in bytes
// (defaultMaxOutputLength in pkg/custompluginmonitor/types/config.go).
const longestMessage = 80

// writeNPD returns one line about one host.
func writeNPD(r *HealthReport, o *Output) (string, []Refused) {
	h := r.Host(o.Host)
	if h == nil {
		h = &HostHealth{Name: o.Host, State: Unknown, Reasons: []Reason{{State: Unknown, Text: "not in the fabric"}}}
	}
	text := h.State.String()
	if len(h.Reasons) > 0 {
		text += ": " + h.summary()
	}
	return plain(text, longestMessage) + "\n", nil
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
