package builtins

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/records"
)

// AttrNames are the attributes of the values of a type, by the type's name, as
// they are declared: no value is needed.
func AttrNames(typ string) []string {
	switch typ {
	case "string":
		return starlark.String("").AttrNames()
	case "list":
		return new(starlark.List).AttrNames()
	case "dict":
		return new(starlark.Dict).AttrNames()
	case "set":
		return new(starlark.Set).AttrNames()
	}
	var names []string
	for _, d := range typeDocs() {
		if d.Name == typ {
			for _, m := range d.Members {
				names = append(names, m.ShortName())
			}
			return names
		}
	}
	for _, a := range records.AttributesNamed(typ) {
		return records.New(a, nil).AttrNames()
	}
	return nil
}
