package state

import (
	"testing"

	"fabsh/mad"
)

// TestWidest: the width with the most lanes is not the one with the highest bit.
func TestWidest(t *testing.T) {
	for set, want := range map[mad.LinkWidth]mad.LinkWidth{0: 0, 1: mad.LinkWidth1x, 0x11: mad.LinkWidth2x, 0x13: mad.LinkWidth4x, 0x17: mad.LinkWidth8x, 0x1f: mad.LinkWidth12x} {
		if got := widest(set); got != want {
			t.Errorf("of %#x: %#x, want %#x", set, got, want)
		}
	}
}
