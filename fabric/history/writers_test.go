package history_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// finding returns a finding of a port.
func finding(p *fabric.Port, check string) audit.Finding {
	return audit.Finding{Audit: "links", Check: check, Subject: audit.OfPort(p), Severity: audit.Warning, Message: "narrow"}
}

// TestContributors: findings, acknowledgements and changes begin and end, beside a recorder, and without a
// history nothing is made.
func TestContributors(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	add := func(f func(c *history.Contributor)) {
		t.Helper()
		if err := history.Contribute(t.Context(), path, s.now, f); err != nil {
			t.Fatal(err)
		}
	}
	add(func(c *history.Contributor) { t.Error("without a history") })
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a history was made: %v", err)
	}
	r := s.recorder(path)
	defer r.Close()
	s.record(r)
	leaf := &s.f.OfType(mad.NodeTypeSwitch)[0]
	a, b := finding(leaf.Port(1), "link.width"), finding(leaf.Port(2), "link.speed")
	b.Members = []audit.Subject{audit.OfPort(leaf.Port(3))}
	all := func(string, string) bool { return true }
	begin := s.now.Unix()
	add(func(c *history.Contributor) {
		c.Findings("job", []audit.Finding{a, b}, all)
		c.Acks(audit.Acks{{Pattern: "link.width:*", Until: s.now.AddDate(0, 0, 9), By: "me", Reason: "ordered"}})
		c.Change("apply", "new tables", "me", "confirmed", 0, -1)
		c.Change("remedy", "isolate", "me", "planned", leaf.GUID(), 1)
	})
	events, err := r.Changes(t.Context(), time.Time{}, time.Time{}, "change")
	if err != nil || len(events) != 2 || events[0].Kind != "change.apply" || events[0].Now != "confirmed" || events[1].Node != leaf.GUID() || events[1].Port != 1 {
		t.Errorf("changes: %+v, %v", events, err)
	}
	for kind, want := range map[string]string{"ack": "ack.begin link.width:* by me ordered", "finding": "finding.open"} {
		events, err := r.Changes(t.Context(), time.Time{}, time.Time{}, kind)
		if err != nil || len(events) == 0 || !strings.HasPrefix(fmt.Sprint(events[0].Kind, " ", events[0].Subject, " ", events[0].Was, " ", events[0].Now), want) {
			t.Errorf("%s: %+v, %v", kind, events, err)
		}
	}
	if events, err := r.Changes(t.Context(), time.Time{}, time.Time{}); err != nil || len(events) != 3 {
		t.Errorf("without findings: %+v, %v", events, err)
	}
	s.record(r)
	add(func(c *history.Contributor) {
		c.Findings("job", nil, func(_, check string) bool { return check == "link.width" })
	})
	s.record(r)
	add(func(c *history.Contributor) {
		c.Findings("other", []audit.Finding{a}, all)
		c.Findings("job", []audit.Finding{a, b}, all)
		c.Acks(nil)
	})
	got := ""
	for _, row := range r.Rows(t, "finding", "1 = 1 order by key, job, t") {
		till := row[3]
		if x, ok := till.(int64); ok {
			till = x - begin
		}
		got += fmt.Sprintln(row[0], row[1], row[2].(int64)-begin, till, row[4].(int64)-begin, row[5], row[6] != nil, row[7] != nil, row[8], row[9])
	}
	g := leaf.GUID()
	want := fmt.Sprintf("link.speed:%v/2 job 0 <nil> 600 2 true true %s narrow\nlink.speed:%v/3 job 0 <nil> 600 2 true true %s narrow\nlink.width:%v/1 job 0 300 300 2 true true %s narrow\nlink.width:%v/1 job 600 <nil> 600 2 true true %s narrow\nlink.width:%v/1 other 600 <nil> 600 2 true true %s narrow\n",
		g, leaf.Port(2).Name(), g, leaf.Port(3).Name(), g, leaf.Port(1).Name(), g, leaf.Port(1).Name(), g, leaf.Port(1).Name())
	if got != want {
		t.Errorf("findings:\n%swant\n%s", got, want)
	}
	if rows := r.Rows(t, "ack", ""); len(rows) != 1 || rows[0][5] != begin+600 {
		t.Errorf("acks: %v", rows)
	}
	if rows := r.Rows(t, "change", "1 = 1 order by n"); len(rows) != 2 || rows[1][6] == nil || rows[1][7] == nil || rows[0][6] != nil {
		t.Errorf("changes: %v", rows)
	}
	sound(t, path)
}

