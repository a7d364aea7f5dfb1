package audit

// Errors are the counters of errors that need attention, as indices of Counters:
// those that counted, those that stand at their largest value, and, of traffic
// too, those about which there was no answer. Most ports have none.
func (w *Window) Errors() (moving, saturated, silent []int) {
	consider := func(i int) {
		switch x := w.Rate(i); {
		case x.Why == Saturated:
			saturated = append(saturated, i)
		case x.Why == Known && x.Count > 0:
			moving = append(moving, i)
		}
	}
	all := Counters()
	for _, i := range w.after.kind().layout.counters {
		if all[i].Traffic {
			continue
		}
		v, s := w.after.value(i)
		if !w.before.Known() && v == s.field.Max() { // whatever it was
			saturated = append(saturated, i)
			continue
		}
		if w.before.Known() && v != s.field.Max() {
			if old, from := w.before.value(i); from != nil && from.set == s.set && old == v {
				continue // as at most ports
			}
		}
		consider(i)
	}
	if w.after.kind().silent != 0 || w.before.Known() && w.before.kind().silent != 0 {
		for i := range all {
			if w.Rate(i).Why == NoAnswer {
				silent = append(silent, i)
			}
		}
	}
	return moving, saturated, silent
}

// FEC reports whether counters of symbols that FEC corrected are known.
func (w *Window) FEC() bool {
	return w.before.Known() && w.before.kind().answered&w.after.kind().answered&maskOf(setRSFEC, setLanes) != 0
}
