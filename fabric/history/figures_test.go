package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// synthetic fills a history with days of a fabric: a cycle every 5 minutes, 20 flaps a day on 34,992 links,
// half of them on 50 links; 0.5 % of the links with three counters that grow on both ends; 5 cables a week;
// traffic of the ports of the first two blocks by hour.
func synthetic(t testing.TB, spec string, days int) (x *table, links int) {
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	x = newTable(t)
	end := begin.AddDate(0, 0, days)
	var snapshot, delta bytes.Buffer
	if err := format.WriteSnapshot(&snapshot, f.Bare()); err != nil {
		t.Fatal(err)
	}
	kept, err := format.ReadSnapshot(bytes.NewReader(snapshot.Bytes()), "test")
	if err == nil {
		err = format.WriteDelta(&delta, kept, kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	tx, err := x.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	insert := func(into string, columns int) func(...any) {
		values := "?"
		for range columns - 1 {
			values += ", ?"
		}
		s, err := tx.Prepare("insert into " + into + " values(" + values + ")")
		if err != nil {
			t.Fatal(err)
		}
		return func(args ...any) {
			if _, err := s.Exec(args...); err != nil {
				t.Fatalf("%s %v: %v", into, args, err)
			}
		}
	}
	word, node, port, link := insert("word", 3), insert("node", 4), insert("port", 4), insert("link", 4)
	for i, w := range []string{"link_downed_counter", "symbol_error_counter", "port_rcv_errors", "local_link_integrity_errors"} {
		word("counter", i+1, w)
	}
	for i, w := range []string{history.SampleMean, history.SampleMost, history.SampleWait} {
		word("sample", i+1, w)
	}
	start := begin.Unix()
	ids := map[[2]uint64]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		node(i+1, n.GUID().String(), int(n.Type()), start)
		for q := range f.Nodes()[i].NumPorts() + 1 {
			if p := n.Port(q); p != nil && p.Peer() != nil {
				ids[[2]uint64{uint64(n.GUID()), uint64(q)}] = len(ids) + 1
				port(len(ids), i+1, q, start)
			}
		}
	}
	id := func(g mad.GUID, num int) int { return ids[[2]uint64{uint64(g), uint64(num)}] }
	var list [][2]int
	cable := insert("cable", 6)
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			l := [2]int{id(p.Node().GUID(), p.Num()), id(q.Node().GUID(), q.Num())}
			link(l[0], l[1], start, nil)
			cable(fmt.Sprintf("S%06d", len(list)), l[0], l[1], start, nil, "MCP7")
			list = append(list, l)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	cycle, event := insert("cycle", 6), insert("event", 9)
	err60, errDay := insert("err60", 5), insert("err_day", 5)
	for at := begin; at.Before(end); at = at.Add(5 * time.Minute) {
		cycle(at.Unix(), 300, "test", "", start, 0)
	}
	share := float64(len(list)) / 34992
	bad := max(1, len(list)/200)
	for day := range days {
		at := begin.AddDate(0, 0, day).Unix()
		for n := range int(20*share + r.Float64()) {
			l := list[r.IntN(len(list))]
			if n%2 == 0 {
				l = list[r.IntN(min(50, len(list)))]
			}
			event(at+int64(n)*300, 0, "link.down", nil, l[0], l[1], "a link", "", "Polling")
			event(at+int64(n)*300+1, 0, "link.up", nil, l[0], l[1], "a link", "", "")
		}
		for b := range bad {
			l := list[(b*37+day/20*911)%len(list)]
			for _, p := range l {
				for c := 2; c <= 4; c++ {
					for h := range 24 {
						err60(p, at+int64(h)*3600, c, 5, 2)
					}
					errDay(at, p, c, 24, 24*5)
				}
			}
		}
		tile := history.EncodeTile(1, func(int) byte { return byte(r.IntN(250)) })
		for kind := 1; kind <= 3; kind++ {
			for block := range 2 {
				if _, err := tx.Exec("insert into tile values(?, ?, ?, ?)", at, kind, block, tile); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := tx.Exec("insert into keyframe values(?, ?)", start, snapshot.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("insert into delta select t, ? from cycle where t > ? and (t = (select max(t) from cycle) or t = ?)", delta.Bytes(), start, begin.AddDate(0, 0, days/2).Unix()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return x, len(list)
}

// TestFigures: answers about a small fabric; with FABSH_SOAK, of 11,664 hosts and half a year within the
// limits of CPU time.
func TestFigures(t *testing.T) {
	spec, days, soak := "fattree:k=8,levels=2", 100, os.Getenv("FABSH_SOAK") != ""
	if soak {
		spec, days = "pgft:m=18/18/36,w=1/18/18,p=1/1/1", 182
	}
	x, links := synthetic(t, spec, days)
	if st, err := os.Stat(x.path); err == nil {
		t.Logf("%d links, %d days, %d MB", links, days, st.Size()>>20)
	}
	h := x.open()
	now := begin.AddDate(0, 0, days)
	measure := func(name string, limit time.Duration, do func() error) {
		t.Helper()
		var took []time.Duration
		for range 5 {
			h = x.open() // which has answered nothing but this
			if _, err := h.Gaps(t.Context(), now, now); err != nil {
				t.Fatal(err)
			}
			before := cpuTime()
			if err := do(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			took = append(took, cpuTime()-before)
		}
		slices.Sort(took)
		median := took[len(took)/2]
		t.Logf("%s: %v of CPU, median of %d, at least %v", name, median, len(took), took[0])
		if soak && median > limit {
			t.Errorf("%s: %v of CPU, limit %v", name, median, limit)
		}
	}
	measure("fabric at T", 300*time.Millisecond, func() error {
		f, _, err := h.At(t.Context(), begin.AddDate(0, 0, days/2))
		if err == nil && len(f.Nodes()) == 0 {
			t.Error("no nodes")
		}
		return err
	})
	names, err := h.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var end history.End
	for i := range names.Fabric.Ports() {
		if p := &names.Fabric.Ports()[i]; p.Peer() != nil {
			end = history.End{Node: p.Node().GUID(), Port: p.Num()}
			break
		}
	}
	measure("life of a link with 90 days of hours", 100*time.Millisecond, func() error {
		since := now.AddDate(0, 0, -90)
		l, err := h.LifeOf(t.Context(), end.Node, end.Port, since, now)
		if err != nil {
			return err
		}
		if len(l.Links) != 1 || len(l.Cables) != 1 {
			t.Errorf("%+v", l)
		}
		for _, what := range []string{history.SampleMean, "symbol_error_counter"} {
			if _, err := h.Series(t.Context(), end.Node, end.Port, what, since, now); err != nil {
				return err
			}
		}
		return nil
	})
	measure("flaps now", 5*time.Millisecond, func() error {
		if _, err := h.Gaps(t.Context(), now.Add(-24*time.Hour), now); err != nil {
			return err
		}
		_, err := h.Flaps(t.Context(), 2, now.Add(-24*time.Hour), now)
		return err
	})
	for _, of := range history.OffenderKinds {
		measure("offenders of six months by "+of, 500*time.Millisecond, func() error {
			list, err := h.Offenders(t.Context(), history.OffenderQuery{Of: of, Since: now.AddDate(0, -6, 0), Until: now})
			if err == nil && len(list) == 0 {
				t.Error("no offenders")
			}
			return err
		})
	}
	measure("bit error rates", time.Second, func() error {
		_, _, err := h.BER(t.Context(), 1e-12, 125*time.Minute, now)
		return err
	})
}
