package umad

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// HostPort is a port of the host as the kernel shows it.
type HostPort struct {
	engine.Port
	// Link is the kind of network: "infiniband", "roce" or "iwarp".
	Link          string
	PhysicalState mad.PortPhysicalState
	// Gbps is the data rate in Gb/s, Width and Speed are "4x" and "edr"; 0 and ""
	// if the kernel does not report them.
	Gbps         float64
	Width, Speed string
	// Role is the management datagrams that it sends: "smi" only those of subnet
	// management, "gsi" only the others, "both"; "" if ib_umad does not serve it.
	Role string
	// Pair is the port that sends the others: "smi1/2", or "".
	Pair string
	// Planes are the planes of a planarized adapter (XDR): of the port for all other
	// datagrams each, of a port for subnet management its own. Empty: not planarized.
	Planes []int
	// Umad is its device: "umad0"; "" if ib_umad does not serve it.
	Umad     string
	Firmware string
	// Model is the type of the adapter ("MT4129"), Hardware its revision ("0"), Board the
	// ID of its board ("MT_0000000838"), and System its SystemImageGUID; "" and 0 if unknown.
	Model, Hardware, Board string
	System                 mad.GUID
	// Capabilities is PortInfo.CapabilityMask; 0 if unknown.
	Capabilities mad.CapabilityMask
	// Default is set if the port is used when no port is named.
	Default bool
	// Unusable is why management datagrams cannot be sent through the port; "": they can.
	Unusable string
	// Err is why the files of the port are invalid, in the result of AllPorts: then only
	// its device and number are known, and number 0 is a device whose ports are unknown.
	Err error
}

// HostPorts lists the ports of the host, sorted by number within a device. sys is the
// root of the files, as in Options. If the error is about ib_umad, the ports are also
// returned. It opens no device.
func HostPorts(sys fs.FS) (list []HostPort, err error) {
	list, err = AllPorts(sys)
	// The others have just been removed.
	return slices.DeleteFunc(list, func(h HostPort) bool { return h.Err != nil }), err
}

// AllPorts is HostPorts with the ports whose files are invalid, which come last.
func AllPorts(sys fs.FS) (list []HostPort, err error) {
	s := newSysfs(sys)
	umads, noUmad := s.umads()
	var all []port
	var bad []HostPort
	err = s.eachPort(umads, func(p port, err error) {
		if err != nil {
			bad = append(bad, invalid(p, err))
			return
		}
		all = append(all, p)
	})
	if err != nil {
		return nil, err
	}
	access := accessDevice
	if sys != nil {
		access = func(string) error { return nil }
	}
	return append(s.hostPorts(all, access), bad...), noUmad
}

// ActivePorts returns the InfiniBand ports of the host that are ACTIVE and carry
// management datagrams, as DEVICE/PORT. A planarized adapter shows one port as two;
// the list has the one for subnet management. sys is the root of the files, as in
// Options.
func ActivePorts(sys fs.FS) ([]string, error) {
	all, err := newSysfs(sys).ports()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if !p.ethernet && p.umad != "" && !p.smDisabled && p.rank() == 2 {
			names = append(names, p.String())
		}
	}
	return names, nil
}

// invalid returns a port whose files are invalid.
func invalid(p port, err error) HostPort {
	return HostPort{Port: engine.Port{Device: p.device, Num: uint8(p.num)}, Err: err}
}

// hostPorts describes ports. access reports whether this process may open a file.
func (s sysfs) hostPorts(all []port, access func(path string) error) (list []HostPort) {
	var usable []port
	var bad []HostPort
	for _, p := range all {
		h, err := s.hostPort(p, all)
		if err != nil {
			bad = append(bad, invalid(p, err))
			continue
		}
		if h.Unusable = unusable(p, h.Link, access); h.Unusable == "" {
			usable = append(usable, p)
		}
		list = append(list, h)
	}
	gsi, smi, none := choose(usable, Options{})
	for i := range list {
		h := &list[i]
		is := func(p port) bool { return h.Device == p.device && int(h.Num) == p.num }
		h.Default = none == nil && (is(gsi) || is(smi))
	}
	return append(list, bad...)
}

// unusable is HostPort.Unusable of a port in a network.
func unusable(p port, network string, access func(path string) error) string {
	err := error(nil)
	if p.umad != "" {
		err = access(p.path())
	}
	switch {
	case network != "infiniband":
		return "not InfiniBand"
	case p.umad == "":
		return "no ib_umad"
	case errors.Is(err, fs.ErrPermission):
		return "no permission"
	case errors.Is(err, fs.ErrNotExist):
		return "no " + p.path()
	case err != nil:
		return err.Error()
	}
	return ""
}

