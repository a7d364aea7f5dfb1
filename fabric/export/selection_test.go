package export

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestSelection: shards together are the whole page, each series in one of them, and
// collectors too; families and --nonzero leave out what they say. Parts are written as all
// at once.
func TestSelection(t *testing.T) {
	f, _, err := sim.Parse("fattree")
	if err != nil {
		t.Fatal(err)
	}
	var ports []PortMetrics
	for i := range f.Ports() {
		if p := f.Ports()[i].Peer(); p != nil {
			ports = append(ports, PortMetrics{Port: p, Answered: i%7 > 0, TimedOut: i%7 == 0, BER: &BER{1e-15, 60}, Value: func(name string) (uint64, bool) { return uint64(len(name) % 3), true }})
		}
	}
	report := &audit.Report{Model: f, Metrics: []audit.Metric{{Name: "x", Labels: []string{"guid", f.OfType(mad.NodeTypeSwitch)[0].GUID().String()}, Value: 1}, {Name: "y", Value: 2}}}
	for _, d := range []Dialect{SckyzO, Treydock, Guilbaults} {
		page := func(s Selection) string {
			var b bytes.Buffer
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if err := s.Write(&b, func(set *MetricSet) error { return d.AuditPorts(set, report, ports, new(Totals)) }); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		var set MetricSet
		var all bytes.Buffer
		if err := d.AuditPorts(&set, report, ports, new(Totals)); err != nil {
			t.Fatal(err)
		}
		if err := set.Write(&all); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all.String(), page(Selection{})); diff != "" {
			t.Errorf("%q: the selection of all (-want +got):\n%.2000s", d, diff)
		}
		want := samples(all.String())
		for _, shards := range []int{1, 3, 8, MaxShards} {
			var got []string
			for k := range shards {
				got = append(got, samples(page(Selection{Shard: k + 1, Shards: shards}))...)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q: %d shards (-want +got):\n%.2000s", d, shards, diff)
			}
		}
		var got []string
		for _, name := range Collectors {
			got = append(got, samples(page(Selection{Collect: []string{name}}))...)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: collectors (-want +got):\n%.2000s", d, diff)
		}
		has := func(prefix string) func(string) bool {
			return func(line string) bool { return !strings.HasPrefix(line, prefix) }
		}
		if diff := cmp.Diff(slices.DeleteFunc(slices.Clone(want), has("infiniband_")), samples(page(Selection{Families: []string{"infiniband_*"}}))); diff != "" {
			t.Errorf("%q: families (-want +got):\n%.2000s", d, diff)
		}
		nonzero := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return isError(d, line) && strings.HasSuffix(line, " 0") })
		if diff := cmp.Diff(nonzero, samples(page(Selection{Nonzero: true}))); diff != "" || len(nonzero) == len(want) {
			t.Errorf("%q: nonzero (-want +got):\n%.2000s", d, diff)
		}
	}
}

// isError reports whether a line is of an error counter.
func isError(d Dialect, line string) bool {
	name, _, _ := strings.Cut(line, "{")
	return slices.ContainsFunc(counters, func(c counter) bool {
		names := []string{"infiniband_switch_" + c.port, "infiniband_hca_" + c.port, "infiniband_switch_" + c.portNew, "infiniband_hca_" + c.portNew}
		if d == Guilbaults {
			names = []string{"infiniband_" + c.guilbaults}
		}
		return !c.isTraffic() && slices.Contains(names, name)
	})
}

// samples are the lines of a page that are not comments, sorted.
func samples(page string) []string {
	lines := slices.DeleteFunc(strings.Split(page, "\n"), func(l string) bool { return l == "" || l[0] == '#' })
	slices.Sort(lines)
	return lines
}

// TestShardOf: shards are of about equal size, and do not change.
func TestShardOf(t *testing.T) {
	n := make([]int, 8)
	for i := range 8000 {
		n[shardOf(mad.GUID(0x2c90300100000+i*4), 8)-1]++
	}
	if slices.Min(n) < 900 || slices.Max(n) > 1100 {
		t.Errorf("nodes by shard: %v", n)
	}
	if got := fmt.Sprint(shardOf(0x2c90300100000, 8), shardOf(0x2c90300100001, 8), shardOf(0xffffffffffffffff, 64)); got != "3 8 60" {
		t.Errorf("got shards %s", got)
	}
}

// BenchmarkShard writes an eighth of the metrics of 11,664 hosts, and all.
func BenchmarkShard(b *testing.B) {
	f, _, err := sim.Parse("fattree:k=36,levels=3")
	if err != nil {
		b.Fatal(err)
	}
	ports := benchPorts(f)
	for _, s := range []Selection{{Shard: 3, Shards: 8}, {}} {
		b.Run(fmt.Sprint(max(s.Shards, 1)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Write(io.Discard, func(set *MetricSet) error {
					SckyzO.Fabric(set, f)
					SckyzO.Counters(set, ports)
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchPorts(f *fabric.Fabric) (ports []PortMetrics) {
	all := f.Ports()
	for i := range all {
		if p := &all[i]; p.Peer() != nil {
			ports = append(ports, PortMetrics{Port: p, Answered: true, Value: func(string) (uint64, bool) { return uint64(i) * 12345, true }, BER: &BER{1e-15, 60}})
		}
	}
	return ports
}