// sound reports what is damaged in a history.
func sound(t *testing.T, path string) {
	t.Helper()
	h, err := history.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if v, err := h.Check(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("check: %q %v", v.Damage, err)
	}
}

// TestDowns: link-downs that were seen, and those that were counted, are known to audits; those of a host that
// restarted are not.
func TestDowns(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	host := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	leaf := host.Peer()
	other := s.f.OfType(mad.NodeTypeCA)[4].Port(1)
	for i := range s.f.Ports() {
		m.of(&s.f.Ports()[i])[0] = 9
	}
	cycle := func() {
		s.now = s.now.Add(5 * time.Minute)
		f := s.sweep()
		if _, err := r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now)}); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	cycle()
	begin := s.now
	m.of(leaf)[1] += 2
	cycle()
	for _, n := range []*fabric.Port{leaf, other.Peer()} {
		if err := s.Cables.Unlink(n.Node().GUID(), n.Num()); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	d, err := r.Downs(t.Context(), s.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		p    *fabric.Port
		want uint64
	}{{leaf, 2}, {host, 2}, {other, 0}} {
		got := audit.JudgeDowns(d.Of(x.p.Node().GUID(), x.p.Num()), s.now)
		if got.Count != x.want || got.Reach != s.now.Sub(begin)+5*time.Minute || got.Flaps() != (x.want > 1) {
			t.Errorf("%s: %+v, want %d", x.p.Name(), got, x.want)
		}
	}
	// A day later they are too old.
	if d, err := r.Downs(t.Context(), s.now.Add(25*time.Hour)); d != nil || err != nil {
		t.Errorf("a day later: %v %v", d, err)
	}
}

// TestOld: after 400 days, traffic is a mean and a largest value a day, and the fabric that of the first
// week of each month; errors by day remain.
func TestOld(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	port := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	begin := s.now
	cycle := func() {
		f := s.sweep()
		for i := range f.Ports() {
			m.of(&f.Ports()[i])[2] += 300 * 25e6
		}
		m.of(port)[0]++
		x, err := r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now), Traffic: true})
		if err != nil || len(x.Notes) > 0 {
			t.Fatal(err, x)
		}
		s.now = s.now.Add(5 * time.Minute)
	}
	for day := range 60 { // another snapshot each week
		s.now = begin.AddDate(0, 0, day)
		cycle()
		cycle()
	}
	if n := len(r.Rows(t, "keyframe", "")); n != 9 {
		t.Errorf("%d snapshots, want 9", n)
	}
	s.now = begin.AddDate(0, 0, 500)
	cycle()
	if rows := r.Rows(t, "tile", "t < ?", begin.AddDate(0, 0, 60).Unix()); len(rows) != 0 {
		t.Errorf("%d tiles", len(rows))
	}
	if rows := r.Rows(t, "day", ""); len(rows) < 100 {
		t.Errorf("%d rows of days", len(rows))
	}
	if len(r.Rows(t, "err60", "t < ?", begin.AddDate(0, 0, 60).Unix())) != 0 || len(r.Rows(t, "err_day", "")) != 61 {
		t.Errorf("%d days of errors", len(r.Rows(t, "err_day", "")))
	}
	if n := len(r.Rows(t, "keyframe", "")); n != 3 {
		t.Errorf("%d snapshots remain, want those of May, June and today", n)
	}
	if f, when, err := r.At(t.Context(), begin.AddDate(0, 0, 3)); err != nil || !f.Complete() || when.Before(begin.AddDate(0, 0, 2)) {
		t.Errorf("first week: %v of %s, %v", f, when, err)
	}
	if f, when, err := r.At(t.Context(), begin.AddDate(0, 0, 20)); err != nil || f.Complete() || when.After(begin.AddDate(0, 0, 8)) {
		t.Errorf("third week: %v of %s, %v", f, when, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	sound(t, path)
	before, after, err := history.Compact(t.Context(), path)
	if err != nil || after >= before {
		t.Errorf("compact: %d to %d bytes, %v", before, after, err)
	}
	sound(t, path)
	h, err := history.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Overview(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Overview(t.Context()); err == nil {
		t.Error("the recorder is closed")
	}
}

// TestNearlyFull: without room, events and errors by hour go on; traffic and errors by 5 minutes do not, which
// is said.
func TestNearlyFull(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	port := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	for i := range 5 {
		s.now = s.now.Add(time.Minute)
		if r.Guard(""); i == 2 || i == 3 {
			r.Guard("the disk is nearly full")
		}
		f := s.sweep()
		m.of(port)[0]++
		x, err := r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now), Traffic: true})
		if err != nil || (len(x.Notes) > 0) != (i == 2 || i == 3) {
			t.Fatal(err, x)
		}
	}
	if rows := r.Rows(t, "err60", ""); len(rows) != 1 || rows[0][3] != int64(4) {
		t.Errorf("errors by hour: %v", rows)
	}
	n := int64(0)
	for _, row := range r.Rows(t, "err5", "") {
		n += row[3].(int64)
	}
	if n != 2 {
		t.Errorf("%d errors by 5 minutes, want 2", n)
	}
	sound(t, path)
}

