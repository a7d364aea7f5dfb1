package mad

import (
	"encoding/binary"
	"slices"
)

// Effect is the effect of a request on the fabric.
type Effect uint8

const (
	EffectRead    Effect = iota // none: the request only reads
	EffectSession               // on the requester's own session, such as its subscriptions
	EffectFabric                // on the fabric, or unknown
)

// String returns the effect as a word.
func (e Effect) String() string {
	switch e {
	case EffectRead:
		return "read"
	case EffectSession:
		return "session"
	}
	return "fabric"
}

// vendorFirst is the first attribute ID that vendors define, in all classes
// (IBA 13.4.8).
const vendorFirst AttributeID = 0xff00

// EffectOf returns the effect of a request. Only requests that are known to be
// harmless have less than EffectFabric: unknown classes, versions and attributes,
// methods that the attribute does not have, and vendors' requests are
// EffectFabric. The ACK, STOP and ABORT of an RMPP transfer carry the method of
// its request, and so have its effect. A subscription (InformInfo) stays with the
// subnet manager until it is ended: it is EffectSession only in a call that
// declares this to the engine.
func EffectOf(c Class, version uint8, m Method, id AttributeID) Effect {
	if c == ClassSubnAdm && m == MethodReportResp && slices.Contains(c.versions(), version) {
		return EffectSession
	}
	a := LookupVersion(c, version, id)
	if c == ClassSubnAdm && version == 1 {
		if a == nil {
			a = Lookup(c, id) // in both versions
		}
		if a != nil && slices.Contains(a.Methods1, m) && (m == MethodGet || m == MethodGetTable || m == MethodGetBulk) {
			return EffectRead
		}
		return EffectFabric
	}
	if a == nil {
		return EffectFabric
	}
	return a.Effect(m)
}

// EffectOfMAD returns the effect of request m, a whole MAD. EffectOf is valid for
// MADs with a header by the specification. The effect of others on agents is
// unknown, and so they are EffectFabric.
func EffectOfMAD(m []byte) Effect {
	h := ParseHeader(m)
	directed := h.Class == ClassSubnDirected
	switch {
	case m[BaseVersionOffset] != 1,
		binary.BigEndian.Uint16(m[StatusOffset:]) != 0, // D, with directed routes
		m[HopPointerOffset] != 0,
		m[HopCountOffset] != 0 && !directed, m[HopCountOffset] > MaxHops,
		binary.BigEndian.Uint16(m[18:]) != 0,                                    // reserved
		directed && binary.BigEndian.Uint32(m[SMPDrSLIDOffset:]) != 0xffff_ffff: // DrDLID too
		return EffectFabric
	}
	if registerUseOf(m) == registerQuery && h.ClassVersion == 1 {
		return EffectRead
	}
	return EffectOf(h.Class, h.ClassVersion, h.Method, h.Attribute)
}

// Effect returns the effect of method m on the attribute. A Get alone may change
// a vendor's device: one takes a semaphore, another clears a log.
func (a *Attribute) Effect(m Method) Effect {
	if !a.SafeGet && (a.Class.IsVendor() || a.ID >= vendorFirst && !a.Confirmed) {
		return EffectFabric
	}
	switch m {
	case MethodGet, MethodGetTable, MethodGetMulti, MethodGetTraceTable:
		if slices.Contains(a.Methods, m) {
			return EffectRead
		}
	}
	return EffectFabric
}
