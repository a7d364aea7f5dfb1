// Package jobs has the jobs of a scheduler: their hosts, the traffic between these, and the
// links that several jobs use.
//
//	jobs.go    Job, and the ports of its hosts
//	read.go    Read: the output of squeue --json, and of sacct --json
//	csv.go     a table of jobs, each with a list of hosts
//	traffic.go Measure: the traffic of jobs on links; Matrix: between ports
//	adaptive.go the traffic where switches choose between ports
//	spread.go  Places: the leaves and pods that a job is on
package jobs

import (
	"slices"
	"strings"

	"fabsh/fabric"
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
	lids  map[string][]mad.LID // by host: by the name of the adapter, then the number of the port
	short map[string]string    // the host with a short name in lower case; "" if there are several
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
	h := &hostPorts{map[string][]mad.LID{}, map[string]string{}}
	for host, list := range terminals {
		slices.SortFunc(list, func(a, b graph.Terminal) int { return fabric.CompareNames(a.Port.Name(), b.Port.Name()) })
		for _, t := range list {
			h.lids[host] = append(h.lids[host], t.LID)
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
	return h
}

// find returns the name in the fabric of a host of the scheduler: the same name, or the only
// one that is the same without domain and case; "" if it is unknown.
func (h *hostPorts) find(name string) string {
	if h.lids[name] != nil {
		return name
	}
	return h.short[shortName(name)]
}
