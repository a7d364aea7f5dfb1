package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric/audit"
	"fabsh/mad"
)

const (
	linkDowned   = "link_downed_counter"
	symbolErrors = "symbol_error_counter"
)

// PortBER is bit error rates of a port that were recorded. A rate below 0 is not known.
type PortBER struct {
	End
	Time      time.Time
	Up        time.Duration // since the link came up; below 0: not known
	Raw       float64       // before error correction
	Effective float64       // after it
	Symbol    float64
	Grade     int
}

// rate returns the rate that counts: what error correction leaves.
func (b *PortBER) rate() (float64, bool) {
	switch {
	case b.Effective >= 0:
		return b.Effective, true
	case b.Symbol >= 0:
		return b.Symbol, true
	}
	return 0, false
}

// JudgedBER is the newest bit error rate of a port, judged.
type JudgedBER struct {
	PortBER
	Rate   float64 // that counts
	Source string  // "register": as the port estimates it; "counter": of symbol errors
	Why    string  // why it is not judged; "": it is
}

const berColumns = "select n.guid, p.num, b.t, b.up_s, b.raw, b.effective, b.symbol, b.grade from ber b join port p on p.id = b.port join node n on n.id = p.node "

func (s *Store) bers(ctx context.Context, where string, args ...any) (list []PortBER, err error) {
	err = s.each(ctx, berColumns+where+" limit ?", append(args, maxEvents), func(scan func(...any) error) error {
		var b PortBER
		var guid string
		var t, up int64
		var raw, effective, symbol sql.NullFloat64
		if err := scan(&guid, &b.Port, &t, &up, &raw, &effective, &symbol, &b.Grade); err != nil {
			return err
		}
		var err error
		if b.Node, err = s.guid(guid); err != nil {
			return err
		}
		known := func(v sql.NullFloat64) float64 {
			if !v.Valid {
				return -1
			}
			return v.Float64
		}
		b.Time, b.Up = at(t), time.Duration(up)*time.Second
		b.Raw, b.Effective, b.Symbol = known(raw), known(effective), known(symbol)
		list = append(list, b)
		return nil
	})
	return list, err
}

func (s *Store) berOf(ctx context.Context, port int64) ([]PortBER, error) {
	return s.bers(ctx, "where b.port = ? order by b.t", port)
}

// berDays is how far back symbol errors count for a rate.
const berDays = 30

// BER returns the links whose newest bit error rate is above a rate, the worst first, and those not yet
// judged: their link has been up for less than up, or it is not known for how long, or their rate is not
// known. Rates are those that ports estimate, and of links that counted symbol errors in the last 30
// days, what these show (audit.JudgeBER). now is the time at which the links are judged.
func (s *Store) BER(ctx context.Context, above float64, up time.Duration, now time.Time) (judged, unjudged []JudgedBER, err error) {
	newest, err := s.bers(ctx, "join (select port, max(t) as t from ber where t <= ? group by port) as x on x.port = b.port and x.t = b.t order by b.port", now.Unix())
	if err != nil {
		return nil, nil, err
	}
	downs, err := s.downs(ctx, now.Add(-berDays*24*time.Hour), now.Add(time.Second))
	if err != nil {
		return nil, nil, err
	}
	last, err := s.lastCycle(ctx)
	if err != nil {
		return nil, nil, err
	}
	add := func(j JudgedBER) {
		if j.Why != "" {
			unjudged = append(unjudged, j)
		} else if j.Rate > above {
			judged = append(judged, j)
		}
	}
	seen := map[End]bool{}
	for _, b := range newest {
		j := JudgedBER{PortBER: b, Source: "register"}
		seen[b.End] = true
		var ok bool
		down, wentDown := downs[b.End]
		switch j.Rate, ok = b.rate(); {
		case !ok:
			j.Why = "the rate after error correction is not known"
		case wentDown && down.After(b.Time):
			j.Why = "the link went down after this rate was read"
		case b.Up < 0 && !wentDown:
			// Down nowhere in the time that is recorded: it has been up for as long (audit.LinkDowns).
			if begin, err := s.recordedSince(ctx); err != nil {
				return nil, nil, err
			} else if b.Time.Sub(begin) < up {
				j.Why = fmt.Sprintf("it is not known since when the link is up; want %v", up)
			}
		case b.Up < 0 && b.Time.Sub(down) < up:
			j.Why = fmt.Sprintf("up for %v; want %v", b.Time.Sub(down).Round(time.Second), up)
		case b.Up >= 0 && b.Up < up:
			j.Why = fmt.Sprintf("up for %v; want %v", b.Up, up)
		}
		add(j)
	}
	counted, err := s.countedBER(ctx, above, up, now, last, downs, seen)
	if err != nil {
		return nil, nil, err
	}
	for _, j := range counted {
		add(j)
	}
	slices.SortStableFunc(judged, func(a, b JudgedBER) int {
		switch {
		case a.Rate > b.Rate:
			return -1
		case a.Rate < b.Rate:
			return 1
		}
		return 0
	})
	return judged, unjudged, nil
}

