package page

import (
	"math"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// portRates are the counters that were read twice, by port.
type portRates map[portKey]*audit.PortRates

// portKey is a port in any sweep: what is found is read a second time, in another.
type portKey struct {
	node mad.GUID
	num  int
}

func keyOf(p *fabric.Port) portKey { return portKey{p.Node().GUID(), p.Num()} }

// rates is nil where no port was read twice.
func (p *Page) rates() portRates {
	m := portRates{}
	twice := false
	for i := range p.Report.Rates {
		r := &p.Report.Rates[i]
		key := keyOf(r.Port)
		if old := m[key]; old != nil && old.Port.Node().Fabric() == r.Port.Node().Fabric() {
			m[key] = &audit.PortRates{Port: r.Port} // of two nodes with one GUID: it is unknown which
			continue
		}
		m[key] = r
		if r.Answered() {
			newest := r.Newest()
			_, ok := newest.Length()
			twice = twice || ok
		}
	}
	if !twice {
		return nil
	}
	return m
}

// window is the newest of a port; nil: unknown.
func (m portRates) window(p *fabric.Port) *audit.Window {
	r := m[keyOf(p)]
	if r == nil || !r.Answered() {
		return nil
	}
	w := r.Newest()
	if _, ok := w.Length(); !ok {
		return nil
	}
	return &w
}

// errors is how many errors of all kinds a port has counted; a counter that stands at
// its largest value is useless.
func (m portRates) errors(p *fabric.Port) (sum float64, known bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	return errorsOf(w)
}

// use is how much of its link a port sent, and wait how much of its time it waited, in
// percent.
func (m portRates) use(p *fabric.Port) (float64, bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	counted := m[keyOf(p)].Port
	return percent(w.Use(audit.LinkBits(counted.Width(), counted.Speed())))
}

func (m portRates) wait(p *fabric.Port) (float64, bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	return percent(w.WaitShare())
}

func percent(share float64, known bool) (float64, bool) {
	return math.Round(1000*share) / 10, known // less is noise
}

// berTarget is the bit error rate up to which a window without errors counts as good.
const berTarget = 1e-12

// bits is how many of 10^15 bits were wrong. No errors in a window that is too short
// count as unknown.
func (m portRates) bits(p *fabric.Port) (float64, bool) {
	r := m[keyOf(p)]
	if r == nil {
		return 0, false
	}
	rate, window, known := r.BER()
	if known && rate == 0 && audit.JudgeBER(0, window, audit.LinkBits(r.Port.Width(), r.Port.Speed()), berTarget).Verdict != audit.BEROK {
		return 0, false
	}
	return rate * 1e15, known
}
