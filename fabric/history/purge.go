package history

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// How long rows are kept, in seconds; others for ever. Tiles older than that become a mean and a largest
// byte a day, and of the keyframes of a month, with their deltas, the first remains.
const (
	keepErr5   = 30 * daySeconds
	keepOthers = 400 * daySeconds
)

// dailyKinds are the samples of a day, which remain in hour.
var dailyKinds = []string{SampleTemperature, SampleRxPower, SampleTxPower, SampleBERGrade}

// purgeDaily removes what is too old, and makes tiles of the hours of past days, in the first cycle of a
// day, t. Each transaction has at most the rows of a day.
func (r *Recorder) purgeDaily(ctx context.Context, t int64) error {
	today := dayOf(t)
	if r.purged >= today {
		return nil
	}
	if err := r.fold(ctx, today); err != nil {
		return err
	}
	for _, x := range []struct {
		table *table
		until int64
	}{{tableErr5, today - keepErr5}, {tableErr60, today - keepOthers}, {tableHour, today - keepOthers}} {
		days, err := r.days(ctx, x.table, x.until)
		if err != nil {
			return err
		}
		for _, day := range days {
			if err := r.inBatch(ctx, func(b *batch) error { b.drop(x.table, day); return nil }); err != nil {
				return err
			}
		}
	}
	if err := r.thinTiles(ctx, today-keepOthers); err != nil {
		return err
	}
	if err := r.thinKeyframes(ctx, today-keepOthers); err != nil {
		return err
	}
	err := r.inBatch(ctx, func(b *batch) error { b.mark("purged", today); return nil })
	if err == nil {
		r.purged = today
	}
	return err
}

// inBatch runs f in a transaction.
func (s *Store) inBatch(ctx context.Context, f func(b *batch) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer tx.Rollback()
	b := newBatch(ctx, tx)
	if err := f(&b); err != nil {
		return err
	}
	if err := b.write(); err != nil {
		return s.failed(err)
	}
	return s.failed(tx.Commit())
}

// days returns the days before until of which a table has rows.
func (s *Store) days(ctx context.Context, t *table, until int64) (days []int64, err error) {
	rows, err := s.db.QueryContext(ctx, "select day from checksum where name = ? and day < ? order by day", t.name, until)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	for rows.Next() {
		var day int64
		if err := rows.Scan(&day); err != nil {
			return nil, s.failed(err)
		}
		days = append(days, day)
	}
	return days, s.failed(rows.Err())
}

// fold makes tiles of the hours before today.
func (r *Recorder) fold(ctx context.Context, today int64) error {
	daily := map[int64]bool{}
	err := eachRow(ctx, r.db, tableWord, "kind = 'sample'", nil, func(row []any) error {
		name, _ := row[2].(string)
		daily[number(row[1])] = slices.Contains(dailyKinds, name)
		return nil
	})
	if err != nil {
		return r.failed(err)
	}
	rows, err := r.db.QueryContext(ctx, "select t, kind from hour where t < ? order by t, kind", today)
	if err != nil {
		return r.failed(err)
	}
	type part struct{ day, kind int64 }
	var parts []part
	for rows.Next() {
		var t, kind int64
		if err := rows.Scan(&t, &kind); err != nil {
			rows.Close()
			return r.failed(err)
		}
		if p := (part{dayOf(t), kind}); !daily[kind] && !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return r.failed(err)
	}
	for _, p := range parts {
		if err := r.inBatch(ctx, func(b *batch) error { return r.foldDay(b, p.day, p.kind) }); err != nil {
			return err
		}
	}
	return nil
}

