// Package hosts describes the hosts of a fabric for schedulers of jobs: in groups, and with
// states of health.
//
// Find groups hosts by leaf, and by how many levels packets between leaves have to climb. Leaves
// that serve one set of hosts, one for each rail, are a unit; units are in subtrees. Fold and
// Expand write and read lists of names in Slurm's notation, such as node[01-18].
//
// Judge derives the Health of hosts from the findings of audits, by rules: a host is ok, degraded,
// unhealthy or unknown, with reasons. SchedulerFormats write a HealthReport for Slurm,
// node-problem-detector and NVSentinel, and contain no name that a shell, Slurm or Kubernetes
// would misread.
//
// The package reads nothing from the fabric. Its functions have no state and are safe for
// concurrent use; values that they return belong to the caller.
package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// GroupOptions choose the hosts to report, and how.
type GroupOptions struct {
	// Rules determine what adapters are for, nil: graph.DefaultRules. Adapters of compute nodes
	// belong to hosts.
	Rules    []graph.Rule
	Baseline *fabric.Fabric // what is absent now is where it is there; may be nil
	// Levels is how many levels of groups there are below the roots at most, 0: as
	// many as the network has. With 1, it need not be a tree.
	Levels int
	// DNS: hosts have names in lower case, as Kubernetes' nodes do; hosts without a valid one
	// are left out.
	DNS bool
	// SkipMisplaced leaves out the few hosts that are attached to spines.
	SkipMisplaced bool
}

// Groups are the hosts of a fabric, in groups. All hosts are in as many groups as
// any other.
type Groups struct {
	Roots []*Group // of each connected part one
	// NoTree has the reason why there are no groups between level 0 and the roots, where
	// Levels asks for them; "" where there are.
	NoTree string
	// Domains reports that groups of level 0 are NVLink domains.
	Domains bool
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

// Group is a group of hosts: on level 0 the hosts of a leaf, or of the leaves of a scalable unit;
// else of groups.
type Group struct {
	// Name is of at most 63 letters, digits, - and _, and begins and ends with none of
	// these. Names are unique, even where case, and - or _, do not count.
	Name     string
	Level    int
	Hosts    []string // all that are in it, each part in one piece; of one level 0 by name
	Groups   []*Group // of the level below; none on level 0
	Switches []string // on level 0: names of its leaves
}

// Find groups the hosts of f. The error is that there are no hosts or no known links, that two have the same name, or
// that the role of a leaf is ambiguous.
//
// Time: O(H*(S + N) + A*R) for S switches with N links in H levels, and A adapters of
// hosts with R each, beyond sorting.
func Find(f *fabric.Fabric, o GroupOptions) (*Groups, error) {
	if o.Rules == nil {
		o.Rules = graph.DefaultRules()
	}
	n := newNetwork(f, o)
	n.cutPlanes()
	if err := n.inferRoles(); err != nil {
		return nil, err
	}
	misplaced := n.misplaced()
	if o.SkipMisplaced {
		n.skip(misplaced)
	}
	n.joinUnits(n.overlaps())
	hosts, err := n.placeHosts()
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		if slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemNoLinks }) {
			return nil, errors.New("no hosts: the links are unknown: the file has none")
		}
		return nil, n.noHosts()
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

// noHosts returns the error of a network without hosts, with the reason.
func (n *network) noHosts() error {
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

// maxNoteNames is how many names a note has.
const maxNoteNames = 3

// notIdentified is the note of adapters whose names identify no host, of which it names more.
const (
	notIdentified    = "not identified by name; left out"
	maxNotIdentified = 8
)

func (n *notes) add(kind, name string) { n.addText(kind, fmt.Sprintf("%.80q", name)) }

// addText adds a name that is quoted.
func (n *notes) addText(kind, name string) {
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
		more, most := "", maxNoteNames
		if kind == notIdentified {
			most = maxNotIdentified
		}
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		list = append(list, kind+": "+strings.Join(names, ", ")+more)
	}
	return list
}

// network has the switches, and the adapters at them: of the fabric, and of the baseline where
// they are absent from the fabric.
type network struct {
	names    []string   // of switches
	guids    []mad.GUID // of switches
	links    [][]edge   // by switch
	adapters []adapter
	unit     disjointSets // of leaves
	ports    int          // of compute nodes that are at switches
	plane    map[int]int  // of leaves, from 1, where adapters have several; 0: of several
	services map[int]bool // leaves at which there are adapters of services
	stated   map[int]bool // leaves that a rule names: their roles are not inferred
	dns      bool
	notes    notes
}

// edge is a link to a switch.
type edge struct {
	to   int
	port *fabric.Port // this end
}

// adapter is a port of a host, at a switch.
type adapter struct {
	host  string
	whole string // the name of the node
	node  *fabric.Node
	leaf  int
	port  string // of the leaf
}

// newNetwork adds the current fabric first, and then what only the baseline has: nodes are
// identified by their GUIDs, and a port has one cable.
func newNetwork(f *fabric.Fabric, o GroupOptions) *network {
	n := &network{dns: o.DNS, plane: map[int]int{}, services: map[int]bool{}, stated: map[int]bool{}}
	now := n.add(f, o, nil, nil)
	if o.Baseline != nil {
		n.add(o.Baseline, o, f, now)
	}
	n.unit = newDisjointSets(len(n.names))
	return n
}

