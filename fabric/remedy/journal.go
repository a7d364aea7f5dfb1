package remedy

import (
	"slices"
	"strings"

	"fabsh/fabric/change/apply"
	"fabsh/mad"
)

// Origin begins the origin of the plans that remedies make (plan.Plan.From), by which a journal
// of change apply is recognized.
const Origin = "fabsh remedy "

// Applied returns entries for the planned actions of l that a journal of a change below dir
// has confirmed, and l does not have.
func Applied(l *Log, dir string) (entries []Entry) {
	for _, path := range apply.Journals(dir) {
		j, err := apply.ReadJournal(path)
		if err != nil || j.Begin() == nil || !strings.HasPrefix(j.Begin().Summary, Origin) {
			continue // damage of a journal is reported by the commands on changes
		}
		last := &j.Records[len(j.Records)-1]
		if last.Kind != apply.KindConfirmed {
			continue
		}
		begun := j.Records[0].At
		var left []int
		if applied := j.Last(apply.KindApplied); applied != nil {
			left = applied.Left
		}
		for i, c := range j.Begin().Cells {
			if c.Attr != mad.AttrPortInfo || slices.Contains(left, i) {
				continue
			}
			past := l.State.at(Place{c.Node, int(c.Modifier & 0xff)})
			if past == nil {
				continue
			}
			e := Entry{At: last.At, Kind: KindApplied, Port: past.Port, Peer: past.Peer, Name: past.Name, Remedy: strings.TrimPrefix(j.Begin().Summary, Origin)}
			switch to := mad.PortPhysicalState(c.Attr.Field(stateField).Uint(c.New)); {
			case to == mad.PortPhysicalStateDisabled && !past.Planned.IsZero() && !begun.Before(past.Planned):
				e.Action = Isolate
			case to == mad.PortPhysicalStatePolling && !past.Restoring.IsZero() && !begun.Before(past.Restoring):
				e.Action = Restore
			default:
				continue
			}
			entries = append(entries, e)
		}
	}
	return entries
}
