package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindCache is a cache of libibnetdisc.
const KindCache FormatName = "ibnetdiscover-cache"

var ibnetdiscoverCache = fileFormat{
	kind:  KindCache,
	about: "a cache of ibnetdiscover (--cache)",
	file:  "`ibnetdiscover --cache`",
	sniff: beginsFile(cacheMagic),
	load:  loadCache,
}

// cacheMagic is the first word of a cache, little-endian (rdma-core
// libibnetdisc/ibnetdisc_cache.c, IBND_FABRIC_CACHE_MAGIC).
const cacheMagic = "\x2b\x83\xe7\x8f"

// loadCache reads what ibnetdiscover --cache writes (rdma-core
// libibnetdisc/ibnetdisc_cache.c, version 1): a header, nodes, ports, all
// numbers little-endian.
func loadCache(in io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	r := cacheReader{Reader: bufio.NewReader(in), name: name, b: fabric.NewBuilder(), nodes: map[mad.GUID]cacheNode{}, ports: map[cacheKey]cachePort{}}
	head := r.next(28)
	version, nodes, ports := le.Uint32(head[4:]), int(le.Uint32(head[8:])), int(le.Uint32(head[12:]))
	start := mad.GUID(le.Uint64(head[16:]))
	if r.err == nil && version != 1 {
		r.fail("version 1, not %d", version)
	}
	total := 0
	for range nodes {
		if total += r.node(); r.err != nil {
			return nil, r.err
		}
		if want := tooManyPorts(total, r.at); want != "" {
			r.fail("%s", want)
		}
		if len(r.nodes) > maxNodes {
			r.fail("at most %d nodes", maxNodes)
		}
	}
	for range ports {
		if r.port(); r.err != nil {
			return nil, r.err
		}
	}
	r.links()
	if from, ok := r.nodes[start]; ok {
		num := 0
		if from.info.NodeType != mad.NodeTypeSwitch {
			num = int(from.info.LocalPortNum)
		}
		r.b.SetFrom(from.handle, num)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.b.Build(), nil
}

var le = binary.LittleEndian

// cacheReader keeps the first error, and then reads zeros.
type cacheReader struct {
	*bufio.Reader
	name  string
	at    int64 // bytes read
	b     *fabric.Builder
	nodes map[mad.GUID]cacheNode
	ports map[cacheKey]cachePort
	order []cacheKey // of ports
	err   error
	buf   [256]byte
}

type cacheNode struct {
	handle int
	info   mad.NodeInfo
}

// cacheKey is the key of a port: its port GUID, which is one for all ports of a
// switch, and its number.
type cacheKey struct {
	guid mad.GUID
	num  int
}

type cachePort struct {
	node int
	peer cacheKey
	far  bool // it has a peer
}

func (r *cacheReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: expected %s before byte %d of a cache of ibnetdiscover", r.name, fmt.Sprintf(format, args...), r.at)
	}
}

// next reads n bytes, which are valid until the next call.
func (r *cacheReader) next(n int) []byte {
	b := r.buf[:n]
	clear(b)
	if r.err != nil {
		return b
	}
	got, err := io.ReadFull(r.Reader, b)
	r.at += int64(got)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.fail("more: the file is cut short")
	default:
		r.err = fmt.Errorf("%s: after byte %d: %w", r.name, r.at, err)
	}
	return b
}

// node reads a node, and returns how many ports it has, a switch's port 0
// included.
func (r *cacheReader) node() int {
	b := r.next(207)
	var s fabric.NodeSpec
	s.Info.Decode(b[78:142])
	name, _, _ := bytes.Cut(b[142:206], []byte{0})
	s.Name = string(name)
	if s.Info.NodeType == mad.NodeTypeSwitch {
		s.Switch = new(mad.SwitchInfo)
		s.Switch.Decode(b[4:68])
	}
	keys := int(b[206])
	switch {
	case r.err != nil:
		return 0
	case s.Info.NodeGUID != mad.GUID(le.Uint64(b[68:])) || s.Info.NumPorts != b[77]:
		r.fail("NodeInfo with the GUID and the ports that its node has")
		return 0
	case s.Info.NumPorts > maxPorts:
		r.fail("at most %d ports", maxPorts)
		return 0
	}
	if _, ok := r.nodes[s.Info.NodeGUID]; ok {
		r.fail("one node with GUID %s", s.Info.NodeGUID)
		return 0
	}
	r.nodes[s.Info.NodeGUID] = cacheNode{r.b.AddNode(s), s.Info}
	for range keys { // the port's own record has its node, too
		r.next(9)
	}
	return int(s.Info.NumPorts) + 1
}

// port reads a port.
func (r *cacheReader) port() {
	b := r.next(95)
	if r.err != nil {
		return
	}
	key := cacheKey{mad.GUID(le.Uint64(b)), int(b[8])}
	n, ok := r.nodes[mad.GUID(le.Uint64(b[77:]))]
	if !ok || key.num > int(n.info.NumPorts) {
		r.fail("a port of one of the nodes")
		return
	}
	if _, ok := r.ports[key]; ok {
		r.fail("one port %d with GUID %s", key.num, key.guid)
		return
	}
	var info mad.PortInfo
	info.Decode(b[13:77])
	r.b.SetPort(n.handle, key.num, &info)
	if n.info.NodeType != mad.NodeTypeSwitch || key.num == 0 {
		r.b.SetPortGUID(n.handle, key.num, key.guid)
	}
	r.ports[key] = cachePort{n.handle, cacheKey{mad.GUID(le.Uint64(b[86:])), int(b[94])}, b[85] != 0}
	r.order = append(r.order, key)
}

// links connects the ports, once all are read.
func (r *cacheReader) links() {
	for _, key := range r.order {
		p := r.ports[key]
		if !p.far {
			continue
		}
		q, ok := r.ports[p.peer]
		if !ok {
			r.fail("port %d with GUID %s, to which port %d with GUID %s is connected", p.peer.num, p.peer.guid, key.num, key.guid)
			return
		}
		if err := r.b.Link(p.node, key.num, q.node, p.peer.num); err != nil {
			r.fail("ports that are free: %v", err)
			return
		}
	}
}
