package records

import (
	"errors"
	"fmt"
	"reflect"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Kinds of parameters for attributes.
var (
	KindSMPAttribute  = &lang.Kind{Convert: toAttributeArg, Type: reflect.TypeFor[AttributeArg]()}                       // the name of an attribute of subnet management, or a record of one
	KindPerfAttribute = &lang.Kind{Convert: toAttributeName, Type: reflect.TypeFor[string]()}                            // the name of an attribute of performance management
	KindRecord        = &lang.Kind{Convert: toAttributeName, Type: reflect.TypeFor[string](), Default: lang.TextDefault} // the name of a record of subnet administration
	KindAttribute     = &lang.Kind{}                                                                                     // the name or the number of an attribute of any other class
	KindRegister      = &lang.Kind{Convert: toAttributeName, Type: reflect.TypeFor[string]()}                            // the name of a register
	KindFields        = &lang.Kind{Fields: givenTwice}                                                                   // ** fields of the attribute, by name
)

// AttributeArg is the argument of a KindSMPAttribute.
type AttributeArg struct {
	Name   string
	Record *Record // nil: a name was given
}

func toAttributeArg(v starlark.Value) (any, error) {
	if r, ok := v.(*Record); ok {
		return AttributeArg{Record: r}, nil
	}
	name, err := toAttributeName(v)
	if err != nil {
		return nil, err
	}
	return AttributeArg{Name: name.(string)}, nil
}

func toAttributeName(v starlark.Value) (any, error) {
	if _, ok := v.(starlark.Int); ok {
		return nil, errors.New("got int, want the name of an attribute; mad_get, mad_set and mad_send accept numbers")
	}
	return lang.ToText(v)
}

// givenTwice refuses a field that is given both by word and by number, x and x_code,
// which are the same bits.
func givenTwice(fields []starlark.Tuple) error {
	for i, kv := range fields {
		name := string(kv[0].(starlark.String))
		for _, other := range fields[:i] {
			if o := string(other[0].(starlark.String)); o+"_code" == name || name+"_code" == o {
				return fmt.Errorf("%s and %s are the same field; give one of them", o, name)
			}
		}
	}
	return nil
}
