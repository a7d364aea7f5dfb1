// Package top is a live table of the ports of a fabric: traffic, waits and errors.
//
//	top.go       rounds, and plain lines without a terminal
//	row.go       a port in a round
//	table.go     rows sorted, filtered, and laid out for a width
//	screen.go    the table on a terminal
//	keys.go      the keys of the table
//	terminal.go  the terminal itself
package top

import (
	"context"
	"fmt"
	"io"
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