// foldDay makes tiles of the hours of a kind of a day.
func (r *Recorder) foldDay(b *batch, day, kind int64) error {
	var blocks []*tile
	for _, row := range b.rows(tableHour, "t >= ? and t < ? and kind = ?", day, day+daySeconds, kind) {
		data, _ := row[2].([]byte)
		ports, err := decodeHour(data)
		if err != nil {
			return fmt.Errorf("%s: samples of %s: %w", r.path, timeText(number(row[0])), err)
		}
		hour := (number(row[0]) - day) / hourSeconds
		for id, v := range ports {
			for id/tilePorts >= len(blocks) {
				blocks = append(blocks, nil)
			}
			x := &blocks[id/tilePorts]
			if v == noSample {
				continue
			}
			if *x == nil {
				*x = new(tile)
			}
			(*x)[id%tilePorts][hour] = v
		}
		b.remove(tableHour, row)
	}
	for i, x := range blocks {
		if x != nil {
			b.insert(tableTile, day, kind, int64(i), encodeTile(x))
		}
	}
	return nil
}

// thinTiles makes a mean and a largest byte a day of the tiles before until.
func (r *Recorder) thinTiles(ctx context.Context, until int64) error {
	days, err := r.days(ctx, tableTile, until)
	if err != nil {
		return err
	}
	mean, _, err := r.wordID(ctx, "sample", SampleMean)
	if err != nil {
		return err
	}
	most, _, err := r.wordID(ctx, "sample", SampleMost)
	if err != nil {
		return err
	}
	for _, day := range days {
		err := r.inBatch(ctx, func(b *batch) error {
			means := map[int64]*tile{} // by block
			for _, row := range b.rows(tableTile, "t = ? order by kind, block", day) {
				data, _ := row[3].([]byte)
				x, err := decodeTile(data)
				if err != nil {
					return fmt.Errorf("%s: tile of %s: %w", r.path, timeText(day), err)
				}
				block := number(row[2])
				if number(row[1]) == mean {
					means[block] = x
				}
				if number(row[1]) == most { // the mean has the lower id
					for i := range x {
						for h := range x[i] {
							m := means[block]
							if m == nil {
								m = new(tile)
							}
							x[i][h] = mostByte(m[i][h], x[i][h])
						}
					}
				}
				b.insert(tableDay, day, row[1], block, encodeDay(thin(x)))
			}
			b.drop(tableTile, day)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// thin returns the mean and the largest byte of the hours of each port.
func thin(x *tile) *dayTile {
	d := new(dayTile)
	for i := range x {
		sum, n := 0.0, 0
		for _, v := range x[i] {
			if v != noSample {
				sum, n = sum+max(0, sampleValue(v)), n+1
				d[i][1] = max(d[i][1], v)
			}
		}
		if n > 0 {
			d[i][0] = sampleByte(sum / float64(n))
		}
	}
	return d
}

// thinKeyframes removes the keyframes before until, with their deltas, but for the first of a month.
func (r *Recorder) thinKeyframes(ctx context.Context, until int64) error {
	rows, err := r.db.QueryContext(ctx, "select t from keyframe where t < ? order by t", until)
	if err != nil {
		return r.failed(err)
	}
	var times []int64
	for rows.Next() {
		var t int64
		if err := rows.Scan(&t); err != nil {
			rows.Close()
			return r.failed(err)
		}
		times = append(times, t)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return r.failed(err)
	}
	month := func(t int64) string { return time.Unix(t, 0).UTC().Format("2006-01") }
	for i, t := range times {
		if i == 0 || month(t) != month(times[i-1]) || t == r.keyTime {
			continue
		}
		var next int64
		if err := r.db.QueryRowContext(ctx, "select coalesce(min(t), ?) from keyframe where t > ?", r.lastT+1, t).Scan(&next); err != nil {
			return r.failed(err)
		}
		for day := dayOf(t); day < next; day += daySeconds {
			err := r.inBatch(ctx, func(b *batch) error {
				for _, row := range b.rows(tableDelta, "t > ? and t >= ? and t < ? and t < ?", t, day, day+daySeconds, next) {
					b.remove(tableDelta, row)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		err := r.inBatch(ctx, func(b *batch) error {
			for _, row := range b.rows(tableKeyframe, "t = ?", t) {
				b.remove(tableKeyframe, row)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
