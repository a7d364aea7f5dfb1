package export

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// labelTexts are labels in their written form, each once: `guid="0x...",port="1"`. Of
// large fabrics there are hundreds of thousands, so that they lie in few pieces.
type labelTexts struct {
	texts [][]byte
	index map[uint64]Labels // by hash; where two have the same, the other one's is a number more
	seed  maphash.Seed
	room  []byte // for the next ones
}

// piece is how much room is made at a time, in bytes.
const piece = 1 << 16

// intern is the number of text, which is copied.
func (t *labelTexts) intern(text []byte) Labels {
	if t.index == nil {
		t.index, t.seed = map[uint64]Labels{}, maphash.MakeSeed()
	}
	hash := maphash.Bytes(t.seed, text)
	for {
		l, ok := t.index[hash]
		if !ok {
			break
		}
		if bytes.Equal(t.texts[l], text) {
			return l
		}
		hash++
	}
	if cap(t.room)-len(t.room) < len(text) {
		t.room = make([]byte, 0, max(piece, len(text)))
	}
	at := len(t.room)
	t.room = append(t.room, text...)
	l := Labels(len(t.texts))
	t.texts = append(t.texts, t.room[at:len(t.room):len(t.room)])
	t.index[hash] = l
	return l
}

// ranks are the places of the labels in the order of their texts.
func (t *labelTexts) ranks() []int32 {
	order := make([]Labels, len(t.texts))
	for i := range order {
		order[i] = Labels(i)
	}
	slices.SortFunc(order, func(a, b Labels) int { return bytes.Compare(t.texts[a], t.texts[b]) })
	rank := make([]int32, len(order))
	for i, l := range order {
		rank[l] = int32(i)
	}
	return rank
}
