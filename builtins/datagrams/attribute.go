package datagrams

import (
	"fmt"
	"slices"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// AttributeNames lists the attributes of the current version of a class, in the order of
// their numbers.
func AttributeNames(class mad.Class) []string {
	var names []string
	for _, a := range mad.Attributes() {
		if a.Class.Family() == class.Family() && a.Version == class.Version() {
			names = append(names, a.Name)
		}
	}
	return names
}

// AllAttributeNames lists the attributes of all classes, with their other names.
func AllAttributeNames() []string {
	var names []string
	for _, a := range mad.Attributes() {
		names = append(append(names, a.Name), a.Aliases...)
	}
	return names
}

// OtherAttributeNames lists the attributes of the classes without their own builtins,
// for mad_get.
func OtherAttributeNames() []string {
	var names []string
	for _, a := range mad.Attributes() {
		if getterOf(a.Class) == "mad_get" && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// attributeOf returns the attribute of a class that the argument attr names.
func attributeOf(class mad.Class, name string) (*mad.Attribute, error) {
	a, err := attributeNamed(class, name)
	if err != nil {
		return nil, lang.ParamError("attr", "%w", err)
	}
	return a, nil
}

// attributeNamed finds an attribute of a class by its exact name.
func attributeNamed(class mad.Class, name string) (*mad.Attribute, error) {
	if a := mad.LookupName(class, name); a != nil {
		return a, nil
	}
	if other := mad.ByName(name); other != nil {
		return nil, fmt.Errorf("%s is an attribute of class %v, not %v; use %s", name, other.Class, class, getterOf(other.Class))
	}
	return nil, fmt.Errorf("unknown attribute %q%s", name, fabric.DidYouMean(name, AttributeNames(class)))
}

// getterOf returns the name of the builtin that reads attributes of a class.
func getterOf(class mad.Class) string {
	switch class.Family() {
	case mad.ClassSubn:
		return "smp_get"
	case mad.ClassPerf:
		return "perf_get"
	case mad.ClassSubnAdm:
		return "sa_get or sa_gettable"
	}
	return "mad_get"
}

// setterOf returns the name of the builtin that sets attributes of a class.
func setterOf(class mad.Class) string {
	switch class.Family() {
	case mad.ClassSubn:
		return "smp_set"
	case mad.ClassPerf:
		return "perf_set"
	case mad.ClassSubnAdm:
		return "sa_set"
	}
	return "mad_set"
}
