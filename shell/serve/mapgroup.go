package serve

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Orders of the map: what a tile is.
const (
	byGroups = "groups" // pods and planes, as links show them
	byTiers  = "tiers"
	byRails  = "rails"
	byRacks  = "racks"
)

// orderWords are the orders in words.
var orderWords = [][2]string{{byGroups, "Groups"}, {byTiers, "Tiers"}, {byRails, "Rails"}, {byRacks, "Racks"}}

// groupsBy returns what the map folds by an order; or why that is not known.
func (v *view) groupsBy(order string, l *picture.Ladder) (list []*group, unknown string) {
	f := v.moment.fabric
	switch order {
	case byTiers:
		tiers, err := picture.Tiers(v.ctx, f)
		if err != nil {
			return nil, clean(err.Error())
		}
		for i, nodes := range slices.Backward(tiers) {
			nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *fabric.Node) bool { return !n.IsSwitch() })
			if len(nodes) > 0 {
				list = append(list, newGroup("tier-"+strconv.Itoa(i), picture.TierName(i), "Tiers", nodes))
			}
		}
		return list, ""
	case byRails:
		return v.railGroups()
	case byRacks:
		return v.rackGroups()
	}
	return groups(l), ""
}

// newGroup returns a group without a matrix.
func newGroup(id, name, row string, nodes []*fabric.Node) *group {
	g := &group{id: id, name: name, switches: nodes, row: row}
	for _, n := range nodes {
		if n.IsSwitch() && len(hostPorts(n)) > 0 {
			g.leaves = append(g.leaves, n)
		}
	}
	return g
}

// adapter matches the number of an adapter in a name, behind that of the host: "node-7 HCA-2".
var adapter = regexp.MustCompile(`^(.*[^ ]) +(?:HCA-|mlx[0-9]+_|ibp?)([0-9]{1,3})$`)

// rails returns the rail of each switch from 1 on, 0: it serves several or is not known; and how many rails
// hosts have: 0 if no host has several ports. A rail is the place of a port among the ports of its host, by
// the numbers of adapters in names; a switch is of a rail if at least 7 of 10 of its links to hosts are, or
// of its links to switches whose rails are known.
func rails(f *fabric.Fabric) (of map[*fabric.Node]int, most int) {
	type place struct {
		num  int
		port *fabric.Port
	}
	hosts := map[string][]place{}
	nodes := f.Nodes()
	for i := range nodes {
		n := &nodes[i]
		match := adapter.FindStringSubmatch(n.Name())
		if n.Type() != mad.NodeTypeCA || match == nil {
			continue
		}
		num, _ := strconv.Atoi(match[2])
		for p := range n.Ports() {
			if p.Num() > 0 {
				hosts[match[1]] = append(hosts[match[1]], place{num, p})
			}
		}
	}
	votes := map[*fabric.Node]map[int]int{}
	vote := func(n *fabric.Node, rail int) {
		if votes[n] == nil {
			votes[n] = map[int]int{}
		}
		votes[n][rail]++
	}
	for _, list := range hosts {
		slices.SortFunc(list, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.num, b.num), cmp.Compare(a.port.Num(), b.port.Num()))
		})
		if len(list) > 1 {
			most = max(most, len(list))
		}
		for i, x := range list {
			if q := x.port.Peer(); q != nil && q.Node().IsSwitch() {
				vote(q.Node(), i+1)
			}
		}
	}
	of = map[*fabric.Node]int{}
	for range 8 { // tiers
		next := map[*fabric.Node]int{}
		for n, list := range votes {
			all, best := 0, 0
			for rail, k := range list {
				all += k
				if k > list[best] || k == list[best] && rail < best {
					best = rail
				}
			}
			if _, known := of[n]; !known {
				if 10*list[best] < 7*all {
					best = 0
				}
				next[n] = best
			}
		}
		if len(next) == 0 {
			break
		}
		clear(votes)
		for n, rail := range next {
			of[n] = rail
		}
		for n, rail := range next {
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					if _, known := of[q.Node()]; !known {
						vote(q.Node(), rail)
					}
				}
			}
		}
	}
	return of, most
}

