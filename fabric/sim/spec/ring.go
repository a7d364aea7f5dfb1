package spec

import (
	"fmt"

	"fabsh/fabric"
)

// ring makes a ring of n switches, each with its hosts. Two switches have one
// cable, one has none.
func ring(n, hosts int) (*fabric.Fabric, error) {
	if err := checkSize(n, hosts, hosts+2, n/2); err != nil {
		return nil, err
	}
	p := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for i := range n {
		switches = append(switches, p.addSwitch(fmt.Sprintf("switch-%d", i+1), hosts+2))
	}
	p.addHosts(switches, hosts)
	for i, sw := range switches {
		if next := (i + 1) % n; next > i || n > 2 {
			p.link(sw, hosts+2, switches[next], hosts+1)
		}
	}
	return p.build()
}
