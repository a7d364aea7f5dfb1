package fabric

import "sync"

// derived is what other packages have derived from a fabric.
type derived struct {
	mu sync.Mutex
	by map[any]any
}

// Derived returns what make returns; make is called once for each key. A fabric never
// changes, so derived values can be kept with it. The key is of a type of the caller's own.
func (f *Fabric) Derived(key any, make func() any) any {
	f.derived.mu.Lock()
	defer f.derived.mu.Unlock()
	v, ok := f.derived.by[key]
	if !ok {
		v = make()
		if f.derived.by == nil {
			f.derived.by = map[any]any{}
		}
		f.derived.by[key] = v
	}
	return v
}
