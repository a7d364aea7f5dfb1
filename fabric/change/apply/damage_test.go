package apply_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// flip flips one bit in the middle of line n of a journal, which is counted from 1.
func flip(journal []byte, n int) []byte {
	journal = slices.Clone(journal)
	at := 0
	for range n - 1 {
		at += bytes.IndexByte(journal[at:], '\n') + 1
	}
	journal[at+bytes.IndexByte(journal[at:], '\n')/2] ^= 1
	return journal
}

// TestJournalDamaged: a line that is whole and does not verify is damage, wherever it is.
// It is reported by name and number, and the file is neither written nor cut.
func TestJournalDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "change.journal")
	j, err := apply.NewJournal(path, &apply.Begin{Summary: "test", Port: 1}, clock{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range []apply.Record{{Kind: apply.KindRound, Number: 1}, {Kind: apply.KindDone, Number: 1}, {Kind: apply.KindApplied}, {Kind: apply.KindConfirmed}} {
		if err := j.Append(rec); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	older := olderFormat(whole)
	lines := bytes.SplitAfter(whole, []byte("\n"))[:5]
	for _, x := range []struct {
		what    string
		journal []byte
		want    string // "": no damage
		last    apply.RecordKind
	}{
		{"whole", whole, "", ""},
		{"an incomplete last line", whole[:len(whole)-7], "", ""},
		{"a flip in an incomplete last line", append(slices.Concat(lines[:4]...), flip(lines[4], 1)[:20]...), "", ""},
		{"a flip in line 1", flip(whole, 1), "line 1: checksum does not match", "confirmed"},
		{"a flip in line 2", flip(whole, 2), "line 2: checksum does not match", "confirmed"},
		{"a flip in the last line", flip(whole, 5), "line 5: checksum does not match", ""},
		{"a flip in line 2, and an incomplete last line", flip(whole, 2)[:len(whole)-7], "line 2: checksum does not match", ""},
		{"a number in another case", bytes.Replace(whole, []byte("\n2 "), []byte("\n02 "), 1), "line 2: checksum does not match", "confirmed"},
		{"the last newline is another byte", append(slices.Clone(whole[:len(whole)-1]), '\v'), "line 5: the line does not end with a newline", ""},
		{"a line twice", slices.Concat(lines[0], lines[1], lines[1], lines[2], lines[3], lines[4]), "line 3: the line has number 2, want 3", "confirmed"},
		{"a line is missing", slices.Concat(lines[0], lines[2], lines[3], lines[4]), "line 2: the line has number 3, want 2", "confirmed"},
		{"lines in another order", slices.Concat(lines[0], lines[2], lines[1], lines[3], lines[4]), "line 2: the line has number 3, want 2", "confirmed"},
		{"zero bytes", append(slices.Concat(lines[:3]...), append(make([]byte, len(lines[3])-1), '\n')...), "line 4: checksum does not match", ""},
		{"empty", nil, "line 1: the file is empty", ""},
		{"an incomplete first line", whole[:20], "line 1: the first line is incomplete", ""},
		{"the older format", older, "", ""},
		{"the older format, an incomplete last line", older[:len(older)-7], "", ""},
		{"the older format, a flip in line 2", flip(older, 2), "line 2: checksum does not match", ""},
		{"the older format, a flip in the last line", flip(older, 5), "line 5: checksum does not match", ""},
	} {
		t.Run(x.what, func(t *testing.T) {
			if err := os.WriteFile(path, x.journal, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := apply.ReadJournal(path)
			var damage *apply.DamageError
			if x.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &damage) || !strings.HasPrefix(err.Error(), "journal "+path+" "+x.want+"; the file is unchanged") || damage.Last != x.last {
				t.Errorf("got %v (last %q), want %s (last %q)", err, damage.Last, x.want, x.last)
			}
			if _, err := apply.OpenJournal(path, clock{}); !errors.As(err, &damage) {
				t.Errorf("it opens: %v", err)
			}
			run := apply.Run{Dir: dir}
			if _, err := run.Read(); !errors.As(err, &damage) {
				t.Errorf("it reads: %v", err)
			}
			for _, name := range []string{path, damage.Copy} {
				if text, err := os.ReadFile(name); err != nil || !bytes.Equal(text, x.journal) {
					t.Errorf("%q is not as before: %v", name, err)
				}
			}
		})
	}
}

// olderFormat is a journal as an older version wrote it: a line begins with a digest of
// the lines before and of the record.
func olderFormat(journal []byte) (older []byte) {
	var sum [sha256.Size]byte
	for line := range bytes.Lines(journal) {
		text := bytes.SplitN(line, []byte(" "), 3)[2]
		sum = sha256.Sum256(append(sum[:], bytes.TrimSuffix(text, []byte("\n"))...))
		older = append(fmt.Appendf(older, "%x ", sum[:8]), text...)
	}
	return older
}

// TestOlderJournal: a journal of the older format is gone on with in the newer one.
func TestOlderJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "change.journal")
	j, err := apply.NewJournal(path, &apply.Begin{ID: "x"}, clock{})
	if err != nil {
		t.Fatal(err)
	}
	j.Append(apply.Record{Kind: apply.KindRound, Number: 1})
	j.Close()
	text, _ := os.ReadFile(path)
	older := olderFormat(text)
	if err := os.WriteFile(path, append(older, "0123"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if j, err = apply.OpenJournal(path, clock{}); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(apply.Record{Kind: apply.KindReverted}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	text, _ = os.ReadFile(path)
	if j, err = apply.ReadJournal(path); err != nil || len(j.Records) != 3 || j.Open() || !bytes.HasPrefix(text, append(older, "3 "...)) {
		t.Errorf("%v, %v\n%s", j, err, text)
	}
}

// TestHiddenChange: a journal of which a line is damaged is reported, as it may hide a
// change of this subnet that has not ended.
func TestHiddenChange(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"sm-1", "port-0x0000000000000001", "port-0x0000000000000002"} {
		sub := filepath.Join(dir, folder)
		os.Mkdir(sub, 0o700)
		j, err := apply.NewJournal(apply.JournalIn(sub), &apply.Begin{Port: 1}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		j.Append(apply.Record{Kind: apply.KindRound, Number: 1})
		j.Append(apply.Record{Kind: apply.KindConfirmed})
		j.Close()
		text, err := os.ReadFile(apply.JournalIn(sub))
		if err != nil {
			t.Fatal(err)
		}
		for line := range 4 {
			port := engine.Port{PortGUID: mad.GUID(1)}
			was := text
			if line > 0 {
				was = flip(text, line)
			}
			os.WriteFile(apply.JournalIn(sub), was, 0o600)
			want := line > 0 && (folder != "port-0x0000000000000002" || line > 1) // another port
			_, b, damaged := apply.Unended(dir, &port)
			if b != nil || (len(damaged) == 1) != want || want && !strings.Contains(damaged[0].Error(), fmt.Sprintf("journal %s line %d: checksum does not match", apply.JournalIn(sub), line)) {
				t.Errorf("%s, line %d: %v, %q", folder, line, b, damaged)
			}
		}
		os.WriteFile(apply.JournalIn(sub), text, 0o600)
	}
}

// TestDamagedRevert: of a change whose journal is damaged nothing is claimed but what was
// just read. It is reverted from the fabric: by the first line, or by the plan.
func TestDamagedRevert(t *testing.T) {
	for _, line := range []int{1, 2, 3, 4} {
		for _, foreign := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=4")
				r.uplinks()
				state := t.TempDir()
				dir := filepath.Join(state, fabric.SubnetOf(r.f, "").Key())
				journal := flip(r.confirmed(dir, &apply.Begin{Summary: "test"}), line)
				path := apply.JournalIn(dir)
				if err := os.WriteFile(path, journal, 0o600); err != nil {
					t.Fatal(err)
				}
				run, end := r.run(dir)
				defer end()
				var damage *apply.DamageError
				f := r.sweep(run)
				if outcome, err := run.Revert(t.Context(), f); outcome != apply.Unresolved || !errors.As(err, &damage) || damage.Line != line {
					t.Fatal(outcome, err)
				}
				if outcome, err := run.Confirm(t.Context(), false); outcome != apply.Unresolved || !errors.As(err, &damage) {
					t.Fatal(outcome, err)
				}
				if outcome, err := run.Resume(t.Context(), f); outcome != apply.Unresolved || !errors.As(err, &damage) {
					t.Fatal(outcome, err)
				}
				if outcome, err := run.Apply(t.Context(), f, nil, &apply.Begin{Cells: r.cells}); outcome != apply.Unresolved || !errors.As(err, &damage) {
					t.Fatal(outcome, err)
				}
				for _, name := range []string{path, damage.Copy} {
					if text, err := os.ReadFile(name); err != nil || !bytes.Equal(text, journal) {
						t.Errorf("%s is not as before: %v", name, err)
					}
				}
				if copies, _ := filepath.Glob(path + ".*"); len(copies) != 1 {
					t.Errorf("files: %q", copies)
				}
				if foreign {
					if err := r.subnet.Edit.LFT(r.cells[1].Node, 60, 1); err != nil {
						t.Fatal(err)
					}
				}
				s, err := run.Status(t.Context())
				if err != nil || s.Damage == nil || (s.Blocks == nil) != (line == 1) {
					t.Fatal(s, err)
				}
				for i, b := range s.Blocks {
					if want := (foreign && i == 1); (b.State == apply.Foreign) != want || !want && b.State != apply.New {
						t.Errorf("%v is %v", b.Text, b.State)
					}
				}
				var p *change.Plan
				if line == 1 {
					if _, err := run.RevertFromFabric(t.Context(), f, nil); err == nil || !strings.Contains(err.Error(), "name the plan that was applied") {
						t.Error(err)
					}
					p = swapPlan(t, r, nil)
				}
				left, err := run.RevertFromFabric(t.Context(), f, p)
				if err != nil || (len(left) == 1) != foreign || foreign && !strings.Contains(left[0], "LID 60 is port 1, and not dropped") {
					t.Fatalf("%q, %v", left, err)
				}
				for i, data := range r.tables() {
					if want := r.cells[i].Old; bytes.Equal(data, want) == (foreign && i == 1) {
						t.Errorf("%s is not reverted", r.cells[i].Name)
					}
				}
				j, err := apply.ReadJournal(path)
				if err != nil || j.Open() || (j.Last(apply.KindReverted) == nil) != foreign {
					t.Error(j, err)
				}
				if text, err := os.ReadFile(damage.Copy); err != nil || !bytes.Equal(text, journal) {
					t.Errorf("the copy is not as before: %v", err)
				}
			})
		}
	}
}

