// Package names finds nodes of a simulated subnet by what its users call them.

package sim

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/sim/spec"
)

// Names finds nodes by what programs, consoles and people call them. It is safe for
// concurrent use.
type Names struct {
	IDs      []string // by node: the id in the net file, else the name
	byID     map[string]int
	byName   map[string]int
	byGUID   map[string]int // as fabric writes it
	Standard int            // where programs are that name no node
}

// NewNames returns the names of a fabric's nodes, with sm as the node of the subnet's own subnet manager, or -1.
func NewNames(f *fabric.Fabric, sm int) *Names {
	n := &Names{byID: map[string]int{}, byName: map[string]int{}, byGUID: map[string]int{}, Standard: -1}
	for i := range f.Nodes() {
		node := &f.Nodes()[i]
		id := node.FileID()
		if id == "" {
			id = node.Name()
		}
		n.IDs = append(n.IDs, id)
		for _, entry := range []struct {
			index map[string]int
			key   string
		}{{n.byID, id}, {n.byName, node.Name()}, {n.byGUID, node.GUID().String()}} {
			if _, known := entry.index[entry.key]; !known {
				entry.index[entry.key] = i
			}
		}
		if n.Standard < 0 && !node.IsSwitch() && spec.HasCable(node) && i != sm { // so that an OpenSM there stands by
			n.Standard = i
		}
	}
	if n.Standard < 0 {
		n.Standard = max(sm, 0)
	}
	return n
}

// Find returns a node by its id in the net file, its name, its GUID, or as ibnetdiscover
// writes that: H- or S- and 16 digits. "" is the first channel adapter
// with a cable and without the subnet's own subnet manager.
func (n *Names) Find(name string) (int, error) {
	if name == "" {
		return n.Standard, nil
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
	return 0, fmt.Errorf("unknown node %q%s", name, fabric.DidYouMean(name, n.IDs))
}
