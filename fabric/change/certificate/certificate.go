// Package certificate checks the proof that a plan holds: that packets reach their
// destinations and cannot deadlock while forwarding tables change, whatever the order
// of the writes within a round. It shares no code with package order, which finds and
// proves the rounds, nor with package routing: it takes the fabric and the tables in
// force, and trusts nothing in the certificate.
//
//	certificate.go Certificate: rounds and proof as a value
//	subnet.go      Subnet: what a certificate is checked against; its switches and links
//	check.go       Check; the entries for one LID after the other, in all rounds
//	rounds.go      the rounds: they write what the plan changes
//	delivery.go    packets arrive: a rank decreases along all entries
//	choices.go     the same where switches route adaptively
//	credit.go      no credit loop: a position increases along all channel dependencies
//	make.go        Make: finds ranks and positions; Check relies on nothing in it
//
// Delivery. In a round each switch that changes its entry for a LID may have the old or
// the new one, independently of the others. Each switch has a rank. Where it is less
// than the number of switches, each entry that may be in force leads to the LID or to a
// lower rank, so packets arrive in all mixtures. Each switch has such a rank from which
// packets arrive both before and after the change. Where the rank is higher, packets may
// fail, but do not loop: entries that lead on lead to lower ranks, too.
//
// Adaptive routing. A switch where it is on has all its choices in force, until the round
// that first writes its table. In this round it has these, its old entry and the new one;
// afterwards its table alone.
//
// Credit loops. A channel is one direction of a link and a virtual lane. Between two
// drains, each channel has a position. It increases along every dependency: of two
// channels that follow each other on the path of packets between hosts, by any two
// entries that were in force at the same time or one after the other. So no cycle of
// dependencies exists (Dally and Seitz, IEEE TC C-36(5), 1987; of old with new entries:
// Duato, Lysne, Pang and Pinkston, IEEE TPDS 16(5), 2005).
//
// A loop or a credit loop of the tables in force is not one of the change: along it
// ranks and positions may be equal.
package certificate

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Certificate is the proof of a plan: its rounds, and why each is safe.
type Certificate struct {
	Rounds []Round
	// Ranks are those of the switches, for each LID and round in which its entries
	// change, by LID, then round, then GUID of the switch: numbers as Pack writes them.
	Ranks []byte
	// Lanes is how many virtual lanes are distinguished; 1: packets of all service levels
	// count as on one lane, which covers all assignments of lanes.
	Lanes int
	// Orders are the positions of the channels: numbers as Pack writes them, for the
	// rounds up to each drain and to the end. Channels are sorted by the GUID of the
	// switch that they leave, then by port, then by lane.
	Orders [][]byte
	// AcceptCreditLoops reports that credit loops were accepted: there are no Orders,
	// and only delivery is proven.
	AcceptCreditLoops bool
}

// Round is a set of writes in any order, all of them read back before the next round.
type Round struct {
	// Lanes reports that the round consists of the writes of SLtoVLMappingTable, all of
	// the change.
	Lanes  bool
	Blocks []Block // by number of the change
	// Drain is the wait after the round until the packets that were sent before have left
	// the switches; 0: none.
	Drain time.Duration
}

// Block is the write of a block of a linear forwarding table.
type Block struct {
	Change  int    // its number
	Entries []byte // nil: those that the change ends with
}

// FailureError is the reason why a certificate does not hold.
type FailureError struct{ Reason string }

func (e *FailureError) Error() string { return "the certificate does not hold: " + e.Reason }

func failure(format string, args ...any) error {
	return &FailureError{fmt.Sprintf(format, args...)}
}

// Pack encodes numbers as unsigned varints, compressed (RFC 1951).
func Pack(numbers []uint32) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // fails for invalid levels only
	var one []byte
	for _, n := range numbers {
		one = binary.AppendUvarint(one[:0], uint64(n))
		w.Write(one)
	}
	w.Close()
	return b.Bytes()
}

// packed reads what Pack wrote, number by number: a long list takes no memory.
type packed struct {
	in   *bufio.Reader
	what string
}

func unpack(data []byte, what string) *packed {
	return &packed{bufio.NewReader(flate.NewReader(bytes.NewReader(data))), what}
}

// read reads numbers up to limit.
func (p *packed) read(into []uint32, limit int) error {
	for i := range into {
		n, err := binary.ReadUvarint(p.in)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return failure("too few %s", p.what)
		case err != nil:
			return failure("%s: invalid: %v", p.what, err)
		case n > uint64(limit):
			return failure("%[2]s: %[1]d exceeds the maximum %[3]d", n, p.what, limit)
		}
		into[i] = uint32(n)
	}
	return nil
}

// end checks that the list has ended.
func (p *packed) end() error {
	if _, err := p.in.ReadByte(); !errors.Is(err, io.EOF) {
		return failure("too many %s", p.what)
	}
	return nil
}
