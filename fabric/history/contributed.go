package history

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
)

// Kinds of events that other commands than the recorder added. Those of changes are change.apply,
// change.remedy and others.
const (
	AckBegin    = "ack.begin" // Subject: its pattern; Was: by whom; Now: the reason
	AckEnd      = "ack.end"   // it was removed
	FindingOpen = "finding.open"
	FindingGone = "finding.gone" // an audit judged it again
)

// contributed returns the events that other commands added from since on and before until, of the kinds that
// begin with one of the words. Findings are only those that are asked for: an audit may have thousands.
func (s *Store) contributed(ctx context.Context, since, until time.Time, kinds []string) (list []Event, err error) {
	wants := func(kind string, unasked bool) bool {
		return len(kinds) == 0 && unasked || slices.ContainsFunc(kinds, func(k string) bool { return k == kind || strings.HasPrefix(k, kind+".") })
	}
	if wants("change", true) {
		actions, err := s.Actions(ctx, since, until)
		if err != nil {
			return nil, err
		}
		for _, a := range actions {
			list = append(list, Event{Time: a.Time, Kind: "change." + a.Action, Node: a.End.Node, Port: a.End.Port, PeerPort: -1, Subject: a.Subject, Was: "by " + a.Who, Now: a.Outcome})
		}
	}
	from, to := span(since, until)
	// lives adds the begin and the end of a row, if they are in the time.
	lives := func(query string, kinds [2]string, event func(scan func(...any) error, t *int64, till *sql.NullInt64) (Event, error)) error {
		return s.each(ctx, query+" limit ?", []any{from, to, from, to, maxEvents}, func(scan func(...any) error) error {
			var t int64
			var till sql.NullInt64
			e, err := event(scan, &t, &till)
			if e.Kind = kinds[0]; t >= from && t < to {
				e.Time = at(t)
				list = append(list, e)
			}
			if e.Kind = kinds[1]; till.Valid && till.Int64 >= from && till.Int64 < to {
				e.Time = at(till.Int64)
				list = append(list, e)
			}
			return err
		})
	}
	if wants("ack", true) {
		err = lives("select t, till, pattern, who, reason from ack where t >= ? and t < ? or till >= ? and till < ? order by t, pattern", [2]string{AckBegin, AckEnd}, func(scan func(...any) error, t *int64, till *sql.NullInt64) (Event, error) {
			e := Event{Port: -1, PeerPort: -1}
			err := scan(t, till, &e.Subject, &e.Was, &e.Now)
			e.Was = "by " + e.Was
			return e, err
		})
	}
	if err == nil && wants("finding", false) {
		err = lives(`select f.t, f.till, coalesce(n.guid, ''), coalesce(p.num, -1), f.subject, f.key, f.message from finding f left join node n on n.id = f.node left join port p on p.id = f.port
			where f.t >= ? and f.t < ? or f.till >= ? and f.till < ? order by f.t, f.key, f.job`, [2]string{FindingOpen, FindingGone}, func(scan func(...any) error, t *int64, till *sql.NullInt64) (Event, error) {
			e := Event{PeerPort: -1}
			var guid string
			if err := scan(t, till, &guid, &e.Port, &e.Subject, &e.Was, &e.Now); err != nil {
				return e, err
			}
			e.Was = checkOf(e.Was)
			var err error
			e.Node, err = s.guid(guid)
			return e, err
		})
	}
	slices.SortStableFunc(list, func(x, y Event) int { return x.Time.Compare(y.Time) })
	return list, err
}
