package ibsim_test

import (
	"os"
	"runtime/debug"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestDescriptors: clients that come, ask and go, or are not let in, leave no
// descriptor open and no place in ibsim taken.
func TestDescriptors(t *testing.T) {
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes what nobody knows any more
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	visit := func() {
		for _, o := range []ibsim.Options{{Socket: f.Name + "-not"}, {Socket: f.Name, Node: "nosuch"}} {
			if tr, err := ibsim.Attach(o); err == nil {
				tr.Close()
				t.Fatalf("attached with %+v", o)
			}
		}
		e := engine.New(attach(t, ibsim.Options{Socket: f.Name}), engine.Options{})
		c := nodeInfo(mad.DirectedRoute{0, 1})
		if err := e.Do(t.Context(), c); err != nil || c.Err != nil {
			t.Fatal(err, c.Err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	visit()
	before := open()
	for range 100 {
		visit()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors are open, before %d", after, before)
	}
	if clients := f.Attached(t); len(clients) > 0 {
		t.Errorf("still attached: %q", clients)
	}
}
