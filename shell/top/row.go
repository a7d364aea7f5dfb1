package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// By is the sort key of rows.
type By int

const (
	Wait   By = iota // ticks of PortXmitWait per second
	Data             // bits sent per second
	Errors           // errors counted per second
	BER              // symbol errors per bit carried, since the first read
	numBy
)

// Words are the names of Wait, Data, Errors and BER, in this order.
var Words = []string{"wait", "data", "errors", "ber"}

// place identifies a port in every sweep.
type place struct {
	node mad.GUID
	num  int
}

// row is a port in a round.
type row struct {
	place      place
	name, peer string         // without control sequences of terminals
	tier       string         // of picture.TierWords
	rate       [numBy]float64 // by By; may be unknown
	received   float64        // bits per second; may be unknown
	use        float64        // part of the link's capacity that is used; may be unknown
	share      float64        // part of waiting in waiting and sending; may be unknown
	what       string         // which errors
	symbols    float64        // symbol errors in this round
	bits       float64        // carried by the link meanwhile; may be unknown
	trend      *trend         // of this port, kept from round to round
}

// unknown is a rate that is not known.
const unknown = -1

// perSecond returns the rate of a counter, which may be unknown.
func perSecond(w *audit.Window, counter int) float64 {
	if r := w.Rate(counter); r.Why == audit.Known {
		return r.PerSecond()
	}
	return unknown
}

// blank returns rows for ports without any values yet. tiers are the words of the tiers
// of nodes, by id.
func blank(ports []*fabric.Port, tiers []string) []row {
	rows := make([]row, len(ports))
	for i, p := range ports {
		rows[i] = row{
			place: place{p.Node().GUID(), p.Num()}, name: lang.OneLine(p.Name()), peer: lang.OneLine(p.Peer().Name()), tier: tiers[p.Node().ID()],
			rate: [numBy]float64{unknown, unknown, unknown, unknown}, received: unknown, use: unknown, share: unknown, bits: unknown,
		}
	}
	return rows
}

// rowsOf fills the blank rows, and returns them with the number of ports that did not
// answer.
func rowsOf(blank []row, rates []audit.PortRates) (rows []row, silent int) {
	data, received, wait, symbols := audit.CounterIndex("port_xmit_bytes"), audit.CounterIndex("port_rcv_bytes"), audit.CounterIndex("port_xmit_wait"), audit.CounterIndex("symbol_error_counter")
	rows = slices.Clone(blank)
	for i := range rates {
		p, r := rates[i].Port, &rows[i]
		if !rates[i].Answered() {
			silent++
			r.what = "no answer"
			continue
		}
		w := rates[i].Newest()
		r.rate[Wait], r.rate[Data], r.received = perSecond(&w, wait), perSecond(&w, data), perSecond(&w, received)
		bits := audit.LinkBits(p.Width(), p.Speed())
		if r.rate[Data] != unknown {
			r.rate[Data] *= 8
		}
		if use, known := w.Use(bits); known {
			r.use = use
		}
		if share, known := w.WaitShare(); known {
			r.share = share
		}
		if x := w.Rate(symbols); x.Why == audit.Known && bits > 0 {
			r.symbols, r.bits = float64(x.Count), bits*x.Window.Seconds()
		}
		if r.received != unknown {
			r.received *= 8
		}
		if _, ok := w.Length(); ok {
			r.countErrors(&w)
		}
	}
	return rows, silent
}

// countErrors adds the errors, and names them, the most frequent first.
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
		what = append(what, audit.Counters()[i].Name+" at its maximum")
	}
	if len(silent) > 0 {
		what = append(what, "some counters not answered")
	}
	if fell, _ := w.Fell(); fell {
		what = append(what, "cleared")
	}
	r.what = strings.Join(what, ", ")
}
