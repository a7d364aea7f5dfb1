package fabric

import "sync"

// derived is what others have made of a fabric.
type derived struct {
	mu sync.Mutex
	by map[any]any
}

// Derived is what make gives, which is called once for each key: a fabric never changes,
// so what is made of it can stay with it. The key is of a type of the caller's own.
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
