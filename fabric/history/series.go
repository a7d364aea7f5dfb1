package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fabsh/mad"
)

// Point is a value of a Series: what was counted in the Width from Time on, or what was measured then.
type Point struct {
	Time  time.Time
	Width time.Duration
	Value float64
}

// Series is what was recorded of a port. Times without a point were not recorded, or are in a gap.
type Series struct {
	Node    mad.GUID
	Port    int
	What    string  // the counter, or the kind of sample
	Unit    string  // of Value: "MB/s", "" of counters
	Rounded bool    // values are within 5 %, as samples are kept
	Points  []Point // by time
	Gaps    []Gap
}

// SampleUnits are the units of the kinds of samples.
var SampleUnits = map[string]string{
	SampleMean: "MB/s", SampleMost: "MB/s", SampleWait: "%", SampleTemperature: "°C", SampleRxPower: "mW", SampleTxPower: "mW", SampleBERGrade: "",
}

// Errors is what counters of a port grew by in the Width from Time on.
type Errors struct {
	Time    time.Time
	Width   time.Duration // 5 minutes, an hour or a day
	Counter string
	Count   uint64
	Hours   int // of a day: in how many hours it grew
}

// errorTables are the tables of counters that grew, by the width of their rows.
var errorTables = map[time.Duration]string{
	5 * time.Minute: "select t, counter, n, 1 from err5 where port = ? and t >= ? and t < ? order by t, counter limit ?",
	time.Hour:       "select t, counter, n, 1 from err60 where port = ? and t >= ? and t < ? order by t, counter limit ?",
	24 * time.Hour:  "select t, counter, n, hours from err_day where port = ? and t >= ? and t < ? order by t, counter limit ?",
}

// Errors returns what counters of a port grew by from since to until, by a width of 5 minutes, an hour or
// a day. Counters that did not grow are not in it; nor is a port that the history does not have.
func (s *Store) Errors(ctx context.Context, node mad.GUID, num int, since, until time.Time, width time.Duration) (list []Errors, err error) {
	port, err := s.portID(ctx, node, num)
	if err != nil || port == 0 {
		return nil, err
	}
	words, err := s.words(ctx, "counter")
	if err != nil {
		return nil, err
	}
	return s.errorsOf(ctx, port, since, until, width, words)
}

func (s *Store) errorsOf(ctx context.Context, port int64, since, until time.Time, width time.Duration, words map[int64]string) (list []Errors, err error) {
	query, ok := errorTables[width]
	if !ok {
		return nil, fmt.Errorf("errors by %v: want 5m, 1h or 24h", width)
	}
	if width == 24*time.Hour { // by port, the hours are indexed, and the days are not
		return s.errorDays(ctx, port, since, until, words)
	}
	from, to := span(since, until)
	err = s.each(ctx, query, []any{port, from - from%int64(width/time.Second), to, maxEvents}, func(scan func(...any) error) error {
		var t, counter, n, hours int64
		if err := scan(&t, &counter, &n, &hours); err != nil {
			return err
		}
		list = append(list, Errors{at(t), width, counterName(words, counter), uint64(max(0, n)), int(hours)})
		return nil
	})
	return list, err
}

