package change

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// The certificate in the file: null, or an object. Rounds name changes by number: the
// Sets, those of one block together. Lists of numbers are compressed, and cut into texts.
type (
	certRoundFile struct {
		Lanes   bool          `json:"lanes"`
		Drain   int64         `json:"drain_ms"`
		Changes [][2]int      `json:"changes"` // from the first to the last
		Between []betweenFile `json:"between,omitempty"`
	}
	// betweenFile is a block that does not have its final value yet.
	betweenFile struct {
		Change  int    `json:"change"`
		Entries []byte `json:"entries"`
	}
)

// certificate writes a certificate.
func (w *fileWriter) certificate(c *certificate.Certificate) {
	w.text(",\n\"certificate\": ")
	if c == nil {
		w.text("null")
		return
	}
	w.text("{\n\"lanes\": ")
	w.value(c.Lanes)
	w.text(",\n\"accept_credit_loops\": ")
	w.value(c.AcceptCreditLoops)
	rows(w, "rounds", c.Rounds, func(_ int, r certificate.Round) any {
		row := certRoundFile{Lanes: r.Lanes, Drain: r.Drain.Milliseconds(), Changes: [][2]int{}}
		for _, b := range r.Blocks {
			if n := len(row.Changes); n > 0 && row.Changes[n-1][1] == b.Change-1 {
				row.Changes[n-1][1]++
			} else {
				row.Changes = append(row.Changes, [2]int{b.Change, b.Change})
			}
			if b.Entries != nil {
				row.Between = append(row.Between, betweenFile{b.Change, b.Entries})
			}
		}
		return row
	})
	rows(w, "ranks", chunks(c.Ranks), func(_ int, b []byte) any { return b })
	rows(w, "orders", c.Orders, func(_ int, order []byte) any { return chunks(order) })
	w.text("\n}")
}

// maxChunk is how many bytes a text of the file has in base64, at most.
const maxChunk = maxText / 2

func chunks(data []byte) [][]byte {
	return slices.AppendSeq([][]byte{}, slices.Chunk(data, maxChunk))
}

// chunks reads bytes that were cut into texts.
func (f *fileReader) chunks() (data []byte, err error) {
	err = f.list("texts", maxSets, func() error {
		b, err := f.bytes()
		data = append(data, b...)
		return err
	})
	return data, err
}

// certificate reads the certificate; null: none. It need not hold.
func (f *fileReader) certificate() (*certificate.Certificate, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	c, blocks := &certificate.Certificate{}, 0
	return c, f.members("the certificate", t, map[string]func() error{
		"lanes":               count(f, &c.Lanes, mad.DropVL),
		"accept_credit_loops": member(&c.AcceptCreditLoops, f.bool),
		"rounds": func() error {
			return f.list("rounds", maxRounds, func() error {
				r, err := f.certRound(&blocks)
				c.Rounds = append(c.Rounds, r)
				return err
			})
		},
		"ranks": member(&c.Ranks, f.chunks),
		"orders": func() error {
			return f.list("orders", maxRounds, func() error {
				order, err := f.chunks()
				c.Orders = append(c.Orders, order)
				return err
			})
		},
	})
}

// certRound reads a round. blocks counts those of all rounds: few bytes name many.
func (f *fileReader) certRound(blocks *int) (r certificate.Round, err error) {
	var ms int64
	between := map[int][]byte{}
	err = f.object("a round", map[string]func() error{
		"lanes":    member(&r.Lanes, f.bool),
		"drain_ms": count(f, &ms, 1<<40),
		"changes": func() error {
			return f.list("changes", maxSets, func() error {
				span, err := f.ints(maxSets, maxSets)
				if err != nil {
					return err
				}
				if *blocks += span[1] - span[0] + 1; *blocks > maxSets || span[1] < span[0] || len(r.Blocks) > 0 && span[0] <= r.Blocks[len(r.Blocks)-1].Change {
					return fmt.Errorf("from %d to %d: changes must be unique, in order, and at most %d in all rounds", span[0], span[1], maxSets)
				}
				for i := span[0]; i <= span[1]; i++ {
					r.Blocks = append(r.Blocks, certificate.Block{Change: i})
				}
				return nil
			})
		},
		"between": func() error {
			return f.list("blocks", maxSets, func() error {
				var b betweenFile
				err := f.object("a block", map[string]func() error{"change": count(f, &b.Change, maxSets), "entries": member(&b.Entries, f.bytes)})
				if err == nil && between[b.Change] != nil {
					err = errors.New("duplicate")
				}
				between[b.Change] = b.Entries
				return err
			})
		},
	})
	for i := range r.Blocks {
		b := &r.Blocks[i]
		b.Entries = between[b.Change]
		delete(between, b.Change)
	}
	if err == nil && len(between) > 0 {
		err = errors.New("between: blocks of changes that are not in the round")
	}
	r.Drain = time.Duration(ms) * time.Millisecond
	return r, err
}
