package apply_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/sim"
)

// TestLate: datagrams are lost, doubled, and later than the time-out, so that Sets come
// after the ones that followed them. What is said to be made is; all else is taken back
// when they have come.
func TestLate(t *testing.T) {
	made := 0
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4")
			f, o, err := sim.Parse(fmt.Sprintf("fattree:k=4,loss=5%%,dup=5%%,jitter=1500ms,seed=%d", seed))
			if err != nil {
				t.Fatal(err)
			}
			r.subnet, r.retries = sim.New(f, o), 12
			e := r.engine(-1, nil)
			j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells})
			if err != nil {
				t.Fatal(err)
			}
			err = r.change(e, j).Make(t.Context())
			e.Close()
			if err == nil {
				made++
			}
			time.Sleep(10 * time.Second) // they are all there, or lost
			quiet := r.engine(-1, nil)
			defer quiet.Close()
			for range 3 { // what takes it back may meet late ones of its own
				if err = r.change(quiet, j).Revert(t.Context(), "test"); err == nil {
					break
				}
				time.Sleep(10 * time.Second)
			}
			if err != nil || !r.are(before) {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
	t.Log(made, "of 20 were made")
}