// TestModules: a bit error rate is kept while it is not normal and when that changes, and a cable has one
// life although both its ends show its serial number.
func TestModules(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	p := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	cable := func(serial string, ports ...*fabric.Port) (list []history.Module) {
		for _, p := range ports {
			list = append(list, history.Module{Node: p.Node().GUID(), Port: p.Num(), Serial: serial, Temperature: 40, RxPower: math.NaN(), TxPower: math.NaN()})
		}
		return list
	}
	var kinds []string
	for _, x := range []struct {
		symbol  float64
		modules []history.Module
	}{{1e-16, cable("A", p, p.Peer())}, {1e-12, cable("A", p)}, {1e-12, cable("B", p, p.Peer())}, {0, cable("", p, p.Peer())}, {0, nil}} {
		s.now = s.now.Add(5 * time.Minute)
		rates := []history.BER{{Node: p.Node().GUID(), Port: p.Num(), Up: time.Hour, Raw: 1e-9, Effective: math.NaN(), Symbol: x.symbol}}
		sum, err := r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: s.sweep(), Modules: x.modules, Rates: rates})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range sum.Events {
			kinds = append(kinds, e.Kind+" "+e.Subject)
		}
	}
	if got := strings.Join(kinds, ", "); got != "cable.gone A, cable.new B, cable.gone B" {
		t.Errorf("events: %s", got)
	}
	if rows := r.Rows(t, "cable", "1 = 1 order by t"); len(rows) != 2 || rows[0][2] == nil || rows[0][4] == nil || rows[1][4] == nil {
		t.Errorf("cables: %v", rows)
	}
	if rows := r.Rows(t, "ber", "1 = 1 order by t"); len(rows) != 3 || rows[0][6] != int64(2) || rows[2][6] != int64(0) || rows[0][4] != nil || rows[0][2] != int64(3600) {
		t.Errorf("bit error rates: %v", rows)
	}
	sound(t, path)
}

// TestMany: two recorders, of which one is refused; contributors and readers beside a recorder.
func TestMany(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	s.record(r)
	port := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	now := s.now
	var wait sync.WaitGroup
	failed := make(chan error, 100)
	for i := range 4 {
		wait.Go(func() {
			for n := range 10 {
				err := history.Contribute(t.Context(), path, now, func(c *history.Contributor) {
					c.Change("apply", fmt.Sprintf("%d.%d", i, n), "me", "confirmed", port.Node().GUID(), port.Num())
				})
				if err != nil {
					failed <- err
				}
			}
		})
	}
	for range 20 {
		wait.Go(func() {
			h, err := history.Open(t.Context(), path)
			if err == nil {
				_, err = h.Overview(t.Context())
				h.Close()
			}
			if err != nil {
				failed <- err
			}
		})
	}
	for range 10 {
		s.record(r)
	}
	wait.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if n := len(r.Rows(t, "change", "")); n != 40 {
		t.Errorf("%d changes, want 40", n)
	}
	sound(t, path)
}

