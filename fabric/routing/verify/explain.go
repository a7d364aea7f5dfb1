package verify

import (
	"fmt"
	"strings"

	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// Explain is the reason why packets to the present LID that come into switch s by port in may
// not arrive; "": all arrive. It names a switch on a path with fewest links, or a loop.
func (x *Choices) Explain(s int32, in uint8) string {
	type visit struct {
		at int32
		in uint8
	}
	key := func(v visit) visit {
		if !x.lanes {
			v.in = 0
		}
		return v
	}
	queue := []visit{{s, in}}
	next := map[visit][]visit{}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		if _, known := next[key(v)]; known {
			continue
		}
		if why := x.lostAt(v.at, v.in); why != "" {
			return why
		}
		list := []visit{}
		for c := range x.channels(v.at, v.in) {
			ch := &x.g.Channels()[c]
			if x.r.SL2VL.VL(int(v.at), v.in, ch.Port, x.kind.SL) >= mad.DropVL {
				continue
			}
			list = append(list, visit{ch.To, ch.PeerPort})
		}
		next[key(v)] = list
		queue = append(queue, list...)
	}
	// No end of a path is wrong, so it loops: a walk that always takes the first choice
	// from which a loop is reached meets itself.
	state := map[visit]int{} // 1: on the path, 2: done without a loop
	var path []visit
	var search func(v visit) []visit
	search = func(v visit) []visit {
		switch state[key(v)] {
		case 1:
			for i := range path {
				if key(path[i]) == key(v) {
					return path[i:]
				}
			}
		case 2:
			return nil
		}
		state[key(v)] = 1
		path = append(path, v)
		for _, w := range next[key(v)] {
			if loop := search(w); loop != nil {
				return loop
			}
		}
		path = path[:len(path)-1]
		state[key(v)] = 2
		return nil
	}
	loop := search(visit{s, in})
	if loop == nil {
		return ""
	}
	names := make([]string, 0, len(loop)+1)
	for _, v := range append(loop, loop[0]) {
		names = append(names, x.g.Switches()[v.at].Name())
	}
	return "may loop: " + strings.Join(names, " > ")
}

// channels are those that packets which come into a switch by a port may take.
func (x *Choices) channels(s int32, in uint8) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for p := range x.ports(s, x.plft(s, in)).All() {
			if target := x.g.Target(s, p); target.IsChannel() && !yield(target.Channel()) {
				return
			}
		}
	}
}

// lostAt is the reason why switch s may lose packets that come in by a port; "": it does not.
func (x *Choices) lostAt(s int32, in uint8) string {
	n := x.g.Switches()[s]
	plft := x.plft(s, in)
	ports := x.ports(s, plft)
	if ports.Empty() {
		a := x.switches[s]
		if a == nil || a.Table(plft) == nil {
			return fmt.Sprintf("%s drops LID %d", n.Label(), x.lid)
		}
		p := x.kind.Packet(in)
		p.LID = x.lid
		c := a.Choose(p, x.down[s])
		switch {
		case !c.Adaptive && !c.Hashed:
			return fmt.Sprintf("%s drops LID %d", n.Label(), x.lid)
		case a.Table(plft).Groups.All(int(c.Group)).Empty():
			return fmt.Sprintf("%s drops LID %d: its port group %d is empty", n.Label(), x.lid, c.Group)
		}
		return fmt.Sprintf("%s drops LID %d: no port of its group %d has a link", n.Label(), x.lid, c.Group)
	}
	for p := range ports.All() {
		switch target := x.g.Target(s, p); {
		case target.IsChannel():
			if vl := x.r.SL2VL.VL(int(s), in, p, x.kind.SL); vl >= mad.DropVL && x.kind.Expected {
				return fmt.Sprintf("%s drops SL %d from port %d to port %d", n.Label(), x.kind.SL, in, p)
			}
		case target == graph.ToTerminal(x.dst):
		case target.IsTerminal():
			return fmt.Sprintf("%s may send LID %d to %s, which has another LID", n.Label(), x.lid, x.g.Terminals()[target.Terminal()].Port.Label())
		case int(p) > n.NumPorts():
			return fmt.Sprintf("%s may send LID %d to port %d, which does not exist", n.Label(), x.lid, p)
		default:
			return fmt.Sprintf("%s may send LID %d to port %d, which has no link", n.Label(), x.lid, p)
		}
	}
	return ""
}
