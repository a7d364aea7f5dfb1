package repair

import (
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

func compute(t testing.TB, g *graph.Graph, name string, o engines.Options) *routes.Routes {
	t.Helper()
	r, err := engines.Compute(t.Context(), g, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verified(t testing.TB, r *routes.Routes, o verify.Options) *verify.Verdict {
	t.Helper()
	v, err := verify.Tables(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
