package engines

import "fabsh/fabric/routing/graph"

// ahead finds the next hops to a switch while paths to the one before are chosen.
type ahead struct {
	next   graph.Toward
	d      int           // the switch
	loaded chan struct{} // closed when next is complete; nil: nothing was begun
}

// take exchanges t for the next hops to switch d if they were begun, and reports whether
// they were.
func (a *ahead) take(t *graph.Toward, d int) bool {
	if a.loaded == nil {
		return false
	}
	<-a.loaded
	a.loaded = nil
	if a.d != d {
		return false
	}
	*t, a.next = a.next, *t
	return true
}

// begin begins to find the next hops to switch d.
func (a *ahead) begin(h *graph.Hops, d int, trunk []int32) {
	loaded := make(chan struct{})
	a.d, a.loaded = d, loaded
	go func() {
		a.next.Load(h, d, trunk)
		close(loaded)
	}()
}
