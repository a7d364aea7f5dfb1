package history

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Limit limits the file to a number of pages, as a full disk does.
func (s *Store) Limit(t *testing.T, pages int) {
	s.db.SetMaxOpenConns(1) // a connection has the limit
	if _, err := s.db.Exec(fmt.Sprintf("pragma max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

// Pages returns how many pages the file has.
func (s *Store) Pages(t *testing.T) (n int) {
	if err := s.db.QueryRow("pragma page_count").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Guard replaces the guard of the disk.
func (r *Recorder) Guard(full string) { r.guard = func(string) string { return full } }

// Rows returns the rows of a table that meet a condition.
func (s *Store) Rows(t *testing.T, name, where string, args ...any) (list [][]any) {
	t.Helper()
	for _, x := range tables {
		if x.name != name {
			continue
		}
		if err := eachRow(t.Context(), s.db, x, where, args, func(row []any) error { list = append(list, row); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// Grown returns what error counters grew by, by day, which all three tables must have where they have rows,
// and the times of the rows of 5 minutes.
func (s *Store) Grown(t *testing.T) (days map[string]uint64, fifth []time.Time) {
	days = map[string]uint64{}
	hours, slots := map[string]uint64{}, map[string]uint64{}
	name := func(t any) string { return time.Unix(number(t), 0).UTC().Format(time.DateOnly) }
	for _, row := range s.Rows(t, "err_day", "") {
		days[name(row[0])] += uint64(number(row[4]))
	}
	for _, row := range s.Rows(t, "err60", "") {
		hours[name(row[1])] += uint64(number(row[3]))
	}
	for _, row := range s.Rows(t, "err5", "1 = 1 order by t") {
		slots[name(row[1])] += uint64(number(row[3]))
		fifth = append(fifth, at(number(row[1])))
	}
	if fmt.Sprint(days) != fmt.Sprint(hours) {
		t.Errorf("errors by day: %v, by hour: %v", days, hours)
	}
	for day, n := range slots {
		if days[day] != n {
			t.Errorf("errors of %s: %d, by 5 minutes: %d", day, days[day], n)
		}
	}
	return days, fifth
}

// Traffic returns the mean of what ports sent in all hours, in MB/s, and how many hours of ports those are.
func (s *Store) Traffic(t *testing.T) (mean float64, n int) { return s.Samples(t, SampleMean) }

// Samples returns the mean of the samples of a kind in all hours, and how many hours of ports those are.
func (s *Store) Samples(t *testing.T, kind string) (mean float64, n int) {
	id, _, err := s.wordID(t.Context(), "sample", kind)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	add := func(b byte) {
		if b != noSample {
			sum, n = sum+sampleValue(b), n+1
		}
	}
	for _, row := range s.Rows(t, "hour", "kind = ?", id) {
		ports, err := decodeHour(row[2].([]byte))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range ports {
			add(b)
		}
	}
	for _, row := range s.Rows(t, "tile", "kind = ?", id) {
		x, err := decodeTile(row[3].([]byte))
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range x {
			for _, b := range port {
				add(b)
			}
		}
	}
	return sum / float64(n), n
}

// Dump returns all rows of all tables.
func (s *Store) Dump(t *testing.T) (string, error) {
	var b strings.Builder
	for _, x := range tables {
		err := eachRow(t.Context(), s.db, x, "", nil, func(row []any) error {
			fmt.Fprintln(&b, x.name, row)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return b.String(), nil
}
