package lanes

import (
	"errors"
	"fmt"
	"slices"
)

// Groups are the groups of a dragonfly (Kim, Dally, Scott, Abts, "Technology-driven,
// highly-scalable dragonfly topology", 2008), or of a dragonfly+ (Shpiner et al.,
// "Dragonfly+: low cost topology for scaling datacenters", 2017).
type Groups struct {
	Of     []int32 // by switch: the number of its group; -1: it has no link
	Count  int
	Global []bool // by channel: it leads to another group
}

// Dragonfly finds the groups. In a dragonfly+, leaves have hosts and links to spines
// of their group alone, and spines have no hosts. In a dragonfly, the switches of a
// group are linked to each other: two of them have many neighbours in common, and two
// switches of different groups have few. Links may be missing.
//
// Time: O(C*P) for C channels and switches of P ports.
func (n *Network) Dragonfly(hosts []int64) (*Groups, error) {
	bare := func(s int32) bool { return hosts[s] == 0 }
	local := make([]bool, len(n.To))
	for c := range n.To {
		local[c] = bare(n.From[c]) != bare(n.To[c])
	}
	if g, err := n.groups(local, hosts); err == nil {
		return g, nil
	}
	most := 0
	common := make([]int, len(n.To))
	met := slices.Repeat([]int32{-1}, n.Switches())
	for s := range int32(n.Switches()) {
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			met[n.To[c]] = s
		}
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			t := n.To[c]
			for d := n.Base[t]; d < n.Base[t+1]; d++ {
				if n.To[d] != s && met[n.To[d]] == s {
					common[c]++
				}
			}
			most = max(most, common[c])
		}
	}
	if most == 0 {
		return nil, errors.New("no groups of switches: no two linked switches have a neighbour in common, and it is not a dragonfly+ of leaves and spines")
	}
	for c := range local {
		local[c] = 2*common[c] > most
	}
	n.attach(local)
	return n.groups(local, hosts)
}

// attach makes the links local of switches that have no local link, as others of their
// group are missing, to the group to which they have the most links, two or more.
func (n *Network) attach(local []bool) {
	g, _ := n.components(local, nil)
	size := make([]int, g.Count)
	for _, x := range g.Of {
		if x >= 0 {
			size[x]++
		}
	}
	links := make([]int, g.Count)
	single := func(s int32) bool { return g.Of[s] >= 0 && size[g.Of[s]] == 1 }
	for s := range int32(n.Switches()) {
		if !single(s) {
			continue
		}
		best := int32(-1)
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			x := g.Of[n.To[c]]
			if links[x]++; links[x] > 1 && size[x] > 1 && (best < 0 || links[x] > links[best]) {
				best = x
			}
		}
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			x := g.Of[n.To[c]]
			links[x] = 0
			if x == best {
				local[c], local[n.Reverse[c]] = true, true
			}
		}
	}
}

// groups are the components of local links, which must be two or more, each dense and
// with hosts. Links within one are local.
func (n *Network) groups(local []bool, hosts []int64) (*Groups, error) {
	g, err := n.components(local, func(switches []int32, links int) error {
		all, ends := len(switches), int64(0)
		for _, s := range switches {
			ends += hosts[s]
		}
		// A clique, or leaves and spines of about as many links, with some missing.
		if ends == 0 || all == 1 || links*6 < all*(all-1) {
			return fmt.Errorf("no groups of switches that are linked to each other: of %d that seem one, there are %d links", all, links/2)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case g.Count < 2:
		return nil, errors.New("all switches seem one group")
	}
	for c := range n.To {
		g.Global[c] = g.Of[n.From[c]] != g.Of[n.To[c]]
	}
	return g, nil
}

// components are the connected components of local links; check, if not nil, gets the switches
// of each and the number of its channels.
func (n *Network) components(local []bool, check func(switches []int32, links int) error) (*Groups, error) {
	g := &Groups{Of: slices.Repeat([]int32{-1}, n.Switches()), Global: make([]bool, len(n.To))}
	var list []int32
	for root := range int32(n.Switches()) {
		if g.Of[root] >= 0 || n.Base[root] == n.Base[root+1] {
			continue
		}
		links := 0
		g.Of[root] = int32(g.Count)
		list = append(list[:0], root)
		for i := 0; i < len(list); i++ {
			for c := n.Base[list[i]]; c < n.Base[list[i]+1]; c++ {
				if !local[c] {
					continue
				}
				links++
				if t := n.To[c]; g.Of[t] < 0 {
					g.Of[t] = int32(g.Count)
					list = append(list, t)
				}
			}
		}
		if check != nil {
			if err := check(list, links); err != nil {
				return nil, err
			}
		}
		g.Count++
	}
	return g, nil
}
