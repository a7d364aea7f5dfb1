package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// RootMethods are the methods of FindRoots.
func RootMethods() []string { return []string{"color", "farthest", "histogram", "center"} }

// FindRoots finds the switches at the top of a tree. All methods but the last fail
// if there is no top, with the reason.
//
//	color      switches without a link to a switch farther from compute nodes;
//	           links between switches at the same distance are not allowed
//	farthest   those farthest from compute nodes
//	histogram  those with nearly all CAs at one distance, as OpenSM's updn finds
//	           them: more than 90% at one distance, more than 5% at no other
//	center     the one switch with the least sum of distances to CAs and routers
//
// Time: O(S + N) for the first two; that of Hops, and O(S*S), for the others.
func FindRoots(ctx context.Context, g *Graph, method string) ([]int, error) {
	switch method {
	case "color", "farthest":
		l := FindLevels(g)
		if err := l.Check(); err != nil {
			if l.Height > 0 {
				err = fmt.Errorf("%w; where hosts are on top switches, find roots by histogram", err)
			}
			return nil, fmt.Errorf("roots by %s: %w", method, err)
		}
		var roots []int
		for s, level := range l.Level {
			top := level == l.Height-1
			if method == "color" {
				top = !slices.ContainsFunc(g.Neighbours(s), func(n Neighbour) bool { return l.Level[n.To] > level })
			}
			if top {
				roots = append(roots, s)
			}
		}
		return roots, nil
	case "histogram":
		return histogramRoots(ctx, g)
	case "center":
		return Center(ctx, g)
	}
	return nil, fmt.Errorf("unknown method %q to find roots; supported: %s", method, strings.Join(RootMethods(), ", "))
}

func histogramRoots(ctx context.Context, g *Graph) ([]int, error) {
	h, err := AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	endpoints, all := g.Endpoints(), int64(0)
	for _, n := range endpoints {
		all += n
	}
	var roots []int
	for s := range g.switches {
		var count [MaxDistance + 1]int64
		for d, n := range endpoints {
			if x := h.Distance(s, d); x >= 0 {
				count[x] += n
			}
		}
		many, some := 0, 0
		for _, n := range count {
			if 10*n > 9*all {
				many++
			}
			if 20*n > all {
				some++
			}
		}
		if many == 1 && some == 1 {
			roots = append(roots, s)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("roots by histogram: no switch has more than 90%% of the %d CA ports at one distance and no other 5%%", all)
	}
	return roots, nil
}

func Center(ctx context.Context, g *Graph) ([]int, error) {
	h, err := AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	endpoints := g.Endpoints()
	best, at := int64(-1), -1
	for s := range g.switches {
		sum := int64(0)
		for d, n := range endpoints {
			if x := h.Distance(s, d); x >= 0 {
				sum += n * int64(x)
			} else {
				sum += n * 2 * MaxDistance
			}
		}
		if at < 0 || sum < best {
			best, at = sum, s
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("roots by center: no switch")
	}
	return []int{at}, nil
}
