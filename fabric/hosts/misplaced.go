package hosts

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
)

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
