package apply_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// damaged returns a journal of which bytes are flipped, cut off, cut out or repeated, as ops
// say: three bytes each, for what, where, and how many.
func damaged(journal, ops []byte) []byte {
	journal = bytes.Clone(journal)
	for ; len(ops) >= 3 && len(journal) > 0; ops = ops[3:] {
		// Where: in any line, however long the first is.
		at := int(ops[1]) * len(journal) / 256
		if lines := bytes.Count(journal, []byte("\n")); ops[0]&0x80 != 0 && lines > 0 {
			n := int(ops[1]) % lines
			for at = 0; n > 0; n-- {
				at += bytes.IndexByte(journal[at:], '\n') + 1
			}
		}
		to := min(len(journal), at+1+int(ops[2]))
		switch ops[0] & 0x7f % 6 {
		case 0:
			journal[(at+int(ops[2]))%len(journal)] ^= 1 << (ops[0] >> 3 & 7)
		case 1:
			journal = journal[:at]
		case 2:
			journal = append(journal[:at], journal[to:]...)
		case 3:
			journal = append(journal[:to:to], journal[at:]...)
		case 4: // a line
			if end := bytes.IndexByte(journal[at:], '\n'); end >= 0 {
				journal = append(journal[:at+end+1:at+end+1], journal[at:]...)
			}
		case 5:
			if end := bytes.IndexByte(journal[at:], '\n'); end >= 0 {
				journal = append(journal[:at], journal[at+end+1:]...)
			}
		}
	}
	return journal
}

// FuzzJournalDamage: whatever has become of the journal of a change that is confirmed, that
// waits, or that was interrupted, what status, revert, confirm, resume and the others report
// is an error, or true of the fabric.
func FuzzJournalDamage(f *testing.F) {
	damages := [][]byte{
		{0x80, 1, 40},      // a flip in line 2
		{0x81, 1, 0},       // all but line 1 cut off
		{0, 10, 3},         // a flip in line 1
		{0x84, 2, 0},       // a line twice
		{0x85, 3, 0},       // a line less
		{1, 250, 0},        // an incomplete line
		{3, 200, 50, 2, 9}, // bytes twice
	}
	const states, verbs = 4, 7
	for i := range states * verbs {
		f.Add(byte(i%states), byte(i%verbs), []byte(nil))
		f.Add(byte(i%states), byte(i%verbs), damages[i%len(damages)])
		f.Add(byte(i%states), byte(i%verbs), damages[(i+1)%len(damages)])
	}
	const spec = "fattree:k=4"
	made := newRig(f, spec)
	made.uplinks()
	whole := made.confirmed(filepath.Join(f.TempDir(), "x"), &apply.Begin{ID: "x", Within: 5 * time.Second})
	topology, options, err := sim.Parse(spec)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, state, verb byte, ops []byte) {
		synctest.Test(t, func(t *testing.T) {
			r := &rig{t: t, subnet: sim.New(topology, options), f: made.f, node: made.node, cells: made.cells, clock: clock{}}
			for _, c := range r.cells {
				for lid, port := range c.New {
					if port != c.Old[lid] {
						r.subnet.Edit.LFT(c.Node, mad.LID(lid), port)
					}
				}
			}
			dir := filepath.Join(t.TempDir(), "x")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			text, lines := whole, bytes.SplitAfter(whole, []byte("\n"))
			switch state % states {
			case 1: // it waits to be confirmed
				text = bytes.Join(lines[:len(lines)-2], nil)
			case 2: // it was interrupted in the middle, when one block is as before again
				text = bytes.Join(lines[:4], nil)
				for lid, port := range r.cells[0].Old {
					r.subnet.Edit.LFT(r.cells[0].Node, mad.LID(lid), port)
				}
			case 3: // another has written a block
				r.subnet.Edit.LFT(r.cells[2].Node, 60, 1)
			}
			journal := damaged(text, ops)
			path := apply.JournalIn(dir)
			if err := os.WriteFile(path, journal, 0o600); err != nil {
				t.Fatal(err)
			}
			run, end := r.run(dir)
			defer end()
			was := r.tables()
			fabric := r.sweep(run)
			var outcome apply.Outcome
			var err error
			wrote := false
			switch verb % verbs {
			case 0:
				var s *apply.Status
				if s, err = run.Status(t.Context()); err == nil {
					for i, b := range s.Blocks {
						if is := r.cells[i].Classify(was[i]); b.State != is && !(b.State == apply.Between && is == apply.Foreign) {
							t.Errorf("%s is %v, and status has it as %v", b.Text, is, b.State)
						}
					}
				}
			case 1:
				outcome, err = run.Revert(t.Context(), fabric)
				if wrote = true; err == nil && (outcome == apply.RevertedOnRequest || outcome == apply.Nothing) && !r.are(before) {
					t.Errorf("revert: %v, and the fabric is not as before", outcome)
				}
			case 2:
				outcome, err = run.Confirm(t.Context(), false)
				if err == nil && outcome == apply.Confirmed && !r.are(after) {
					t.Error("confirmed, and the fabric is not as after the change")
				}
			case 3:
				var left []string
				left, err = run.RevertFromFabric(t.Context(), fabric, nil)
				if wrote = true; err == nil {
					n := 0
					for i, data := range r.tables() {
						if r.cells[i].Classify(data) != apply.Old {
							n++
						}
					}
					if n != len(left) {
						t.Errorf("left %q, and %d blocks are not as before", left, n)
					}
				}
			case 4:
				var left []string
				if left, err = run.Abandon(t.Context()); err == nil {
					n := 0
					for i, data := range was {
						if r.cells[i].Classify(data) != apply.Old {
							n++
						}
					}
					if n != len(left) {
						t.Errorf("left %q, and %d blocks are not as before", left, n)
					}
				}
			case 5, 6:
				confirms := verb%verbs == 6
				run.Host.StartGuard = r.guard(dir)
				if confirms { // another process, while the change waits
					other, end := r.run(dir)
					r.guards.Go(func() {
						defer end()
						time.Sleep(3 * time.Second)
						other.Confirm(t.Context(), false)
					})
				}
				outcome, err = run.Resume(t.Context(), fabric)
				wrote = outcome != apply.Nothing
				switch {
				case err != nil || outcome == apply.Nothing:
				case outcome == apply.Confirmed && (!confirms || !r.are(after)),
					outcome == apply.Expired && (confirms || !r.are(before)),
					outcome != apply.Confirmed && outcome != apply.Expired:
					t.Errorf("resume: %v, is as before: %v, as after: %v", outcome, r.are(before), r.are(after))
				}
				r.guards.Wait()
			}
			var damage *apply.DamageError
			if errors.As(err, &damage) {
				wrote = false
				there, _ := os.ReadFile(damage.Copy)
				if !bytes.Equal(there, journal) {
					t.Errorf("%v: the copy is another file", damage)
				}
				if now, err := os.ReadFile(path); verb%verbs != 4 && !bytes.Equal(now, journal) {
					t.Errorf("%v: the journal was written (%v)", damage, err)
				}
			}
			if !wrote {
				for i, data := range r.tables() {
					if !bytes.Equal(data, was[i]) {
						t.Errorf("%s was written", r.cells[i].Name)
					}
				}
			}
		})
	})
}
