package history_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/history"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// table is a history of the test's own rows.
type table struct {
	t    testing.TB
	path string
	db   *sql.DB
}

// begin of the histories of these tests, and ports of it: those of the cables of fixture.
var begin = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// newTable makes an empty history.
func newTable(t testing.TB) *table {
	path := filepath.Join(t.TempDir(), history.FileName)
	r, err := history.NewRecorder(t.Context(), path, fabric.Subnet{Given: "test"}, begin)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &table{t, path, db}
}

func (x *table) exec(statement string, args ...any) {
	x.t.Helper()
	for i, a := range args {
		if at, ok := a.(time.Time); ok {
			args[i] = at.Unix()
		}
	}
	if _, err := x.db.Exec(statement, args...); err != nil {
		x.t.Fatalf("%s %v: %v", statement, args, err)
	}
}

func (x *table) open() *history.Store {
	h, err := history.Open(x.t.Context(), x.path)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { h.Close() })
	return h
}

// star is a switch and its hosts.
var star = sync.OnceValue(func() *fabric.Fabric {
	f, o, err := sim.Parse("fattree:levels=1,k=4")
	if err != nil {
		panic(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		panic(err)
	}
	e := engine.New(conn, engine.Options{})
	defer e.Close()
	if f, err = discover.Sweep(context.Background(), e, discover.Options{}); err != nil {
		panic(err)
	}
	return f
})

// guid returns the GUID of node n: 1 is the switch, and n + 1 the host at its port n.
func guid(n int) mad.GUID {
	sw := star().OfType(mad.NodeTypeSwitch)[0]
	switch {
	case n == 1:
		return sw.GUID()
	case n <= 5:
		return sw.Port(n - 1).Peer().Node().GUID()
	}
	return mad.GUID(n)
}

func hour(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }

// fixture has a switch (node 1) with ports 1 to 3 (ids 1 to 3) linked to port 1 of hosts 2 to 4 (ids 4 to
// 6), and a cycle every 5 minutes of 10 days, of which the third has a gap from 06:00 to 09:00.
//
// Cable S1 is bad: at link 1-4 for 4 days, with errors each day, and then, exchanged with S2 at 12:00, at
// link 2-5, where the errors go on. Link 3-6 flaps twice on day 8, and its port is disabled on day 9.
func fixture(t testing.TB) *table {
	x := newTable(t)
	for _, w := range []string{"link_downed_counter", "symbol_error_counter", "port_rcv_errors"} {
		x.exec("insert into word select 'counter', count(*) + 1, ? from word where kind = 'counter'", w)
	}
	for _, w := range []string{history.SampleMean, history.SampleMost, history.SampleTemperature, "port_xmit_wait"} {
		x.exec("insert into word select 'sample', count(*) + 1, ? from word where kind = 'sample'", w)
	}
	last := hour(240).Add(-5 * time.Minute)
	x.exec("insert into keyframe values(?, ?)", begin, snapshotOf(t, star()))
	x.exec("insert into keyframe values(?, ?)", last, snapshotOf(t, star()))
	for n := 1; n <= 4; n++ {
		kind := mad.NodeTypeCA
		if n == 1 {
			kind = mad.NodeTypeSwitch
		}
		x.exec("insert into node values(?, ?, ?, ?)", n, guid(n).String(), int(kind), begin)
	}
	for p := 1; p <= 3; p++ {
		x.exec("insert into port values(?, 1, ?, ?)", p, p, begin)
		x.exec("insert into port values(?, ?, 1, ?)", p+3, p+1, begin)
		x.exec("insert into link values(?, ?, ?, null)", p, p+3, begin)
	}
	for at := begin; at.Before(hour(240)); at = at.Add(5 * time.Minute) {
		if at.After(hour(54)) && at.Before(hour(57)) {
			continue
		}
		x.exec("insert into cycle values(?, 300, 'test', '', ?, 0)", at, begin)
	}
	x.exec("update cycle set keyframe = t where t = ?", last)
	swap := hour(4*24 + 12)
	for i, serial := range []string{"S1", "S2"} {
		x.exec("insert into cable values(?, ?, ?, ?, ?, 'MCP7')", serial, i+1, i+4, begin, swap)
		x.exec("insert into cable values(?, ?, ?, ?, null, 'MCP7')", serial, 2-i, 5-i, swap)
	}
	for h := 3; h < 240; h += 6 {
		port := 4
		if hour(h).After(swap) {
			port = 5
		}
		x.errors(port, 2, hour(h), 10)
	}
	for i, at := range []time.Time{hour(8*24 + 1), hour(8*24 + 5)} {
		x.exec("insert into event values(?, ?, 'link.down', null, 3, 6, 'leaf/3 - host-4/1', '', 'Polling')", at, i)
	}
	x.exec("insert into event values(?, 0, 'link.down', null, 3, 6, 'leaf/3 - host-4/1', '', ?)", hour(9*24), mad.PortPhysicalStateDisabled.String())
	return x
}

// errors adds errors, in all three tables.
func (x *table) errors(port, counter int, at time.Time, n int) {
	day := at.Truncate(24 * time.Hour)
	x.exec("insert into err5 values(?, ?, ?, ?)", port, at, counter, n)
	x.exec("insert into err60 values(?, ?, ?, ?, ?)", port, at.Truncate(time.Hour), counter, n, n)
	x.exec("insert into err_day values(?, ?, ?, 1, ?) on conflict(t, port, counter) do update set hours = err_day.hours + 1, n = err_day.n + excluded.n", day, port, counter, n)
}

func offenders(t *testing.T, h *history.Store, q history.OffenderQuery) string {
	q.Until = hour(240)
	list, err := h.Offenders(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range list {
		fmt.Fprintf(&b, "%s: %d days, %d flaps, %d errors, %d links\n", o.Key, o.Days, o.Flaps, o.Errors, o.Links)
	}
	return b.String()
}

// TestOffenders: the fault that moves with the cable is of the cable, not of a link; a disabled port is
// not a flap.
func TestOffenders(t *testing.T) {
	h := fixture(t).open()
	key := func(p int) string { return fmt.Sprintf("%s/%d - %s/1", guid(1), p, guid(p+1)) }
	for _, x := range []struct {
		q    history.OffenderQuery
		want string
	}{
		{history.OffenderQuery{Of: "cable"}, "S1: 10 days, 0 flaps, 400 errors, 2 links\n"},
		{history.OffenderQuery{Of: "link"}, key(2) + ": 6 days, 0 flaps, 220 errors, 1 links\n" + key(1) + ": 5 days, 0 flaps, 180 errors, 1 links\n" + key(3) + ": 1 days, 2 flaps, 0 errors, 1 links\n"},
		{history.OffenderQuery{By: "flaps", Since: hour(8 * 24)}, key(3) + ": 1 days, 2 flaps, 0 errors, 1 links\n" + key(2) + ": 2 days, 0 flaps, 80 errors, 1 links\n"},
		{history.OffenderQuery{Of: "switch"}, guid(1).String() + ": 10 days, 2 flaps, 400 errors, 3 links\n"},
		{history.OffenderQuery{Of: "host", By: "errors"}, guid(3).String() + ": 6 days, 0 flaps, 220 errors, 1 links\n" + guid(2).String() + ": 5 days, 0 flaps, 180 errors, 1 links\n" + guid(4).String() + ": 1 days, 2 flaps, 0 errors, 1 links\n"},
	} {
		if got := offenders(t, h, x.q); got != x.want {
			t.Errorf("%+v:\n%swant\n%s", x.q, got, x.want)
		}
	}
	if _, err := h.Offenders(t.Context(), history.OffenderQuery{Of: "shoes"}); err == nil {
		t.Error("offenders of shoes")
	}
}

// TestSeries: a counter is 0 in hours with a cycle, and has no point in a gap; samples are of the day that
// is in tiles and of the hours that are not.
func TestSeries(t *testing.T) {
	x := fixture(t)
	hours := func(kind string, id int, at time.Time, v float64) {
		x.exec("insert into hour values(?, ?, ?)", at, id, history.EncodeHour(kind, map[int]float64{4: v}))
	}
	x.exec("insert into tile values(?, 1, 0, ?)", hour(24), history.EncodeTile(4, func(h int) byte { return history.EncodeSample(history.SampleMean, float64(100*h)) }))
	x.exec("insert into tile values(?, 2, 0, ?)", hour(24), history.EncodeTile(4, func(h int) byte {
		return history.MostStep(history.EncodeSample(history.SampleMean, float64(100*h)), history.EncodeSample(history.SampleMean, float64(200*h)))
	}))
	hours(history.SampleMean, 1, hour(48), 7)
	hours(history.SampleTemperature, 3, hour(48), 61)
	hours("port_xmit_wait", 4, hour(49), 2)
	h := x.open()
	s, err := h.Series(t.Context(), guid(2), 1, "symbol_error_counter", hour(48), hour(72))
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, p := range s.Points {
		text = append(text, fmt.Sprintf("%d:%g", p.Time.Hour(), p.Value))
	}
	if got, want := strings.Join(text, " "), "0:0 1:0 2:0 3:10 4:0 5:0 6:0 9:10 10:0 11:0 12:0 13:0 14:0 15:10 16:0 17:0 18:0 19:0 20:0 21:10 22:0 23:0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if want := []history.Gap{{From: hour(54), To: hour(57)}}; !slices.Equal(s.Gaps, want) {
		t.Errorf("%v, want %v", s.Gaps, want)
	}
	near := func(what string, since, until time.Time, want ...float64) {
		t.Helper()
		s, err := h.Series(t.Context(), guid(2), 1, what, since, until)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Points) != len(want) {
			t.Fatalf("%s: %v, want %v", what, s.Points, want)
		}
		for i, p := range s.Points {
			if math.Abs(p.Value-want[i]) > 0.051*want[i] {
				t.Errorf("%s: %v: %g, want %g", what, p.Time, p.Value, want[i])
			}
		}
	}
	near(history.SampleMean, hour(26), hour(29), 200, 300, 400)
	near(history.SampleMost, hour(26), hour(28), 400, 600)
	near(history.SampleMean, hour(48), hour(50), 7)
	near(history.SampleTemperature, hour(48), hour(72), 61)
	near("port_xmit_wait", hour(48), hour(72), 7200)
	if _, err := h.Series(t.Context(), guid(2), 1, "shoes", hour(0), hour(1)); err == nil || !strings.Contains(err.Error(), "recorded: link_downed_counter, port_rcv_errors, symbol_error_counter") {
		t.Errorf("shoes: %v", err)
	}
	if _, err := h.Series(t.Context(), guid(9), 1, "symbol_error_counter", hour(0), hour(1)); err == nil {
		t.Error("a port that the history does not have has a series")
	}
	days, err := h.Errors(t.Context(), guid(2), 1, hour(0), hour(240), 24*time.Hour)
	if err != nil || len(days) != 5 || days[0].Count != 40 || days[0].Hours != 4 || days[4].Count != 20 {
		t.Errorf("%v, %v", days, err)
	}
	if five, err := h.Errors(t.Context(), guid(2), 1, hour(3), hour(4), 5*time.Minute); err != nil || len(five) != 1 || five[0].Count != 10 {
		t.Errorf("%v, %v", five, err)
	}
}

