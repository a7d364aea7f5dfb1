package spec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"fabsh/fabric"
)

// randomRegular returns a random regular graph of n switches, each with cables to degree
// others, and its hosts.
func randomRegular(n, degree, hosts int, seed int64) (*fabric.Fabric, error) {
	switch {
	case degree >= n:
		return nil, fmt.Errorf("%d switches, but cables from each to %d others", n, degree)
	case n*degree%2 != 0:
		return nil, fmt.Errorf("%d switches with %d cables each: the product must be even", n, degree)
	}
	if err := checkSize(n, hosts, degree+hosts, 0); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	var cables [][2]int
	for try, paired := 0, false; !paired; try++ {
		if try == 100 {
			return nil, errors.New("no such network was found; try another seed")
		}
		cables, paired = pairRandomly(r, n, degree)
	}
	p := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for i := range n {
		switches = append(switches, p.addSwitch(fmt.Sprintf("switch-%d", i+1), degree+hosts))
	}
	p.addHosts(switches, hosts)
	next := slices.Repeat([]int{hosts + 1}, n)
	for _, c := range cables {
		p.link(switches[c[0]], next[c[0]], switches[c[1]], next[c[1]])
		next[c[0]]++
		next[c[1]]++
	}
	return p.build()
}

// pairRandomly chooses random pairs of different switches, none twice, until each
// has degree cables; false if the last ones cannot be paired (Steger, Wormald,
// "Generating random regular graphs quickly", 1999).
func pairRandomly(r *rand.Rand, n, degree int) (cables [][2]int, paired bool) {
	var points []int
	for i := range n {
		for range degree {
			points = append(points, i)
		}
	}
	linked := map[[2]int]bool{}
	for misses := 0; len(points) > 0; {
		i, j := r.IntN(len(points)), r.IntN(len(points))
		c := [2]int{min(points[i], points[j]), max(points[i], points[j])}
		if c[0] == c[1] || linked[c] {
			if misses++; misses > 100*n*degree {
				return nil, false
			}
			continue
		}
		misses = 0
		linked[c] = true
		cables = append(cables, c)
		for _, k := range []int{max(i, j), min(i, j)} {
			points[k] = points[len(points)-1]
			points = points[:len(points)-1]
		}
	}
	slices.SortFunc(cables, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return cables, true
}
