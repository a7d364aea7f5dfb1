package history_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/history"
)

// TestQuery: queries run, and whatever writes, attaches or never ends does not.
func TestQuery(t *testing.T) {
	h := fixture(t).open()
	q, err := h.Query(t.Context(), "select serial, count(*) as n from cable group by serial order by 1; -- trailing; comment", 10)
	if err != nil || !slices.Equal(q.Columns, []string{"serial", "n"}) || len(q.Rows) != 2 || q.Rows[0][0] != "S1" || q.Rows[0][1] != int64(2) || q.More {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err = h.Query(t.Context(), "select t from cycle", 3); err != nil || len(q.Rows) != 3 || !q.More {
		t.Errorf("%v", err)
	}
	for _, query := range []string{
		"", "  ;", "delete from event", "select 1; select 2", "attach 'x.db' as x", "pragma query_only = 0", "select * from pragma_table_info('event')",
		"select * from \"pragma_table_info\"('event')", "with x as (select 1) delete from event", "with x(a) as (select 1) insert into event select * from x", "vacuum into 'x.db'", "select load_extension('x')",
		"select 1 /* no end", "select 'no end", "create table x(a)", "/* select */ drop table event", "select zeroblob(900000000)", "select * from shoes",
		"explain attach 'x' as y", "begin", "select 1\x00; delete from event",
	} {
		if q, err := h.Query(t.Context(), query, 10); err == nil {
			t.Errorf("%q ran: %v", query, q.Rows)
		}
	}
	if q, err = h.Query(t.Context(), "select replace('a', 'a', 'pragma; attach') as \"delete\"", 10); err != nil || q.Rows[0][0] != "pragma; attach" {
		t.Errorf("%v, %v", q, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Query(ctx, "with recursive x(n) as (select 1 union all select n + 1 from x) select count(*) from x", 10); err == nil || !strings.Contains(err.Error(), "exceeded its time") {
		t.Errorf("a query without an end: %v", err)
	}
}

// FuzzQuery: no query changes the file or reads another one.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"select 1", "with x as (select 2) select * from x", "select '", "select \"a\"\"b\" from event", "attach 'x' as y"} {
		f.Add(s)
	}
	x := newTable(f)
	h := x.open()
	f.Fuzz(func(t *testing.T, query string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h.Query(ctx, query, 10)
		if list, err := os.ReadDir(filepath.Dir(x.path)); err != nil || len(list) > 4 {
			t.Errorf("%q made a file: %v", query, list)
		}
	})
}

// TestExport: each table is a file, samples are rows, and what a spreadsheet would run is harmless.
func TestExport(t *testing.T) {
	x := fixture(t)
	x.exec("insert into event values(?, 7, 'node.name', 1, null, null, '=cmd|''/c calc''!A1', '', '')", hour(5))
	x.exec("insert into tile values(?, 1, 0, ?)", hour(24), history.EncodeTile(4, func(h int) byte { return history.EncodeSample(history.SampleMean, float64(100*h)) }))
	x.exec("insert into tile values(?, 2, 0, ?)", hour(24), history.EncodeTile(4, func(h int) byte {
		return history.MostStep(history.EncodeSample(history.SampleMean, float64(100*h)), history.EncodeSample(history.SampleMean, float64(200*h)))
	}))
	x.exec("insert into hour values(?, 1, ?)", hour(25), history.EncodeHour(history.SampleMean, map[int]float64{4: 3})) // is in the tile
	x.exec("insert into hour values(?, 1, ?)", hour(48), history.EncodeHour(history.SampleMean, map[int]float64{5: 3}))
	dir := filepath.Join(t.TempDir(), "out")
	h := x.open()
	names, err := h.Export(t.Context(), dir, func(s string) string { return strings.Replace(s, "=", "'=", 1) })
	if err != nil {
		t.Fatal(err)
	}
	want := "node.csv cycle.csv event.csv link.csv cable.csv errors_5m.csv errors_hour.csv errors_day.csv ber.csv finding.csv ack.csv change.csv sample_xmit_mean_2026-05.csv sample_xmit_most_2026-05.csv"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	read := func(name string) []string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	if lines := read("event.csv"); len(lines) != 5 || !strings.Contains(lines[1], "'=cmd") {
		t.Errorf("%q", lines)
	}
	if lines := read("errors_day.csv"); lines[0] != "t,guid,port,counter,count,hours" || lines[1] != "1777593600,"+guid(2).String()+",1,symbol_error_counter,40,4" {
		t.Errorf("%q", lines[:2])
	}
	if lines := read("sample_xmit_mean_2026-05.csv"); len(lines) != 26 || lines[25] != "1777766400,3600,"+guid(3).String()+",1,3.092" && !strings.HasPrefix(lines[25], "1777766400,3600,"+guid(3).String()+",1,") {
		t.Errorf("%d lines: %q", len(lines), lines[len(lines)-1])
	}
	if lines := read("sample_xmit_most_2026-05.csv"); len(lines) != 25 {
		t.Errorf("%d lines", len(lines))
	}
	if _, err := h.Export(t.Context(), dir, nil); !os.IsExist(err) {
		t.Errorf("into a directory that exists: %v", err)
	}
	x.exec("insert into word values('sample', 99, '../../x')")
	if _, err := h.Export(t.Context(), dir+"2", strings.Clone); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a name of a file from the history: %v", err)
	}
}
