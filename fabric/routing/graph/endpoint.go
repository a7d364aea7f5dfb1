package graph

// IsEndpoint reports whether packets of class go from and to t: it has a LID. Class 0 are all ports
// of CAs and routers, aggregation nodes included. Nothing is routed to a port that has no LID yet,
// and no packet comes from it; so engines, verdicts and loads all ignore it.
func (t *Terminal) IsEndpoint(class Class) bool {
	if class == 0 {
		return t.Count > 0 && t.Class&ClassSwitch == 0
	}
	return t.Count > 0 && t.Class&class != 0
}

// Endpoints counts the endpoints of class 0, by the switch they are on.
func (g *Graph) Endpoints() []int64 {
	on := make([]int64, len(g.switches))
	for i := range g.terminals {
		if t := &g.terminals[i]; t.Switch >= 0 && t.IsEndpoint(0) {
			on[t.Switch]++
		}
	}
	return on
}
