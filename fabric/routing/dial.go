package routing

// dial finds the distances to one destination by Dial's algorithm: Dijkstra's with
// buckets in place of a queue, for small integer weights (Dial, "Algorithm 360:
// shortest-path forest with topological ordering", 1969). With up*/down* it runs
// twice: for the paths that only go down, then for those that go up to one of these.
//
// Time: O(S + N + maxDistance).
func (h *Hops) dial(w *searcher, d int) {
	g := h.graph
	if w.distance == nil {
		w.distance = make([]uint8, len(g.switches))
		w.buckets = make([][]int32, 2*maxDistance+1)
	}
	for s := range w.distance {
		w.distance[s] = noPath
	}
	w.distance[d] = 0
	w.buckets[0] = append(w.buckets[0], int32(d))
	h.relax(w, false)
	if h.up != nil {
		for s, x := range w.distance {
			if x != noPath {
				w.buckets[x] = append(w.buckets[x], int32(s))
			}
		}
		h.relax(w, true)
	}
	for s, x := range w.distance {
		h.d[s*h.stride+d] = x
	}
	for _, s := range w.beyond {
		if w.distance[s] == noPath && w.err == nil {
			h.fail(w, int(s), d)
		}
	}
	w.beyond = w.beyond[:0]
}

// relax takes the buckets in order and relaxes the links into their switches: with
// up*/down* only those that go up, or only the others.
func (h *Hops) relax(w *searcher, up bool) {
	g := h.graph
	mark := uint8(0)
	if up {
		mark = viaUp
	}
	for distance := 0; distance < len(w.buckets); distance++ {
		for i := 0; i < len(w.buckets[distance]); i++ {
			t := w.buckets[distance][i]
			if int(w.distance[t]&^viaUp) != distance {
				continue
			}
			for j := g.nbrBase[t]; j < g.nbrBase[t+1]; j++ {
				s, weight := g.nbrTo[j], int(g.nbrBack[j])
				// Links from t to s go up if those from s to t go down.
				if h.up != nil && h.up[j] == up || up && w.distance[s]&viaUp == 0 && w.distance[s] != noPath {
					continue
				}
				if distance+weight > maxDistance {
					w.beyond = append(w.beyond, s)
					continue
				}
				if distance+weight >= int(w.distance[s]&^viaUp) {
					continue
				}
				w.distance[s] = uint8(distance+weight) | mark
				w.buckets[distance+weight] = append(w.buckets[distance+weight], s)
			}
		}
		w.buckets[distance] = w.buckets[distance][:0]
	}
}
