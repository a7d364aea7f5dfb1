package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// full is the ClassPortInfo of an agent that has all counters but FEC's.
var full = &mad.ClassPortInfo{
	CapabilityMask:  uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported | mad.PerfCapabilityMaskPortCountersXmitWaitSupported | mad.PerfCapabilityMaskIsQP1DroppedSupported),
	CapabilityMask2: uint32(mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported),
}

// old is the ClassPortInfo of an agent that has only counters of 32 bits.
var old = new(mad.ClassPortInfo)

// portSpec is a port of a test, and what it answers: counters by attribute.
type portSpec struct {
	key    PortKey
	node   mad.GUID
	system mad.GUID
	info   *mad.ClassPortInfo
	silent []int             // attributes
	refuse []int             // or not asked for
	values map[string]uint64 // "0.symbol_error_counter": of attribute 0
}

// readOf makes a read of what ports answer, each a millisecond after the one before.
func readOf(began time.Time, specs ...portSpec) (ports []PortRead, read *Read) {
	a := NewAnswers(began, 0)
	for n, s := range specs {
		i := a.AddPort(s.key, s.node, s.system)
		for attr, x := range CounterAttributes {
			switch {
			case (Wanted(s.info, 0)|1|1<<2|1<<3)>>attr&1 == 0, slices.Contains(s.refuse, attr):
			case slices.Contains(s.silent, attr):
				a.Silent(i, attr, s.info)
			default:
				data := make([]byte, mad.ClassPerf.DataSize())
				for name, v := range s.values {
					if field, ok := strings.CutPrefix(name, fmt.Sprint(attr)+"."); ok {
						x.Field(field).SetUint(data, v)
					}
				}
				a.Answered(i, attr, s.info, nil, data, began.Add(time.Duration(n)*time.Millisecond))
			}
		}
	}
	return a.Read()
}

// windowOf is the window of the first port of a read since another.
func windowOf(before, after *Read) Window {
	between := new(Comparison)
	between.Add(after, before)
	return between.Newest(after.port(0))
}

// ratesOf says of some counters what two reads of ports come to.
func ratesOf(before, after []portSpec, gap time.Duration, names ...string) (lines []string) {
	was, first := readOf(noon, before...)
	is, second := readOf(noon.Add(gap), after...)
	between := new(Comparison)
	between.AddPorts(second, first, is, was)
	for i := range is {
		w := between.Newest(is[i])
		for _, name := range names {
			r := w.Rate(CounterIndex(name))
			lines = append(lines, fmt.Sprintf("%d %s %d %s", is[i].Key().Num, name, r.Count, r.Why))
		}
	}
	return lines
}

