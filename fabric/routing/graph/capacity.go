package graph

import (
	"math"
	"slices"

	"fabsh/fabric"
)

// Capacity has the rates of the links of a graph. Loads are compared by it alone: a flow loads
// a link of half the rate twice as much. It is immutable.
type Capacity struct {
	// Rates are the data rates of channels in Gb/s; 0: unknown.
	Rates []float64
	// Fastest is the rate of the fastest channel. Reference is the most common rate of the ports
	// of CAs and routers on switches, of equally common ones the fastest; if that is unknown,
	// Fastest. Both are 0 where some channel's rate is unknown: then all count as equal.
	Fastest, Reference float64

	parts []float64 // by channel: Reference / rate; nil: all are 1
	ends  []float64 // by terminal: the same for its port; 1 if unknown
	costs []int64   // by channel: Fastest*unit / rate; nil: all channels are equal
	unit  int64
}

// Capacity returns the capacities of the links.
func (g *Graph) Capacity() *Capacity { return g.capacity }

// Differs reports whether the rate of some channel is not Reference.
func (c *Capacity) Differs() bool { return c.parts != nil }

// Load returns what traffic on a channel is of its capacity, where 1 is Reference.
func (c *Capacity) Load(channel int32, traffic float64) float64 {
	if c.parts == nil {
		return traffic
	}
	return traffic * c.parts[channel]
}

// ByFastest returns c with Fastest as Reference: loads are those of Weigh.
func (c *Capacity) ByFastest() *Capacity {
	w := *c
	if w.parts = nil; c.costs == nil {
		return &w
	}
	w.Reference, w.parts = c.Fastest, make([]float64, len(c.costs))
	for i, n := range c.costs {
		w.parts[i] = c.Routes(n)
	}
	return &w
}

// End returns the load of a port of a terminal by a flow.
func (c *Capacity) End(terminal int32) float64 { return c.ends[terminal] }

// Costs are the loads of channels by a route, as whole numbers; nil: channels have equal rates. They
// are exact for all pairs of rates of InfiniBand up to maxCost.
func (c *Capacity) Costs() []int64 { return c.costs }

// Weigh returns counts of routes, by channel, in units of the routes that load the fastest channel
// as much: counts themselves where channels have equal rates.
func (c *Capacity) Weigh(counts []int64) []int64 {
	if c.costs == nil {
		return counts
	}
	weighed := make([]int64, len(counts))
	for i, n := range counts {
		weighed[i] = n * c.costs[i]
	}
	return weighed
}

// Routes is a weighed count, in routes on the fastest channel.
func (c *Capacity) Routes(weighed int64) float64 { return float64(weighed) / float64(c.unit) }

// Proportional repeats the elements of list in proportion to the rates of their channels, of
// each as evenly spread as possible; channel is the channel of an element. Where the rates are equal it
// returns list.
func Proportional[T any](c *Capacity, list []T, channel func(T) int32) []T {
	if c.costs == nil || len(list) < 2 {
		return list
	}
	rates := make([]float64, len(list))
	for i, x := range list {
		rates[i] = 1 / float64(c.costs[channel(x)])
	}
	return repeat(list, Shares(rates))
}

// maxShare is the largest share of a rate: with more, lists would be long, and change little.
const maxShare = 16

// Shares are the smallest whole numbers that are in proportion to rates: nearly, where the largest
// would be more than maxShare.
func Shares(rates []float64) []int {
	least, most := slices.Min(rates), slices.Max(rates)
	best, off := 1, math.Inf(1)
	for n := 1; float64(n)*most/least <= maxShare; n++ {
		worst := 0.0
		for _, r := range rates {
			x := float64(n) * r / least
			worst = max(worst, math.Abs(x-math.Round(x))/x)
		}
		if worst < off-1e-9 {
			best, off = n, worst
		}
	}
	list := make([]int, len(rates))
	for i, r := range rates {
		list[i] = min(int(math.Round(float64(best)*r/least)), maxShare)
	}
	return list
}

// repeat returns each element of list as often as its share: the one that is the most behind
// comes next.
func repeat[T any](list []T, shares []int) (out []T) {
	sum := 0
	for _, n := range shares {
		sum += n
	}
	if sum == len(list) {
		return list
	}
	credit := make([]int, len(list))
	for range sum {
		best := 0
		for i := range credit {
			if credit[i] += shares[i]; credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= sum
		out = append(out, list[best])
	}
	return out
}

// maxCost is the largest cost of a channel: slower ones count as no slower. So sums of squares of
// loads fit in 63 bits.
const maxCost = 1 << 10

// maxUnit is enough for exact costs of any two rates, such as 24 for QDR, FDR and EDR.
const maxUnit = 48

// findCapacity finds the rates of links.
func (g *Graph) findCapacity() {
	c := &Capacity{Rates: make([]float64, len(g.channels)), ends: slices.Repeat([]float64{1}, len(g.terminals)), unit: 1}
	g.capacity = c
	least := math.Inf(1)
	known := true
	for i := range g.channels {
		r := LinkRate(g.ChannelPort(i))
		c.Rates[i] = r
		known, least, c.Fastest = known && r > 0, min(least, r), max(c.Fastest, r)
	}
	if !known {
		c.Fastest = 0
		return
	}
	count, ends := map[float64]int{}, make([]float64, len(g.terminals))
	for i := range g.terminals {
		if t := &g.terminals[i]; t.Switch >= 0 && t.IsEndpoint(0) && t.Class&ClassAN == 0 {
			if ends[i] = LinkRate(t.Port); ends[i] > 0 {
				count[ends[i]]++
			}
		}
	}
	for r, n := range count {
		if best := count[c.Reference]; n > best || n == best && r > c.Reference {
			c.Reference = r
		}
	}
	if c.Reference == 0 {
		c.Reference = c.Fastest
	}
	for i, r := range ends {
		if r > 0 {
			c.ends[i] = c.Reference / r
		}
	}
	if slices.ContainsFunc(c.Rates, func(r float64) bool { return r != c.Reference }) {
		c.parts = make([]float64, len(c.Rates))
		for i, r := range c.Rates {
			c.parts[i] = c.Reference / r
		}
	}
	if least < c.Fastest {
		c.findCosts()
	}
}

// findCosts finds the least unit with which costs are exact.
func (c *Capacity) findCosts() {
	exact := func() bool {
		for _, r := range c.Rates {
			if x := c.Fastest * float64(c.unit) / r; math.Abs(x-math.Round(x)) > 1e-6*x {
				return false
			}
		}
		return true
	}
	for !exact() && c.unit < maxUnit {
		c.unit++
	}
	c.costs = make([]int64, len(c.Rates))
	for i, r := range c.Rates {
		c.costs[i] = min(int64(math.Round(c.Fastest*float64(c.unit)/r)), maxCost)
	}
}

// LinkRate is the data rate of the link at p in Gb/s, as its end with the lower rate reports it; 0: no
// end reports it.
func LinkRate(p *fabric.Port) float64 {
	r := p.DataRate()
	if q := p.Peer(); q != nil {
		if other := q.DataRate(); r == 0 || other > 0 && other < r {
			r = other
		}
	}
	return r
}
