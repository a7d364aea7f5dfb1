package routes_test

import (
	"testing"

	"fabsh/fabric/routing/routes"
)

func BenchmarkDiff(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		r.Diff(r)
		return nil
	})
}
