package discover

import (
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestRenamed: all views of the renamed fabric have the new names, and the fabric
// that it was made of keeps its own.
func TestRenamed(t *testing.T) {
	n := &fakeNet{}
	chain(n)
	e := engine.New(n.attach(), engine.Options{})
	defer e.Close()
	f, err := Sweep(t.Context(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Renamed(nil) != f {
		t.Error("without names, another fabric")
	}
	g := f.Renamed(map[mad.GUID]string{0x21: "z", 0x999: "nobody"})
	for _, view := range []struct {
		f         *fabric.Fabric
		name, not string
	}{{f, "s0", "z"}, {g, "z", "s0"}} {
		nodes := view.f.NodeByName(view.name)
		if len(nodes) != 1 || nodes[0].Name() != view.name || nodes[0].GUID() != 0x21 || len(view.f.NodeByName(view.not)) != 0 {
			t.Fatalf("%s: %v", view.name, nodes)
		}
		if nodes[0].Fabric() != view.f || nodes[0].Port(1).Peer().Peer().Node() != nodes[0] || nodes[0].Port(1).Name() != view.name+"/1" {
			t.Errorf("%s: its ports are not its own", view.name)
		}
		if len(view.f.NodeByName("s1")) != 1 {
			t.Error("a name that is in no map is gone")
		}
	}
	if f.String() != g.String() {
		t.Errorf("%v, %v", f, g)
	}
}
