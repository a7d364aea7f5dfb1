package audit

import (
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// GrownReads returns two reads of ports, window apart, the second at when, between which counters of errors
// grew, by their names: what a history has, as what PortCounters and PortCountersExtended would show. They
// have no counters of traffic. Other counters, and ports without a GUID, are left out.
func GrownReads(ports []*fabric.Port, when time.Time, window time.Duration, grown func(*fabric.Port) map[string]uint64) (before, after *Read) {
	info := &mad.ClassPortInfo{
		CapabilityMask:  uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported | mad.PerfCapabilityMaskIsQP1DroppedSupported),
		CapabilityMask2: uint32(mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported),
	}
	read := func(began time.Time, counts func(*fabric.Port) map[string]uint64) *Read {
		a := NewAnswers(began, len(ports))
		for _, p := range ports {
			key, ok := KeyOf(p)
			if !ok || p.Info() == nil {
				continue
			}
			i := a.AddPort(key, p.Node().GUID(), p.Node().Info().SystemImageGUID)
			count := counts(p)
			for attr := range 2 {
				data := make([]byte, CounterAttributes[attr].Size)
				for f := range CounterAttributes[attr].Flat() {
					field := &CounterAttributes[attr].Flat()[f]
					if n, ok := count[field.Script]; ok && field.Count <= 1 {
						field.SetUint(data, min(n, field.Max()))
					}
				}
				a.Answered(i, attr, info, nil, data, began)
			}
		}
		_, r := a.Read()
		return r.reduced(holdsErrors)
	}
	return read(when.Add(-window), func(*fabric.Port) map[string]uint64 { return nil }), read(when, grown)
}