// TestCutJournal: a journal of which lines are missing from the end claims too little was
// sent; what the fabric has is reverted nevertheless.
func TestCutJournal(t *testing.T) {
	for lines := range 5 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4")
			r.uplinks()
			dir := filepath.Join(t.TempDir(), "x")
			text := r.confirmed(dir, &apply.Begin{})
			os.WriteFile(apply.JournalIn(dir), slices.Concat(bytes.SplitAfter(text, []byte("\n"))[:lines+1]...), 0o600)
			run, end := r.run(dir)
			defer end()
			if outcome, err := run.Revert(t.Context(), r.sweep(run)); outcome != apply.RevertedOnRequest || err != nil || !r.are(before) {
				t.Errorf("%d lines: %v, %v, reverted %t", lines+1, outcome, err, r.are(before))
			}
			// That the journal has it as reverted is no reason to say that it is.
			if err := r.subnet.Edit.LFT(r.cells[0].Node, 60, 1); err != nil {
				t.Fatal(err)
			}
			if outcome, err := run.Revert(t.Context(), r.sweep(run)); err == nil || !strings.Contains(err.Error(), "1 block is not as before it") {
				t.Error(outcome, err)
			}
		})
	}
}

// TestDamagedAbandon: to end a change with a damaged journal, that is set aside.
func TestDamagedAbandon(t *testing.T) {
	for _, line := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4")
			r.uplinks()
			dir := filepath.Join(t.TempDir(), "x")
			journal := flip(r.confirmed(dir, &apply.Begin{}), line)
			os.WriteFile(apply.JournalIn(dir), journal, 0o600)
			run, end := r.run(dir)
			defer end()
			left, err := run.Abandon(t.Context())
			var damage *apply.DamageError
			if line == 1 {
				if _, e := os.Stat(apply.JournalIn(dir)); !errors.As(err, &damage) || left != nil || !errors.Is(e, os.ErrNotExist) {
					t.Error(left, err, e)
				}
			} else if err != nil || len(left) != 4 || !strings.HasSuffix(left[0], " is new") {
				t.Errorf("%q, %v", left, err)
			}
			copies, _ := filepath.Glob(apply.JournalIn(dir) + ".damaged-*")
			if text, err := os.ReadFile(copies[0]); err != nil || len(copies) != 1 || !bytes.Equal(text, journal) {
				t.Error(copies, err)
			}
			if !r.are(after) {
				t.Error("it was written")
			}
		})
	}
}

