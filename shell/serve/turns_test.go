package serve

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestTurnsOrder: places go to clients in the order in which they came, one each, and of a client to the request
// that came first; one that came again is at the end.
func TestTurnsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := turns{free: 1}
		if err := x.take(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got []string
		ask := func(client, page string) {
			go func() {
				if err := x.take(t.Context(), client); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, page)
			}()
			synctest.Wait()
		}
		ask("a", "a1")
		ask("a", "a2")
		ask("b", "b1")
		ask("a", "a3")
		ask("c", "c1")
		next := func() {
			x.release()
			synctest.Wait()
		}
		next()
		next()
		ask("b", "b2") // b has had its turn
		for range 4 {
			next()
		}
		if want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		next()
		if x.free != 1 || len(x.order) != 0 || len(x.waiting) != 0 {
			t.Errorf("at the end: %+v", &x)
		}
	})
}
