package traffic

import (
	"context"
	"math/bits"
)

// worst are the most traffic that each link may get, by channel: that of all flows which some
// choices send over it. For each link by itself switches can choose so; for all of them at
// once they cannot.
func (x *choiceNet) worst(ctx context.Context, list []*demand) ([]float64, error) {
	s := sums{workers: x.g.Workers()}
	memory := make([]reach, s.workers)
	load := make([]float64, len(x.g.Channels()))
	_, err := s.add(ctx, list, load, func(worker int, d *demand, load []float64) float64 {
		m := &memory[worker]
		if m.vertices.place == nil {
			m.vertices.place, m.channels.place = make([]int32, x.vertices()), make([]int32, len(load))
		}
		m.add(d, load)
		return 0
	})
	return load, err
}

// reach has the sources whose packets may pass vertices and channels: the memory of a worker.
type reach struct {
	vertices, channels sourceSets
}

// add adds what each link may get of a demand.
func (m *reach) add(d *demand, load []float64) {
	words := (len(d.from) + 63) / 64
	m.vertices.begin(words)
	m.channels.begin(words)
	equal := true
	for i, from := range d.from {
		m.vertices.of(from.vertex)[i/64] |= 1 << (i % 64)
		equal = equal && from.amount == d.from[0].amount
	}
	for _, p := range d.active {
		for _, h := range p.hops {
			if h == noHop {
				continue
			}
			// By way of several private LFTs packets may come to one channel.
			next, channel := m.vertices.of(h.to), m.channels.of(h.channel)
			for w, word := range m.vertices.of(p.vertex) {
				next[w] |= word
				channel[w] |= word
			}
		}
	}
	for _, c := range m.channels.used {
		for w, word := range m.channels.of(c) {
			if equal {
				load[c] += float64(bits.OnesCount64(word)) * d.from[0].amount
				continue
			}
			for ; word != 0; word &= word - 1 {
				load[c] += d.from[w*64+bits.TrailingZeros64(word)].amount
			}
		}
	}
}

// sourceSets are sets of sources, by vertex or channel.
type sourceSets struct {
	place []int32 // by key: its number from 1 on among those used
	used  []int32 // keys
	words int
	sets  []uint64
}

// begin forgets all sets.
func (s *sourceSets) begin(words int) {
	for _, key := range s.used {
		s.place[key] = 0
	}
	s.used, s.sets, s.words = s.used[:0], s.sets[:0], words
}

// of is the set of a key, empty at first. It is valid until the next call with a new key.
func (s *sourceSets) of(key int32) []uint64 {
	if s.place[key] == 0 {
		s.used = append(s.used, key)
		s.place[key] = int32(len(s.used))
		for range s.words {
			s.sets = append(s.sets, 0)
		}
	}
	return s.sets[int(s.place[key]-1)*s.words:][:s.words]
}
