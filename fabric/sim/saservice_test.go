package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fabsh/mad"
)

// TestServiceLease: a ServiceRecord is there until its lease ends, by the clock of the
// subnet. A Set renews the lease.
func TestServiceLease(t *testing.T) {
	r := newRig(t, small)
	now := time.Unix(0, 0)
	r.SetClock(func() time.Time { return now })
	component := func(name string) uint64 { return mad.AttrServiceRecord.Field(name).Mask() }
	mask := component("service_id") | component("service_gid") | component("service_p_key")
	change := func(m mad.Method, id uint64, lease uint32, withLease bool) mad.Status {
		t.Helper()
		rec := mad.ServiceRecord{ServiceID: id, ServiceGID: r.conn.node.Ports[1].GID(), ServicePKey: mad.DefaultPKey, ServiceLease: lease}
		mask := mask
		if withLease {
			mask |= component("service_lease")
		}
		c := saCall(m, mad.AttrServiceRecord, 0, mask, encode(&rec), r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		return c.Header().Status
	}
	found := func(id uint64) string {
		t.Helper()
		c := saCall(mad.MethodGet, mad.AttrServiceRecord, 0, component("service_id"), encode(&mad.ServiceRecord{ServiceID: id}), r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		if c.Header().Status != 0 {
			return "-"
		}
		var rec mad.ServiceRecord
		rec.Decode(c.Data())
		return fmt.Sprint(rec.ServiceLease)
	}
	for id, lease := range map[uint64]uint32{1: 10, 2: 20, 3: 1<<32 - 1, 4: 0} {
		if s := change(mad.MethodSet, id, lease, true); s != 0 {
			t.Fatalf("service %d: %v", id, s)
		}
	}
	if s := change(mad.MethodSet, 5, 77, false); s != 0 {
		t.Fatal(s)
	}
	var lines []string
	look := func(what string) {
		lines = append(lines, fmt.Sprintf("%-10s%s %s %s %s %s", what, found(1), found(2), found(3), found(4), found(5)))
	}
	look("at once")
	now = now.Add(9999 * time.Millisecond)
	look("9.999 s")
	change(mad.MethodSet, 2, 20, true)
	now = now.Add(time.Millisecond)
	look("10 s")
	if s := change(mad.MethodDelete, 1, 0, false); s != mad.StatusNoRecords {
		t.Errorf("Delete of an expired service: %v", s)
	}
	now = now.Add(19 * time.Second)
	look("29 s")
	now = now.Add(time.Second)
	look("30 s")
	now = now.Add(1000 * time.Hour)
	look("later")
	want := `at once   10 20 4294967295 - 4294967295
9.999 s   10 20 4294967295 - 4294967295
10 s      - 20 4294967295 - 4294967295
29 s      - 20 4294967295 - 4294967295
30 s      - - 4294967295 - 4294967295
later     - - 4294967295 - 4294967295`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
