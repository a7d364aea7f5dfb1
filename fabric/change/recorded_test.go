package change

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routingtest"
)

// TestRecordedPredictions compares predictions with what OpenSM 3.3.23 did in recorded runs: with
// its engine given, its options unknown, and inferred.
func TestRecordedPredictions(t *testing.T) {
	within, all := 0, 0
	for _, r := range routingtest.Recordings(t) {
		for i := 1; i < len(r.States); i++ {
			before, after := &r.States[i-1], &r.States[i]
			if after.Name == "rerouted" || after.Restored {
				continue
			}
			var down []*fabric.Port
			for p := range after.Down {
				if !before.Down[p] {
					down = append(down, p)
				}
			}
			live := r.Routes(r.Graph(t, before), before)
			actual, err := largestLoad(t.Context(), r.Routes(r.Graph(t, after), after))
			if err != nil {
				t.Fatal(err)
			}
			predict := func(engine string) (load int64, basis string) {
				engineNames, err := ParseManagerEngine(engine)
				if err != nil {
					t.Fatal(err)
				}
				e, err := PredictEffect(t.Context(), live, down, PredictOptions{Managed: true, Manager: ManagerRouting{LID: r.SM, Engines: engineNames}})
				if err != nil {
					t.Fatal(err)
				}
				return e.LoadAfter, e.Basis
			}
			given, _ := predict(r.Engine)
			inferred, basis := predict("")
			ratio := float64(inferred) / float64(actual)
			t.Logf("%-34s %-10s actual %3d, given %3d, inferred %3d (%.2f) %s", r.Name+" "+after.Name, r.Engine, actual, given, inferred, ratio, basis)
			if !opensm.IsEngine(r.Engine) {
				continue
			}
			if all++; ratio >= 1 && ratio <= 1.1 {
				within++
			}
			if ratio <= 0.9 {
				t.Errorf("%s: too good", r.Name)
			}
		}
	}
	t.Logf("%d of %d within 1.0 to 1.1", within, all)
	if within*20 < all*19 {
		t.Errorf("%d of %d within 1.0 to 1.1", within, all)
	}
}
