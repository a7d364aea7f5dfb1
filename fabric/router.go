package fabric

import (
	"fabsh/mad"
)

// RouterTables are what a router of NVIDIA reported of other subnets.
type RouterTables struct {
	Info     mad.RouterInfo
	NextHops []mad.NextHop       // subnets that it leads to
	Adjacent []mad.AdjSubnet     // subnets that it is in
	LIDs     []mad.AdjSubnetLIDs // LIDs of routers (FLIDs) of the adjacent subnets
}

type routersKey struct{}

// Router returns the tables of n; nil where they were not read. They must not be changed.
func (n *Node) Router() *RouterTables {
	all := n.fabric.Derived(routersKey{}, func() any {
		all := map[int32]*RouterTables{}
		f := n.fabric
		answersTo(f, mad.AttrRouterInfo, func(n *Node, a *Answer) {
			t := new(RouterTables)
			t.Info.Decode(a.Data)
			all[n.id] = t
		})
		rows := func(attr *mad.Attribute, size func(*mad.RouterInfo) int, add func(t *RouterTables, data []byte, rest int)) {
			answersTo(f, attr, func(n *Node, a *Answer) {
				if t := all[n.id]; t != nil {
					if rest := size(&t.Info) - int(a.Modifier)*routerBlock[attr]; rest > 0 {
						add(t, a.Data, rest)
					}
				}
			})
		}
		rows(mad.AttrNextHopTable, func(i *mad.RouterInfo) int { return int(i.NextHopTop) }, func(t *RouterTables, data []byte, rest int) {
			var x mad.NextHopTable
			x.Decode(data)
			t.NextHops = append(t.NextHops, x.Record[:min(rest, len(x.Record))]...)
		})
		rows(mad.AttrAdjSiteLocalSubnetsTable, func(i *mad.RouterInfo) int { return int(i.AdjSubnetsTop) }, func(t *RouterTables, data []byte, rest int) {
			var x mad.AdjSiteLocalSubnetsTable
			x.Decode(data)
			t.Adjacent = append(t.Adjacent, x.Record[:min(rest, len(x.Record))]...)
		})
		rows(mad.AttrAdjSubnetsRouterLIDInfo, func(i *mad.RouterInfo) int { return int(i.AdjLIDInfoTop) }, func(t *RouterTables, data []byte, rest int) {
			var x mad.AdjSubnetsRouterLIDInfo
			x.Decode(data)
			t.LIDs = append(t.LIDs, x.Record[:min(rest, len(x.Record))]...)
		})
		return all
	}).(map[int32]*RouterTables)
	return all[n.id]
}

// routerBlock is the number of entries in a block of a router's table.
var routerBlock = map[*mad.Attribute]int{
	mad.AttrNextHopTable:             len(mad.NextHopTable{}.Record),
	mad.AttrAdjSiteLocalSubnetsTable: len(mad.AdjSiteLocalSubnetsTable{}.Record),
	mad.AttrAdjSubnetsRouterLIDInfo:  len(mad.AdjSubnetsRouterLIDInfo{}.Record),
}

// RouterBlocks returns the number of blocks of a router's table, of so many entries.
func RouterBlocks(attr *mad.Attribute, entries int) int {
	size := routerBlock[attr]
	return (entries + size - 1) / size
}
