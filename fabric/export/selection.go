package export

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// Selection is a part of the metrics. The zero value is all of them.
type Selection struct {
	// Shard of Shards, from 1, has the nodes whose GUIDs hash to it; the first also has
	// what is of the whole fabric. 0: all.
	Shard, Shards int
	// Collect are names of Collectors; none: all.
	Collect []string
	// Families are patterns of names, as of path.Match; none: all.
	Families []string
	// Nonzero leaves error counters out that are 0.
	Nonzero bool
}

// MaxShards is how many shards there may be.
const MaxShards = 64

// Names of collectors: parts of the metrics by what they are of.
const (
	CollectNodes    = "nodes"    // nodes, cables, states and rates of links
	CollectTraffic  = "traffic"  // counters of data, packets and waiting
	CollectErrors   = "errors"   // counters of errors, bit error rates
	CollectAudit    = "audit"    // findings, coverage, metrics of scripts
	CollectRun      = "run"      // which devices answered, and how long it took
	CollectExporter = "exporter" // the exporter itself
)

// Collectors are all of them.
var Collectors = []string{CollectNodes, CollectTraffic, CollectErrors, CollectAudit, CollectRun, CollectExporter}

// Check returns nil if all that s names exists.
func (s *Selection) Check() error {
	for _, name := range s.Collect {
		if !slices.Contains(Collectors, name) {
			return fmt.Errorf("unknown collector %q%s; supported: %s", fabric.Clip(name), fabric.DidYouMean(name, Collectors), strings.Join(Collectors, ", "))
		}
	}
	for _, pattern := range s.Families {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("invalid pattern %q: %w", fabric.Clip(pattern), err)
		}
	}
	return nil
}

// Key returns equal texts for selections of equal metrics.
func (s *Selection) Key() string {
	collect := slices.Clone(s.Collect)
	slices.Sort(collect)
	return fmt.Sprint(s.Shard, s.Shards, slices.Compact(collect), s.Nonzero, s.Families)
}

// Collects reports whether a collector is selected.
func (s *Selection) Collects(name string) bool {
	return s == nil || len(s.Collect) == 0 || slices.Contains(s.Collect, name)
}

// Whole reports whether metrics of the whole fabric are selected.
func (s *Selection) Whole() bool { return s == nil || s.Shard <= 1 }

// node reports whether the metrics of a node are selected.
func (s *Selection) node(n *fabric.Node) bool {
	return s == nil || s.Shards <= 1 || shardOf(n.GUID(), s.Shards) == s.Shard
}

// shardOf is the shard of a node, from 1. It must not change: series would otherwise move
// between servers.
func shardOf(guid mad.GUID, shards int) int {
	x := uint64(guid) // the finalizer of splitmix64: GUIDs are numbered, and their last bits alike
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x^x>>31)%uint64(shards)) + 1
}

// metric reports whether a metric of a script is selected. One with a GUID goes to the shard of
// the node with that GUID, as its other metrics do if the GUID is the node's.
func (s *Selection) metric(m *audit.Metric) bool {
	if s == nil || s.Shards <= 1 {
		return true
	}
	if i := slices.Index(m.Labels, "guid"); i >= 0 && i%2 == 0 && i+1 < len(m.Labels) {
		if guid, err := strconv.ParseUint(m.Labels[i+1], 0, 64); err == nil {
			return shardOf(mad.GUID(guid), s.Shards) == s.Shard
		}
	}
	return s.Whole()
}

func (s *Selection) family(name string) bool {
	if s == nil || len(s.Families) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Families, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// maxPartValues is how many values a part has that Write makes at a time, unless a single
// metric has more.
const maxPartValues = 400_000

// Write writes the selected metrics, by name, then by labels, as fill adds them. It makes
// them part by part, in an amount of memory that does not grow with their number, and calls
// fill for each part, and first to count them.
func (s *Selection) Write(w io.Writer, fill func(*MetricSet) error) error {
	count := &MetricSet{selection: s, counting: true}
	if err := fill(count); err != nil {
		return err
	}
	maps.DeleteFunc(count.families, func(_ string, f *family) bool { return f.excluded })
	names := slices.Sorted(maps.Keys(count.families))
	for len(names) > 0 {
		part, groups, n := map[string]bool{}, map[string]bool{}, 0
		for len(names) > 0 && (n == 0 || n+count.families[names[0]].counted <= maxPartValues) {
			n += count.families[names[0]].counted
			part[names[0]] = true
			groups[count.families[names[0]].collector] = true
			names = names[1:]
		}
		set := &MetricSet{selection: s, part: part, groups: groups}
		if err := fill(set); err != nil {
			return err
		}
		if err := set.Write(w); err != nil {
			return err
		}
	}
	return nil
}
