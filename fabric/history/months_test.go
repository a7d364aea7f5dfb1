package history_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// meters are the counters of the ports of a subnet, and its modules, as a scenario sets them.
type meters struct {
	values  map[audit.PortKey]*[3]uint64 // symbol errors, link-downs, data sent in units of 4 bytes
	modules map[[2]uint64]string         // serial numbers, by node and port
}

// read is what the agents of the ports of f answer.
func (m *meters) read(f *fabric.Fabric, now time.Time) *audit.Read {
	info := &mad.ClassPortInfo{CapabilityMask: uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported)}
	a := audit.NewAnswers(now, 64)
	for i := range f.Ports() {
		p := &f.Ports()[i]
		key, ok := audit.KeyOf(p)
		if !ok || p.Peer() == nil {
			continue
		}
		v := m.of(p)
		base, wide := make([]byte, mad.AttrPortCounters.Size), make([]byte, mad.AttrPortCountersExtended.Size)
		mad.AttrPortCounters.Field("symbol_error_counter").SetUint(base, v[0])
		mad.AttrPortCounters.Field("link_downed_counter").SetUint(base, v[1])
		mad.AttrPortCountersExtended.Field("port_xmit_data").SetUint(wide, v[2])
		j := a.AddPort(key, p.Node().GUID(), 0)
		a.Answered(j, 0, info, nil, base, now)
		a.Answered(j, 1, info, nil, wide, now)
	}
	_, read := a.Read()
	return read
}

func (m *meters) of(p *fabric.Port) *[3]uint64 {
	key, _ := audit.KeyOf(p)
	if m.values[key] == nil {
		m.values[key] = new([3]uint64)
	}
	return m.values[key]
}

// list are the modules in the ports of f with a link.
func (m *meters) list(f *fabric.Fabric) []history.Module {
	list := []history.Module{}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			serial := m.modules[[2]uint64{uint64(p.Node().GUID()), uint64(p.Num())}]
			list = append(list, history.Module{Node: p.Node().GUID(), Port: p.Num(), Serial: serial, Part: "part", Temperature: 41, RxPower: 0.9, TxPower: math.NaN()})
		}
	}
	return list
}