// TestRate: what is known, and why what is not is not.
func TestRate(t *testing.T) {
	sw := func(num uint8, values map[string]uint64) portSpec {
		return portSpec{key: PortKey{7, num}, node: 7, system: 70, info: full, values: values}
	}
	v := func(name string, n uint64) map[string]uint64 { return map[string]uint64{name: n} }
	both := func(whole, part uint64) map[string]uint64 {
		return map[string]uint64{"1.port_rcv_switch_relay_errors": whole, "2.port_looping_errors": part}
	}
	with := func(s portSpec, change func(*portSpec)) portSpec { change(&s); return s }
	for _, test := range []struct {
		name          string
		before, after portSpec
		gap           time.Duration
		counter, want string
	}{
		{"64 bits", sw(1, v("1.port_xmit_data", 1<<40)), sw(1, v("1.port_xmit_data", 1<<40+25)), 10, "port_xmit_bytes", "100 "},
		{"the 32 bits beside do not count", sw(1, v("0.port_xmit_data", 1)), sw(1, v("0.port_xmit_data", math.MaxUint32)), 10, "port_xmit_bytes", "0 "},
		{"32 bits", with(sw(1, v("0.port_xmit_data", 1)), func(s *portSpec) { s.info = old }), with(sw(1, v("0.port_xmit_data", 2)), func(s *portSpec) { s.info = old }), 10, "port_xmit_bytes", "4 "},
		{"saturated", with(sw(1, v("0.link_downed_counter", 3)), func(s *portSpec) { s.info = old }), with(sw(1, v("0.link_downed_counter", 255)), func(s *portSpec) { s.info = old }), 10, "link_downed_counter", "0 saturated"},
		{"errors of 64 bits", sw(1, nil), sw(1, v("1.link_downed_counter", 255)), 10, "link_downed_counter", "255 "},
		{"not supported", with(sw(1, nil), func(s *portSpec) { s.info = old }), with(sw(1, nil), func(s *portSpec) { s.info = old }), 10, "port_xmit_wait", "0 not_supported"},
		{"refused", with(sw(1, nil), func(s *portSpec) { s.refuse = []int{2} }), with(sw(1, v("1.port_rcv_errors", 1)), func(s *portSpec) { s.refuse = []int{2} }), 10, "port_looping_errors", "0 not_supported"},
		{"a part of nothing", with(sw(1, nil), func(s *portSpec) { s.refuse = []int{2} }), with(sw(1, nil), func(s *portSpec) { s.refuse = []int{2} }), 10, "port_looping_errors", "0 "},
		{"a part of what was nothing", with(sw(1, nil), func(s *portSpec) { s.refuse = []int{2} }), sw(1, both(5, 3)), 10, "port_looping_errors", "3 "},
		{"more than the whole, which was cleared alone", with(sw(1, nil), func(s *portSpec) { s.refuse = []int{2} }), sw(1, both(5, 6)), 10, "port_looping_errors", "0 no_earlier_read"},
		{"a part of what is nothing any more", sw(1, both(5, 3)), with(sw(1, nil), func(s *portSpec) { s.refuse = []int{2} }), 10, "port_looping_errors", "0 cleared"},
		{"silent then", with(sw(1, nil), func(s *portSpec) { s.silent = []int{2} }), sw(1, nil), 10, "port_looping_errors", "0 no_answer"},
		{"silent now", sw(1, nil), with(sw(1, nil), func(s *portSpec) { s.silent = []int{3} }), 10, "port_inactive_discards", "0 no_answer"},
		{"silent now, so that 32 bits are left", sw(1, nil), with(sw(1, nil), func(s *portSpec) { s.silent = []int{1} }), 10, "port_rcv_errors", "0 no_answer"},
		{"other width", with(sw(1, nil), func(s *portSpec) { s.info = old }), sw(1, v("1.port_rcv_errors", 9)), 10, "port_rcv_errors", "0 no_earlier_read"},
		{"cleared", sw(1, v("1.port_rcv_errors", 9)), sw(1, v("1.port_rcv_errors", 3)), 10, "port_rcv_errors", "0 cleared"},
		{"cleared beside", sw(1, v("1.port_rcv_errors", 9)), sw(1, v("1.port_rcv_errors", 3)), 10, "port_xmit_discards", "0 cleared"},
		{"replaced", sw(1, nil), with(sw(1, nil), func(s *portSpec) { s.system = 71 }), 10, "port_rcv_errors", "0 replaced"},
		{"another node", sw(1, nil), with(sw(1, nil), func(s *portSpec) { s.node = 8 }), 10, "port_rcv_errors", "0 replaced"},
		{"too short", sw(1, nil), sw(1, nil), 0, "port_rcv_errors", "0 too_short"},
		{"clock set back", sw(1, nil), sw(1, nil), -10, "port_rcv_errors", "0 too_short"},
		{"hostile", sw(1, nil), sw(1, v("1.port_xmit_data", math.MaxUint64-1)), 10, "port_xmit_bytes", "0 saturated"},
		{"FEC of which the layout is not known", sw(1, nil), sw(1, nil), 10, "port_fec_uncorrectable_block_ctr", "0 not_supported"},
	} {
		got := ratesOf([]portSpec{test.before}, []portSpec{test.after}, test.gap*time.Second, test.counter)
		if want := []string{"1 " + test.counter + " " + test.want}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", test.name, got, want)
		}
	}
	// If the counters of all ports of a node fell, that is reported.
	got := ratesOf([]portSpec{sw(1, v("1.port_rcv_errors", 9)), sw(2, v("1.vl15_dropped", 4)), sw(3, nil)},
		[]portSpec{sw(1, nil), sw(2, nil), sw(3, nil)}, time.Minute, "port_rcv_errors")
	want := []string{"1 port_rcv_errors 0 node_reset", "2 port_rcv_errors 0 node_reset", "3 port_rcv_errors 0 "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("node reset: -want +got\n%s", d)
	}
}

