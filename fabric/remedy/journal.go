package remedy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// Origin begins the origin of the plans that remedies make (change.Plan.From), by which a journal
// of change apply is recognized.
const Origin = "fabsh remedy "

// CheckPlan returns why a plan that remedies made must not be applied: no log below dir has its
// actions as planned within pendingFor. Then they would not be recorded as applied, or are no
// longer in the budgets of other plans. It is nil for other plans.
func CheckPlan(dir string, p *change.Plan, now time.Time) error {
	if !strings.HasPrefix(p.From, Origin) {
		return nil
	}
	logs := []*Log{{}} // resets need none
	var failed []error
	for _, path := range fabric.StateFiles(dir, logName) {
		l, err := readLog(path)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		logs = append(logs, l)
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		place := Place{s.Node, int(s.Modifier & 0xff)}
		if !slices.ContainsFunc(logs, func(l *Log) bool { return l.State.isPending(place, s, now) }) {
			return errors.Join(append(failed, fmt.Errorf("no log of remedies below %s has port %v as planned in the last %g h; make the plan again with fabsh remedy --out, and apply it with the same --state", dir, place, pendingFor.Hours()))...)
		}
	}
	return nil
}

// isPending reports whether a change of the port at a place is planned. A reset is not kept in the
// state, and may always be applied.
func (s *State) isPending(place Place, c *certificate.Change, now time.Time) bool {
	past := s.at(place)
	switch from, to, _ := c.PortState(); {
	case to == mad.PortPhysicalStateDisabled:
		return past != nil && Pending(past.Planned, now)
	case from == mad.PortPhysicalStateDisabled:
		return past != nil && Pending(past.Restoring, now)
	}
	return true
}

// confirmedEntries returns entries for the planned actions of l that a journal of a change below dir
// has confirmed, and l does not have.
func confirmedEntries(l *Log, dir string) (entries []Entry) {
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
			switch _, to, _ := c.PortState(); {
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
