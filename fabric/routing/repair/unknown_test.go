package repair

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/engine"
	"fabsh/fabric/routing/routes"
)

// reread is r as read from the files that it is written to: what made it is unknown.
func reread(t *testing.T, f *fabric.Fabric, r *routes.Routes) *routes.Routes {
	t.Helper()
	texts := map[string]string{}
	for _, kind := range []format.Kind{format.KindLFTs, format.KindPathSL, format.KindSL2VL} {
		var b bytes.Buffer
		if err := r.Write(t.Context(), &b, kind); err != nil {
			t.Fatal(err)
		}
		texts[string(kind)] = b.String()
	}
	open := func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(texts[name])), nil }
	back, err := routes.Load(f, routes.Files{LFTs: string(format.KindLFTs), SL: string(format.KindPathSL), SL2VL: string(format.KindSL2VL)}, open)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestRepairUnknown: tables with lanes that were read from files are repaired as by the engine that
// made them: without a credit loop, with no lane more, and only where paths used what was lost. A second
// loss is no worse.
func TestRepairUnknown(t *testing.T) {
	for _, x := range []struct {
		engine, spec string
		maxVLs       int
	}{{"dfsssp", "torus:dims=5/5,hosts=2", 0}, {"dfsssp", "dragonfly:a=4,p=2,h=2", 0}, {"lash", "torus:dims=5/5,hosts=2", 0}, {"lash", "random:n=24,degree=4,hosts=2", 0}, {"nue", "torus:dims=4/4,hosts=1", 3}} {
		whole := damaged(t, x.spec)
		links := whole.switchLinks()
		old := reread(t, whole.f, compute(t, whole.graph(t), x.engine, engine.Options{MaxVLs: x.maxVLs}))
		if old.Lanes() < 2 || engine.BasisOf(old) != nil {
			t.Fatalf("%s %s: %d lanes, basis %v", x.engine, x.spec, old.Lanes(), engine.BasisOf(old))
		}
		for i := 0; i < len(links); i += len(links)/4 + 1 {
			d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
			before := old
			for _, lost := range []int{i, (i + len(links)/2) % len(links)} {
				d.ports[links[lost]] = true
				r, err := Tables(t.Context(), before, d.graph(t))
				if err != nil {
					t.Fatal(err)
				}
				before.Engine = x.engine // which judge compares with
				if got := judge(t, before, r, r); got.wrong != nil {
					t.Errorf("%s %s without link %d: %q, %q", x.engine, x.spec, lost, got.wrong, r.Notes)
				}
				if r.Lanes() > before.Lanes() {
					t.Errorf("%s %s without link %d: %d lanes, before %d", x.engine, x.spec, lost, r.Lanes(), before.Lanes())
				}
				before = r
			}
		}
	}
}
