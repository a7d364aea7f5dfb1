package audit

// Use is what a port sent, as a share of what a link of so many bits a second can; false:
// unknown.
func (w *Window) Use(bits float64) (share float64, known bool) {
	sent := w.Rate(CounterIndex("port_xmit_bytes"))
	if sent.Why != Known || !(bits > 0) {
		return 0, false
	}
	return sent.PerSecond() * 8 / bits, true
}

// WaitShare is the share of waiting for credits (PortXmitWait) in waiting and sending.
// A tick is assumed to last as long as 4 bytes take: devices differ. False: unknown.
func (w *Window) WaitShare() (share float64, known bool) {
	sent, wait := w.Rate(CounterIndex("port_xmit_bytes")), w.Rate(CounterIndex("port_xmit_wait"))
	if sent.Why != Known || wait.Why != Known {
		return 0, false
	}
	if wait.Count == 0 {
		return 0, true
	}
	return wait.PerSecond() / (sent.PerSecond()/4 + wait.PerSecond()), true
}

// BitErrorRate is symbol errors by the bits that a link of so many bits a second carried
// in the window: an estimate, and 0 where none was counted, which means little for a short
// window (JudgeBER). False: unknown.
func (w *Window) BitErrorRate(bits float64) (rate float64, known bool) {
	errors := w.Rate(CounterIndex("symbol_error_counter"))
	if errors.Why != Known || !(bits > 0) {
		return 0, false
	}
	return float64(errors.Count) / (bits * errors.Window.Seconds()), true
}

// Erred are the rates of the error counters that moved; false: whether any did is
// unknown, because a counter fell, or none is known.
func (w *Window) Erred() (rates []Rate, known bool) {
	moving, saturated, silent := w.Errors()
	if fell, _ := w.Fell(); fell || len(moving) == 0 && len(saturated)+len(silent) > 0 {
		return nil, false
	}
	for _, i := range moving {
		rates = append(rates, w.Rate(i))
	}
	return rates, true
}