// countedBER judges the links that counted symbol errors, and whose port does not estimate a rate.
func (s *Store) countedBER(ctx context.Context, target float64, up time.Duration, now, last time.Time, downs map[End]time.Time, seen map[End]bool) (list []JudgedBER, err error) {
	counter, ok, err := s.wordID(ctx, "counter", symbolErrors)
	if err != nil || !ok || last.IsZero() {
		return nil, err
	}
	type candidate struct {
		port int64
		end  End
	}
	var candidates []candidate
	begin := now.Add(-berDays * 24 * time.Hour)
	from := begin.Unix() - begin.Unix()%daySeconds
	err = s.each(ctx, "select p.id, n.guid, p.num from port p join node n on n.id = p.node where p.id in (select port from err_day where t >= ? and t <= ? and counter = ?) order by p.id", []any{from, now.Unix(), counter}, func(scan func(...any) error) error {
		var c candidate
		var guid string
		err := scan(&c.port, &guid, &c.end.Port)
		if err == nil {
			c.end.Node, err = s.guid(guid)
		}
		candidates = append(candidates, c)
		return err
	})
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	names, err := s.Names(ctx)
	if err != nil {
		return nil, err
	}
	first, err := s.recordedSince(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		if seen[c.end] {
			continue
		}
		since, down := begin, downs[c.end]
		if first.After(since) {
			since = first
		}
		if down.After(since) {
			since = down
		}
		since = since.Add(time.Hour - 1).Truncate(time.Hour) // whole hours
		until := last
		if now.Before(until) {
			until = now
		}
		j := JudgedBER{PortBER: PortBER{End: c.end, Time: until, Up: -1, Raw: -1, Effective: -1, Symbol: -1}, Source: "counter"}
		if !down.IsZero() {
			j.Up = until.Sub(down)
		}
		window := until.Sub(since)
		var n int64
		if err := s.db.QueryRowContext(ctx, "select coalesce(sum(n), 0) from err60 where port = ? and t >= ? and t < ? and counter = ?", c.port, since.Unix(), until.Unix(), counter).Scan(&n); err != nil {
			return nil, s.failed(err)
		}
		bits := 0.0
		if p := names.port(c.end); p != nil {
			bits = audit.LinkBits(p.Width(), p.Speed())
		}
		switch verdict := audit.JudgeBER(uint64(max(0, n)), window, bits, target); {
		case window < up:
			j.Why = fmt.Sprintf("up for %v; want %v", max(0, window).Round(time.Second), up)
		case verdict.Verdict == audit.BERUnknown:
			j.Why = "the data rate of the link is not known"
		case verdict.Verdict == audit.BERTooShort:
			j.Why = fmt.Sprintf("%d symbol errors in %v: a rate of %g needs %v", n, window.Round(time.Second), target, verdict.Needs.Round(time.Second))
		case verdict.Verdict == audit.BEROK:
			continue
		default:
			j.Symbol = float64(n) / bits / window.Seconds()
			j.Rate = j.Symbol
		}
		list = append(list, j)
	}
	return list, nil
}

// recordedSince returns the time of the first cycle.
func (s *Store) recordedSince(ctx context.Context) (time.Time, error) {
	var t sql.NullInt64
	if err := s.db.QueryRowContext(ctx, "select min(t) from cycle").Scan(&t); err != nil {
		return time.Time{}, s.failed(err)
	}
	return optionalTime(t), nil
}

// downs returns when each end of a link went down last, voluntarily or not.
func (s *Store) downs(ctx context.Context, since, until time.Time) (map[End]time.Time, error) {
	events, err := s.Changes(ctx, since, until, "link")
	if err != nil {
		return nil, err
	}
	list := map[End]time.Time{}
	for _, e := range events {
		if e.Kind == LinkWidth || e.Kind == LinkSpeed {
			continue
		}
		// It was down at some time before a cycle that finds it up again or new.
		for _, x := range []End{{e.Node, e.Port}, {e.PeerNode, e.PeerPort}} {
			if x.Node != 0 && e.Time.After(list[x]) {
				list[x] = e.Time
			}
		}
	}
	return list, nil
}

// downsOf returns how many involuntary link-downs an event stands for: one that a sweep saw while both
// nodes remained and neither port was disabled, or those that only the counters saw.
func downsOf(e *Event) int {
	switch {
	case e.Kind == LinkDown && e.Now != mad.PortPhysicalStateDisabled.String():
		return 1
	case e.Kind == LinkFlap:
		word, _, _ := strings.Cut(e.Now, " ")
		if n, err := strconv.Atoi(word); err == nil && n > 0 {
			return n
		}
		return 1
	}
	return 0
}
