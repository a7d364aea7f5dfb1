package opensm

import "fabsh/mad"

// lash fills the tables of lash: the paths of breadth-first trees from each switch; an entry is
// that of the first tree in which the destination is below the switch. Only the lowest port to
// a neighbour is used (opensm osm_ucast_lash.c, shortest_path, generate_routing_func_for_mst).
func (r *routing) lash() error {
	n := len(r.Switches)
	out := make([][]uint8, n) // by switch, then destination switch: the port
	lowest := make([][]uint8, n)
	var neighbours [][]int32 // in the order of their lowest ports
	for s := range r.Switches {
		out[s] = make([]uint8, n)
		lowest[s] = make([]uint8, n)
		var list []int32
		for p, l := range r.Switches[s].Links {
			if l.Kind == ToSwitch && lowest[s][l.To] == 0 {
				lowest[s][l.To] = uint8(p)
				list = append(list, l.To)
			}
		}
		neighbours = append(neighbours, list)
	}
	parent, queue := make([]int32, n), make([]int32, 0, n)
	for root := range n {
		if r.ctx.Err() != nil {
			return nil
		}
		for s := range parent {
			parent[s] = -1
		}
		parent[root] = int32(root)
		queue = append(queue[:0], int32(root))
		for i := 0; i < len(queue); i++ {
			for _, to := range neighbours[queue[i]] {
				if parent[to] < 0 {
					parent[to] = queue[i]
					queue = append(queue, to)
				}
			}
		}
		for _, d := range queue {
			for at := d; at != int32(root); at = parent[at] {
				if above := parent[at]; out[above][d] == 0 {
					out[above][d] = lowest[above][at]
				}
			}
		}
	}
	for lid := range r.byLID {
		if r.byLID[lid] == 0 {
			continue
		}
		home, port, ok := r.home(mad.LID(lid))
		if !ok {
			continue
		}
		for s := range r.Switches {
			switch {
			case int32(s) == home:
				r.tables[s][lid] = port
			case out[s][home] != 0:
				r.tables[s][lid] = out[s][home]
			}
		}
	}
	return nil
}
