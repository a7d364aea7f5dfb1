package mad

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// LID is a local identifier: 1..0xBFFF unicast, 0xC000..0xFFFE multicast (IBA 4.1.3).
type LID uint16

const (
	PermissiveLID   LID = 0xffff // of directed-route SMPs (IBA 14.2.2)
	MaxUnicastLID   LID = 0xbfff
	MinMulticastLID LID = 0xc000
)

// GUID is an EUI-64.
type GUID uint64

// String returns the canonical form: 0x and 16 lower-case digits.
func (g GUID) String() string { // without fmt: scripts read the GUIDs of all ports
	const digits = "0123456789abcdef"
	b := [...]byte{0: '0', 1: 'x', 17: 0}
	for i := len(b) - 1; i > 1; i-- {
		b[i] = digits[g&15]
		g >>= 4
	}
	return string(b[:])
}

// GID is a global identifier: subnet prefix and GUID (IBA 4.1.1).
type GID [16]byte

// MakeGID joins a subnet prefix and a GUID.
func MakeGID(prefix uint64, guid GUID) (g GID) {
	binary.BigEndian.PutUint64(g[:], prefix)
	binary.BigEndian.PutUint64(g[8:], uint64(guid))
	return g
}

// Prefix returns the subnet prefix, the upper 64 bits.
func (g GID) Prefix() uint64 { return binary.BigEndian.Uint64(g[:]) }

// GUID returns the interface identifier, the lower 64 bits.
func (g GID) GUID() GUID { return GUID(binary.BigEndian.Uint64(g[8:])) }

// String returns the text of RFC 5952.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// MaxHops is the longest directed route (IBA 14.2.1.2: hop count 0..63).
const MaxHops = 63

// DirectedRoute is the path of a directed-route SMP from the local node:
// element 0 is 0, element i is the exit port of hop i.
type DirectedRoute []uint8

// Hops returns the number of links crossed.
func (r DirectedRoute) Hops() int { return max(0, len(r)-1) }

// Append returns a new route that continues through port.
func (r DirectedRoute) Append(port uint8) DirectedRoute {
	return append(r[:len(r):len(r)], port)
}

// Compare orders routes by their length, then by their ports.
func (r DirectedRoute) Compare(other DirectedRoute) int {
	return cmp.Or(cmp.Compare(len(r), len(other)), slices.Compare(r, other))
}

// String returns the form that infiniband-diags uses: "0,1,3".
func (r DirectedRoute) String() string {
	var b strings.Builder
	for i, p := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(p)))
	}
	return b.String()
}

// ParseRoute reads "0,1,3".
func ParseRoute(s string) (DirectedRoute, error) {
	parts := strings.Split(s, ",")
	r := make(DirectedRoute, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(strings.TrimSpace(p), 10, 8)
		if err != nil {
			return nil, fmt.Errorf("directed route %q: element %d is not a port number 0..255", s, i)
		}
		r[i] = uint8(n)
	}
	if r[0] != 0 {
		return nil, fmt.Errorf("directed route %q: element 0 stands for this node and must be 0", s)
	}
	if r.Hops() > MaxHops {
		return nil, fmt.Errorf("directed route %q: %d hops, more than %d", s, r.Hops(), MaxHops)
	}
	for i, p := range r[1:] {
		if p == 0 {
			return nil, fmt.Errorf("directed route %q: element %d is port 0, which leads nowhere", s, i+1)
		}
	}
	return r, nil
}

// GeneralQKey is the Q_Key of all queue pairs 1 (IBA 3.5.3; Linux ib_mad.h,
// IB_QP1_QKEY).
const GeneralQKey = 0x80010000

// DefaultPKey is the P_Key of the default partition's full members, which
// management uses (IBA 10.9.1.2).
const DefaultPKey = 0xffff
