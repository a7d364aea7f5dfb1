package umad

import (
	"cmp"
	"errors"
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
	// Model is the type of the adapter ("MT4129"), Board the ID of its board
	// ("MT_0000000838"), and System its SystemImageGUID; "" and 0 if unknown.
	Model, Board string
	System       mad.GUID
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
	h.System, _ = s.guid(path.Join(folder, "sys_image_guid"))
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