// TestCounters: the attributes define the counters, without a name twice,
// and each field of the attributes is one.
func TestCounters(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Counters() {
		if seen[c.Name] || c.Doc == "" || len(c.sources) == 0 {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
	for _, a := range CounterAttributes {
		for _, c := range a.Counters() {
			name := c.Script
			if base, ok := strings.CutSuffix(name, "_data"); ok {
				name = base + "_bytes"
			}
			if !seen[name] {
				t.Errorf("%s.%s is not read", a.Name, c.Script)
			}
		}
	}
}

// TestFEC: the layout of FEC counters is the one of the FEC in use.
func TestFEC(t *testing.T) {
	info := &mad.ClassPortInfo{CapabilityMask: uint16(mad.PerfCapabilityMaskIsRSFECModeSupported)}
	for _, test := range []struct {
		mode           mad.FECMode
		has, hasNot    string
		offset, length int // of the counter, in bytes
	}{
		{mad.FECModeRS, "port_fec_uncorrectable_block_ctr", "fec_uncorrectable_block_ctr_lane_03", 20 + 124, 4},
		{mad.FECModeFireCode, "fec_uncorrectable_block_ctr_lane_03", "port_fec_uncorrectable_block_ctr", 20 + 72 + 12, 4},
	} {
		a := NewAnswers(noon, 0)
		i := a.AddPort(PortKey{7, 1}, 7, 7)
		data := make([]byte, mad.ClassPerf.DataSize())
		data[test.offset+test.length-1] = 5
		a.Answered(i, 4, info, &test.mode, data, noon)
		ports, _ := a.Read()
		if v, s := ports[0].value(CounterIndex(test.has)); s == nil || v != 5 {
			t.Errorf("%v: %s is %d, from %v", test.mode, test.has, v, s)
		}
		if _, s := ports[0].value(CounterIndex(test.hasNot)); s != nil {
			t.Errorf("%v: %s has a value", test.mode, test.hasNot)
		}
	}
}

// TestBER has the figures of audits: what a target allows, and from which window it
// can be judged.
func TestBER(t *testing.T) {
	const short, long = 12 * time.Minute, 125 * time.Minute
	for _, test := range []struct {
		speed   string
		errors  uint64
		window  time.Duration
		target  float64
		allowed string
		verdict BERVerdict
	}{
		{"edr", 0, short, 1e-14, "0.72", BERTooShort},
		{"hdr", 0, short, 1e-14, "1.44", BERTooShort},
		{"ndr", 0, short, 1e-14, "2.88", BERTooShort},
		{"xdr", 0, short, 1e-14, "5.76", BEROK},
		{"edr", 0, long, 1e-15, "0.75", BERTooShort},
		{"hdr", 0, long, 1e-15, "1.50", BERTooShort},
		{"ndr", 0, long, 1e-15, "3.00", BEROK},
		{"xdr", 6, long, 1e-15, "6.00", BEROK},
		{"xdr", 7, long, 1e-15, "6.00", BERExceeded},
		{"edr", 4, short, 1e-14, "0.72", BERTooShort},
		{"edr", 5, short, 1e-14, "0.72", BERExceeded},
		{"edr", 1, 10 * time.Second, 1e-15, "0.00", BERTooShort}, // one error never alarms
		{"edr", 2, 10 * time.Second, 1e-15, "0.00", BERExceeded},
		{"edr", 1 << 60, 10 * time.Second, 1e-15, "0.00", BERExceeded},
		{"", 3, short, 1e-14, "0.00", BERUnknown},
	} {
		b := JudgeBER(test.errors, test.window, LinkBits("4x", test.speed), test.target)
		if got := fmt.Sprintf("%.2f", b.Allowed); got != test.allowed || b.Verdict != test.verdict {
			t.Errorf("%d errors at %s in %v by %g: allowed %s, %s; want %s, %s", test.errors, test.speed, test.window, test.target, got, b.Verdict, test.allowed, test.verdict)
		}
	}
}

// TestErrors: what is worth a look is what the rates of all counters say.
func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fields := []string{"0.local_link_integrity_errors", "0.symbol_error_counter", "1.symbol_error_counter", "1.port_rcv_errors", "1.port_xmit_discards", "2.port_looping_errors", "3.port_inactive_discards", "1.port_xmit_data", "0.port_xmit_wait"}
	spec := func() portSpec {
		s := portSpec{key: PortKey{1, 1}, node: 1, system: mad.GUID(1 + r.IntN(20)/19), info: full, values: map[string]uint64{}}
		if r.IntN(3) == 0 {
			s.info = old
		}
		for _, f := range fields {
			if r.IntN(3) == 0 {
				s.values[f] = r.Uint64N(40)
			}
		}
		s.values["0.local_link_integrity_errors"] = 14 + r.Uint64N(2)
		for attr := range 4 {
			switch r.IntN(12) {
			case 0:
				s.silent = append(s.silent, attr)
			case 1:
				s.refuse = append(s.refuse, attr)
			}
		}
		return s
	}
	seen := [3]int{}
	for range 3000 {
		was, first := readOf(noon, spec())
		is, second := readOf(noon.Add(time.Minute), spec())
		if r.IntN(20) == 0 {
			was[0] = PortRead{}
		}
		between := new(Comparison)
		between.AddPorts(second, first, is, was)
		w := between.Newest(is[0])
		var want [3][]int
		for i, c := range Counters() {
			switch x := w.Rate(i); {
			case x.Why == NoAnswer:
				want[2] = append(want[2], i)
			case c.Traffic:
			case !was[0].Known() && largest(is[0], i):
				want[1] = append(want[1], i)
			case x.Why == Saturated:
				want[1] = append(want[1], i)
			case x.Why == Known && x.Count > 0:
				want[0] = append(want[0], i)
			}
		}
		var got [3][]int
		got[0], got[1], got[2] = w.Errors()
		for i := range got {
			seen[i] += len(got[i])
		}
		if !slices.EqualFunc(want[:], got[:], func(a, b []int) bool { return slices.Equal(a, b) }) {
			t.Fatal(fmt.Sprint("got ", got, ", want ", want))
		}
	}
	if slices.Min(seen[:]) < 50 {
		t.Errorf("%v were seen", seen)
	}
}

// largest: a counter of p stands at its largest value.
func largest(p PortRead, counter int) bool {
	v, s := p.value(counter)
	return s != nil && v == s.field.Max()
}
