package mad

// Counter is a counter that a Set selects (IBA 16.1.3.5, 16.1.4).
type Counter struct {
	*Field
	Select *Field // the field that selects it: CounterSelect or CounterSelect2
	Bit    int    // the bit there; of an array, that of the first element
}

// Mask returns the counter's bits in Select, those of all elements of an array.
func (c Counter) Mask() uint64 { return (1<<c.Count - 1) << c.Bit }

// Counters lists the counters of an attribute of performance management, in
// wire order; none if a Set writes the whole attribute. The bits of CounterSelect
// follow this order, with a bit for each element of an array (libibmad mad.h
// GS_PERF_*_MASK); counters with Select2 have their bit in CounterSelect2.
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
		case f.Type != FieldTypeUint: // raw bytes: their counters depend on the variant
		case f.Select2 > 0:
			list = append(list, Counter{f, a.Field("counter_select2"), f.Select2 - 1})
		default:
			list = append(list, Counter{f, first, bit})
			bit += f.Count
		}
	}
	return list
}
