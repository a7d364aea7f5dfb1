package lanes

import (
	"context"
	"slices"
)

// frame is a vertex on the stack of the search: a channel and its lane within the
// layer.
type frame struct {
	channel, shift int32
	at             int32 // the next edge to check
	edge           int32 // the edge to the next frame
}

// moving puts all paths on the first layer, and breaks cycles by moving paths to the
// next. It returns the number of layers; 0: it takes more than most.
func (l *Layering) moving(ctx context.Context, most int) (layers int, err error) {
	for layers = 1; ; layers++ {
		if _, err := l.search(ctx, l.breakCycle); err != nil {
			return 0, err
		}
		if len(l.moved) == 0 {
			return layers, nil
		}
		if layers == most || l.work < 0 {
			return 0, nil
		}
		l.now++
		clear(l.count)
		paths := l.moved
		l.moved = nil
		for i, p := range paths {
			if i%4096 == 0 && ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			l.follow(p.source, &l.Dests[p.dest])
			l.addTrail(1)
		}
	}
}

// search looks for cycles of the present layer. A depth-first search meets a vertex on
// its own stack where there is one. Then broken is called, which takes all paths away
// from an edge of the cycle; and the search goes on from the first vertex of the stack
// that has lost an edge: what it was done with has no cycle, and gets none by losing
// edges. Without broken, it says whether there is one.
func (l *Layering) search(ctx context.Context, broken func(cycle []frame)) (cyclic bool, err error) {
	const (
		fresh = iota
		open
		done
	)
	n := l.Net
	colour := make([]uint8, len(n.To)*int(l.shifts))
	var stack []frame
	for root := range colour {
		if colour[root] != fresh {
			continue
		}
		colour[root] = open
		stack = append(stack[:0], frame{channel: int32(root) / l.shifts, shift: int32(root) % l.shifts})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			c := top.channel
			degree := l.edges[c+1] - l.edges[c]
			first := l.edges[c]*l.shifts + top.shift*degree
			for top.at < degree && l.count[first+top.at] == 0 {
				top.at++
			}
			if top.at == degree {
				colour[c*l.shifts+top.shift] = done
				stack = stack[:len(stack)-1]
				continue
			}
			next := frame{channel: n.Base[n.To[c]] + top.at}
			if l.Shift != nil {
				next.shift = int32(l.Shift[c])
			}
			top.edge = first + top.at
			top.at++
			switch v := next.channel*l.shifts + next.shift; colour[v] {
			case fresh:
				colour[v] = open
				stack = append(stack, next)
			case open:
				if broken == nil || l.work < 0 {
					return true, nil
				}
				if ctx.Err() != nil {
					return false, context.Cause(ctx)
				}
				begin := len(stack) - 1
				for stack[begin].channel != next.channel || stack[begin].shift != next.shift {
					begin--
				}
				broken(stack[begin:])
				kept := slices.IndexFunc(stack, func(f frame) bool { return l.count[f.edge] == 0 }) + 1
				for _, f := range stack[kept:] {
					colour[f.channel*l.shifts+f.shift] = fresh
				}
				stack = stack[:kept]
			}
		}
	}
	return false, context.Cause(ctx)
}

// breakCycle moves the paths of the edge that has the fewest. The last frame has the
// edge to the first.
func (l *Layering) breakCycle(cycle []frame) {
	weakest := 0
	for i := range cycle {
		if l.count[cycle[i].edge] < l.count[cycle[weakest].edge] {
			weakest = i
		}
	}
	a, b := cycle[weakest], cycle[(weakest+1)%len(cycle)]
	l.work -= len(l.Dests)
	l.eachThrough(a.channel, b.channel, func(i int32) bool {
		l.moveThrough(l.Net.From[a.channel], i, a.edge)
		return l.count[a.edge] > 0
	})
}

// eachThrough calls found for the destinations, by place, to which packets pass from channel a to
// channel b, or from class to class, until it returns false.
func (l *Layering) eachThrough(a, b int32, found func(dest int32) bool) {
	from, to := l.Net.From[a], l.Net.To[a]
	ofA, ofB := l.portsOf(from, a), l.portsOf(to, b)
	rowA, rowB := l.Rows[from], l.Rows[to]
	for i := range l.Dests {
		if d := &l.Dests[i]; ofA[rowA[d.Index]] && ofB[rowB[d.Index]] && !found(int32(i)) {
			return
		}
	}
}

// portsOf says which ports of switch s lead to channel c, or to one of its class.
func (l *Layering) portsOf(s, c int32) (ports [256]bool) {
	for i := l.Net.PortBase[s]; i < l.Net.PortBase[s+1]; i++ {
		t := l.Net.Target[i]
		ports[i-l.Net.PortBase[s]] = t == c || t >= 0 && l.Class != nil && l.Class[t] == c
	}
	return ports
}

// moveThrough moves the paths of the present layer to a destination that come by
// switch s and take edge e.
func (l *Layering) moveThrough(s int32, dest int32, e int32) {
	d := &l.Dests[dest]
	l.upstream(s, dest, func(s int32) {
		if l.source[s] < 0 || l.layer[s][d.Index] != l.now || !l.follow(s, d) || !slices.Contains(l.trail, e) {
			return
		}
		l.move(s, dest)
		if back := l.source[s]; l.Both && l.layer[d.Home][l.Dests[back].Index] == l.now && l.follow(d.Home, &l.Dests[back]) {
			l.move(d.Home, back)
		}
	})
}

// upstream calls found for s, and for the switches whose packets to a destination pass through s.
func (l *Layering) upstream(s int32, dest int32, found func(s int32)) {
	n, d := l.Net, &l.Dests[dest]
	l.searches++
	l.seen[s] = l.searches
	l.todo = append(l.todo[:0], s)
	for len(l.todo) > 0 {
		s := l.todo[len(l.todo)-1]
		l.todo = l.todo[:len(l.todo)-1]
		l.work -= int(n.Base[s+1] - n.Base[s])
		found(s)
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			if to := n.To[c]; l.seen[to] != l.searches && l.leads(to, n.Reverse[c], d) {
				l.seen[to] = l.searches
				l.todo = append(l.todo, to)
			}
		}
	}
}

// leads says whether packets to d leave switch s by channel c or one of its class.
func (l *Layering) leads(s, c int32, d *Dest) bool {
	t := l.next(s, d)
	return t >= 0 && (t == c || l.Class != nil && t == l.Class[c])
}

// move moves the path that was followed last to the next layer.
func (l *Layering) move(s int32, dest int32) {
	l.addTrail(-1)
	l.work -= len(l.trail)
	l.layer[s][l.Dests[dest].Index]++
	l.moved = append(l.moved, path{dest, s})
}
