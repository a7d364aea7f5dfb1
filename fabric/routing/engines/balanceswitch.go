package engines

import "fabsh/fabric/routing/graph"

// bySwitch makes paths to the LIDs of a switch the same, and loads those of trunks. If spread,
// the routes from each switch are added to the load before the next chooses: there are so
// many that the next goes another way, which costs more turns.
func (b *balancer) bySwitch(spread bool) {
	b.spread = spread
	b.trunk = graph.FirstParallel(b.g)
	b.ports = make([][]uint8, len(b.trunk))
	for c, first := range b.trunk {
		b.ports[first] = append(b.ports[first], b.g.Channels()[c].Port)
	}
}

// passSwitch is pass for the LIDs on a switch.
func (b *balancer) passSwitch(d int, again bool) {
	dests := b.g.DestsOf(d)
	if len(dests) == 0 {
		return
	}
	ends := b.ends(d)
	for _, dest := range dests {
		b.r.Row(d)[dest.LID] = dest.Out
	}
	if again {
		b.read(dests[0].LID)
		b.count(-ends)
	}
	if b.spread {
		b.chooseSwitch(int32(d), ends)
	} else {
		b.choose(d, dests[0].LID)
		b.count(ends)
	}
	for _, st := range b.toward.Steps {
		ports := b.ports[b.via[st.Switch]]
		for i, dest := range dests {
			b.r.Row(int(st.Switch))[dest.LID] = ports[i%len(ports)]
		}
	}
}

// ends is how many LIDs of CAs are on switch d.
func (b *balancer) ends(d int) (n int64) {
	for _, dest := range b.g.DestsOf(d) {
		if dest.Out != 0 {
			n++
		}
	}
	return n
}

// chooseSwitch chooses the cheapest paths to switch d, and adds their routes to the load one
// by one.
func (b *balancer) chooseSwitch(d int32, ends int64) {
	toll := b.turnToll()
	b.cost[d] = 0 // tolls of the path
	for _, st := range b.toward.Steps {
		best, at, tolls := int64(-1), int32(-1), int64(0)
		for _, c := range b.toward.Next[st.First:st.Last] {
			to := b.g.ChannelTo(c)
			paid := b.cost[to]
			if b.turns != nil && to != d && !b.turns.Admits(c, b.via[to]) {
				paid += toll
			}
			x := paid + b.price(c)
			for s := to; s != d; s = b.g.ChannelTo(b.via[s]) {
				x += b.price(b.via[s])
			}
			if best < 0 || x < best {
				best, at, tolls = x, c, paid
			}
		}
		b.cost[st.Switch], b.via[st.Switch] = tolls, at
		if to := b.g.ChannelTo(at); b.turns != nil && to != d {
			b.turns.Add(at, b.via[to])
		}
		flow := b.endpoints[st.Switch] * ends
		for s := st.Switch; s != d && flow > 0; s = b.g.ChannelTo(b.via[s]) {
			c := b.via[s]
			b.squares += float64(flow) * float64(2*b.load[c]+flow)
			b.load[c] += flow
		}
	}
}
