package mad

import (
	"fmt"
	"slices"
	"strings"
)

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
