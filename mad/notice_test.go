package mad

import (
	"slices"
	"testing"
)

// TestTraps: the list has all traps that choose a variant of Notice.
func TestTraps(t *testing.T) {
	var listed, known []uint16
	for _, i := range Traps() {
		listed = append(listed, i.Number)
	}
	for _, a := range Attributes() {
		if a.Name != "Notice" {
			continue
		}
		for _, v := range a.Variants {
			for _, c := range v.When {
				for _, r := range c.Values {
					for n := r[0]; c.Name == "trap_number" && n <= r[1]; n++ {
						known = append(known, uint16(n))
					}
				}
			}
		}
	}
	for _, n := range known {
		if !slices.Contains(listed, n) {
			t.Errorf("trap %d is not in the list", n)
		}
	}
}