// TestLives: of a cable, a node and a port.
func TestLives(t *testing.T) {
	x := fixture(t)
	x.exec("insert into finding(key, job, t, till, checked, severity, node, port, subject, message) values('flaps:x', 'nightly', ?, null, ?, 2, 1, 3, 'leaf/3', '2 link-downs')", hour(200), hour(230))
	x.exec("insert into ack values('flaps:*', ?, 0, 'alice', 'cable ordered', null)", hour(210))
	x.exec("insert into ack values('other:*', ?, 0, 'alice', '', null)", hour(210))
	x.exec("insert into change values(?, 0, 'remedy', 'leaf/3', 'bob', 'isolated', 1, 3)", hour(216))
	h := x.open()
	c, err := h.CableLife(t.Context(), "S1")
	if err != nil {
		t.Fatal(err)
	}
	errors := func(list []history.Errors) (n uint64) {
		for _, e := range list {
			n += e.Count
		}
		return n
	}
	if len(c.Spans) != 2 || c.Spans[0].B != (history.End{Node: guid(2), Port: 1}) || errors(c.Spans[0].Errors) != 180 || errors(c.Spans[1].Errors) != 220 || !c.Spans[1].Till.IsZero() || len(c.Gaps) != 1 {
		t.Errorf("%+v", c)
	}
	if _, err := h.CableLife(t.Context(), "S9"); err == nil {
		t.Error("a cable that the history does not have has a life")
	}
	l, err := h.LifeOf(t.Context(), guid(1), 3, begin, hour(240))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Events) != 3 || len(l.Links) != 1 || len(l.Findings) != 1 || l.Findings[0].Job != "nightly" || len(l.Acks) != 1 || l.Acks[0].Pattern != "flaps:*" || len(l.Actions) != 1 || l.Actions[0].End.Node != guid(1) {
		t.Errorf("%+v", l)
	}
	n, err := h.NodeLife(t.Context(), guid(2), begin, hour(240))
	if err != nil || n.Errors[1] != 180 || n.Type != mad.NodeTypeCA || !n.First.Equal(begin) {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err = h.NodeLife(t.Context(), guid(1), begin, hour(240)); err != nil || len(n.Events) != 3 || len(n.Findings) != 1 || len(n.Actions) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if flaps, err := h.Flaps(t.Context(), 2, hour(8*24), hour(9*24)); err != nil || len(flaps) != 1 || flaps[0].Downs != 2 {
		t.Errorf("%+v, %v", flaps, err)
	}
}

