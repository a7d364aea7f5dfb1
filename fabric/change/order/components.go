package order

// components returns the strongly connected components of a graph (Tarjan, "Depth-first
// search and linear graph algorithms", 1972).
func components(vertices int, edges []edge) (list [][]int32) {
	first, out := adjacency(vertices, edges)
	number, low, done := make([]int32, vertices), make([]int32, vertices), make([]bool, vertices)
	type frame struct{ v, at int32 }
	var stack []frame
	var open []int32
	clock := int32(0)
	enter := func(v int32) {
		clock++
		number[v], low[v] = clock, clock
		stack, open = append(stack, frame{v, first[v]}), append(open, v)
	}
	for root := range int32(vertices) {
		if number[root] != 0 {
			continue
		}
		for enter(root); len(stack) > 0; {
			top := &stack[len(stack)-1]
			v := top.v
			if top.at < first[v+1] {
				w := out[top.at]
				top.at++
				switch {
				case number[w] == 0:
					enter(w)
				case !done[w]:
					low[v] = min(low[v], number[w])
				}
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				u := stack[len(stack)-1].v
				low[u] = min(low[u], low[v])
			}
			if low[v] < number[v] {
				continue
			}
			var c []int32
			for {
				w := open[len(open)-1]
				open = open[:len(open)-1]
				done[w] = true
				c = append(c, w)
				if w == v {
					break
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// adjacency returns the edges by their first vertex: those of v lead to
// out[first[v]:first[v+1]].
func adjacency(vertices int, edges []edge) (first, out []int32) {
	first, out = make([]int32, vertices+1), make([]int32, len(edges))
	for _, e := range edges {
		first[e.from+1]++
	}
	for v := range vertices {
		first[v+1] += first[v]
	}
	at := make([]int32, vertices)
	copy(at, first)
	for _, e := range edges {
		out[at[e.from]] = e.to
		at[e.from]++
	}
	return first, out
}
