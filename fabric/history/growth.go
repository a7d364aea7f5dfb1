package history

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// finest is the width of the rows of err5, kept for 30 days; from coarse on, hours are used.
const (
	finest = 5 * time.Minute
	coarse = 2 * time.Hour
)

// Growth returns what the counters of errors of ports grew by in the window before t, by their names. Ports
// without growth are not in it. It is an error if nothing was recorded in a part of the window, or no
// counters ever.
func (s *Store) Growth(ctx context.Context, t time.Time, window time.Duration) (map[End]map[string]uint64, error) {
	if window < finest {
		return nil, fmt.Errorf("%s: counters are recorded by %v; want a window of that or more", s.path, finest)
	}
	begin := t.Add(-window)
	if first, err := s.recordedSince(ctx); err != nil {
		return nil, err
	} else if first.IsZero() || begin.Before(first) {
		return nil, fmt.Errorf("%s: nothing was recorded until %s", s.path, first.Format(time.RFC3339))
	}
	gaps, err := s.Gaps(ctx, begin, t)
	if err != nil {
		return nil, err
	}
	if len(gaps) > 0 {
		return nil, fmt.Errorf("%s: nothing was recorded from %s to %s", s.path, gaps[0].From.Format(time.RFC3339), gaps[0].To.Format(time.RFC3339))
	}
	words, err := s.words(ctx, "counter")
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New(s.path + ": no counters were recorded")
	}
	table, width := "err5", int64(finest/time.Second)
	last, err := s.lastCycle(ctx)
	if err != nil {
		return nil, err
	}
	if window >= coarse || last.Sub(begin) > 29*24*time.Hour {
		table, width = "err60", hourSeconds
	}
	from, to := begin.Unix(), t.Unix()
	from += (width - from%width) % width // rows that begin in the window
	grown := map[End]map[string]uint64{}
	// By days, which are indexed by time, and then by port.
	query := "select n.guid, p.num, e.counter, sum(e.n) from (select distinct port, counter from err_day where t >= ? and t <= ?) as d join " + table + ` e on e.port = d.port and e.counter = d.counter and e.t >= ? and e.t <= ?
		join port p on p.id = e.port join node n on n.id = p.node group by n.guid, p.num, e.counter`
	err = s.each(ctx, query, []any{from - from%daySeconds, to, from, to}, func(scan func(...any) error) error {
		var guid string
		var e End
		var counter int64
		var n float64
		if err := scan(&guid, &e.Port, &counter, &n); err != nil {
			return err
		}
		var err error
		if e.Node, err = s.guid(guid); err != nil {
			return err
		}
		if grown[e] == nil {
			grown[e] = map[string]uint64{}
		}
		grown[e][counterName(words, counter)] = uint64(max(0, n))
		return nil
	})
	return grown, err
}
