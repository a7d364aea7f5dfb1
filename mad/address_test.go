package mad

import (
	"fmt"
	"testing"
)

func TestGUIDString(t *testing.T) {
	for _, g := range []GUID{0, 1, 0x0002c90300001a2f, 0xfedcba9876543210, 1<<64 - 1} {
		if got, want := g.String(), fmt.Sprintf("0x%016x", uint64(g)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
