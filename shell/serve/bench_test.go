//go:build linux

package serve

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// largeSite returns a site of 11,664 hosts, 34,984 links and 20 findings, with a year of history: cycles of five
// minutes, 20 flaps a day, and the errors and traffic of the link of leaf-1/1.
func largeSite(b *testing.B) (*Site, *audit.Report) {
	f, _, err := sim.Parse("fattree:k=36,levels=3,remove_links=8,seed=3")
	if err != nil {
		b.Fatal(err)
	}
	r := reportOf(f)
	ports := f.Ports()
	for i := 0; i < len(ports) && len(r.Findings) < 20; i++ {
		if p := &ports[i]; p.Num() > 0 && p.Node().IsSwitch() && (p.Peer() == nil || i%7001 == 5) {
			r.Findings = append(r.Findings, audit.Finding{Audit: "links", Check: "link.down", Subject: audit.OfPort(p), Severity: audit.Critical, Message: "the link is down", Since: noon.Add(-time.Hour)})
		}
	}
	path := filepath.Join(b.TempDir(), history.FileName)
	first := noon.Add(-26 * time.Hour)
	rec, err := history.NewRecorder(b.Context(), path, fabric.SubnetOf(f, ""), first)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 27 {
		now := first.Add(time.Duration(i) * time.Hour)
		if _, err := rec.Record(b.Context(), history.Cycle{Time: now, Every: 5 * time.Minute, Source: "test", Fabric: f, Counters: readOf(f, uint64(i+1), now), Traffic: true}); err != nil {
			b.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	p := f.NodeByName("leaf-1")[0].Port(1)
	var ids [2]int64
	for i, x := range []*fabric.Port{p, p.Peer()} {
		if err := db.QueryRow("select p.id from port p join node n on n.id = p.node where n.guid = ? and p.num = ?", x.Node().GUID().String(), x.Num()).Scan(&ids[i]); err != nil {
			b.Fatal(err)
		}
	}
	begin := noon.AddDate(-1, 0, 0).Truncate(day).Unix()
	for query, args := range map[string][]any{
		`with recursive n(i) as (select 0 union all select i+1 from n where i < 104800) insert or ignore into cycle select ? + i*300, 300, 'test', '', (select min(t) from keyframe), 0 from n`:                                        {begin},
		`with recursive n(i) as (select 0 union all select i+1 from n where i < 7300) insert or ignore into event select ? + i*4320, 9, 'link.flap', null, 1 + (i*7919) % 70000, null, 'leaf-1/1 - node-0001 HCA-1/1', '', '1' from n`: {begin},
		`with recursive n(i) as (select 0 union all select i+1 from n where i < 8730) insert or ignore into err60 select ?, ? + i*3600, 0, 1 + i % 9, 1 from n`:                                                                        {ids[0], begin},
		`with recursive n(i) as (select 0 union all select i+1 from n where i < 364) insert or ignore into err_day select ? + i*86400, ?, 0, 24, 100 from n`:                                                                           {begin, ids[0]},
		`with recursive n(i) as (select 1 union all select i+1 from n where i < 360) insert or ignore into tile select t - i*86400, kind, block, data from tile, n where block in (?, ?)`:                                              {ids[0] / 256, ids[1] / 256},
	} {
		if _, err := db.Exec(query, args...); err != nil {
			b.Fatalf("%s: %v", query, err)
		}
	}
	return siteOf(b, r, path), r
}

// readOf returns counters of all ports that grow with n.
func readOf(f *fabric.Fabric, n uint64, now time.Time) *audit.Read {
	info := &mad.ClassPortInfo{CapabilityMask: uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported | mad.PerfCapabilityMaskPortCountersXmitWaitSupported)}
	a := audit.NewAnswers(now, len(f.Ports()))
	base, wide := make([]byte, mad.AttrPortCounters.Size), make([]byte, mad.AttrPortCountersExtended.Size)
	for i := range f.Ports() {
		p := &f.Ports()[i]
		key, ok := audit.KeyOf(p)
		if !ok || p.Peer() == nil {
			continue
		}
		mad.AttrPortCountersExtended.Field("port_xmit_data").SetUint(wide, n*uint64(1+i%1013)*1e9)
		j := a.AddPort(key, p.Node().GUID(), 0)
		a.Answered(j, 0, info, nil, base, now)
		a.Answered(j, 1, info, nil, wide, now)
	}
	_, read := a.Read()
	return read
}

// cpu returns the processor time that the process has used.
func cpu() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPages opens pages of 11,664 hosts: the first ones after a cycle, those that follow, of a link with a
// year of history, and as 50 viewers do it at once. Medians and the 99th percentile in ms of the wall, and of the processor;
// the memory that the site takes beside the fabric.
func BenchmarkPages(b *testing.B) {
	s, r := largeSite(b)
	fresh := func() { s.Add(r) }
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	before := heap()
	get := func(b *testing.B, address string) time.Duration {
		began := time.Now()
		q := httptest.NewRequest("GET", address, nil)
		q.Host = "localhost"
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, q)
		if w.Code != 200 {
			b.Errorf("%s: %d %.300s", address, w.Code, text(w.Body.String()))
		}
		return time.Since(began)
	}
	percentiles := func(b *testing.B, list []time.Duration, used time.Duration) {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Microseconds())/1e3, "median-ms")
		b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1e3, "p99-ms")
		b.ReportMetric(float64(used.Microseconds())/1e3/float64(len(list)), "cpu-ms/page")
		b.ReportMetric(0, "ns/op")
	}
	for _, c := range []struct {
		name, address string
		cycle         bool // it is the first page after a cycle
	}{
		{"now-first", "/now", true}, {"now", "/now", false}, {"map-first", "/map", true}, {"map", "/map", false}, {"map-load", "/map?by=load", false},
		{"link", "/link/leaf-1/1", false}, {"link-year", "/link/leaf-1/1?span=1y", false}, {"node", "/node/leaf-1", false}, {"changes-year", "/changes?span=1y", false}, {"time-year", "/time?span=1y", false}, {"find", "/find?q=node-11", false}, {"past-first", "", true},
	} {
		b.Run(c.name, func(b *testing.B) {
			var list []time.Duration
			used := time.Duration(0)
			for b.Loop() {
				if c.cycle {
					fresh()
				}
				address := c.address
				if address == "" {
					address = "/now?at=" + noon.Add(-time.Duration(rand.IntN(20*3600))*time.Second).Format(time.RFC3339)
				}
				began := cpu()
				list = append(list, get(b, address))
				used += cpu() - began
			}
			percentiles(b, list, used)
		})
	}
	b.Run("50-viewers", func(b *testing.B) {
		walk := []string{"/now", "/map", "/link/leaf-1/1?span=7d", "/node/leaf-1", "/changes", "/time", "/link/leaf-1/1?span=1y"}
		var list []time.Duration
		used := time.Duration(0)
		for b.Loop() {
			fresh()
			began := cpu()
			var group sync.WaitGroup
			var mu sync.Mutex
			for viewer := range 50 {
				group.Go(func() {
					took := get(b, walk[viewer%len(walk)])
					mu.Lock()
					defer mu.Unlock()
					list = append(list, took)
				})
			}
			group.Wait()
			used += cpu() - began
		}
		percentiles(b, list, used)
		b.ReportMetric(heap()-before, "MB")
	})
	if load := strings.Fields(loadOf()); len(load) > 0 {
		b.Log("load of the machine: ", load[0])
	}
}

// loadOf returns the load of the machine, of which wall times depend.
func loadOf() string {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(info.Loads[0])/65536)
}
