package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// By is what rows are sorted by.
type By int

const (
	Wait   By = iota // ticks of PortXmitWait a second
	Data             // bits sent a second
	Errors           // errors counted a second
	numBy
)

// Words are those of Wait, Data and Errors, in this order.
var Words = []string{"wait", "data", "errors"}

// place is a port in each sweep.
type place struct {
	node mad.GUID
	num  int
}

// row is a port in a round.
type row struct {
	place      place
	name, peer string         // as text that no terminal obeys
	rate       [numBy]float64 // by By; unknown where it is not known
	received   float64        // bits a second; unknown
	use        float64        // what is sent, of what the link can; unknown
	share      float64        // of wait in wait and sending; unknown
	what       string         // which errors
}

// unknown is a rate that is not known.
const unknown = -1

// perSecond is the rate of a counter, unknown if it is not known.
func perSecond(w *audit.Window, counter int) float64 {
	if r := w.Rate(counter); r.Why == audit.Known {
		return r.PerSecond()
	}
	return unknown
}

// rowsOf are the rows of all ports, and how many of them did not answer.
func rowsOf(rates []audit.PortRates) (rows []row, silent int) {
	data, received, wait := audit.CounterIndex("port_xmit_bytes"), audit.CounterIndex("port_rcv_bytes"), audit.CounterIndex("port_xmit_wait")
	rows = make([]row, len(rates))
	for i := range rates {
		p := rates[i].Port
		r := row{
			place: place{p.Node().GUID(), p.Num()}, name: lang.OneLine(p.Name()), peer: lang.OneLine(p.Peer().Name()),
			rate: [numBy]float64{unknown, unknown, unknown}, received: unknown, use: unknown, share: unknown,
		}
		if len(rates[i].Windows) == 0 {
			silent++
			r.what = "no answer"
			rows[i] = r
			continue
		}
		w := &rates[i].Windows[0]
		r.rate[Wait], r.rate[Data], r.received = perSecond(w, wait), perSecond(w, data), perSecond(w, received)
		if r.rate[Data] != unknown {
			// A tick is taken for as long as 4 bytes take: devices differ.
			if words := r.rate[Data] / 4; r.rate[Wait] != unknown && words+r.rate[Wait] > 0 {
				r.share = r.rate[Wait] / (words + r.rate[Wait])
			} else if r.rate[Wait] != unknown {
				r.share = 0
			}
			r.rate[Data] *= 8
			if bits := audit.LinkBits(p.Width(), p.Speed()); bits > 0 {
				r.use = r.rate[Data] / bits
			}
		}
		if r.received != unknown {
			r.received *= 8
		}
		if _, ok := w.Length(); ok {
			r.countErrors(w)
		}
		rows[i] = r
	}
	return rows, silent
}

// countErrors adds up the errors, and names them, the most frequent first.
func (r *row) countErrors(w *audit.Window) {
	moving, saturated, silent := w.Errors()
	slices.SortStableFunc(moving, func(a, b int) int { return cmp.Compare(w.Rate(b).Count, w.Rate(a).Count) })
	r.rate[Errors] = 0
	var what []string
	for _, i := range moving {
		rate := w.Rate(i).PerSecond()
		r.rate[Errors] += rate
		what = append(what, fmt.Sprintf("%s %s", audit.Counters()[i].Name, si(rate)))
	}
	for _, i := range saturated {
		what = append(what, audit.Counters()[i].Name+" at its largest")
	}
	if len(silent) > 0 {
		what = append(what, "some counters without an answer")
	}
	if fell, _ := w.Fell(); fell {
		what = append(what, "cleared")
	}
	r.what = strings.Join(what, ", ")
}
