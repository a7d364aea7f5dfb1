package fabric_test

import (
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// sweep discovers a simulated subnet from its first CA.
func sweep(t *testing.T, spec string) (*fabric.Fabric, mad.Stats, time.Duration) {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := mad.NewEngine(conn, mad.Options{})
	defer e.Close()
	begin := time.Now()
	got, err := fabric.Discover(t.Context(), e, fabric.DiscoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got, e.Stats(), time.Since(begin)
}

func TestDiscoverSimulated(t *testing.T) {
	for _, spec := range []string{"fattree:k=8,levels=3", "fattree:k=8,levels=3,loss=0.05,delay=20ms", "ring:n=9,hosts=3"} {
		synctest.Test(t, func(t *testing.T) {
			f, stats, d := sweep(t, spec)
			t.Log(f, f.Problems(), stats, d)
		})
	}
}
