package diff

import (
	"testing"
)

// BenchmarkCompare compares two snapshots of 11,664 hosts with their tables: equal,
// and with a link less and the tables computed anew.
func BenchmarkCompare(b *testing.B) {
	f := routed(b, generated(b, "fattree:k=36,levels=3"))
	d := draftOf(f)
	same := d.build()
	d.unlink("leaf-1/19")
	less := d.build()
	for name, g := range map[string]func() error{
		"same":      func() error { _, err := Compare(b.Context(), f, same); return err },
		"link gone": func() error { _, err := Compare(b.Context(), f, less); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := g(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
