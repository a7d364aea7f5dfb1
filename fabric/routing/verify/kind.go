package verify

import (
	"hash/maphash"
	"math/bits"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/routes"
)

// PacketKind stands for the packets of some service levels and transports that all switches treat
// alike: those for which a switch that routes adaptively makes the same choices.
type PacketKind struct {
	SL        uint8  // one of SLs
	SLs       uint16 // a bit for each
	Transport adaptive.Transport
	// Static reports that all switches send these packets by the rows of their tables.
	Static bool
	// PerPort reports that the choice depends on the port that packets come in by.
	PerPort bool
	// Expected reports that paths have the service level; packets of others are dropped
	// where SL2VL drops them.
	Expected bool
}

// PacketKinds are the kinds of the packets that r routes: of the service levels that its paths have,
// and, where its paths have none, of all others too.
func PacketKinds(r *routes.Routes) []PacketKind {
	seed := maphash.MakeSeed()
	switches := routes.ActiveSwitches(r)
	var kinds []PacketKind
	known := map[uint64]int{}
	expected := r.SL.Used()
	for sl := range uint8(16) {
		if r.SL != nil && expected>>sl&1 == 0 {
			continue
		}
		for _, t := range []adaptive.Transport{adaptive.RC, adaptive.UC, adaptive.UD, adaptive.DC} {
			k := PacketKind{SL: sl, SLs: 1 << sl, Transport: t, Static: true, Expected: expected>>sl&1 != 0}
			var h maphash.Hash
			h.SetSeed(seed)
			for s, a := range switches {
				if a.Active() {
					k.note(&h, s, a)
				}
			}
			r.SL2VL.HashSL(&h, sl)
			sum := h.Sum64()
			i, ok := known[sum]
			if !ok {
				known[sum] = len(kinds)
				kinds = append(kinds, k)
				continue
			}
			kinds[i].SLs |= k.SLs
			kinds[i].Expected = kinds[i].Expected || k.Expected
		}
	}
	return kinds
}

// note adds what switch s does with packets of the kind.
func (k *PacketKind) note(h *maphash.Hash, s int, a *adaptive.Switch) {
	adapts := a.Enabled && a.SLs.Has(k.SL) && !a.Static.Has(k.Transport)
	hashes := a.HBF && a.HBFSLs.Has(k.SL)
	if adapts || hashes || a.FastRecovery {
		k.Static = false
	}
	flags := byte(0)
	if adapts {
		flags |= 1
	}
	if hashes {
		flags |= 2
	}
	var number [4]byte
	for i := range number {
		number[i] = byte(s >> (8 * i))
	}
	h.Write(number[:])
	h.WriteByte(flags)
	first := a.PLFT(0, k.SL)
	// Beyond the end of Private: private LFT 0.
	for in := range len(a.Private) + 1 {
		plft := a.PLFT(uint8(min(in, 255)), k.SL)
		if plft != first {
			k.PerPort = true
		}
		if plft != 0 {
			k.Static = false
		}
		h.WriteByte(plft)
	}
}

// Packet is one of the kind that comes in by a port.
func (k *PacketKind) Packet(in uint8) adaptive.Packet {
	return adaptive.Packet{In: in, SL: k.SL, Transport: k.Transport}
}

// hashPorts is a hash of a set.
func hashPorts(seed uint64, s adaptive.Ports) uint64 {
	h := seed
	for _, w := range s {
		h = mix64(h ^ w)
	}
	return h
}

// mix64 is the finalizer of SplitMix64, which maps different words to different ones.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// join is a hash of two, in their order.
func join(h, more uint64) uint64 { return mix64(bits.RotateLeft64(h, 23) ^ more) }
