package apply_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestJournalTorn: an incomplete last line, which a killed writer has left, is ignored
// and overwritten.
func TestJournalTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := apply.NewJournal(path, &apply.Begin{Summary: "test"}, clock{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(apply.Record{Kind: apply.KindApplied}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut >= 0; cut-- {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := apply.OpenJournal(path, clock{})
		lines := slices.Index(whole, '\n') + 1
		if (err == nil) != (cut >= lines) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err != nil {
			continue
		}
		if err := j.Append(apply.Record{Kind: apply.KindConfirmed}); err != nil {
			t.Fatal(err)
		}
		j.Close()
		if j, err = apply.ReadJournal(path); err != nil || j.Open() {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

// TestJournalOfOthers: the folder of journals may be another user's, as the exporter's
// is: what they put there instead of a journal is not written through, nobody waits for
// it, and it is not read at any length.
func TestJournalOfOthers(t *testing.T) {
	for _, x := range []struct {
		what string
		put  func(path, victim string) error
		want string // a regular expression
	}{
		{"symbolic link", func(path, victim string) error { return os.Symlink(victim, path) }, "is a symbolic link, which is not followed"},
		{"hard link", func(path, victim string) error { return os.Link(victim, path) }, "line 1: the first line is incomplete"},
		{"pipe", func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		{"folder", func(path, _ string) error { return os.Mkdir(path, 0o700) }, "not a regular file|is a directory"}, // of reading, of opening
		{"long", func(path, victim string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}, "line 1: the line has zero bytes"},
		{"another's", func(path, _ string) error {
			return errors.Join(os.WriteFile(path, nil, 0o666), os.Chown(path, 65534, 65534))
		}, "is a journal of another user"},
	} {
		t.Run(x.what, func(t *testing.T) {
			if x.what == "another's" && os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			dir := t.TempDir()
			victim := filepath.Join(dir, "victim")
			if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "sub", "change.journal")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), x.put(path, victim)); err != nil {
				t.Fatal(err)
			}
			_, read := apply.ReadJournal(path)
			_, opened := apply.OpenJournal(path, clock{})
			for i, err := range []error{read, opened} {
				if x.what == "another's" && i == 0 {
					continue // it tells of a change that another has begun
				}
				if err == nil || !strings.Contains(err.Error(), path) || !regexp.MustCompile(x.want).MatchString(err.Error()) {
					t.Errorf("got %v, want %s", err, x.want)
				}
			}
			port := engine.Port{PortGUID: 1}
			found, unknown, failed := apply.Find(dir, &port)
			if found != nil || len(unknown) == 0 && (failed == nil || !strings.Contains(failed.Error(), path)) {
				t.Errorf("found %q, unknown %v, failed %v", found, unknown, failed)
			}
			_, b, damaged := apply.Unended(dir, &port)
			if b != nil || len(damaged) != 1 || !strings.Contains(damaged[0].Error(), path) {
				t.Errorf("unended %v, damaged %q", b, damaged)
			}
			// What a killed writer has left is replaced, whatever it is.
			if err := x.put(path+".new", victim); err != nil {
				t.Fatal(err)
			}
			j, err := apply.NewJournal(filepath.Join(dir, "sub", "change.journal"), &apply.Begin{Summary: "test"}, clock{})
			if x.what != "folder" {
				if err != nil {
					t.Fatal(err)
				}
				j.Close()
				if j, err := apply.ReadJournal(path); err != nil || j.Begin().Summary != "test" {
					t.Errorf("the new one: %v", err)
				}
			}
			if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
				t.Errorf("the other file: %q, %v", text, err)
			}
		})
	}
}

// FuzzJournal: what is read of any records is fit to be looked at, and to be taken back.
func FuzzJournal(f *testing.F) {
	cell := &certificate.Change{Node: 1, Name: "leaf-1 PortInfo", LID: 1, Attr: mad.AttrPortInfo, Modifier: 1, Fields: []string{"port_physical_state"}, Old: make([]byte, mad.AttrPortInfo.Size), New: make([]byte, mad.AttrPortInfo.Size)}
	lft := &certificate.Change{Node: 1, Name: "leaf-1", Routes: []mad.DirectedRoute{{0, 1}}, Attr: mad.AttrLinearForwardingTable, Old: make([]byte, 64), New: make([]byte, 64)}
	begin := []*certificate.Change{cell, lft}
	var seed []byte
	for _, rec := range []apply.Record{
		{Kind: apply.KindBegin, Begin: &apply.Begin{Summary: "x", Cells: begin}},
		{Kind: apply.KindRound, Number: 1, Round: certificate.Round{Writes: []certificate.Write{{Change: 1, Data: make([]byte, 64)}}}},
		{Kind: apply.KindApplied, Within: time.Minute},
	} {
		text, err := json.Marshal(rec)
		if err != nil {
			f.Fatal(err)
		}
		seed = append(append(seed, text...), '\n')
	}
	f.Add(seed)
	f.Add([]byte("{\"begin\":{\"cells\":[null]}}\n"))
	f.Add(bytes.Replace(seed, []byte("\"cell\":1"), []byte("\"cell\":-1"), 1))
	f.Add(bytes.Replace(seed, []byte("\"cell\":1"), []byte("\"cell\":0"), 1))
	path := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, records []byte) {
		var file []byte
		n := 0
		for text := range bytes.Lines(records) {
			n++
			file = append(file, apply.FormatLine(n, bytes.TrimSuffix(text, []byte("\n")))...)
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := apply.ReadJournal(path)
		if err != nil {
			return
		}
		j.Open()
		cells := j.Begin().Cells
		for _, c := range cells {
			if apply.Classify(c, c.Old) != apply.Old {
				t.Errorf("%s: the old is not old", c.Name)
			}
		}
		for _, rec := range j.Records {
			for _, s := range rec.Writes {
				apply.Classify(cells[s.Change], s.Data)
			}
			if _, err := json.Marshal(rec); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStagePipe: OpenSM's file is read again and again, so a pipe is refused, at once.
func TestStagePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lfts")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := apply.ReadStaged(path, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

// TestNothingSent: the journal of a change of which nothing was sent is replaced by the journal
// of the change before, which may still have to be reverted.
func TestNothingSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "change.journal")
	begin := func(id string) *apply.Journal {
		j, err := apply.NewJournal(path, &apply.Begin{ID: id}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		return j
	}
	latest := func(want string) {
		t.Helper()
		if j, err := apply.ReadJournal(path); err != nil || j.Begin().ID != want {
			t.Errorf("%v, %v, want %s", j, err, want)
		}
	}
	if err := begin("nothing").NothingSent("refused"); err != nil {
		t.Error(err)
	}
	latest("nothing") // there is no other
	made := begin("made")
	for _, kind := range []apply.RecordKind{apply.KindRound, apply.KindApplied, apply.KindConfirmed} {
		if err := made.Append(apply.Record{Kind: kind, Number: 1}); err != nil {
			t.Fatal(err)
		}
	}
	refused := begin("refused")
	latest("refused")
	if err := refused.NothingSent("refused"); err != nil || refused.Open() {
		t.Error(err)
	}
	latest("made")
	full := begin("full")
	full.FillAfter(0)
	if err := full.NothingSent("the disk is full"); err != nil {
		t.Error(err)
	}
	latest("made")
	next := begin("next")
	if err := next.Append(apply.Record{Kind: apply.KindRound, Number: 1}); err != nil {
		t.Fatal(err)
	}
	latest("next")
	if list, err := filepath.Glob(path + "*"); len(list) != 2 {
		t.Errorf("after the record of a round: %v, %v", list, err)
	}
	next.DropPrevious()
	if list, err := filepath.Glob(path + "*"); len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
