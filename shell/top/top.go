// Package top is a live table of the ports of a fabric: traffic, waits and errors.
package top

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Source is a source of rates.
type Source interface {
	// Sweep discovers the fabric again.
	Sweep(context.Context) (*fabric.Fabric, error)
	// Adaptivity reads at how many switches of a fabric adaptive routing is on, and at
	// how many it could not be determined.
	Adaptivity(context.Context, *fabric.Fabric) (on, undetermined int, err error)
	// Rates reads the counters of ports of the latest fabric once. Rates are those
	// since the previous read.
	Rates(context.Context, []*fabric.Port) ([]audit.PortRates, error)
	// Sent returns how many datagrams were sent so far.
	Sent() uint64
}

// Options are the options of the command.
type Options struct {
	Name   string        // of the fabric
	By     By            // sort key of rows
	Every  time.Duration // between the starts of two rounds
	Tier   string        // tier of the ports, of picture.TierWords; empty: any
	Filter string        // pattern of the name of a port or of its peer; empty: any
	Rounds int           // number of rounds; 0: unlimited
}

// round is one reading of all ports.
type round struct {
	num    int // from 1; 0: the first read, which has no rates yet
	at     time.Time
	rows   []row
	silent int    // ports without an answer
	lacks  int    // what the sweep could not find out
	ar     string // adaptive routing; "": no switch has it on
	sent   uint64 // datagrams of this round
	err    error  // why the round is incomplete; nil: it is complete
}

// rounds calls show with one round after the other, until ctx ends, show returns false,
// or the requested number is reached.
func (o *Options) rounds(ctx context.Context, src Source, clock lang.Clock, show func(round) bool) error {
	var ports []*fabric.Port // nil: sweep first
	var known []row          // their names
	silent, lacks, ar := 0, 0, ""
	for num := 0; ; {
		began, sent := clock.Now(), src.Sent()
		r := round{num: num}
		r.err = func() error {
			if ports == nil {
				f, err := src.Sweep(ctx)
				if err != nil {
					return err
				}
				tiers, err := tiersOf(ctx, f)
				if err != nil {
					return err
				}
				on, undetermined, err := src.Adaptivity(ctx, f)
				if err != nil {
					return err
				}
				ar = adaptivity(on, undetermined, len(f.OfType(mad.NodeTypeSwitch)))
				ports, lacks = linked(f), missing(f)
				known = blank(ports, tiers)
			}
			rates, err := src.Rates(ctx, ports)
			if err == nil {
				r.rows, r.silent = rowsOf(known, rates)
			}
			return err
		}()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.lacks, r.ar = lacks, ar
		r.at, r.sent = clock.Now(), src.Sent()-sent
		if r.err != nil || r.silent != silent {
			ports = nil // the fabric may be another one by now
		}
		silent = r.silent
		if !show(r) {
			return nil
		}
		if o.Rounds > 0 && num >= o.Rounds {
			return r.err
		}
		num++
		if err := clock.Sleep(ctx, min(o.Every, max(0, o.Every-clock.Now().Sub(began)))); err != nil {
			return err
		}
	}
}

// tiersOf returns the words of the tiers of nodes, by id; it may be empty.
func tiersOf(ctx context.Context, f *fabric.Fabric) ([]string, error) {
	words := make([]string, len(f.Nodes()))
	tiers, err := picture.Tiers(ctx, f)
	for i, nodes := range tiers[:min(len(tiers), len(picture.TierWords))] {
		for _, n := range nodes {
			words[n.ID()] = picture.TierWords[i]
		}
	}
	return words, err
}

// adaptivity describes adaptive routing of a number of switches.
func adaptivity(on, undetermined, switches int) string {
	var parts []string
	if on > 0 {
		parts = append(parts, fmt.Sprintf("on at %d", on))
	}
	if undetermined > 0 {
		parts = append(parts, fmt.Sprintf("unknown at %d", undetermined))
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("adaptive routing %s of %s", strings.Join(parts, ", "), plural.Count(switches, "switch", "switches"))
}

// missing returns how many parts a sweep could not find out.
func missing(f *fabric.Fabric) (n int) {
	for _, p := range f.Problems() {
		if p.Kind.Missing() {
			n++
		}
	}
	return n
}

// linked returns the ports with a link, in the order of the fabric.
func linked(f *fabric.Fabric) []*fabric.Port {
	ports := []*fabric.Port{}
	nodes := f.Nodes()
	for i := range nodes {
		for p := range nodes[i].Ports() {
			if p.Num() > 0 && p.Peer() != nil && p.PhysicalState() == mad.PortPhysicalStateLinkUp {
				ports = append(ports, p)
			}
		}
	}
	return ports
}

// plainRows is the number of rows in a round without a terminal.
const plainRows = 20

// Plain writes a block of lines for each round.
func Plain(ctx context.Context, o Options, src Source, clock lang.Clock, out io.Writer) error {
	t := newTable(o)
	var failed error
	err := o.rounds(ctx, src, clock, func(r round) bool {
		if r.num == 0 && r.err == nil {
			return true
		}
		t.add(r)
		_, failed = fmt.Fprintf(out, "%s %s\n", r.at.UTC().Format(time.RFC3339), t.summary())
		if failed == nil && r.err == nil {
			for _, line := range t.lines(0, 0, plainRows) {
				if _, failed = fmt.Fprintln(out, line); failed != nil {
					break
				}
			}
			if n := len(t.shown) - plainRows; n > 0 && failed == nil {
				_, failed = fmt.Fprintf(out, "... %s\n", plural.Count(n, "more port", "more ports"))
			}
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

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
