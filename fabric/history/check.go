package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Verdict is what Check found.
type Verdict struct {
	Damage []string // in sentences; none: nothing was found
	Sound  []string // what is whole although something else is damaged
}

// maxDamage is how many faults of a kind are named; others are counted.
const maxDamage = 20

// Check reads all of the history: it compares the sums of the rows of each table and day, and of each
// cycle, with those that were written, and reads all keyframes, deltas and tiles.
func (s *Store) Check(ctx context.Context) (*Verdict, error) {
	v := &Verdict{}
	if !s.isServer() { // PostgreSQL has sums of its pages: initdb --data-checksums
		var text string
		if err := s.db.QueryRowContext(ctx, "pragma integrity_check(1)").Scan(&text); err != nil {
			v.Damage = append(v.Damage, "SQLite: "+err.Error())
		} else if text != "ok" {
			v.Damage = append(v.Damage, "SQLite: "+text)
		}
	}
	for _, t := range tables {
		bad, days, rows, err := s.checkTable(ctx, t)
		if err != nil {
			bad = append(bad, "table "+t.name+" cannot be read: "+err.Error())
		}
		v.damaged(t.name, bad)
		switch good := days - len(bad); {
		case err != nil || good <= 0:
		case len(bad) == 0:
			v.Sound = append(v.Sound, fmt.Sprintf("table %s: %s", t.name, plural.Count(rows, "row", "rows")))
		default:
			v.Sound = append(v.Sound, fmt.Sprintf("table %s: %d of %s", t.name, good, plural.Count(days, "day", "days")))
		}
	}
	bad, cycles, err := s.checkCycles(ctx)
	if err != nil {
		bad = append(bad, err.Error())
	}
	v.damaged("cycles", bad)
	if good := cycles - len(bad); good > 0 {
		v.Sound = append(v.Sound, fmt.Sprintf("the fabric and events of %d of %s", good, plural.Count(cycles, "sweep", "sweeps")))
	}
	if len(v.Damage) == 0 {
		v.Sound = nil
	}
	return v, ctx.Err()
}

func (v *Verdict) damaged(what string, list []string) {
	v.Damage = append(v.Damage, list[:min(len(list), maxDamage)]...)
	if n := len(list) - maxDamage; n > 0 {
		v.Damage = append(v.Damage, fmt.Sprintf("%s: and %d more", what, n))
	}
}

// checkTable compares the sums of a table. It returns the days whose rows are not those that were written.
func (s *Store) checkTable(ctx context.Context, t *table) (bad []string, days, rows int, err error) {
	is := map[int64]total{}
	var unreadable []string
	err = eachRow(ctx, s.db, t, "", nil, func(row []any) error {
		day := t.dayOf(row)
		x := is[day]
		is[day] = total{x.n + 1, x.sum + int64(t.hash(row))}
		rows++
		if text := t.readable(row); text != "" {
			unreadable = append(unreadable, text)
		}
		return nil
	})
	if err != nil {
		return nil, 0, rows, err
	}
	list, err := s.db.QueryContext(ctx, "select day, n, sum from checksum where name = ?", t.name)
	if err != nil {
		return nil, 0, rows, err
	}
	defer list.Close()
	name := func(day int64) string {
		if t.time < 0 {
			return "the rows of table " + t.name
		}
		return "the rows of table " + t.name + " of " + time.Unix(day, 0).UTC().Format(time.DateOnly)
	}
	for list.Next() {
		var day int64
		var want total
		if err := list.Scan(&day, &want.n, &want.sum); err != nil {
			return nil, 0, rows, err
		}
		days++
		if is[day] != want {
			bad = append(bad, fmt.Sprintf("%s are not those that were written: %d, want %d", name(day), is[day].n, want.n))
		}
		delete(is, day)
	}
	for day := range is {
		days++
		bad = append(bad, name(day)+" have no sum")
	}
	slices.Sort(bad)
	return append(bad, unreadable...), days, rows, list.Err()
}

// readable returns why the samples of a row cannot be read; "": they can, or it has none.
func (t *table) readable(row []any) string {
	var err error
	data, _ := row[len(row)-1].([]byte)
	switch t {
	case tableHour:
		_, err = decodeHour(data)
	case tableTile:
		_, err = decodeTile(data)
	case tableDay:
		_, err = decodeDay(data)
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf("table %s of %s: %v", t.name, timeText(number(row[0])), err)
}

// checkCycles compares the sum of each cycle, and reads its fabric.
func (s *Store) checkCycles(ctx context.Context) (bad []string, cycles int, err error) {
	events := map[int64]uint64{}
	err = eachRow(ctx, s.db, tableEvent, "", nil, func(row []any) error {
		events[number(row[0])] += tableEvent.hash(row)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	var list [][]any
	err = eachRow(ctx, s.db, tableCycle, "1 = 1 order by t", nil, func(row []any) error {
		list = append(list, row)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	var base *fabric.Fabric
	last := int64(-1)
	for _, row := range list {
		t, keyframe := number(row[0]), number(row[4])
		var faults []string
		if number(row[5]) != int64(events[t]+tableCycle.hash(row[:5])) {
			faults = append(faults, "the events of the sweep "+timeText(t)+" are not those that were written")
		}
		delete(events, t)
		if keyframe != last {
			last = keyframe
			var thinned bool
			if thinned, err = s.isThinned(ctx, keyframe); err == nil && !thinned {
				base, _, err = s.keyframe(ctx, keyframe)
			}
			if err != nil {
				base = nil
				faults = append(faults, err.Error())
			} else if thinned {
				base = nil
			}
		}
		if base != nil {
			if _, err := s.since(ctx, base, keyframe, t); err != nil {
				faults = append(faults, err.Error())
			}
		}
		if len(faults) > 0 {
			bad = append(bad, strings.Join(faults, "; "))
		}
	}
	for t := range events {
		bad = append(bad, "events of "+timeText(t)+", of which there is no sweep")
	}
	return bad, len(list), nil
}

// isThinned reports whether a keyframe was removed because of its age: there is a later one that is as old
// as those that are removed.
func (s *Store) isThinned(ctx context.Context, t int64) (bool, error) {
	var there int
	var last sql.NullInt64
	if err := s.db.QueryRowContext(ctx, "select count(*), (select max(t) from cycle) from keyframe where t = ?", t).Scan(&there, &last); err != nil {
		return false, s.failed(err)
	}
	return there == 0 && t < dayOf(last.Int64)-keepOthers, nil
}

// isThinnedCycle is isThinned for the keyframe of a cycle.
func (s *Store) isThinnedCycle(ctx context.Context, t int64) (bool, error) {
	var keyframe int64
	if err := s.db.QueryRowContext(ctx, "select keyframe from cycle where t = ?", t).Scan(&keyframe); err != nil {
		return false, s.failed(err)
	}
	return s.isThinned(ctx, keyframe)
}
