package mad

// Counter is a counter that a Set can choose (IBA 16.1.3.5, 16.1.4).
type Counter struct {
	*Field
	Select *Field // what chooses it: CounterSelect or CounterSelect2
	Bit    int    // which bit of that; of an array, the first element's
}

// Mask is the counter's part of Select, all elements of an array.
func (c Counter) Mask() uint64 { return (1<<c.Count - 1) << c.Bit }

// Counters lists the counters of an attribute of performance management, in
// wire order; none where a Set writes the attribute as it is. CounterSelect
// chooses by this order (libibmad mad.h GS_PERF_*_MASK; of arrays, each element
// has a bit), but for counters that the table says are in CounterSelect2.
func (a *Attribute) Counters() []Counter {
	first := a.Field("counter_select")
	if a.Class != ClassPerf || first == nil || first.Count > 1 {
		return nil
	}
	var list []Counter
	bit := 0
	for i := range a.Flat() {
		switch f := &a.Flat()[i]; {
		case f.Offset <= first.Offset, f.Script == "counter_select2":
		case f.Kind != KindUint: // raw: counters of which variant?
		case f.Select2 > 0:
			list = append(list, Counter{f, a.Field("counter_select2"), f.Select2 - 1})
		default:
			list = append(list, Counter{f, first, bit})
			bit += f.Count
		}
	}
	return list
}
