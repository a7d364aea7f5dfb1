package mad

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
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
		binary.BigEndian.Uint16(m[18:]) != 0, // reserved
		directed && !validRouteLIDs(m):
		return EffectFabric
	}
	if registerUseOf(m) == registerQuery && h.ClassVersion == 1 {
		return EffectRead
	}
	if a := Lookup(h.Class, h.Attribute); h.Class.HasOUI() && (a == nil || a.OUI != uint32(m[VendorOUIOffset])<<16|uint32(binary.BigEndian.Uint16(m[VendorOUIOffset+1:]))) {
		return EffectFabric // of another vendor
	}
	return EffectOf(h.Class, h.ClassVersion, h.Method, h.Attribute)
}

// validRouteLIDs reports whether the directed route of m is alone, or begins at a LID: DrSLID is
// permissive or the sender's, and DrDLID permissive (IBA 14.2.2).
func validRouteLIDs(m []byte) bool {
	source := LID(binary.BigEndian.Uint16(m[SMPDrSLIDOffset:]))
	return binary.BigEndian.Uint16(m[SMPDrDLIDOffset:]) == uint16(PermissiveLID) &&
		(source == PermissiveLID || source != 0 && source <= MaxUnicastLID)
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

// Allowed returns an error if a request is not in the specification: the class
// does not have the version or the method, or the attribute does not have the
// method (for SubnAdm version 1: Shanley, InfiniBand Network Architecture, table
// 33-5). It allows what the tables do not describe: classes and attributes of
// vendors, and those without a table.
func Allowed(c Class, version uint8, m Method, id AttributeID) error {
	if c.IsVendor() {
		return nil
	}
	info, ok := MethodOf(c, version, m&^Response)
	switch {
	case !hasTables(c):
		return nil
	case !slices.Contains(c.versions(), version):
		return fmt.Errorf("class %v: unknown version %d; known: %s", c, version, versionWords(c))
	case !ok:
		return fmt.Errorf("class %v version %d: unknown method %#02x; known: %s", c, version, uint8(m&^Response), methodWords(methodsOf(c, version)))
	case m.IsResponse() && !info.Answered && m != MethodGetResp:
		return fmt.Errorf("%s has no answer", info.Name)
	case m.IsResponse():
		return nil
	}
	a := LookupVersion(c, version, id)
	if a == nil && c == ClassSubnAdm {
		a = Lookup(c, id) // of the other version
	}
	if a == nil {
		return nil
	}
	methods := a.MethodsIn(version)
	if slices.Contains(methods, m) {
		return nil
	}
	what := fmt.Sprintf("%v%s(%s)", c.Family(), info.Name, a.Name)
	if len(methods) == 0 {
		return fmt.Errorf("%s: version %d of the class has no %s", what, version, a.Name)
	}
	var infos []MethodInfo
	for _, m := range methods {
		info, _ := MethodOf(c, version, m)
		infos = append(infos, info)
	}
	return fmt.Errorf("%s: not in the specification; methods of %s: %s", what, a.Name, methodWords(infos))
}

// MethodsIn returns the methods of the attribute in a version of its class.
func (a *Attribute) MethodsIn(version uint8) []Method {
	switch {
	case a.Class == ClassSubnAdm && version == 1:
		return a.Methods1
	case version == a.Version:
		return a.Methods
	}
	return nil
}

// hasTables reports whether attributes of the class are known.
func hasTables(c Class) bool {
	return slices.ContainsFunc(attributes, func(a *Attribute) bool { return a.Class == c.Family() })
}

// versions returns the versions of the class that the tables describe.
func (c Class) versions() []uint8 {
	if c == ClassSubnAdm {
		return []uint8{1, 2}
	}
	return []uint8{c.Version()}
}

func versionWords(c Class) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.versions()), " ", " and "), "[]")
}

func methodWords(list []MethodInfo) string {
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}