// TestKills: a recorder and contributors are killed at any moment. What they reported as written is there, and
// nothing is damaged.
func TestKills(t *testing.T) {
	if dir := os.Getenv("HISTORY_KILLED_IN"); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	kills := 4
	if os.Getenv("FABSH_SOAK") != "" {
		kills = 1000
	}
	dir := t.TempDir()
	path := filepath.Join(dir, history.FileName)
	cycles := 0
	for i := range kills {
		c := exec.Command(os.Args[0], "-test.run=^TestKills$")
		c.Env = append(os.Environ(), "HISTORY_KILLED_IN="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed while it writes: after some lines, and some bytes more.
		text := make([]byte, 0, 1<<12)
		for strings.Count(string(text), "\n") < 4+i%5 {
			part := make([]byte, 1+i%7)
			n, err := out.Read(part)
			if err != nil {
				break
			}
			text = append(text, part[:n]...)
		}
		c.Process.Kill()
		c.Wait()
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "cycle ") && strings.HasSuffix(line, "\n") {
				cycles++
			}
		}
		h, err := history.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := h.Check(t.Context()); err != nil || len(v.Damage) > 0 {
			t.Fatalf("kill %d: %q %v", i, v.Damage, err)
		}
		o, err := h.Overview(t.Context())
		if err != nil || o.Cycles < cycles {
			t.Fatalf("kill %d: %d cycles, of which %d were reported, %v", i, o.Cycles, cycles, err)
		}
		h.Grown(t)
		h.Close()
	}
	if cycles == 0 {
		t.Error("no cycle was written")
	}
}

// writeUntilKilled records cycles and contributes, and writes a line after each.
func writeUntilKilled(t *testing.T, dir string) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(dir, history.FileName)
	r := s.recorder(path)
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	ports := s.f.OfType(mad.NodeTypeCA)
	if last := r.Last(); !last.IsZero() {
		s.now = last
	}
	for i := 0; ; i++ {
		s.now = s.now.Add(3 * time.Minute)
		p := ports[1+i%5].Port(1)
		if i%2 == 0 {
			s.Cables.Unlink(p.Node().GUID(), 1)
		} else {
			s.Cables.Link(ports[1+(i-1)%5].GUID(), 1)
		}
		f := s.sweep()
		for i := range f.Ports() {
			m.of(&f.Ports()[i])[0]++
		}
		if _, err := r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now), Traffic: true}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("cycle", i)
		err := history.Contribute(t.Context(), path, s.now, func(c *history.Contributor) {
			c.Findings("job", []audit.Finding{finding(p, "link.width")}, func(string, string) bool { return true })
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("added", i)
	}
}

// TestStates: a new history begins with the findings of earlier runs of audits, once; the states stay as they
// are, so that a version of fabsh without a history goes on with them.
func TestStates(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	dir := t.TempDir()
	subnet := fabric.SubnetOf(s.sweep(), "")
	st, err := audit.OpenState(dir, subnet, "job")
	if err != nil {
		t.Fatal(err)
	}
	since := s.now.Add(-48 * time.Hour)
	port := s.f.OfType(mad.NodeTypeSwitch)[0].Port(1)
	st.SetFindings([]audit.Finding{finding(port, "link.width")}, true, nil, since)
	st.Align(audit.Moment{Time: since.Add(time.Hour)})
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(subnet.Folder(dir), "job.state")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(subnet.Folder(dir), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	s.record(r)
	for range 2 {
		if err := r.States(t.Context(), audit.States(dir, subnet, nil)); err != nil {
			t.Fatal(err)
		}
	}
	rows := r.Rows(t, "finding", "")
	if len(rows) != 1 || rows[0][2] != since.Unix()+3600 && rows[0][2] != since.Unix() || rows[0][3] != nil || rows[0][7] == nil {
		t.Errorf("findings: %v", rows)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the state was changed: %v", err)
	}
	sound(t, path)
}

// TestWide: a counter that grows at most ports is kept by hour, also by the recorder that goes on.
func TestWide(t *testing.T) {
	s := newSubnet(t, "fattree:k=12")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	for i := range 4 {
		s.now = s.now.Add(5 * time.Minute)
		f := s.sweep()
		for i := range f.Ports() {
			m.of(&f.Ports()[i])[0] += 300
		}
		x, err := r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now)})
		if err != nil || i > 0 && (len(x.Wide) != 1 || x.Wide[0] != "symbol_error_counter" || x.Grown > 0) {
			t.Fatal(err, x)
		}
		r.Close()
		r = s.recorder(path)
	}
	defer r.Close()
	if rows := r.Rows(t, "err5", ""); len(rows) > 0 {
		t.Errorf("%d rows", len(rows))
	}
	if mean, n := r.Samples(t, "symbol_error_counter"); n != 2*s.f.Links() || mean < 0.95 || mean > 1.05 {
		t.Errorf("%g errors a second at %d ports, want 1", mean, n)
	}
	sound(t, path)
}