// add adds a fabric. now, where it is not nil, is the one that was added before, and
// index are the numbers of its switches, by node.
func (n *network) add(f *fabric.Fabric, o GroupOptions, now *fabric.Fabric, index []int) []int {
	nodes := f.Nodes()
	own := make([]int, len(nodes))
	same := make([]*fabric.Node, len(nodes)) // in now
	for i := range nodes {
		node := &nodes[i]
		own[i] = -1
		if now != nil {
			if found := now.NodeByGUID(node.GUID()); len(found) == 1 && found[0].Type() == node.Type() {
				same[i] = found[0]
			}
		}
		switch {
		case !node.IsSwitch():
		case same[i] != nil:
			own[i] = index[same[i].ID()]
		default:
			own[i] = len(n.names)
			n.names, n.guids, n.links = append(n.names, node.Name()), append(n.guids, node.GUID()), append(n.links, nil)
		}
	}
	// taken reports whether the port now has a cable, or no longer exists.
	taken := func(p *fabric.Port) bool {
		if m := same[p.Node().ID()]; m != nil {
			q := m.Port(p.Num())
			return q == nil || q.Peer() != nil
		}
		return false
	}
	for i := range nodes {
		node := &nodes[i]
		for p := range node.Ports() {
			q := p.Peer()
			if q == nil || !q.Node().IsSwitch() || taken(p) || taken(q) {
				continue
			}
			leaf := own[q.Node().ID()]
			switch {
			case !node.IsSwitch():
				// Another adapter of the name has taken the place of this one.
				if now == nil || same[i] != nil || len(now.NodeByName(node.Name())) == 0 {
					n.attach(p, leaf, o)
				}
			case own[i] != leaf:
				n.links[own[i]] = append(n.links[own[i]], edge{leaf, p})
			}
		}
	}
	return own
}

// attach adds a port of a CA, where it is of a host.
func (n *network) attach(p *fabric.Port, leaf int, o GroupOptions) {
	class := graph.Classify(o.Rules, p)
	n.services[leaf] = n.services[leaf] || class&graph.ClassIO != 0
	if class&graph.ClassCN == 0 {
		if graph.Classify(ServiceRules(), p)&graph.ClassIO != 0 {
			n.notes.add("login or management host, which runs no jobs; left out (--class 'NAME=cn' includes it)", p.Node().Name())
		}
		return
	}
	n.ports++
	node := p.Node()
	if plane := planeOf(p); plane > 0 {
		if old, found := n.plane[leaf]; found && old != plane {
			plane = 0
		}
		n.plane[leaf] = plane
	}
	for i := range o.Rules {
		if r := &o.Rules[i]; r.Leaf && r.Class&graph.ClassCN != 0 && r.Fits(p) {
			n.stated[leaf] = true
		}
	}
	host, ok := hostName(node.Name(), n.dns)
	switch {
	case ok:
	case node.Name() == "", fabric.Unidentified(node.Name()) != "":
		n.notes.addText(notIdentified, unidentified(node).String())
		return
	default:
		what := "name is not that of a host and its adapter; left out"
		if n.dns {
			what = "name is not that of a Kubernetes node and its adapter; left out"
		}
		n.notes.add(what, node.Name())
		return
	}
	n.adapters = append(n.adapters, adapter{host, node.Name(), node, leaf, p.Peer().Name()})
}

// hostName is the host in a node's name; false without one.
func hostName(name string, dns bool) (string, bool) {
	host, ok := fabric.HostName(name)
	if !ok || !dns {
		return host, ok
	}
	host = strings.ToLower(host)
	return host, fabric.IsDNSName(host)
}

// ServiceRules are for hosts that run no jobs: login and management hosts, by their names.
// They come after the rules of the user, and before graph.DefaultRules.
func ServiceRules() []graph.Rule {
	var rules []graph.Rule
	for _, name := range []string{"login*", "*-login*", "mgmt*", "*-mgmt*", "management*", "admin*", "headnode*", "*ufm*"} {
		rules = append(rules, graph.Rule{Class: graph.ClassIO, Name: name})
	}
	return rules
}

// misplaced are the adapters at spines: at a switch that is linked to several leaves, each of
// which has at least four times as many adapters.
func (n *network) misplaced() (list []adapter) {
	at := make([]int, len(n.names))
	for _, a := range n.adapters {
		at[a.leaf]++
	}
	spine := make([]bool, len(n.names))
	for s, own := range at {
		leaves := map[int]bool{}
		for _, e := range n.links[s] {
			if own > 0 && at[e.to] >= 4*own {
				leaves[e.to] = true
			}
		}
		spine[s] = len(leaves) > 1
	}
	for _, a := range n.adapters {
		if spine[a.leaf] {
			list = append(list, a)
		}
	}
	return list
}

// skip leaves adapters out.
func (n *network) skip(list []adapter) {
	left := map[adapter]bool{}
	for _, a := range list {
		n.notes.add("attached to a spine; left out", a.host)
		left[a] = true
	}
	n.adapters = slices.DeleteFunc(n.adapters, func(a adapter) bool { return left[a] })
}

// remedy names hosts at spines, and the options that leave them out.
func remedy(list []adapter) string {
	var names, classes []string
	for _, a := range list {
		names = append(names, a.host)
		class := a.whole
		if strings.HasPrefix(a.whole, a.host+" ") {
			class = a.host + " *"
		}
		classes = append(classes, "--class '"+class+"=io'")
	}
	slices.SortFunc(names, fabric.CompareNames)
	slices.SortFunc(classes, fabric.CompareNames)
	names, classes = slices.Compact(names), slices.Compact(classes)
	const most = 8
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names, classes = names[:most], classes[:0]
	}
	text := fmt.Sprintf("; hosts attached to spines: %s%s; leave them out with --skip-misplaced", strings.Join(names, ", "), more)
	if len(classes) > 0 {
		text += ", or " + strings.Join(classes, " ")
	}
	return text
}
