package engine

import (
	"encoding/binary"
	"fmt"
	"io"

	"fabsh/mad"
)

// Keys authorize requests. The engine puts them in datagrams for the transport, and
// removes them from answers: neither a Call nor anything made from it has them. A
// request with its own key keeps it. 0 is no key. The keys of an engine must not be
// changed.
type Keys struct {
	// M is the M_Key of all ports that are not in Ports.
	M uint64
	// Ports are M_Keys, by GUIDs of ports or of nodes.
	Ports map[mad.GUID]uint64
	// SM is the SM_Key of the subnet managers, in SMInfo.
	SM uint64
	// SA is the SM_Key of requests to subnet administration.
	SA uint64
	// CC, B and Vendor are the keys of congestion control, of baseboard
	// management and of vendor class 0x0a.
	CC, B, Vendor uint64
}

// Guard selects the M_Key of an SMP: by the port it goes to, and that port's node.
// Unknown GUIDs are 0.
type Guard struct{ Port, Node mad.GUID }

// Of returns the M_Key of an SMP to g's port.
func (k *Keys) Of(g Guard) uint64 {
	if k == nil {
		return 0
	}
	for _, guid := range []mad.GUID{g.Port, g.Node} {
		if key, ok := k.Ports[guid]; ok {
			return key
		}
	}
	return k.M
}

// mayGoTo reports whether a request to the agent at asked may have its key at to, where
// that agent redirects it. A redirection may be forged to get the key: so to must be a
// queue pair of the agent's own port, or a port whose GUID is in the keys, at the LID
// that the subnet administrator reports.
func (k *Keys) mayGoTo(asked *Address, to *redirectTarget) bool {
	if to.LID == asked.LID && (!asked.HasGRH || to.HasGRH && to.GID == asked.GID) {
		return true
	}
	return to.confirmed && k.names(&to.Address)
}

// names reports whether the port at a is in the keys.
func (k *Keys) names(a *Address) bool {
	if k == nil || !a.HasGRH {
		return false
	}
	_, named := k.Ports[a.GID.GUID()]
	return named
}

// Format keeps the keys out of printed text.
func (k Keys) Format(s fmt.State, _ rune) { io.WriteString(s, "keys, not shown") }

// ofClass returns the key of class c's MADs.
func (k *Keys) ofClass(c mad.Class, g Guard) uint64 {
	switch c.Family() {
	case mad.ClassSubn:
		return k.Of(g)
	case mad.ClassSubnAdm:
		return k.SA
	case mad.ClassCongestion:
		return k.CC
	case mad.ClassBM:
		return k.B
	case mad.ClassVendor0A:
		return k.Vendor
	}
	return 0
}

// put puts the key in request m, unless it has one.
func (k *Keys) put(m []byte, g Guard) {
	if k == nil {
		return
	}
	h := mad.ParseHeader(m)
	if at := mad.KeyOffset(h); at > 0 {
		putIfNone(m[at:], k.ofClass(h.Class, g))
	}
	// A subnet manager accepts only its equals (opensm osm_sminfo_rcv.c, sm_key).
	if h.Class.Family() == mad.ClassSubn && h.Attribute == mad.AttrSMInfo.ID && h.Method == mad.MethodSet {
		putIfNone(m[mad.SMPDataOffset+mad.AttrSMInfo.Field("sm_key").Offset/8:], k.SM)
	}
}

// dropKey removes the key from request m, even its own.
func dropKey(m []byte) {
	if at := mad.KeyOffset(mad.ParseHeader(m)); at > 0 {
		clear(m[at:][:8])
	}
}

func putIfNone(b []byte, key uint64) {
	if binary.BigEndian.Uint64(b) == 0 {
		binary.BigEndian.PutUint64(b, key)
	}
}

// remove removes the key from response m: agents return it unchanged.
func (k *Keys) remove(m []byte, g Guard) {
	if k == nil {
		return
	}
	h := mad.ParseHeader(m)
	if at := mad.KeyOffset(h); at > 0 && binary.BigEndian.Uint64(m[at:]) == k.ofClass(h.Class, g) {
		clear(m[at:][:8])
	}
}
