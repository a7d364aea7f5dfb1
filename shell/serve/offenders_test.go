package serve

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"fabsh/fabric"
)

// TestOffenders: the link with faults on most days, and a cable whose faults moved with it, are named first if
// a fault is recent; without a history, or without such faults, the page says so.
func TestOffenders(t *testing.T) {
	whole := madeFabric(t, 4, 2, 2, nil)
	ask2 := func(s *Site) (now, all string) {
		return text(ask(t, s, "GET", "/now", "").Body.String()), ask(t, s, "GET", "/offenders", "").Body.String()
	}
	s := siteOf(t, reportOf(whole), "")
	if now, all := ask2(s); !strings.Contains(now, "No history is kept, so it is not known which links") || !strings.Contains(all, "No history is kept") {
		t.Errorf("without a history: %s", now)
	}
	s = siteOf(t, reportOf(whole), recorded(t, whole, whole))
	if now, _ := ask2(s); !strings.Contains(now, "come back after a few days") {
		t.Errorf("a new history: %s", now)
	}
	days := func(path string, leaf, days, last int, cables ...string) { // faults on so many days, the last one so many days ago
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		id := func(p *fabric.Port) (id int64) {
			if err := db.QueryRow("select p.id from port p join node n on n.id = p.node where n.guid = ? and p.num = ?", p.Node().GUID().String(), p.Num()).Scan(&id); err != nil {
				t.Fatal(err)
			}
			return id
		}
		p := whole.NodeByName([]string{"", "leaf-1", "leaf-2", "leaf-3"}[leaf])[0].Port(3)
		a, b := id(p), id(p.Peer())
		end := noon.Truncate(day).Add(-time.Duration(last) * day)
		do := func(query string, args ...any) {
			t.Helper()
			if _, err := db.Exec(query, args...); err != nil {
				t.Fatal(err)
			}
		}
		do("update link set t = ? where a in (?, ?)", end.Add(-400*day).Unix(), a, b)
		do("insert or ignore into cycle select ?, every, source, missing, keyframe, 0 from cycle limit 1", end.Add(-170*day).Unix())
		do("insert or ignore into word values('counter', 91, 'symbol_error_counter')")
		for i := range days {
			do("insert into err_day values(?, ?, 91, 1, 5)", end.Add(-time.Duration(i)*day).Unix(), a)
		}
		for _, serial := range cables {
			do("insert into cable values(?, ?, ?, ?, null, 'part')", serial, a, b, end.Add(-300*day).Unix())
		}
	}
	path := recorded(t, whole, whole)
	days(path, 1, 30, 0, "<S1>")
	days(path, 2, 40, 60)
	days(path, 3, 1, 0)
	s = siteOf(t, reportOf(whole), path)
	now, all := ask2(s)
	for _, want := range []string{"Replace first: leaf-1/3 – spine-1/1: faults on 30 days. Its cable is &lt;S1&gt;.", "leaf-2/3 – spine-1/2 40 days, 0 link-downs, 200 errors"} {
		if !strings.Contains(now, want) {
			t.Errorf("Now without %q: %s", want, now)
		}
	}
	if strings.Contains(now, "leaf-3/3 – spine-1/3 1 days") {
		t.Errorf("one day is not again and again: %s", now)
	}
	for _, want := range []string{`href="/link/leaf-1/3"`, `href="/cable/%3CS1%3E"`, `data-k="Days" class="num">40<`} {
		if !strings.Contains(all, want) {
			t.Errorf("the page without %q: %s", want, all)
		}
	}
	if body := ask(t, s, "GET", "/cable/%3CS1%3E", "").Body.String(); !strings.Contains(body, `<a href="/link/leaf-1/3"><bdi>leaf-1/3</bdi></a>`) {
		t.Errorf("the cable: %s", body)
	}
	if s.work.of == nil || len(s.work.order) != 1 {
		t.Errorf("counted %d times", len(s.work.order))
	}
	path = recorded(t, whole, whole)
	days(path, 1, 30, 0, "S1")
	days(path, 2, 20, 0, "S1")
	now, all = ask2(siteOf(t, reportOf(whole), path))
	if !strings.Contains(now, "Replace first: Cable S1: faults on 30 days at 2 links, so they moved with the cable.") || !strings.Contains(all, "Cables whose faults moved") {
		t.Errorf("a cable at two links: %s", now)
	}
	path = recorded(t, whole, whole)
	days(path, 1, 30, 50)
	if now, _ = ask2(siteOf(t, reportOf(whole), path)); !strings.Contains(now, "None now: the last fault of all was more than 14 days ago.") {
		t.Errorf("old faults: %s", now)
	}
}

// TestHelpSearch: what a search of help finds are links.
func TestHelpSearch(t *testing.T) {
	s := siteOf(t, reportOf(madeFabric(t, 2, 1, 1, nil)), "")
	if body := ask(t, s, "GET", "/help?words=lid", "").Body.String(); !strings.Contains(body, `<a href="/help/field%20lid">field lid</a><span>a &lt;b&gt; field</span>`) || !strings.Contains(body, "and 3 more") {
		t.Errorf("%s", body)
	}
	if got := text(ask(t, s, "GET", "/help?words=nothing", "").Body.String()); !strings.Contains(got, "no topic has") || !strings.Contains(got, "shell-guide") {
		t.Errorf("%s", got)
	}
}
