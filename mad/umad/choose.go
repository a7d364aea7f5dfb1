package umad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
)

// choose finds the port that o says, as infiniband-diags do: the one named,
// else the first that is ACTIVE, else the first whose link is up. Of a
// planarized adapter it finds the SMI/GSI pair; otherwise they are the same.
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
		return gsi, smi, fmt.Errorf("%v carries no management datagrams: ib_umad does not serve it, as is the case with iWARP", chosen)
	}
	gsi, smi = chosen.pair(all)
	return gsi, smi, nil
}

// pair is p with the other half of it; p twice where it has none.
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

// pairRank is how well p will do with the other half of it: both are needed
// (rdma-core libibumad/umad.c find_preferred_ports).
func (p port) pairRank(all []port) int {
	gsi, smi := p.pair(all)
	return min(gsi.rank(), smi.rank())
}

// rank is how well a port will do.
func (p port) rank() int {
	switch {
	case p.state == mad.PortStateActive:
		return 2
	case p.phys == mad.PortPhysicalStateLinkUp:
		return 1
	}
	return 0
}

// best is the first of the highest rank. InfiniBand goes first; RoCE does only
// on a device that was named, never by accident.
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

// partner is the other port of an SMI/GSI pair: it has the same GUID on another
// device, and one of the two only admits a subnet manager (rdma-core,
// libibumad: umad_get_smi_gsi_pairs).
func partner(p port, all []port) *port {
	return best(slices.DeleteFunc(slices.Clone(all), func(other port) bool {
		return p.guid == 0 || p.guid != other.guid || p.ethernet || other.ethernet || other.umad == "" ||
			p.smDisabled == other.smDisabled
	}), false, port.rank)
}

// listed says how to see what a port can be called.
const listed = "; to list them: fabsh ports"

// noSuchPort: nothing is called what o says.
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
		return fmt.Errorf("no device has a port %d: there are %s%s", o.Port, names(all), listed)
	case ports == nil:
		return fmt.Errorf("no device %s: there is %s%s", o.Device, strings.Join(devices, ", "), listed)
	}
	return fmt.Errorf("%s has no port %d: it has %s%s", o.Device, o.Port, strings.Join(ports, ", "), listed)
}

// noUsablePort says what state the ports are in.
func noUsablePort(ports []port) error {
	return fmt.Errorf("no InfiniBand port is up: %s; see to cable and switch, or name a device to use it all the same (-C)%s", names(ports), listed)
}

// names lists ports with what matters to the choice.
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
