package session

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/spec"
)

// simKey is the key in a simulated fabric's specification. No key is shown.
var simKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\bmkey\s*=)[^,]*`)
})

func (c connector) sim(spec string) (*Connection, error) {
	return Simulate(c.settings, spec, OpenNamed(c.ctx, lang.OpenNamed), c.secrets.Open)
}

// Simulate makes a subnet in this process, and attaches to its first adapter unless the
// settings name another node. Files that spec names are opened by open, and those that
// they name by included.
func Simulate(s *Settings, spec string, open, included format.Opener) (*Connection, error) {
	f, options, err := sim.ParseFiles(spec, open, included)
	if err != nil {
		return nil, Late(err)
	}
	node, err := SimNode(f, s.CA)
	if err != nil {
		return nil, err
	}
	subnet := sim.New(f, options)
	t, err := subnet.Attach(node, s.Port.Value)
	if err != nil {
		return nil, err
	}
	return &Connection{Name: strings.TrimSuffix("sim:"+simKey().ReplaceAllString(spec, "$1..."), ":"), transport: t, sim: subnet}, nil
}

// SimNode returns the node to attach to: the one with this name or GUID, else the first
// with a cable that is not a switch; among switches only, the first.
func SimNode(f *fabric.Fabric, name string) (int, error) {
	nodes := f.Nodes()
	if name == "" {
		for i := range nodes {
			if n := &nodes[i]; !n.IsSwitch() && spec.HasCable(n) {
				return i, nil
			}
		}
		return max(0, slices.IndexFunc(nodes, func(n fabric.Node) bool { return n.IsSwitch() })), nil
	}
	for i := range nodes {
		if nodes[i].GUID().String() == name {
			return i, nil
		}
	}
	n, err := f.FindNode(name)
	if err != nil {
		return 0, fmt.Errorf("-C: %w", err)
	}
	return n.ID(), nil
}