// TestDamagedWhileOpen: where the journal is damaged while a change waits to be
// confirmed, the guard process reverts it by what it has read before; so does the process
// that makes it.
func TestDamagedWhileOpen(t *testing.T) {
	for _, guards := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4")
			r.uplinks()
			dir := filepath.Join(t.TempDir(), "x")
			run, end := r.run(dir)
			defer end()
			defer r.guards.Wait()
			if run.Host.StartGuard = r.guard(dir); !guards {
				run.Host.StartGuard = func(context.Context, string) (apply.Guard, error) {
					return &fakeGuard{done: make(chan struct{}), gone: make(chan struct{})}, nil
				}
			}
			go func() {
				time.Sleep(time.Minute)
				text, _ := os.ReadFile(apply.JournalIn(dir))
				f, _ := os.OpenFile(apply.JournalIn(dir), os.O_WRONLY, 0)
				f.WriteAt(flip(text, 2), 0)
				f.Close()
				os.Chtimes(apply.JournalIn(dir), time.Time{}, time.Now()) // virtual
			}()
			f := r.sweep(run)
			sm, err := run.Host.SA.FindSM(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := run.Apply(t.Context(), f, sm, &apply.Begin{ID: "x", Cells: r.cells, Within: time.Hour, Manager: sm.Info.GUID})
			if outcome != apply.Failed || err == nil || !strings.Contains(err.Error(), "line 2: checksum does not match") || !r.are(before) {
				t.Errorf("guarded %t: %v, %v, reverted %t", guards, outcome, err, r.are(before))
			}
			if j, err := apply.ReadJournal(apply.JournalIn(dir)); err != nil || j.Last(apply.KindReverted) == nil {
				t.Error(j, err)
			}
		})
	}
}

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
						if is := apply.Classify(r.cells[i], was[i]); b.State != is && !(b.State == apply.Between && is == apply.Foreign) {
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
						if apply.Classify(r.cells[i], data) != apply.Old {
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
						if apply.Classify(r.cells[i], data) != apply.Old {
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
