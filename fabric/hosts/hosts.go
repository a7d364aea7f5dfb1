// Package hosts groups the hosts of a fabric, for schedulers of jobs: by leaf, and by
// how far packets between leaves have to climb.
//
//	hosts.go   Find: groups in groups, and what is left out
//	adapter.go which host an adapter is of, and which switch it is at
//	unit.go    leaves that serve the same hosts, one for each rail
//	tree.go    units in subtrees
//	misplaced.go  hosts at spines; hosts that run no jobs
//	name.go    names of groups
//	list.go    lists of names in Slurm's notation, such as node[01-18]
package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
)

// GroupOptions choose the hosts to report, and how.
type GroupOptions struct {
	// Rules determine what adapters are for, nil: graph.DefaultRules. Those of compute nodes
	// are hosts.
	Rules    []graph.Rule
	Baseline *fabric.Fabric // what is absent now is where it is there; may be nil
	// Levels is how many levels of groups there are below the roots at most, 0: as
	// many as the network has. With 1, it need not be a tree.
	Levels int
	// DNS: hosts are called by names in lower case, as Kubernetes' nodes are, and those
	// whose names cannot be are left out.
	DNS bool
	// SkipMisplaced leaves out the few hosts that are attached to spines.
	SkipMisplaced bool
}

// Groups are the hosts of a fabric, in groups. All hosts are in as many groups as
// any other.
type Groups struct {
	Roots []*Group // of each connected part one
	// NoTree has the reason why there are no groups between those of level 0 and the roots,
	// where Options ask for them; "" where there are.
	NoTree string
	// Notes list what is left out, and what is odd.
	Notes []string
}

// Hosts returns the names of all hosts, by root.
func (g *Groups) Hosts() (names []string) {
	for _, root := range g.Roots {
		names = append(names, root.Hosts...)
	}
	return names
}

// Group is a group of hosts: those of a leaf, or of the leaves of a scalable unit, on
// level 0; else groups.
type Group struct {
	// Name is of at most 63 letters, digits, - and _, and begins and ends with none of
	// these. No two groups have the same, even where case, and - or _, do not count.
	Name     string
	Level    int
	Hosts    []string // all that are in it, each part in one piece; of one level 0 by name
	Groups   []*Group // of the level below; none on level 0
	Switches []string // on level 0: names of its leaves
}

// Find groups the hosts of f. The error is that there are no hosts.
//
// Time: O(H*(S + N) + A*R) for S switches with N links in H levels, and A adapters of
// hosts with R each, beyond sorting.
func Find(f *fabric.Fabric, o GroupOptions) (*Groups, error) {
	if o.Rules == nil {
		o.Rules = graph.DefaultRules()
	}
	n := newNetwork(f, o)
	misplaced := n.misplaced()
	if o.SkipMisplaced {
		n.skip(misplaced)
	}
	n.joinUnits()
	hosts := n.placeHosts()
	if len(hosts) == 0 {
		return nil, n.nothing()
	}
	g := &Groups{}
	parts, noTree := n.partitions(o.Levels)
	if g.NoTree = noTree; noTree != "" && len(misplaced) > 0 && !o.SkipMisplaced {
		g.NoTree += remedy(misplaced)
	}
	n.build(g, hosts, parts)
	g.Notes = n.notes.list()
	return g, nil
}

// nothing is why there are no hosts.
func (n *network) nothing() error {
	if n.ports == 0 {
		return errors.New("no hosts: no adapter of a compute node (class cn) is at a switch")
	}
	return fmt.Errorf("no host can be identified: %s; --node-name-map FILE gives nodes names", strings.Join(n.notes.list(), "; "))
}

// notes are things of one kind, which are reported in one line.
type notes struct {
	kinds []string
	of    map[string][]string
}

// shown is how many names a note has.
const shown = 3

func (n *notes) add(kind, name string) {
	if n.of == nil {
		n.of = map[string][]string{}
	}
	if n.of[kind] == nil {
		n.kinds = append(n.kinds, kind)
	}
	n.of[kind] = append(n.of[kind], name)
}

func (n *notes) list() []string {
	var list []string
	for _, kind := range n.kinds {
		names := n.of[kind]
		slices.SortFunc(names, fabric.CompareNames)
		names = slices.Compact(names)
		more := ""
		if len(names) > shown {
			more = fmt.Sprintf(" and %d more", len(names)-shown)
			names = names[:shown]
		}
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = fmt.Sprintf("%.80q", name)
		}
		list = append(list, kind+": "+strings.Join(quoted, ", ")+more)
	}
	return list
}