// TestBER: only a link that has been up for long enough is judged, and by the rate that error correction
// leaves.
func TestBER(t *testing.T) {
	x := fixture(t)
	x.exec("insert into ber values(1, ?, 60, 1e-6, 1e-9, null, 1)", hour(239))
	x.exec("insert into ber values(4, ?, 60, 1e-6, 1e-5, null, 1)", hour(200))
	x.exec("insert into ber values(4, ?, 90000, 1e-6, 1e-9, null, 1)", hour(239))
	x.exec("insert into ber values(2, ?, 90000, 1e-6, null, null, 1)", hour(239))
	x.exec("insert into ber values(3, ?, 90000, 1e-6, 1e-9, null, 1)", hour(215))
	x.exec("insert into ber values(6, ?, 90000, 1e-6, null, 1e-15, 1)", hour(239))
	h := x.open()
	judged, unjudged, err := h.BER(t.Context(), 1e-12, 125*time.Minute, hour(240))
	if err != nil {
		t.Fatal(err)
	}
	if len(judged) != 1 || judged[0].Node != guid(2) || judged[0].Rate != 1e-9 {
		t.Errorf("judged: %+v", judged)
	}
	var why []string
	for _, j := range unjudged {
		why = append(why, j.Why)
	}
	want := []string{"up for 1m0s; want 2h5m0s", "the rate after error correction is not known", "the link went down after this rate was read"}
	if !slices.Equal(why, want) {
		t.Errorf("%q, want %q", why, want)
	}
	// Host 3 has no estimate, and counted 220 symbol errors in 10 days.
	judged, _, err = h.BER(t.Context(), 1e-15, 125*time.Minute, hour(240))
	if err != nil || len(judged) != 2 || judged[1].Source != "counter" || judged[1].Node != guid(3) || judged[1].Rate < 1e-15 || judged[1].Rate > 1e-13 {
		t.Errorf("%+v, %v", judged, err)
	}
}

