package builtins

import (
	"slices"
	"testing"
	"time"

	"go.starlark.net/starlark"

	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/fabric/history"
)

// TestHistoryColumns: what answers of a history show is documented, and in their JSON.
func TestHistoryColumns(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	end := history.End{Node: 0x101, Port: 7}
	events := []history.Event{{Time: now, Kind: "link.down", Subject: "a - b", Node: 0x101, Port: 7}, {Time: now, Kind: "sm.moved", Port: -1}}
	gaps := []history.Gap{{From: now, To: now.Add(time.Hour)}}
	errors := []history.Errors{{Time: now, Width: 24 * time.Hour, Counter: "symbol_error_counter", Count: 5, Hours: 2}}
	ber := history.PortBER{End: end, Time: now, Up: time.Hour, Raw: 1e-6, Effective: 1e-12, Symbol: -1}
	found := []history.Found{{Key: "flaps:x", From: now, Checked: now}}
	acks := []history.Acked{{Pattern: "flaps:*", From: now}}
	actions := []history.Action{{Time: now, Action: "apply"}}
	cable := history.Cable{Serial: "S1", Part: "P", A: end, From: now}
	n := &history.Named{}
	port := values.PortLife(n, &history.PortLife{End: end, Events: events, Links: []history.Life{{A: 0x101, APort: 7, B: 0x102, BPort: 1, From: now}}, Cables: []history.Cable{cable},
		Errors: errors, BER: []history.PortBER{ber}, Findings: found, Acks: acks, Actions: actions, Gaps: gaps})
	node := values.NodeLife(n, &history.NodeLife{Node: 0x101, First: now, Events: events, Errors: map[int]uint64{7: 5}, Findings: found, Acks: acks, Actions: actions, Gaps: gaps})
	life := values.CableLife(n, &history.CableLife{Serial: "S1", Spans: []history.CableSpan{{Cable: cable, Downs: 2, Errors: errors, Events: events}}, Gaps: gaps})
	series := values.Series(n, &history.Series{Node: 0x101, Port: 7, What: "xmit_mean", Unit: "MB/s", Rounded: true, Points: []history.Point{{Time: now, Width: time.Hour, Value: 3}}, Gaps: gaps}, now, now.Add(2*time.Hour), events)
	offenders := values.Offenders(n, "s", []history.Offender{{Key: "S1", IsCable: true, Ends: []history.End{end}, First: now, Last: now}, {Key: "x", Ends: []history.End{{Node: 0x101, Port: -1}}}})
	list := []starlark.Value{values.Wrap("history.db", &history.Overview{Subnet: "s"}), port, node, life, series}
	list = append(list, lang.Elements(offenders)...)
	list = append(list, lang.Elements(values.Flaps([]history.Flap{{Subject: "a - b", Node: 0x101, Port: 7, Downs: 2, First: now, Last: now}}))...)
	list = append(list, lang.Elements(values.BER(n, []history.JudgedBER{{PortBER: ber, Rate: 1e-12, Source: "register"}, {PortBER: ber, Why: "up for 1m"}}))...)
	var seen []string
	for i := 0; i < len(list); i++ {
		v := list[i]
		checkSchema(t, v)
		checkTextInJSON(t, v)
		seen = append(seen, v.Type())
		for _, f := range v.(lang.Factual).Facts() {
			if rows, ok := f.Value.(*starlark.List); ok {
				for _, e := range lang.Elements(rows) {
					if _, ok := e.(lang.Factual); ok {
						list = append(list, e)
					}
				}
			}
		}
	}
	for _, d := range values.Types {
		if !slices.Contains(seen, d.Name) {
			t.Errorf("no value of type %s is checked", d.Name)
		}
	}
}
