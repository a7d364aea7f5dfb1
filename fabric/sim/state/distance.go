package state

import (
	"math"
	"slices"
)

// distances are the lengths of the routes from all switches to one.
type distances struct {
	*router
	to   int        // the switch
	dist []int16    // length of the route to it; -1: no route
	path []pathType // type of this route

	// Of each group, once one of its switches was routed up: the ports up that are on
	// shortest routes, and the distance behind them; -1: not computed yet.
	choices [][]uint8
	nearest []int16

	queue []int32
}

func (r *router) newDistances() *distances {
	return &distances{router: r, dist: make([]int16, len(r.links)), path: make([]pathType, len(r.links)),
		choices: make([][]uint8, len(r.groups)), nearest: make([]int16, len(r.groups))}
}

// compute computes the distances to switch d.
func (w *distances) compute(d int) {
	w.to = d
	for i := range w.dist {
		w.dist[i] = -1
	}
	clear(w.path)
	w.dist[d] = 0
	w.queue = append(w.queue[:0], int32(d))
	if w.rank != nil {
		w.bfs(w.ups)
		for _, at := range w.queue {
			w.path[at] = downPath
		}
		// A switch without a route down goes up, to the nearest switch that has a route.
		// The highest ranks come first, so that the switches above have their routes.
		for i := range w.nearest {
			w.nearest[i] = -1
		}
		missing := 0
		for _, at := range w.order {
			if w.dist[at] < 0 && !w.goUp(at) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
		// The remaining switches, such as roots, reach the destination only by a
		// route that turns up again. Only their own packets take it.
		w.queueByDistance()
	}
	w.bfs(w.links)
}

// goUp gives a switch the route over the ports up that are on shortest routes.
func (w *distances) goUp(at int32) bool {
	g := w.group[at]
	if w.nearest[g] < 0 {
		w.chooseUp(g)
	}
	if len(w.choices[g]) == 0 {
		return false
	}
	w.dist[at], w.path[at] = w.nearest[g]+1, upDownPath
	return true
}

// chooseUp finds the ports up of a group that are on shortest routes.
func (w *distances) chooseUp(g int32) {
	nearest := int16(math.MaxInt16)
	ups, choice := &w.groups[g], w.choices[g][:0]
	for i, to := range ups.to {
		switch dist := w.dist[to]; {
		case dist < 0 || dist > nearest:
		case dist < nearest:
			nearest, choice = dist, append(choice[:0], ups.port[i])
		default:
			choice = append(choice, ups.port[i])
		}
	}
	w.choices[g], w.nearest[g] = choice, nearest
}

// queueByDistance puts the switches that have a route into the queue, by its length.
func (w *distances) queueByDistance() {
	var starts []int // of each length, how many are shorter
	for _, dist := range w.dist {
		if dist >= 0 {
			for len(starts) <= int(dist)+1 {
				starts = append(starts, 0)
			}
			starts[dist+1]++
		}
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	n := starts[len(starts)-1]
	w.queue = slices.Grow(w.queue[:0], n)[:n]
	for i, dist := range w.dist {
		if dist >= 0 {
			w.queue[starts[dist]] = int32(i)
			starts[dist]++
		}
	}
}

// bfs is a breadth-first search from the switches in the queue over links, to
// switches without a distance.
func (w *distances) bfs(links []lftLinks) {
	for i := 0; i < len(w.queue) && len(w.queue) < len(w.dist); i++ {
		at := w.queue[i]
		next := w.dist[at] + 1
		for _, to := range links[at].to {
			if w.dist[to] < 0 {
				w.dist[to] = next
				w.queue = append(w.queue, int32(to))
			}
		}
	}
}
