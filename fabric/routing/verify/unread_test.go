package verify_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestMissingTable: pairs whose packets come to a switch without a table in the file are not
// judged: they are neither unreachable nor counted as arrived, and the verdict is not ok.
func TestMissingTable(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{})
	whole := compute(t, g, "minhop", engines.Options{})
	leaf := routingtest.SwitchNamed(t, g, "leaf-3")
	var file bytes.Buffer
	if err := format.WriteLFTs(&file, g.Fabric(), func(n *fabric.Node) []byte {
		if g.SwitchOf(n) == leaf {
			return nil
		}
		return whole.Row(g.SwitchOf(n))
	}); err != nil {
		t.Fatal(err)
	}
	r, err := routes.Load(g.Fabric(), routes.Files{LFTs: "lfts"}, func(string) (io.ReadCloser, error) { return io.NopCloser(&file), nil })
	if err != nil {
		t.Fatal(err)
	}
	v, all := routingtest.Verified(t, r, verify.Options{}), routingtest.Verified(t, whole, verify.Options{})
	// Two of eight hosts are on the leaf: each pair with one of them comes to it.
	const hosts, onLeaf = 8, 2
	want := int64(hosts*(hosts-1) - (hosts-onLeaf)*(hosts-onLeaf-1))
	if v.Unjudged != want || v.Unreachable != 0 || v.OK() || v.Wrong() || v.Pairs != all.Pairs || len(v.NoTable) != 1 || !strings.Contains(v.NoTable[0], "leaf-3") {
		t.Errorf("%d pairs not judged, want %d; %d unreachable; ok %v, wrong %v; %d pairs; no table of %q", v.Unjudged, want, v.Unreachable, v.OK(), v.Wrong(), v.Pairs, v.NoTable)
	}
	if all.Unjudged != 0 || all.NoTable != nil || !all.OK() {
		t.Errorf("with all tables: %d pairs not judged, no table of %q", all.Unjudged, all.NoTable)
	}
}
