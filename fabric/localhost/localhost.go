// Package localhost reads the ports of this host, as its kernel shows them, and the names
// of their neighbours. It needs no subnet manager, and changes nothing.
//
// Read returns a Host with its ports, as a fabric of its adapters and their neighbours, whose
// names come by directed-route SMPs. An Expected is what the ports of one model should be, from
// a text, a file, or the manifest of GCM. A Host is immutable and safe for concurrent use.
package localhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
)

// ReadOptions are the settings of Read. The zero value is usable.
type ReadOptions struct {
	// FS is the root of the files, which has sys/class/infiniband; nil: the host's.
	FS fs.FS
	// Open opens a port for SMPs; nil: its umad device.
	Open func(umad.HostPort) (engine.Transport, error)
	// Timeout and Retries apply to SMPs; 0: 100 ms, and the engine's number.
	Timeout time.Duration
	Retries int
	// Limit is the longest time for all files and all SMPs; 0: 5 s.
	Limit time.Duration
	// Name is the name of the host; "": the kernel's.
	Name string
}

const (
	defaultLimit   = 5 * time.Second
	defaultTimeout = 100 * time.Millisecond
)

// Host is what was read of this host. It is immutable.
type Host struct {
	Name  string
	Began time.Time
	Ports []HostPort
	// Domain is the NVLink domain of its GPUs, ClusterUUID.CliqueID; "": unknown, or it is in none.
	Domain string
	// Fabric has an adapter of the host as a node with the name of the device, and the
	// neighbours that answered, with their links.
	Fabric *fabric.Fabric
}

// PCI is the PCIe device of an adapter, VirtualFunction a virtual function of it.
type (
	PCI             = umad.PCI
	VirtualFunction = umad.VirtualFunction
)

// HostPort is a port of the host.
type HostPort struct {
	umad.HostPort
	// Port is the port in Fabric; nil if Err is set.
	Port *fabric.Port
	// PCI is the PCIe device of the adapter.
	PCI PCI
	// Counters are its counters, unless CountersErr is the reason why they are unknown.
	Counters    umad.PortCounters
	CountersErr error
	// NeighborRequested reports whether its neighbour was asked for its name. NeighborErr is why it is
	// unknown: nil if it was read, or the link is down.
	NeighborRequested bool
	NeighborErr       error
}

// Name returns the name of the port: "mlx5_0/1", or the name of a device whose ports are
// unknown.
func (p *HostPort) Name() string {
	if p.Err != nil && p.Num == 0 {
		return p.Device
	}
	return fmt.Sprintf("%s/%d", p.Device, p.Num)
}

// String returns the host in one line.
func (h *Host) String() string {
	n := 0
	for i := range h.Ports {
		if h.Ports[i].Link == "infiniband" {
			n++
		}
	}
	text := fmt.Sprintf("host %s: %s, %s", h.Name, plural.Count(len(h.Ports), "port", "ports"), plural.Count(n, "of InfiniBand", "of InfiniBand"))
	if h.Domain != "" {
		text += "; NVLink domain " + h.Domain
	}
	return text
}

// Subnet returns the name under which acknowledgements and state of the host are kept.
func (h *Host) Subnet() string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, h.Name)
	return "host-" + name[:min(len(name), 59)]
}

// errLate is the error of what did not end in time.
var errLate = errors.New("not read in time")

