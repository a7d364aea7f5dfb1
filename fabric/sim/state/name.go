package state

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
)

// CounterViews are the counters of each attribute.
var CounterViews = sync.OnceValue(func() map[*mad.Attribute][]mad.Counter {
	views := map[*mad.Attribute][]mad.Counter{}
	for _, a := range mad.Attributes() {
		if list := a.Counters(); len(list) > 0 {
			views[a] = list
		}
	}
	return views
})

// names are the counters by the script names of their fields.
var names = sync.OnceValue(func() map[string]mad.Counter {
	names := map[string]mad.Counter{}
	for _, list := range CounterViews() {
		for _, c := range list {
			if known, ok := names[c.Script]; !ok || known.Bits < c.Bits {
				names[c.Script] = c
			}
		}
	}
	return names
})

// CounterByName finds a counter by its script name, such as symbol_error_counter;
// that of an array by the number of the element behind it: port_xmit_data_sl3.
func CounterByName(name string) (CounterKey, error) {
	if c, ok := names()[name]; ok && c.Count == 1 {
		return CounterKey{Name: c.Name, Element: 0}, nil
	}
	for digits := 1; digits <= 2 && digits < len(name); digits++ {
		c, ok := names()[name[:len(name)-digits]]
		var e int
		if _, err := fmt.Sscanf(name[len(name)-digits:], "%d", &e); ok && err == nil && e < c.Count {
			return CounterKey{Name: c.Name, Element: e}, nil
		}
	}
	known := slices.Sorted(maps.Keys(names()))
	return CounterKey{}, fmt.Errorf("unknown counter %q%s", name, fabric.DidYouMean(name, known))
}
