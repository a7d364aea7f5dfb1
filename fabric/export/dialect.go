package export

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
)

// Dialect is the choice of names, labels and units of metrics.
type Dialect string

// The dialects.
const (
	SckyzO     Dialect = "" // SckyzO/infiniband_exporter 2.0, which has most
	Treydock   Dialect = "treydock"
	Guilbaults Dialect = "guilbaults"
)

// Dialects are all that have a name.
var Dialects = []string{string(Treydock), string(Guilbaults)}

// ParseDialect reads the name of a dialect; empty: SckyzO's.
func ParseDialect(name string) (Dialect, error) {
	switch d := Dialect(name); d {
	case SckyzO, Treydock, Guilbaults:
		return d, nil
	}
	return "", fmt.Errorf("unknown dialect %q%s; supported: %s", name, fabric.DidYouMean(name, Dialects), strings.Join(Dialects, " or "))
}

// Fabric adds what is known of nodes and links.
func (d Dialect) Fabric(s *MetricSet, f *fabric.Fabric) {
	if !s.collects(CollectNodes) {
		return
	}
	if d == Guilbaults {
		guilbaultsLinks(s, f)
	} else {
		d.treydockNodes(s, f)
	}
	links(s, f)
}

// Counters adds what was read of the counters of ports.
func (d Dialect) Counters(s *MetricSet, ports []PortMetrics) {
	c := &columns{set: s, traffic: s.collects(CollectTraffic), errors: s.collects(CollectErrors), nonzero: s.selection != nil && s.selection.Nonzero}
	if !c.traffic && !c.errors {
		return
	}
	for i := range ports {
		switch p := &ports[i]; {
		case !s.selection.node(p.Node()):
		case p.Node().IsSwitch():
			c.switches++
		default:
			c.others++
		}
	}
	for i := range ports {
		switch p := &ports[i]; {
		case !s.selection.node(p.Node()):
		case d == Guilbaults:
			guilbaultsCounters(c, p)
		default:
			d.treydockCounters(c, p)
		}
	}
	for i := range ports {
		if c.errors && s.selection.node(ports[i].Node()) {
			ber(s, &ports[i])
		}
	}
}

// columns are the metrics of counters, found once: of large fabrics there are
// millions of values.
type columns struct {
	set              *MetricSet
	switches, others int  // how many ports there are of these
	traffic, errors  bool // which counters are selected
	nonzero          bool // of errors only those that are not 0
	words            bool // data in units of 4 bytes
	families         map[column]*family
}

// column is a counter with a name in front.
type column struct {
	counter int
	prefix  string
	renamed bool // SckyzO's name
}

// has reports whether a counter is selected.
func (c *columns) has(of *counter) bool {
	if of.isTraffic() {
		return c.traffic
	}
	return c.errors
}

// add adds the value of a counter of a port, unless it is not wanted.
func (c *columns) add(f *family, of *counter, p *PortMetrics, labels func() Labels) {
	if f.left && (!c.set.counting || !c.nonzero) {
		f.counted++
		return
	}
	v, ok := p.Value(of.name)
	if !ok || v == 0 && c.nonzero && !of.isTraffic() {
		return
	}
	if of.words && c.words {
		v /= 4
	}
	f.add(labels(), float64(v))
}

// of is the metric of a counter. name is only called where it is new.
func (c *columns) of(k column, name func() (name, help string), isSwitch bool) *family {
	f := c.families[k]
	if f == nil {
		if c.families == nil {
			c.families = map[column]*family{}
		}
		text, help := name()
		c.set.collector = CollectErrors
		if counters[k.counter].isTraffic() {
			c.set.collector = CollectTraffic
		}
		f = c.set.family(text, Counter, help)
		n := c.others
		if isSwitch {
			n = c.switches
		}
		if !f.left && !c.nonzero {
			f.values = slices.Grow(f.values, n)
		}
		c.families[k] = f
	}
	return f
}

// run adds the metrics of a run that read ports; complete: all its requests
// were answered.
func (d Dialect) run(s *MetricSet, ports []PortMetrics, complete bool, began time.Time, took time.Duration, totals *Totals) {
	if !s.collects(CollectRun) {
		return
	}
	if d == Guilbaults {
		if !s.selection.Whole() {
			return
		}
		ok := 0.0
		if complete {
			ok = 1
		}
		s.Add("infiniband_scrape_ok", Gauge, "1: all requests were answered", s.Labels(), ok)
		s.Add("infiniband_ibqueryerrors_duration_seconds", Gauge, "How long reading the counters took, with the rest of the run", s.Labels(), took.Seconds())
		s.Add("infiniband_scrape_duration_seconds", Gauge, "How long the run took", s.Labels(), took.Seconds())
		return
	}
	d.treydockRun(s, ports, began, took, totals)
}

// word is a name as the incumbents have it: without blanks around.
func word(name string) string { return strings.TrimSpace(name) }

// guidOf is the GUID of a port, of a switch that of its port 0; where a file has
// none, the node's.
func guidOf(p *fabric.Port) string {
	if g := p.GUID(); g != 0 {
		return g.String()
	}
	return p.Node().GUID().String()
}
