package change_test

import (
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/change"
)

// BenchmarkLoadPlan reads a plan of 50 MB.
func BenchmarkLoadPlan(b *testing.B) {
	p := sample(b)
	blocks := slices.Clone(p.Sets[:2])
	for len(p.Sets) < 185_000 {
		p.Sets = append(p.Sets, blocks...)
	}
	text := fileOf(b, p)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := change.LoadPlan(strings.NewReader(text), "m.plan"); err != nil {
			b.Fatal(err)
		}
	}
}
