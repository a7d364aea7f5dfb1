package server

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/sim/spec"
)

// names finds nodes by the names that clients and the console use.
type names struct {
	ids      []string // by node: the id in the net file, else the name
	byID     map[string]int
	byName   map[string]int
	byGUID   map[string]int // as fabric writes it
	standard int            // the node of clients that name no node
}

// newNames creates names; sm is the node of the subnet's own subnet manager, or -1.
func newNames(f *fabric.Fabric, sm int) *names {
	n := &names{byID: map[string]int{}, byName: map[string]int{}, byGUID: map[string]int{}, standard: -1}
	for i := range f.Nodes() {
		node := &f.Nodes()[i]
		id := node.FileID()
		if id == "" {
			id = node.Name()
		}
		n.ids = append(n.ids, id)
		for _, entry := range []struct {
			index map[string]int
			key   string
		}{{n.byID, id}, {n.byName, node.Name()}, {n.byGUID, node.GUID().String()}} {
			if _, known := entry.index[entry.key]; !known {
				entry.index[entry.key] = i
			}
		}
		if n.standard < 0 && !node.IsSwitch() && spec.HasCable(node) && i != sm { // so that an OpenSM there stands by
			n.standard = i
		}
	}
	if n.standard < 0 {
		n.standard = max(sm, 0)
	}
	return n
}

// find returns a node by its id in the net file, its name, its GUID, or the form of
// ibnetdiscover: H- or S- and 16 digits. "" is the first channel adapter with a cable and
// without the subnet's own subnet manager.
func (n *names) find(name string) (int, error) {
	if name == "" {
		return n.standard, nil
	}
	for _, index := range []map[string]int{n.byID, n.byName, n.byGUID} {
		if i, ok := index[name]; ok {
			return i, nil
		}
	}
	if kind, digits, ok := strings.Cut(name, "-"); ok && len(kind) == 1 {
		if i, ok := n.byGUID["0x"+digits]; ok {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown node %q%s", name, fabric.DidYouMean(name, n.ids))
}