// errorDays sums the hours of days, and before the oldest of them the days that are kept for ever.
func (s *Store) errorDays(ctx context.Context, port int64, since, until time.Time, words map[int64]string) (list []Errors, err error) {
	from, to := span(since, until)
	from -= from % daySeconds
	err = s.each(ctx, "select t / 86400 * 86400 as day, counter, sum(n), count(*) from err60 where port = ? and t >= ? and t < ? group by t / 86400 * 86400, counter order by 1, 2 limit ?", []any{port, from, to, maxEvents}, func(scan func(...any) error) error {
		var t, counter, n, hours int64
		if err := scan(&t, &counter, &n, &hours); err != nil {
			return err
		}
		list = append(list, Errors{at(t), 24 * time.Hour, counterName(words, counter), uint64(max(0, n)), int(hours)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept, err := s.oldestHour(ctx)
	if err != nil || from >= kept {
		return list, err
	}
	if kept -= kept % daySeconds; len(list) > 0 {
		kept = min(kept, list[0].Time.Unix())
	}
	var old []Errors
	// Without an index by port: only what err60 no longer has.
	err = s.each(ctx, errorTables[24*time.Hour], []any{port, from, min(to, kept), maxEvents}, func(scan func(...any) error) error {
		var t, counter, n, hours int64
		if err := scan(&t, &counter, &n, &hours); err != nil {
			return err
		}
		old = append(old, Errors{at(t), 24 * time.Hour, counterName(words, counter), uint64(max(0, n)), int(hours)})
		return nil
	})
	return append(old, list...), err
}

// hoursKept is how long the hours of counters are kept, in seconds; the purge may be a day late.
const hoursKept = 399 * daySeconds

// oldestHour returns from when on err60 is whole.
func (s *Store) oldestHour(ctx context.Context) (int64, error) {
	var last sql.NullInt64
	err := s.db.QueryRowContext(ctx, "select max(t) from cycle").Scan(&last)
	return last.Int64 - hoursKept, s.failed(err)
}

// Series returns a counter, by hours, or a kind of sample (SampleMean), by hours or days, of a port from
// since to until. A counter that did not grow in an hour of which the history has a cycle is 0 then.
func (s *Store) Series(ctx context.Context, node mad.GUID, num int, what string, since, until time.Time) (*Series, error) {
	x := &Series{Node: node, Port: num, What: what}
	var err error
	if x.Gaps, err = s.Gaps(ctx, since, until); err != nil {
		return nil, err
	}
	port, err := s.portID(ctx, node, num)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		return nil, fmt.Errorf("%s: the history does not have port %s/%d", s.path, node, num)
	}
	if unit, ok := SampleUnits[what]; ok {
		x.Unit, x.Rounded = unit, what != SampleTemperature && what != SampleBERGrade
		x.Points, err = s.samples(ctx, port, what, since, until)
		return x, err
	}
	counter, ok, err := s.wordID(ctx, "counter", what)
	if err != nil {
		return nil, err
	}
	// A counter that grew at many ports is kept as a sample by hour, in a second.
	wide, err := s.samples(ctx, port, what, since, until)
	if err != nil {
		return nil, err
	}
	x.Rounded = len(wide) > 0
	if !ok && len(wide) == 0 {
		known, err := s.words(ctx, "counter")
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %q: no counter or sample of that name was recorded; recorded: %s", s.path, what, namesOf(known))
	}
	if ok {
		if x.Points, err = s.counts(ctx, x.Gaps, "select t, n from err60 where port = ? and t >= ? and t < ? and counter = ?", port, counter, since, until); err != nil {
			return nil, err
		}
	}
	for _, p := range wide {
		p.Value = math.Round(p.Value * p.Width.Seconds())
		i, found := slices.BinarySearchFunc(x.Points, p.Time, func(a Point, t time.Time) int { return a.Time.Compare(t) })
		switch {
		case !found:
			x.Points = slices.Insert(x.Points, i, p)
		case x.Points[i].Value < p.Value:
			x.Points[i] = p
		}
	}
	return x, nil
}

// ErrorSeries returns the errors of a port by hours: the sum of all counters that are kept by rows, without
// link-downs.
func (s *Store) ErrorSeries(ctx context.Context, node mad.GUID, num int, since, until time.Time) (*Series, error) {
	x := &Series{Node: node, Port: num, What: "errors"}
	var err error
	if x.Gaps, err = s.Gaps(ctx, since, until); err != nil {
		return nil, err
	}
	port, err := s.portID(ctx, node, num)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		return nil, fmt.Errorf("%s: the history does not have port %s/%d", s.path, node, num)
	}
	down, _, err := s.wordID(ctx, "counter", linkDowned)
	if err != nil {
		return nil, err
	}
	x.Points, err = s.counts(ctx, x.Gaps, "select t, sum(n) from err60 where port = ? and t >= ? and t < ? and counter <> ? group by t", port, down, since, until)
	return x, err
}

// counts returns a counter by hours, which query reads.
func (s *Store) counts(ctx context.Context, gaps []Gap, query string, port, counter int64, since, until time.Time) (points []Point, err error) {
	hours, err := s.recordedHours(ctx, since, until, gaps)
	if err != nil {
		return nil, err
	}
	grown := map[int64]float64{}
	from, to := span(since, until)
	err = s.each(ctx, query, []any{port, from - from%hourSeconds, to, counter}, func(scan func(...any) error) error {
		var t int64
		var n float64
		if err := scan(&t, &n); err != nil {
			return err
		}
		grown[t] = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	for t := range grown {
		if _, ok := slices.BinarySearch(hours, t); !ok {
			hours = append(hours, t)
		}
	}
	slices.Sort(hours)
	for _, t := range slices.Compact(hours) {
		points = append(points, Point{at(t), time.Hour, grown[t]})
	}
	return points, nil
}

// recordedHours returns the hours that are not whole in a gap.
func (s *Store) recordedHours(ctx context.Context, since, until time.Time, gaps []Gap) (hours []int64, err error) {
	var first, last sql.NullInt64
	if err := s.db.QueryRowContext(ctx, "select min(t), max(t) from cycle").Scan(&first, &last); err != nil || !first.Valid {
		return nil, s.failed(err)
	}
	from, to := span(since, until)
	from, to = max(from, first.Int64), min(to, last.Int64+1)
	for t := from - from%hourSeconds; t < to; t += hourSeconds {
		for len(gaps) > 0 && gaps[0].To.Unix() < t+hourSeconds {
			gaps = gaps[1:]
		}
		if len(gaps) == 0 || gaps[0].From.Unix() >= t {
			hours = append(hours, t)
		}
	}
	return hours, nil
}

// samples returns a kind of sample: of old days a mean, or for SampleMost the largest; then hours; and of
// today what is not in tiles yet.
func (s *Store) samples(ctx context.Context, port int64, what string, since, until time.Time) (points []Point, err error) {
	kind, ok, err := s.wordID(ctx, "sample", what)
	if err != nil || !ok {
		return nil, err
	}
	mean, isMost := int64(0), what == SampleMost
	if isMost { // it is kept as steps above the mean
		if mean, ok, err = s.wordID(ctx, "sample", SampleMean); err != nil || !ok {
			return nil, err
		}
	}
	from, to := span(since, until)
	block, place := port/tilePorts, port%tilePorts
	add := func(t int64, width time.Duration, v float64) {
		if !math.IsNaN(v) && t+int64(width/time.Second) > from && t < to {
			points = append(points, Point{at(t), width, v})
		}
	}
	blobs := func(table, where string, kind int64, use func(t int64, data []byte) error) error {
		args := []any{kind, from - from%daySeconds, to, maxBlob}
		if where != "" {
			args = append(args, block)
		}
		return s.each(ctx, "select t, data from "+table+" where kind = ? and t >= ? and t < ? and length(data) <= ?"+where+" order by t", args, func(scan func(...any) error) error {
			var t int64
			var data []byte
			if err := scan(&t, &data); err != nil {
				return err
			}
			if err := use(t, data); err != nil {
				return fmt.Errorf("%s: %s of %s: %w", s.path, table, timeText(t), err)
			}
			return nil
		})
	}
	days := map[int64]bool{}
	if err := blobs("day", " and block = ?", kind, func(t int64, data []byte) error {
		d, err := decodeDay(data)
		if err != nil {
			return err
		}
		days[t] = true
		b := d[place][0]
		if isMost {
			b = d[place][1]
		}
		add(t, 24*time.Hour, decodeSample(what, b))
		return nil
	}); err != nil {
		return nil, err
	}
	means := map[int64][tileHours]byte{}
	if isMost {
		if err := blobs("tile", " and block = ?", mean, func(t int64, data []byte) error {
			x, err := decodeTile(data)
			if err == nil {
				means[t] = x[place]
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	tiles := map[int64]bool{}
	if err := blobs("tile", " and block = ?", kind, func(t int64, data []byte) error {
		x, err := decodeTile(data)
		if err != nil || days[t] {
			return err
		}
		tiles[t] = true
		for h, b := range x[place] {
			if isMost {
				b = mostByte(means[t][h], b)
			}
			add(t+int64(h)*hourSeconds, time.Hour, decodeSample(what, b))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	width := time.Hour
	if isDaily(what) {
		width = 24 * time.Hour
	}
	var hourMeans map[int64]byte
	if isMost {
		hourMeans = map[int64]byte{}
		if err := blobs("hour", "", mean, func(t int64, data []byte) error {
			b, err := byteAt(data, port)
			hourMeans[t] = b
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := blobs("hour", "", kind, func(t int64, data []byte) error {
		b, err := byteAt(data, port)
		if err != nil || width == time.Hour && tiles[t-t%daySeconds] {
			return err
		}
		if isMost {
			b = mostByte(hourMeans[t], b)
		}
		add(t, width, decodeSample(what, b))
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(points, func(a, b Point) int { return a.Time.Compare(b.Time) })
	return points, nil
}

// isDaily reports whether a kind of sample has one a day.
func isDaily(what string) bool {
	return what == SampleTemperature || what == SampleRxPower || what == SampleTxPower || what == SampleBERGrade
}

// byteAt returns the byte of a port in a row of hour.
func byteAt(data []byte, port int64) (byte, error) {
	ports, err := decodeHour(data)
	if err != nil || port >= int64(len(ports)) {
		return noSample, err
	}
	return ports[port], nil
}

// span is a time as limits of rows; a zero time is no limit.
func span(since, until time.Time) (from, to int64) {
	to = math.MaxInt32 * 2 // the year 2106
	if !since.IsZero() {
		from = since.Unix()
	}
	if !until.IsZero() {
		to = until.Unix()
	}
	return from, to
}

// HasPort reports whether the history has a port.
func (s *Store) HasPort(ctx context.Context, node mad.GUID, num int) (bool, error) {
	id, err := s.portID(ctx, node, num)
	return id != 0, err
}

// portID returns the id of a port; 0: the history does not have it.
func (s *Store) portID(ctx context.Context, node mad.GUID, num int) (id int64, err error) {
	err = s.db.QueryRowContext(ctx, "select p.id from port p join node n on n.id = p.node where n.guid = ? and p.num = ?", node.String(), num).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, s.failed(err)
}

// nodeID returns the id of a node; 0: the history does not have it.
func (s *Store) nodeID(ctx context.Context, node mad.GUID) (id int64, err error) {
	err = s.db.QueryRowContext(ctx, "select id from node where guid = ?", node.String()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, s.failed(err)
}

// words returns the names of a kind, by id.
func (s *Store) words(ctx context.Context, kind string) (map[int64]string, error) {
	names := map[int64]string{}
	err := s.each(ctx, "select id, name from word where kind = ?", []any{kind}, func(scan func(...any) error) error {
		var id int64
		var name string
		if err := scan(&id, &name); err != nil {
			return err
		}
		names[id] = name
		return nil
	})
	return names, err
}

// wordID returns the id of a word; ok: it has one. Ids begin at 1.
func (s *Store) wordID(ctx context.Context, kind, name string) (id int64, ok bool, err error) {
	err = s.db.QueryRowContext(ctx, "select id from word where kind = ? and name = ?", kind, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return id, err == nil, s.failed(err)
}

func counterName(words map[int64]string, id int64) string {
	if name, ok := words[id]; ok {
		return name
	}
	return fmt.Sprintf("counter %d", id)
}

func namesOf(words map[int64]string) string {
	var names []string
	for _, name := range words {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	text := names[0]
	for _, n := range names[1:] {
		text += ", " + n
	}
	return text
}

// each calls use for each row. The errors of use are returned unchanged if they name the file.
func (s *Store) each(ctx context.Context, query string, args []any, use func(scan func(...any) error) error) error {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return s.failed(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := use(rows.Scan); err != nil {
			return err
		}
	}
	return s.failed(rows.Err())
}

// eachInts is each for rows of integers, of which there may be many: 0 where a column is null.
func (s *Store) eachInts(ctx context.Context, query string, args []any, use func(row []int64) error) error {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return s.failed(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return s.failed(err)
	}
	// Scan into an integer goes by its text.
	cells, to, row := make([]any, len(names)), make([]any, len(names)), make([]int64, len(names))
	for i := range cells {
		to[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return s.failed(err)
		}
		for i, v := range cells {
			row[i] = number(v)
		}
		if err := use(row); err != nil {
			return err
		}
	}
	return s.failed(rows.Err())
}
