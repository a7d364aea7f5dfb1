package records

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Kinds of parameters that are about attributes.
var (
	KindSMPAttribute  = &lang.Kind{Convert: toAttributeOrRecord}                        // the name of an attribute of subnet management
	KindPerfAttribute = &lang.Kind{Convert: toAttributeName}                            // ... of performance management
	KindRecord        = &lang.Kind{Convert: toAttributeName, Default: lang.TextDefault} // ... of subnet administration
	KindAttribute     = &lang.Kind{}                                                    // the name or the number of an attribute of any other class
	KindFields        = &lang.Kind{Fields: givenTwice}                                  // ** fields of the attribute, by name
)

// toAttributeOrRecord: smp_set takes a record too.
func toAttributeOrRecord(v starlark.Value) (any, error) {
	if r, ok := v.(*Record); ok {
		return r, nil
	}
	return toAttributeName(v)
}

func toAttributeName(v starlark.Value) (any, error) {
	if _, ok := v.(starlark.Int); ok {
		return nil, errors.New("got int, want the name of an attribute; by numbers there are mad_get, mad_set and mad_send")
	}
	return lang.ToText(v)
}

// givenTwice: a field's word and its number, x and x_code, are the same bits.
func givenTwice(fields []starlark.Tuple) error {
	for i, kv := range fields {
		name := string(kv[0].(starlark.String))
		for _, other := range fields[:i] {
			if o := string(other[0].(starlark.String)); o+"_code" == name || name+"_code" == o {
				return fmt.Errorf("%s and %s are one field: give one of them", o, name)
			}
		}
	}
	return nil
}
