package mad

import "slices"

// Effect is what a request does to the fabric.
type Effect uint8

const (
	EffectRead    Effect = iota // nothing: it only asks
	EffectSession               // it concerns the asker alone, and ends with it
	EffectFabric                // it changes, or may change, what others see
)

// String is the effect in a word.
func (e Effect) String() string {
	switch e {
	case EffectRead:
		return "read"
	case EffectSession:
		return "session"
	}
	return "fabric"
}

// From here on attributes are the vendor's, in all classes (IBA 13.4.8).
const vendorFirst AttributeID = 0xff00

// EffectOf says what a request does. Whatever is not known to be harmless
// counts as EffectFabric: unknown classes, versions and attributes, methods
// that the attribute does not have, and vendors' requests. The ACK, STOP and
// ABORT of an RMPP transfer carry the method of its request, and so have its
// effect. A subscription (InformInfo) stays with the subnet manager until its end
// is asked for: of EffectSession is only one of who sees to that.
func EffectOf(c Class, version uint8, m Method, id AttributeID) Effect {
	if c == ClassSubnAdm && m == MethodReportResp && slices.Contains(c.versions(), version) {
		return EffectSession
	}
	a := LookupVersion(c, version, id)
	if c == ClassSubnAdm && version == 1 {
		if a == nil {
			a = Lookup(c, id) // it is in both versions
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

// Effect says what method m does to the attribute. Even to be asked may change
// a vendor's device: a Get takes its semaphore, or empties its log.
func (a *Attribute) Effect(m Method) Effect {
	if a.Class.IsVendor() || a.ID >= vendorFirst && !a.Confirmed {
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
