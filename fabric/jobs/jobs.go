// Package jobs has the jobs of a scheduler: their hosts, the traffic between these, and the
// links that several jobs use.
//
// Read returns Jobs from the output of squeue --json or sacct --json, or from a table. Measure
// adds up their traffic on links by a pattern, also where switches choose between ports; Matrix
// returns it between ports. Places have the leaves and pods that a job is on.
//
// The package has no state: its functions, and Places, are safe for concurrent use.
package jobs

import (
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// Job is a job that runs.
type Job struct {
	ID, Name, User, Partition string
	Hosts                     []string // in the order of the scheduler, each once
}

// hostPorts are the ports of the hosts of a network.
type hostPorts struct {
	of    map[string][]hostPort // by host: by the name of the adapter, then the number of the port
	short map[string]string     // the host with a short name in lower case; "" if there are several
	rails railNames             // of all hosts
}

// hostPort is a port of a host.
type hostPort struct {
	name string // without the host's, such as HCA-1/1
	lid  mad.LID
}

// railNames are the names of the ports of a host by rail, as the host with the most ports has them.
type railNames []string

// railsOf returns the rails of hosts, if some host has ports of all names that occur, and none has two of one
// name; nil: then the rails of a host are its ports in order. A port that is down is not among those of its host,
// and its rail must not pass to the next port.
func railsOf(hosts [][]hostPort) (r railNames) {
	seen, most := map[string]int{}, 0 // by name: the last host with it, from 1
	for i, ports := range hosts {
		most = max(most, len(ports))
		for _, p := range ports {
			switch seen[p.name] {
			case i + 1:
				return nil
			case 0:
				r = append(r, p.name)
			}
			seen[p.name] = i + 1
		}
	}
	if len(r) != most {
		return nil
	}
	slices.SortFunc(r, fabric.CompareNames)
	return r
}

// order returns the LIDs of a host's ports by rail; 0: it has none there.
func (r railNames) order(ports []hostPort) (lids []mad.LID) {
	if r == nil || slices.ContainsFunc(ports, func(p hostPort) bool { return !slices.Contains(r, p.name) }) {
		for _, p := range ports {
			lids = append(lids, p.lid)
		}
		return lids
	}
	lids = make([]mad.LID, len(r))
	for _, p := range ports {
		lids[slices.Index(r, p.name)] = p.lid
	}
	return lids
}

// shortName is a host's name without its domain, in lower case.
func shortName(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return strings.ToLower(name)
}

// portsOf returns the ports of the hosts of g that are at switches and have LIDs of their own.
func portsOf(g *graph.Graph) *hostPorts {
	terminals := map[string][]graph.Terminal{}
	for _, t := range g.Terminals() {
		if t.Switch < 0 || !t.IsEndpoint(0) || t.Class&graph.ClassAN != 0 {
			continue
		}
		if host, ok := fabric.HostName(t.Port.Node().Name()); ok {
			terminals[host] = append(terminals[host], t)
		}
	}
	h := &hostPorts{of: map[string][]hostPort{}, short: map[string]string{}}
	for host, list := range terminals {
		slices.SortFunc(list, func(a, b graph.Terminal) int { return fabric.CompareNames(a.Port.Name(), b.Port.Name()) })
		for _, t := range list {
			h.of[host] = append(h.of[host], hostPort{strings.TrimSpace(strings.TrimPrefix(t.Port.Name(), host)), t.LID})
		}
		if short := shortName(host); h.short[short] == "" {
			h.short[short] = host
		}
	}
	for host := range terminals {
		if short := shortName(host); h.short[short] != host {
			h.short[short] = ""
		}
	}
	h.rails = railsOf(slices.Collect(maps.Values(h.of)))
	return h
}

// find returns the name in the fabric of a host of the scheduler: an equal name, or the only
// one that is equal without domain and case; "" if it is unknown.
func (h *hostPorts) find(name string) string {
	if h.of[name] != nil {
		return name
	}
	return h.short[shortName(name)]
}

// Places are the leaves and pods of a fabric's hosts.
type Places struct {
	leaf, pod           map[string]int // by host
	leafSizes, podSizes []int          // hosts of each, the largest first
}

// Spread is the number of leaves and pods that a job is on, and the smallest possible number;
// 0: unknown. A network of one or two levels has no pods.
type Spread struct{ Leaves, LeastLeaves, Pods, LeastPods int }

// FindPlaces finds the leaves and pods of f, as [hosts.Find] groups its hosts: the leaves of a
// scalable unit count as one, and a pod is a group of the level below a root. It returns
// nil if no hosts are known.
func FindPlaces(f *fabric.Fabric) *Places {
	g, err := hosts.Find(f, hosts.GroupOptions{})
	if err != nil {
		return nil
	}
	p := &Places{leaf: map[string]int{}, pod: map[string]int{}}
	put := func(in map[string]int, sizes *[]int, x *hosts.Group) {
		for _, host := range x.Hosts {
			in[host] = len(*sizes)
		}
		*sizes = append(*sizes, len(x.Hosts))
	}
	var visit func(x *hosts.Group)
	visit = func(x *hosts.Group) {
		if x.Level == 0 {
			put(p.leaf, &p.leafSizes, x)
		}
		for _, below := range x.Groups {
			visit(below)
		}
	}
	for _, root := range g.Roots {
		visit(root)
		for _, x := range root.Groups {
			if x.Level > 0 {
				put(p.pod, &p.podSizes, x)
			}
		}
	}
	slices.SortFunc(p.leafSizes, func(a, b int) int { return b - a })
	slices.SortFunc(p.podSizes, func(a, b int) int { return b - a })
	return p
}

// Spread returns the spread of hosts, by their names in the fabric.
func (p *Places) Spread(names []string) (s Spread) {
	if p == nil {
		return s
	}
	s.Leaves, s.LeastLeaves = spread(names, p.leaf, p.leafSizes)
	s.Pods, s.LeastPods = spread(names, p.pod, p.podSizes)
	return s
}

// spread counts the groups that hosts are in, and how few of the largest have room for them.
func spread(names []string, in map[string]int, sizes []int) (used, least int) {
	groups := map[int]bool{}
	n := 0
	for _, name := range names {
		if i, ok := in[name]; ok {
			groups[i] = true
			n++
		}
	}
	for n > 0 && least < len(sizes) {
		n -= sizes[least]
		least++
	}
	return len(groups), least
}
