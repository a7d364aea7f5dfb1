package traffic_test

import (
	"testing"

	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
)

func BenchmarkBalance(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		_, err := traffic.MeasureBalance(b.Context(), r, 0, nil)
		return err
	})
}

// BenchmarkPermutations: a hundred.
func BenchmarkPermutations(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		_, err := traffic.MeasureCongestion(b.Context(), r, traffic.CongestionOptions{Pattern: traffic.Permutation, Samples: 100})
		return err
	})
}