// TestMonths: for two and a half months, things happen to a subnet. Each cycle's fabric is the snapshot that
// was taken, byte for byte, all events are those that the scenario made, and the errors, cables and traffic are
// the true ones, although recorders end, are killed and start, and old rows are removed.
func TestMonths(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer func() { r.Close() }()
	random := rand.New(rand.NewPCG(7, 7))
	m := &meters{map[audit.PortKey]*[3]uint64{}, map[[2]uint64]string{}}
	hosts := s.f.OfType(mad.NodeTypeCA)
	var links []*fabric.Port // between switches, and of hosts but the one that sweeps
	for i := range s.f.Ports() {
		p := &s.f.Ports()[i]
		m.modules[[2]uint64{uint64(p.Node().GUID()), uint64(p.Num())}] = fmt.Sprintf("SN%03d", i)
		if p.Peer() != nil && p.Node().IsSwitch() && p.Peer().Node().IsSwitch() && p.Node().GUID() < p.Peer().Node().GUID() {
			links = append(links, p)
		}
	}
	type taken struct {
		when time.Time
		data []byte
	}
	var snapshots []taken
	grown := map[string]uint64{} // by day and port
	begin := s.now
	var want []string // kinds of events, by cycle
	setBack := time.Duration(0)
	swapped := map[string]bool{}
	name := 0
	var lastSeen time.Time
	cycle := func(step time.Duration, happens ...string) {
		s.now = s.now.Add(step)
		f := s.sweep()
		if !lastSeen.IsZero() {
			for i := range f.Ports() {
				if p := &f.Ports()[i]; p.Peer() != nil {
					m.of(p)[2] += uint64(s.now.Sub(lastSeen)/time.Second) * 25e6 // 100 MB/s
				}
			}
		}
		lastSeen = s.now
		clock := s.now.Add(-setBack)
		c := history.Cycle{Time: clock, Every: step, Source: "test", Fabric: f, Counters: m.read(f, s.now), Traffic: true}
		if r.WantsModules(clock) || slices.ContainsFunc(happens, func(x string) bool { return strings.HasPrefix(x, "cable.") }) {
			c.Modules = m.list(f)
		}
		x, err := r.Record(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Notes) > 0 {
			t.Errorf("notes: %q", x.Notes)
		}
		var kinds []string
		for _, e := range x.Events {
			kinds = append(kinds, e.Kind)
		}
		if !slices.Equal(kinds, happens) {
			t.Fatalf("%s: got %q, want %q", s.now, words(x.Events), happens)
		}
		snapshots = append(snapshots, taken{x.Time, snapshotOf(t, f)})
		want = append(want, happens...)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cycle(time.Minute)
	for day := range 75 {
		for range 3 {
			cycle(6 * time.Hour)
		}
		p := links[random.IntN(len(links))]
		switch what := day % 11; what {
		case 0: // a link fails and returns
			must(s.Cables.Unlink(p.Node().GUID(), p.Num()))
			cycle(5*time.Minute, "link.down")
			must(s.Cables.Link(p.Node().GUID(), p.Num()))
			cycle(5*time.Minute, "link.up")
		case 1: // a link flaps between two sweeps
			m.of(p)[1]++
			m.of(p.Peer())[1]++
			cycle(5*time.Minute, "link.flap")
			grown[s.now.Format(time.DateOnly)] += 2
		case 2: // errors
			for range 3 {
				m.of(p)[0] += 7
				grown[s.now.Add(2*time.Minute).Format(time.DateOnly)] += 7
				cycle(2 * time.Minute)
			}
		case 3: // counters of a port are cleared
			m.of(p)[0] += 5
			cycle(5 * time.Minute)
			grown[s.now.Format(time.DateOnly)] += 5
			*m.of(p) = [3]uint64{}
			cycle(5*time.Minute, "counter.cleared")
		case 4: // a node has another name
			name++
			must(s.Edit.Name(hosts[3].GUID(), fmt.Sprintf("renamed-%d HCA-1", name)))
			cycle(5*time.Minute, "node.name")
		case 5: // a host is switched off, and on
			h := hosts[4].Port(1).Peer()
			must(s.Cables.Unlink(h.Node().GUID(), h.Num()))
			cycle(5*time.Minute, "node.gone", "link.gone")
			must(s.Cables.Link(h.Node().GUID(), h.Num()))
			cycle(5*time.Minute, "node.back", "link.up")
		case 6: // two modules are swapped
			a, b := [2]uint64{uint64(p.Node().GUID()), uint64(p.Num())}, [2]uint64{uint64(hosts[2].GUID()), 1}
			m.modules[a], m.modules[b] = m.modules[b], m.modules[a]
			cycle(5*time.Minute, "cable.moved", "cable.moved")
		case 7: // the subnet manager moves
			must(moveSM(s))
			cycle(5*time.Minute, "sm.moved")
		case 8: // the recorder ends, and another starts
			must(r.Close())
			r = s.recorder(path)
		case 9: // the clock is set back for a while
			setBack = 8 * time.Hour
			cycle(5*time.Minute, "clock.back")
			cycle(5 * time.Minute)
			setBack = 0
		case 10: // two cables are swapped
			q := links[(slices.Index(links, p)+3)%len(links)]
			if p.Node() == q.Node() || p.Peer().Node() == q.Peer().Node() {
				continue
			}
			cables := func() {
				must(s.Cables.Swap(sim.Cable{Node: p.Node().GUID(), Num: p.Num()}, sim.Cable{Node: q.Node().GUID(), Num: q.Num()}))
			}
			cables()
			kind := "link.new"
			if k := min(p.Name(), q.Name()) + max(p.Name(), q.Name()); swapped[k] {
				kind = "link.up"
			} else {
				swapped[k] = true
			}
			cycle(5*time.Minute, "link.down", "link.down", kind, kind)
			cables()
			cycle(5*time.Minute, "link.down", "link.down", "link.up", "link.up")
		}
		s.now = begin.AddDate(0, 0, day+1)
	}
	must(r.Close())
	r = s.recorder(path)
	h, err := history.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, x := range snapshots {
		f, when, err := h.At(t.Context(), x.when)
		if err != nil || !when.Equal(x.when) || !bytes.Equal(snapshotOf(t, f), x.data) {
			t.Fatalf("%s: %v of %s, %v", x.when, f, when, err)
		}
	}
	events, err := h.Changes(t.Context(), time.Time{}, time.Time{})
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if err != nil || !slices.Equal(kinds, want) {
		t.Errorf("events: %q %v", kinds, err)
	}
	days, fifth := h.Grown(t)
	if fmt.Sprint(days) != fmt.Sprint(grown) {
		t.Errorf("errors by day: %v, want %v", days, grown)
	}
	if oldest := s.now.AddDate(0, 0, -32); len(fifth) == 0 || fifth[0].Before(oldest) {
		t.Errorf("errors by 5 minutes from %v", fifth)
	}
	if rate, hours := h.Traffic(t); hours < 75*3*20 || rate < 95 || rate > 106 {
		t.Errorf("%d port-hours of %.1f MB/s, want 100", hours, rate)
	}
	if v, err := h.Check(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("check: %q %v", v.Damage, err)
	}
}

// moveSM lets the subnet manager be another port's, as its LID in all PortInfos.
func moveSM(s *subnet) error {
	f := s.sweep()
	var now mad.LID
	for i := range f.Ports() {
		if info := f.Ports()[i].Info(); info != nil && info.MasterSMLID != 0 {
			now = info.MasterSMLID
		}
	}
	hosts := f.OfType(mad.NodeTypeCA)
	to := hosts[0].LID()
	if to == now {
		to = hosts[1].LID()
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Info() == nil || p.Info().MasterSMLID == 0 {
			continue
		}
		if err := s.Edit.Port(p.Node().GUID(), p.Num(), func(info *mad.PortInfo) { info.MasterSMLID = to }); err != nil {
			return err
		}
	}
	return nil
}