// TestGrowth: of a window before a time, by 5 minutes or hours; not where something was not recorded.
func TestGrowth(t *testing.T) {
	x := fixture(t)
	h := x.open()
	at := hour(3).Add(30 * time.Minute)
	for window, want := range map[time.Duration]uint64{time.Hour: 10, 10 * time.Minute: 0, 3 * time.Hour: 10} {
		got, err := h.Growth(t.Context(), at, window)
		if err != nil || got[history.End{Node: guid(2), Port: 1}]["symbol_error_counter"] != want {
			t.Errorf("%v: %v, %v; want %d", window, got, err, want)
		}
	}
	for _, q := range []struct {
		t      time.Time
		window time.Duration
		want   string
	}{
		{hour(58), 2 * time.Hour, "nothing was recorded from 2026-05-03T06:00:00Z to 2026-05-03T09:00:00Z"},
		{hour(1), 2 * time.Hour, "nothing was recorded until"},
		{hour(4), time.Minute, "want a window of that or more"},
	} {
		if _, err := h.Growth(t.Context(), q.t, q.window); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%v before %v: %v", q.window, q.t, err)
		}
	}
	x.exec("delete from word")
	if _, err := h.Growth(t.Context(), at, time.Hour); err == nil || !strings.Contains(err.Error(), "no counters were recorded") {
		t.Errorf("without counters: %v", err)
	}
}