func (s sysfs) hostPort(p port, all []port) (h HostPort, err error) {
	if h.Port, err = s.facts(p); err != nil {
		return h, err
	}
	h.State, h.PhysicalState, h.Umad, h.Link = p.state, p.phys, p.umad, "infiniband"
	kind, _ := s.uint(path.Join(deviceClass, p.device, "node_type"))
	switch {
	case kind == nodeTypeRNIC:
		h.Link = "iwarp"
	case p.ethernet:
		h.Link = "roce"
	}
	folder := path.Join(deviceClass, p.device)
	h.Firmware, h.Model, h.Board = s.word(path.Join(folder, "fw_ver")), s.word(path.Join(folder, "hca_type")), s.word(path.Join(folder, "board_id"))
	h.Hardware = s.word(path.Join(folder, "hw_rev"))
	h.System, _ = s.guid(path.Join(folder, "sys_image_guid"))
	capabilities, _ := s.uint(path.Join(p.folder(), "cap_mask"))
	h.Capabilities = mad.CapabilityMask(capabilities)
	rate, _ := s.text(path.Join(p.folder(), "rate"))
	h.Gbps, h.Width, h.Speed = ParseRate(rate)
	gsi, smi := p.pair(all)
	switch {
	case p.umad == "":
	case gsi == smi && (p.smDisabled || h.Link != "infiniband"), gsi != smi && p == gsi:
		h.Role = "gsi"
	case gsi != smi:
		h.Role = "smi"
	default:
		h.Role = "both"
	}
	switch {
	case gsi == smi:
	case p == gsi:
		h.Pair = smi.String()
		for _, q := range all {
			if q.device == smi.device && q.guid == p.guid {
				h.Planes = append(h.Planes, q.num)
			}
		}
	default:
		h.Pair, h.Planes = gsi.String(), []int{p.num}
	}
	return h, nil
}

// nodeTypeRNIC is the kernel's number for an iWARP adapter (linux
// include/rdma/ib_verbs.h RDMA_NODE_RNIC).
const nodeTypeRNIC = 4

// ParseRate reads a rate as the kernel writes it: "100 Gb/sec (4X EDR)" (linux
// drivers/infiniband/core/sysfs.c rate_show).
func ParseRate(text string) (gbps float64, width, speed string) {
	number, rest, _ := strings.Cut(text, " Gb/sec")
	gbps, err := strconv.ParseFloat(number, 64)
	if err != nil || !(gbps > 0 && gbps < 1e6) {
		return 0, "", ""
	}
	words := strings.Fields(strings.ToLower(strings.Trim(rest, " ()")))
	if len(words) == 0 || mad.WidthLanes(words[0]) == 0 {
		return gbps, "", ""
	}
	// Without a word, as at 2.5 Gb/s a lane, it is SDR.
	speed = cmp.Or(strings.Join(words[1:], ""), "sdr")
	if mad.SpeedGbps(speed) == 0 {
		speed = ""
	}
	return gbps, words[0], speed
}

// choose finds the port for o, as infiniband-diags do: the one named, otherwise
// the first that is ACTIVE, otherwise the first whose link is up. Of a planarized
// adapter it finds the SMI/GSI pair; otherwise gsi and smi are equal. With an error, the
// ports are set if ib_umad does not serve them.
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

// partner returns the other port of an SMI/GSI pair: it has p's GUID on another
// device, and only one of the two allows a subnet manager (rdma-core, libibumad:
// umad_get_smi_gsi_pairs).
func partner(p port, all []port) *port {
	return best(slices.DeleteFunc(slices.Clone(all), func(other port) bool {
		return p.guid == 0 || p.guid != other.guid || p.ethernet || other.ethernet || other.umad == "" ||
			p.smDisabled == other.smDisabled
	}), false, port.rank)
}

// listHint is how to see the names of ports.
const listHint = "; fabsh ports lists them"

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
		return fmt.Errorf("port %d: unknown; ports: %s%s", o.Port, names(all), listHint)
	case ports == nil:
		return fmt.Errorf("device %s: unknown; devices: %s%s", o.Device, strings.Join(devices, ", "), listHint)
	}
	return fmt.Errorf("device %s: unknown port %d; ports: %s%s", o.Device, o.Port, strings.Join(ports, ", "), listHint)
}

// noUsablePort returns an error with the states of the ports.
func noUsablePort(ports []port) error {
	return fmt.Errorf("no InfiniBand port is up: %s; check cable and switch, or name a device to use it anyway (-C)%s", names(ports), listHint)
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
