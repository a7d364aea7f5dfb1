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
func (d Dialect) Fabric(s *Set, f *fabric.Fabric) {
	if d == Guilbaults {
		guilbaultsLinks(s, f)
	} else {
		d.treydockNodes(s, f)
	}
	links(s, f)
}

// Counters adds what was read of the counters of ports.
func (d Dialect) Counters(s *Set, ports []Port) {
	switches := 0
	for i := range ports {
		if ports[i].Node().IsSwitch() {
			switches++
		}
	}
	c := &columns{set: s, switches: switches, others: len(ports) - switches}
	for i := range ports {
		if p := &ports[i]; d == Guilbaults {
			guilbaultsCounters(c, p)
		} else {
			d.treydockCounters(c, p)
		}
	}
	for i := range ports {
		ber(s, &ports[i])
	}
}

// columns are the metrics of counters, found once: of large fabrics there are
// millions of values.
type columns struct {
	set              *Set
	switches, others int // how many ports there are of these
	families         map[column]*family
}

// column is a counter with a name in front.
type column struct {
	counter int
	prefix  string
	renamed bool // SckyzO's name
}

// of is the metric of a counter. name is only called where it is new.
func (c *columns) of(k column, name func() (name, help string), isSwitch bool) *family {
	f := c.families[k]
	if f == nil {
		if c.families == nil {
			c.families = map[column]*family{}
		}
		text, help := name()
		f = c.set.family(text, Counter, help)
		n := c.others
		if isSwitch {
			n = c.switches
		}
		f.values = slices.Grow(f.values, n)
		c.families[k] = f
	}
	return f
}

// run adds the metrics of a run that read ports; complete: all its requests
// were answered.
func (d Dialect) run(s *Set, ports []Port, complete bool, began time.Time, took time.Duration, totals *Totals) {
	if d == Guilbaults {
		ok := 0.0
		if complete {
			ok = 1
		}
		s.Add("infiniband_scrape_ok", Gauge, "1: all requests were answered", s.Labels(), ok)
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
