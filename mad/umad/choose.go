package umad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
)

// choose finds the port for o, as infiniband-diags do: the one named, otherwise
// the first that is ACTIVE, otherwise the first whose link is up. Of a planarized
// adapter it finds the SMI/GSI pair; otherwise both are the same. With an error, the ports
// are set if ib_umad does not serve them.
func (s sysfs) choose(o Options) (gsi, smi port, err error) {
	all, err := s.ports()
	if err != nil {
		return gsi, smi, err
	}
	return choose(all, o)
}

func choose(all []port, o Options) (gsi, smi port, err error) {
	fitting := slices.Collect(func(yield func(port) bool) {
		for _, p := range all {
			if (o.Device == "" || o.Device == p.device) && (o.Port == 0 || o.Port == p.num) && !yield(p) {
				return
			}
		}
	})
	if len(fitting) == 0 {
		return gsi, smi, noSuchPort(o, all)
	}
	rank := port.rank
	if o.Device == "" {
		rank = func(p port) int { return p.pairRank(all) }
	}
	chosen := best(fitting, o.Device != "", rank)
	switch {
	case chosen == nil, o.Device == "" && rank(*chosen) == 0:
		return gsi, smi, noUsablePort(fitting)
	case chosen.umad == "":
		return *chosen, *chosen, fmt.Errorf("%v: carries no management datagrams: ib_umad does not serve it (an iWARP port?)", chosen)
	}
	gsi, smi = chosen.pair(all)
	return gsi, smi, nil
}

// pair returns p with its other half; p twice if it has none.
func (p port) pair(all []port) (gsi, smi port) {
	switch other := partner(p, all); {
	case other == nil:
		return p, p
	case p.smDisabled:
		return p, *other
	default:
		return *other, p
	}
}

// pairRank ranks p together with its other half: both are needed (rdma-core
// libibumad/umad.c find_preferred_ports).
func (p port) pairRank(all []port) int {
	gsi, smi := p.pair(all)
	return min(gsi.rank(), smi.rank())
}

// rank ranks a port; higher is better.
func (p port) rank() int {
	switch {
	case p.state == mad.PortStateActive:
		return 2
	case p.phys == mad.PortPhysicalStateLinkUp:
		return 1
	}
	return 0
}

// best returns the first of the highest rank. InfiniBand comes first; RoCE is only
// chosen on a device that was named, never by accident.
func best(ports []port, roce bool, rank func(port) int) *port {
	var found *port
	for i := range ports {
		p := &ports[i]
		if p.ethernet && !roce {
			continue
		}
		if found == nil || found.ethernet && !p.ethernet || found.ethernet == p.ethernet && rank(*p) > rank(*found) {
			found = p
		}
	}
	return found
}

// partner returns the other port of an SMI/GSI pair: it has the same GUID on another
// device, and only one of the two allows a subnet manager (rdma-core, libibumad:
// umad_get_smi_gsi_pairs).
func partner(p port, all []port) *port {
	return best(slices.DeleteFunc(slices.Clone(all), func(other port) bool {
		return p.guid == 0 || p.guid != other.guid || p.ethernet || other.ethernet || other.umad == "" ||
			p.smDisabled == other.smDisabled
	}), false, port.rank)
}

// listed is how to see the names of ports.
const listed = "; fabsh ports lists them"

// noSuchPort returns the error that no port has the name in o.
func noSuchPort(o Options, all []port) error {
	var devices, ports []string
	for _, p := range all {
		if !slices.Contains(devices, p.device) {
			devices = append(devices, p.device)
		}
		if p.device == o.Device {
			ports = append(ports, strconv.Itoa(p.num))
		}
	}
	switch {
	case len(devices) == 0:
		return ErrNoDevice
	case o.Device == "":
		return fmt.Errorf("port %d: unknown; ports: %s%s", o.Port, names(all), listed)
	case ports == nil:
		return fmt.Errorf("device %s: unknown; devices: %s%s", o.Device, strings.Join(devices, ", "), listed)
	}
	return fmt.Errorf("device %s: unknown port %d; ports: %s%s", o.Device, o.Port, strings.Join(ports, ", "), listed)
}

// noUsablePort returns an error with the states of the ports.
func noUsablePort(ports []port) error {
	return fmt.Errorf("no InfiniBand port is up: %s; check cable and switch, or name a device to use it anyway (-C)%s", names(ports), listed)
}

// names lists ports with the states that matter to the choice.
func names(ports []port) string {
	var list []string
	for _, p := range ports {
		state := fmt.Sprintf("%v, %v", p.state, p.phys)
		if p.ethernet {
			state = "RoCE"
		}
		list = append(list, fmt.Sprintf("%v (%s)", p, state))
	}
	return strings.Join(list, ", ")
}