func (v *view) railGroups() (list []*group, unknown string) {
	f := v.moment.fabric
	by := map[string][]*fabric.Node{}
	of, most := rails(f)
	nodes := f.Nodes()
	planned := false
	for i := range nodes {
		n := &nodes[i]
		if !n.IsSwitch() {
			continue
		}
		name := ""
		if _, rail := v.site.placeOf(n); rail != "" {
			name, planned = "Rail "+rail, true
		} else if most > 0 && of[n] > 0 {
			name = "Rail " + strconv.Itoa(of[n])
		}
		by[name] = append(by[name], n)
	}
	if most == 0 && !planned {
		return nil, "Rails are not known: no host has several ports whose names have the numbers of adapters, such as “node-7 HCA-2”. A plan of cables with rails gives them: fabsh serve --cabling FILE."
	}
	return ordered(by, "rail", "Rails", "Several rails"), ""
}

func (v *view) rackGroups() (list []*group, unknown string) {
	s := v.site
	if s.Plan == nil {
		return nil, "Racks are not known. A plan of cables with racks gives them: fabsh serve --cabling FILE (fabsh help cabling)."
	}
	by := map[string][]*fabric.Node{}
	nodes := v.moment.fabric.Nodes()
	found := 0
	for i := range nodes {
		n := &nodes[i]
		p, _ := s.placeOf(n)
		name := strings.TrimSpace(strings.TrimSpace(p.Hall+" "+p.Row) + " " + p.Rack)
		if name != "" {
			found++
			name = "Rack " + name
		}
		by[name] = append(by[name], n)
	}
	if found == 0 {
		return nil, "Racks are not known: the plan of cables places no node of this fabric, by GUID or name."
	}
	return ordered(by, "rack", "Racks", "In no rack of the plan"), ""
}

// ordered returns groups in the order of their names, those without one last.
func ordered(by map[string][]*fabric.Node, word, row, rest string) (list []*group) {
	names := sortedKeys(by)
	slices.SortStableFunc(names, func(a, b string) int {
		if (a == "") != (b == "") {
			return cmp.Compare(b, a)
		}
		return fabric.CompareNames(a, b)
	})
	for i, name := range names {
		nodes := by[name]
		slices.SortStableFunc(nodes, func(a, b *fabric.Node) int {
			return cmp.Or(-cmp.Compare(boolInt(a.IsSwitch()), boolInt(b.IsSwitch())), fabric.CompareNames(a.Name(), b.Name()))
		})
		list = append(list, newGroup(fmt.Sprintf("%s-%d", word, i+1), clean(cmp.Or(name, rest)), row, nodes))
	}
	return list
}

func boolInt(x bool) int {
	if x {
		return 1
	}
	return 0
}

// placeOf returns the place and the rail of a node in the plan of cables, by GUID, else by name.
func (s *Site) placeOf(n *fabric.Node) (p fabric.Place, rail string) {
	if s.Plan == nil || s.Plan.Plan() == nil {
		return n.Place(), ""
	}
	list := s.Plan.NodeByGUID(n.GUID())
	if len(list) != 1 {
		if list = s.Plan.NodeByName(n.Name()); len(list) != 1 {
			host, ok := fabric.HostName(n.Name())
			if n.IsSwitch() || !ok {
				return p, ""
			}
			if list = s.Plan.NodeByName(host); len(list) != 1 {
				return p, ""
			}
		}
	}
	if all := s.Plan.Plan().Rails; list[0].ID() < len(all) {
		rail = all[list[0].ID()]
	}
	return list[0].Place(), rail
}

// linesOf returns the nodes of a group without a matrix, the worst first.
func (v *view) linesOf(g *group) (list []item, more int) {
	type line struct {
		n  *fabric.Node
		k  mark
		up int
	}
	lines := make([]line, len(g.switches))
	for i, n := range g.switches {
		x := line{n: n, k: v.moment.nodes[n.GUID()]}
		for _, q := range portsOf(n) {
			x.k = max(x.k, v.moment.stateOf(q))
			x.up++
		}
		lines[i] = x
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(b.k) - int(a.k) })
	for _, x := range lines[:min(len(lines), maxRows)] {
		list = append(list, item{Mark: x.k, Text: nodeName(x.n), Small: plural.Count(x.up, "link", "links"), URL: v.nodeURL(x.n)})
	}
	return list, len(lines) - len(list)
}