// Read reads the ports of the host, whatever their states: none without a device. Files and
// devices that do not answer are left behind at the limit.
func Read(ctx context.Context, o ReadOptions) (*Host, error) {
	limit := cmp.Or(o.Limit, defaultLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", errLate, limit))
	defer cancel()
	h := &Host{Name: o.Name, Began: time.Now()}
	if h.Name == "" {
		h.Name, _ = os.Hostname()
	}
	if h.Name = printable(h.Name); h.Name == "" {
		h.Name = "localhost"
	}
	type listing struct {
		list []umad.HostPort
		err  error
	}
	list, ok := within(ctx, func() listing {
		list, err := umad.AllPorts(o.FS)
		return listing{list, err}
	})
	switch {
	case !ok:
		return nil, fmt.Errorf("/sys/class/infiniband: %w", context.Cause(ctx))
	case list.list == nil && !errors.Is(list.err, umad.ErrNoDevice):
		return nil, list.err
	}
	slices.SortStableFunc(list.list, func(a, b umad.HostPort) int {
		return cmp.Or(fabric.CompareNames(a.Device, b.Device), cmp.Compare(a.Num, b.Num))
	})
	// Each port has its own goroutine: a file or a device may block in the kernel.
	type result struct {
		i   int
		end neighbor
		HostPort
	}
	results := make(chan result, len(list.list))
	h.Ports = make([]HostPort, len(list.list))
	ends := make([]neighbor, len(list.list))
	waiting := 0
	for i, p := range list.list {
		h.Ports[i] = HostPort{HostPort: p, CountersErr: errLate, NeighborErr: errLate}
		if p.Err != nil {
			continue
		}
		waiting++
		go func() {
			r := result{i: i, HostPort: HostPort{HostPort: p}}
			r.PCI = umad.ReadPCI(o.FS, p.Device)
			r.Counters, r.CountersErr = umad.ReadCounters(o.FS, p.Device, int(p.Num))
			r.end, r.NeighborRequested, r.NeighborErr = o.neighbor(ctx, p, list.err)
			results <- r
		}()
	}
	for ; waiting > 0; waiting-- {
		r, ok := receive(ctx, results)
		if !ok {
			break
		}
		h.Ports[r.i], ends[r.i] = r.HostPort, r.end
	}
	h.build(ends)
	return h, nil
}

// within returns the result of f, which may never end; false: ctx ended before.
func within[T any](ctx context.Context, f func() T) (T, bool) {
	results := make(chan T, 1)
	go func() { results <- f() }()
	return receive(ctx, results)
}

func receive[T any](ctx context.Context, results <-chan T) (v T, ok bool) {
	select {
	case v = <-results:
		return v, true
	case <-ctx.Done():
	}
	select { // what is there nevertheless
	case v = <-results:
		return v, true
	default:
		return v, false
	}
}

// printable returns a name without control characters.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, name)
}

// build makes the fabric.
func (h *Host) build(ends []neighbor) {
	b := fabric.NewBuilder()
	nodes, most := map[string]int{}, map[string]uint8{}
	for i := range h.Ports {
		if p := &h.Ports[i]; p.Err == nil {
			most[p.Device] = max(most[p.Device], p.Num)
		}
	}
	node := make([]int, len(h.Ports))
	for i := range h.Ports {
		p := &h.Ports[i]
		if p.Err != nil {
			continue
		}
		n, ok := nodes[p.Device]
		if !ok {
			kind := mad.NodeTypeCA
			if p.Num == 0 {
				kind = mad.NodeTypeSwitch
			}
			n = b.AddNode(fabric.NodeSpec{Name: printable(p.Device), Info: mad.NodeInfo{
				NodeType: kind, NumPorts: most[p.Device], NodeGUID: p.NodeGUID, SystemImageGUID: p.System, PortGUID: p.PortGUID, LocalPortNum: p.Num,
			}})
			nodes[p.Device] = n
		}
		node[i] = n
		b.SetPortGUID(n, int(p.Num), p.PortGUID)
		if p.Link == "infiniband" {
			info := p.info()
			b.SetPort(n, int(p.Num), &info)
			b.SetFDR10(n, int(p.Num), p.Speed == "fdr10")
		}
	}
	neighbors := map[mad.GUID]int{}
	for i := range h.Ports {
		p, end := &h.Ports[i], ends[i]
		if p.Err != nil || !end.known {
			continue
		}
		n, ok := neighbors[end.info.NodeGUID]
		if !ok {
			n = b.AddNode(fabric.NodeSpec{Name: end.name, Info: end.info})
			neighbors[end.info.NodeGUID] = n
		}
		if err := b.Link(node[i], int(p.Num), n, int(end.info.LocalPortNum)); err != nil {
			p.NeighborErr = fmt.Errorf("%w: two ports report the same neighbour", err)
		}
	}
	h.Fabric = b.Build()
	for i := range h.Ports {
		p := &h.Ports[i]
		if p.Err != nil {
			continue
		}
		for _, n := range h.Fabric.NodeByName(printable(p.Device)) {
			if q := n.Port(int(p.Num)); q != nil && n.GUID() == p.NodeGUID && q.GUID() == p.PortGUID {
				p.Port = q
			}
		}
	}
}

