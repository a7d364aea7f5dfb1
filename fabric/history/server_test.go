package history_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// postgres starts a server of Debian's postgresql on a socket, and returns its address, and functions that
// stop it and start it again. The programs are those of the machine, or of make peers.
func postgres(t *testing.T) (address string, stop, start func()) {
	if testing.Short() {
		t.Skip("starts PostgreSQL")
	}
	var bin string
	for _, pattern := range []string{"../../.peers/usr/lib/postgresql/*/bin/initdb", "/usr/lib/postgresql/*/bin/initdb"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 && bin == "" {
			bin, _ = filepath.Abs(filepath.Dir(found[len(found)-1]))
		}
	}
	if bin == "" {
		t.Fatal("no initdb: run make peers")
	}
	// A short path, for the socket, that another user reaches.
	dir, err := os.MkdirTemp("/tmp", "fabsh-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, name), args...)
		c.Dir = dir
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
		if root := filepath.Join(bin, "../../../../.."); strings.Contains(bin, ".peers") {
			libs, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
			c.Env = append(c.Env, "LD_LIBRARY_PATH="+strings.Join(libs, ":"))
		}
		if os.Geteuid() == 0 { // PostgreSQL refuses root
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return c
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "fabsh", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--data-checksums").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	address = "postgres:///postgres?user=fabsh&sslmode=disable&host=" + dir
	var server *exec.Cmd
	stop = func() {
		if server != nil {
			server.Process.Signal(syscall.SIGINT)
			server.Wait()
			server = nil
		}
	}
	start = func() {
		server = run("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=30")
		server.Stdout, server.Stderr = log, log
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; {
			if _, err := history.Subnets(t.Context(), address); err == nil {
				return
			} else if time.Now().After(end) {
				text, _ := os.ReadFile(log.Name())
				t.Fatalf("%v\n%s", err, text)
			}
			time.Sleep(50 * time.Millisecond) // of another process
		}
	}
	t.Cleanup(func() {
		stop()
		log.Close()
	})
	start()
	return address, stop, start
}

// TestServer: the same questions have the same answers in PostgreSQL; there is one recorder; a recorder
// there records what one of a file does.
func TestServer(t *testing.T) {
	address, stop, start := postgres(t)
	x := fixture(t)
	x.exec("insert into event values(?, 7, 'node.name', 1, null, null, ?, '', '')", hour(5), "bad \x00\xff name")
	x.exec("insert into ber values(1, ?, 60, 1e-6, 1e-9, null, 1)", hour(239))
	x.exec("insert into tile values(?, 1, 0, ?)", hour(24), history.EncodeTile(4, func(h int) byte { return history.EncodeSample(history.SampleMean, float64(100*h)) }))
	x.exec("insert into finding(key, job, t, till, checked, severity, node, port, subject, message) values('flaps:x', 'nightly', ?, null, ?, 2, 1, 3, 'leaf/3', '2 link-downs')", hour(200), hour(230))
	x.exec("insert into ack values('flaps:*', ?, 0, 'alice', 'cable ordered', null)", hour(210))
	x.exec("insert into change values(?, 0, 'remedy', 'leaf/3', 'bob', 'isolated', 1, 3)", hour(216))
	file := x.open()
	if err := file.Copy(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	if err := file.Copy(t.Context(), address); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second copy: %v", err)
	}
	server, err := history.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	same := func(name string, ask func(h *history.Store) (any, error)) {
		t.Helper()
		a, err := ask(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := ask(server)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s:\n%+v\n%+v", name, a, b)
		}
		if v := reflect.ValueOf(a); v.Kind() == reflect.Slice && v.Len() == 0 {
			t.Errorf("%s: no rows", name)
		}
	}
	ctx := t.Context()
	for _, of := range history.OffenderKinds {
		for _, by := range history.OffenderOrders {
			same("offenders by "+of, func(h *history.Store) (any, error) {
				return h.Offenders(ctx, history.OffenderQuery{Of: of, By: by, Until: hour(240)})
			})
		}
	}
	same("changes", func(h *history.Store) (any, error) {
		list, err := h.Changes(ctx, time.Time{}, time.Time{})
		return list[1:], err // a text that PostgreSQL cannot have
	})
	same("gaps", func(h *history.Store) (any, error) { return h.Gaps(ctx, time.Time{}, hour(300)) })
	same("flaps", func(h *history.Store) (any, error) { return h.Flaps(ctx, 2, hour(8*24), hour(9*24)) })
	same("port", func(h *history.Store) (any, error) { return h.LifeOf(ctx, guid(1), 3, hour(0), hour(240)) })
	same("node", func(h *history.Store) (any, error) { return h.NodeLife(ctx, guid(2), hour(0), hour(240)) })
	same("cable", func(h *history.Store) (any, error) { return h.CableLife(ctx, "S1") })
	same("traffic", func(h *history.Store) (any, error) {
		return h.Series(ctx, guid(2), 1, history.SampleMean, hour(0), hour(240))
	})
	same("errors", func(h *history.Store) (any, error) {
		return h.Series(ctx, guid(2), 1, "symbol_error_counter", hour(0), hour(240))
	})
	same("all errors", func(h *history.Store) (any, error) { return h.ErrorSeries(ctx, guid(2), 1, hour(0), hour(240)) })
	same("days", func(h *history.Store) (any, error) {
		return h.Errors(ctx, guid(2), 1, hour(0), hour(240), 24*time.Hour)
	})
	same("bit error rates", func(h *history.Store) (any, error) {
		a, b, err := h.BER(ctx, 1e-15, 125*time.Minute, hour(240))
		return append(a, b...), err
	})
	same("fabric", func(h *history.Store) (any, error) {
		f, _, err := h.At(ctx, hour(240))
		if err != nil {
			return nil, err
		}
		return snapshotOf(t, f), nil
	})
	same("events of a port", func(h *history.Store) (any, error) { return h.EventsOf(ctx, guid(1), 3) })
	same("events of a node", func(h *history.Store) (any, error) {
		list, err := h.EventsOf(ctx, guid(1), -1)
		for i := range list { // the server stores UTF-8 without zero bytes
			list[i].Subject = strings.NewReplacer("\x00", "\uFFFD", "\xff", "\uFFFD").Replace(list[i].Subject)
		}
		return list, err
	})
	same("lives", func(h *history.Store) (any, error) { return h.Lives(ctx, guid(1), 3) })
	same("growth", func(h *history.Store) (any, error) { return h.Growth(ctx, hour(4), 2*time.Hour) })
	same("overview", func(h *history.Store) (any, error) {
		o, err := h.Overview(ctx)
		if err == nil {
			o.Bytes = 0
		}
		return o, err
	})
	for _, query := range []string{"delete from event", "select 1; drop schema x", "select pg_advisory_lock(1) from event; select 2"} {
		if _, err := server.Query(ctx, query, 10); err == nil {
			t.Errorf("%q ran", query)
		}
	}
	if q, err := server.Query(ctx, "select kind, count(*) from event group by kind order by 1", 10); err != nil || len(q.Rows) != 2 {
		t.Errorf("%+v, %v", q, err)
	}

	// A second subnet, whose recorder writes a file that is followed.
	s := newSubnet(t, "fattree:k=4")
	source := filepath.Join(t.TempDir(), history.FileName)
	r, err := history.NewRecorder(ctx, source, fabric.Subnet{Given: "second"}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	replica := func(path string) *history.Replica {
		x, err := history.NewReplica(path, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		return x
	}
	follower := replica(source)
	follow := func() {
		t.Helper()
		if err := follower.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		sameRows(t, source, address+"#second")
	}
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	p := s.f.OfType(mad.NodeTypeCA)[3].Port(1)
	cycle := func() (*fabric.Fabric, *history.Summary) {
		t.Helper()
		s.now = s.now.Add(5 * time.Minute)
		m.of(p)[0]++
		f := s.sweep()
		sum, err := r.Record(ctx, history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now), Traffic: true})
		if err != nil {
			t.Fatal(err)
		}
		return f, sum
	}
	follow() // without a cycle
	cycle()
	follow()
	if err := replica(source).Sync(ctx); err == nil || !strings.Contains(err.Error(), "another process fills") {
		t.Errorf("two at once: %v", err)
	}
	swept := s.sweep()
	for range 2 { // the second time, the tables are those of the first
		s.now = s.now.Add(5 * time.Minute)
		if _, err := r.Record(ctx, history.Cycle{Time: s.now, Every: 5 * time.Minute, Fabric: swept, Routes: withPort(swept, 3)}); err != nil {
			t.Fatal(err)
		}
	}
	follow()
	routed, err := history.Open(ctx, address+"#second")
	if err != nil {
		t.Fatal(err)
	}
	if f, _, err := routed.At(ctx, s.now); err != nil || !f.HasLFTs() || f.OfType(mad.NodeTypeSwitch)[0].LFT()[5] != 3 {
		t.Errorf("forwarding tables: %v", err)
	}
	routed.Close()
	for i := range s.f.Ports() {
		if p := &s.f.Ports()[i]; p.Peer() != nil && p.Node().IsSwitch() && p.Peer().Node().IsSwitch() {
			if err := s.Cables.Unlink(p.Node().GUID(), p.Num()); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	cycle()
	err = history.Contribute(ctx, source, s.now.AddDate(0, 0, -3), func(c *history.Contributor) { // a row of a day before
		c.Change("apply", "tables", "me", "confirmed", 0, -1)
	})
	if err != nil {
		t.Fatal(err)
	}
	follow()
	stop() // the server is away for a day, which is said; nothing is lost
	for i := range 30 {
		s.now = s.now.Add(45 * time.Minute)
		cycle()
		if i%10 == 0 {
			if err := follower.Sync(ctx); err == nil || strings.Contains(err.Error(), "password") {
				t.Errorf("without a server: %v", err)
			}
		}
	}
	start()
	follow()
	s.now = s.now.AddDate(0, 0, 40) // errors by 5 minutes are removed
	f, _ := cycle()
	follow()
	if err := follower.Sync(ctx); err != nil { // nothing has changed
		t.Error(err)
	}
	follower.Close()
	follower = replica(source)
	cycle()
	follow()
	follower.Close()
	other := filepath.Join(t.TempDir(), history.FileName) // a history of the same name, begun later
	o, err := history.NewRecorder(ctx, other, fabric.Subnet{Given: "second"}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := replica(other).Sync(ctx); err == nil || !strings.Contains(err.Error(), "has another history of subnet second") {
		t.Errorf("another history: %v", err)
	}
	if list, err := history.Subnets(ctx, address); err != nil || !slices.Equal(list, []string{"second", "test"}) {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := history.Open(ctx, address); err == nil || !strings.Contains(err.Error(), "name one of second, test") {
		t.Errorf("ambiguous: %v", err)
	}
	if _, err := history.Open(ctx, address+"#third"); err == nil {
		t.Error("a subnet without a history was opened")
	}
	second, err := history.Open(ctx, address+"#second")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if g, _, err := second.At(ctx, s.now); err != nil || string(snapshotOf(t, g)) != string(snapshotOf(t, f)) {
		t.Errorf("the fabric: %v", err)
	}
	if damage, err := second.Check(ctx); err != nil || len(damage.Damage) > 0 {
		t.Errorf("%v, %v", damage, err)
	}
	if q, err := second.Query(ctx, "select subnet, count(*) from fabsh_all.event group by subnet order by 1", 10); err != nil || len(q.Rows) != 2 || fmt.Sprint(q.Rows[0]) != "[second 1]" {
		t.Errorf("%+v, %v", q, err)
	}
}

// sameRows compares the tables of two histories, but for what the next recorder goes on with.
func sameRows(t *testing.T, a, b string) {
	t.Helper()
	var all [2]map[string][]string
	for i, path := range []string{a, b} {
		h, err := history.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if v, err := h.Check(t.Context()); err != nil || len(v.Damage) > 0 {
			t.Errorf("%s: %v, %v", path, v, err)
		}
		all[i] = map[string][]string{}
		for _, name := range history.TableNames() {
			where := ""
			if name == "checksum" {
				where = " where name <> 'pending'"
			}
			if name == "pending" {
				continue
			}
			q, err := h.Query(t.Context(), "select * from "+name+where, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range q.Rows {
				all[i][name] = append(all[i][name], fmt.Sprint(row))
			}
			slices.Sort(all[i][name])
		}
	}
	for name, rows := range all[0] {
		if !slices.Equal(rows, all[1][name]) {
			t.Errorf("table %s: %d and %d rows, which differ", name, len(rows), len(all[1][name]))
		}
	}
}

// TestServerAddress: no password in an address, and none in errors.
func TestServerAddress(t *testing.T) {
	for _, address := range []string{"postgres://u:secret@localhost/x", "postgres://localhost/x?password=secret", "postgres://u:secret@%zz", "postgres://u@localhost:port/x?sslpassword=secret"} {
		if _, err := history.Open(t.Context(), address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
