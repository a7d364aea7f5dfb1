package audits

import (
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// Poller reads the counters of ports repeatedly, and compares each read with the previous
// one. The zero value is ready to use.
type Poller struct {
	last   *audit.Read
	agents audit.Agents
}

// Read returns the rates of the counters of ports since the previous Read. After the first
// one, and for a port that is new, the windows have no rates. A port that did not answer has
// no windows; errors are those of the host or the session.
func (p *Poller) Read(c *lang.Call, ports []*fabric.Port) ([]audit.PortRates, error) {
	targets := make(starlark.Tuple, len(ports))
	for i, port := range ports {
		targets[i] = topology.PortOf(port)
	}
	r, err := newReader(c, targets, &p.agents)
	if err != nil {
		return nil, err
	}
	after, read, err := r.read()
	if err != nil {
		return nil, err
	}
	before := new(audit.Comparison)
	if p.last != nil {
		before.Add(read, p.last)
	}
	p.last = read
	return r.compare(after, before), nil
}

// ratesOver reads the counters of ports twice, and returns their rates between.
func ratesOver(c *lang.Call, ports []*fabric.Port, over time.Duration) ([]audit.PortRates, error) {
	var p Poller
	if _, err := p.Read(c, ports); err != nil {
		return nil, err
	}
	if err := c.Sleep(remaining(c.Runtime().Clock, over, p.last.Began)); err != nil {
		return nil, err
	}
	return p.Read(c, ports)
}

// remaining returns the rest of a duration since began; all of it if the clock was set back
// since.
func remaining(clock lang.Clock, over time.Duration, began time.Time) time.Duration {
	return min(over, over-clock.Now().Sub(began))
}
