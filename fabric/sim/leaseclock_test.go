package sim

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"fabsh/mad"
)

// TestLeaseClocks: leases of M_Keys and services last their time when the session's clock is
// set back meanwhile, end at once when it is set forward, and last while it stands still.
func TestLeaseClocks(t *testing.T) {
	const lease = 10 * time.Second
	for _, x := range []struct {
		what    string
		by      time.Duration
		still   bool
		expired string // by the second, of 5, 9 and 10
	}{
		{"no jump", 0, false, "false false true"},
		{"an hour back", -time.Hour, false, "false false true"},
		{"a day forward", 24 * time.Hour, false, "true true true"},
		{"standing still", 0, true, "false false false"},
	} {
		now := time.Unix(1e9, 0)
		r := newRig(t, small+",mkey=0x1234,mkey_level=2")
		r.SetClock(func() time.Time { return now })
		start := r.state.Uptime()
		p := r.at("node-0002 HCA-1", 1)
		portInfoLeaseField.SetUint(p.Info[:], uint64(lease/time.Second))
		locked := func() bool {
			c := smp(mad.MethodGet, mad.AttrPortInfo, 1, node2, nil)
			binary.BigEndian.PutUint64(c.MAD[mad.SMPKeyOffset:], 7)
			return !r.conn.ask(t, c)
		}
		service := func(m mad.Method) mad.Status {
			mask := mad.AttrServiceRecord.Field("service_id").Mask()
			if m == mad.MethodSet {
				mask = 1<<7 - 1 // ServiceID to ServiceName, the lease among them
			}
			rec := mad.ServiceRecord{ServiceID: 1, ServiceGID: r.conn.node.Ports[1].GID(), ServicePKey: mad.DefaultPKey, ServiceLease: uint32(lease / time.Second)}
			c := saCall(m, mad.AttrServiceRecord, 0, mask, encode(&rec), r.state.SM.LID)
			if !r.conn.ask(t, c) {
				t.Fatal("no answer")
			}
			return c.Header().Status
		}
		if s := service(mad.MethodSet); s != 0 {
			t.Fatal(s)
		}
		if !locked() { // a wrong key, with which the lease begins
			t.Fatal("a wrong key was right")
		}
		now = now.Add(x.by)
		r.state.Now() // goes on from where it was
		var keys, services [3]bool
		for i, passed := range []time.Duration{5 * time.Second, 4 * time.Second, time.Second} {
			if !x.still {
				now = now.Add(passed)
			}
			keys[i], services[i] = !locked(), service(mad.MethodGet) != 0
		}
		if got := fmt.Sprint(keys); got != "["+x.expired+"]" {
			t.Errorf("%s: M_Keys are free: %s, want %s", x.what, got, x.expired)
		}
		if got := fmt.Sprint(services); got != "["+x.expired+"]" {
			t.Errorf("%s: services have expired: %s, want %s", x.what, got, x.expired)
		}
		if up := r.state.Uptime() - start; up < 0 || x.by == 0 && up > lease {
			t.Errorf("%s: devices have run for %v more", x.what, up)
		}
	}
}