// info is what the kernel shows of PortInfo.
func (p *HostPort) info() (i mad.PortInfo) {
	i.PortState, i.PortPhysicalState = p.State, p.PhysicalState
	i.LID, i.LMC, i.MasterSMLID, i.MasterSMSL, i.GIDPrefix = p.LID, p.LMC, p.SMLID, p.SMSL, p.GIDPrefix
	i.LinkWidthActive = mad.LinkWidth(mad.WordsLinkWidth.Code()[p.Width])
	speed := p.Speed
	if speed == "fdr10" {
		speed = "qdr"
	}
	i.LinkSpeedActive = mad.LinkSpeed(mad.WordsLinkSpeed.Code()[speed])
	i.LinkSpeedExtActive = mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code()[speed])
	i.LinkSpeedExtActive2 = mad.LinkSpeedExt2(mad.WordsLinkSpeedExt2.Code()[speed])
	// These announce the fields.
	i.CapabilityMask = mad.CapabilityMaskIsExtendedSpeedsSupported | mad.CapabilityMaskIsCapabilityMask2Supported
	i.CapabilityMask2 = mad.CapabilityMask2IsExtendedSpeeds2Supported
	return i
}

// neighbor is the port at the other end of a cable.
type neighbor struct {
	known bool
	info  mad.NodeInfo // LocalPortNum is the port
	name  string
}

// errNoUmad is why no SMP was sent.
var errNoUmad = errors.New("ib_umad does not serve the port")

// neighbor reads the name of the neighbour of p: two SMPs that travel one hop. unserved is
// why the kernel serves no port at all, or nil. asked is set if they were sent.
func (o *ReadOptions) neighbor(ctx context.Context, p umad.HostPort, unserved error) (end neighbor, asked bool, err error) {
	switch {
	case p.Link != "infiniband", p.PhysicalState != mad.PortPhysicalStateLinkUp, p.Role == "gsi", p.Num == 0:
		return end, false, nil
	case p.Umad == "" && o.Open == nil:
		return end, false, cmp.Or(unserved, errNoUmad)
	}
	open := o.Open
	if open == nil {
		open = func(p umad.HostPort) (engine.Transport, error) { return umad.OpenPort(o.FS, p) }
	}
	t, err := open(p)
	if err != nil {
		return end, false, err
	}
	e := engine.New(t, engine.Options{Timeout: cmp.Or(o.Timeout, defaultTimeout), Retries: o.Retries})
	defer e.Close()
	var info, name engine.Call
	for _, c := range []struct {
		call *engine.Call
		attr *mad.Attribute
	}{{&info, mad.AttrNodeInfo}, {&name, mad.AttrNodeDescription}} {
		c.call.PutSMP(mad.MethodGet, c.attr.ID, 0, nil)
		c.call.SetRoute(mad.DirectedRoute{0, p.Num})
	}
	if err := e.Do(ctx, &info, &name); err != nil {
		return end, true, err
	}
	if err := cmp.Or(info.Err, name.Err); err != nil {
		return end, true, err
	}
	end.info.Decode(info.Data())
	if end.info.LocalPortNum == 0 || end.info.LocalPortNum > end.info.NumPorts || end.info.NodeGUID == 0 || end.info.NumPorts == 255 {
		return neighbor{}, true, fmt.Errorf("the neighbour sent an invalid NodeInfo: GUID %v, port %d of %d", end.info.NodeGUID, end.info.LocalPortNum, end.info.NumPorts)
	}
	var text mad.NodeDescription
	text.Decode(name.Data())
	end.name, end.known = text.String(), true
	return end, true, nil
}
