package remedy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// clock is the time of the machine.
type clock struct{}

func (clock) Now() time.Time                             { return time.Now() }
func (clock) Sleep(context.Context, time.Duration) error { return nil }

// journal writes a journal of a change below dir that disables or enables port a.
func journal(t *testing.T, dir, summary string, to mad.PortPhysicalState, begun time.Time, end apply.RecordKind, left ...int) {
	t.Helper()
	size := mad.AttrPortInfo.Size
	c := &certificate.Change{Node: a.GUID, Name: "x", LID: 1, Attr: mad.AttrPortInfo, Modifier: uint32(a.Num), Fields: []string{stateField}, Old: make([]byte, size), New: make([]byte, size)}
	mad.AttrPortInfo.Field(stateField).SetUint(c.New, uint64(to))
	path := apply.JournalIn(filepath.Join(dir, "subnet"))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := apply.NewJournal(path, &apply.Begin{Summary: summary, Cells: []*certificate.Change{c}}, clock{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if left != nil {
		if err := j.Append(apply.Record{Kind: apply.KindApplied, At: begun, Left: left}); err != nil {
			t.Fatal(err)
		}
	}
	if end != "" {
		if err := j.Append(apply.Record{Kind: end, At: begun.Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestApplied: a port is isolated once a journal has confirmed the plan of a remedy, and not by
// another change. Record keeps that before the next change replaces the journal.
func TestApplied(t *testing.T) {
	now := time.Now() // journals have the time of the machine
	planned := isolation(0, "")
	planned.At = now.Add(-time.Minute)
	for _, test := range []struct {
		name, summary string
		planned       time.Time
		end           apply.RecordKind
		want          bool
	}{
		{"confirmed", "fabsh remedy isolate", planned.At, apply.KindConfirmed, true},
		{"open", "fabsh remedy isolate", planned.At, "", false},
		{"reverted", "fabsh remedy isolate", planned.At, apply.KindReverted, false},
		{"of a script", "maintenance.star", planned.At, apply.KindConfirmed, false},
		{"before the plan", "fabsh remedy isolate", now.Add(time.Hour), apply.KindConfirmed, false},
		{"stopped before it", "fabsh remedy isolate", planned.At, apply.KindConfirmed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a[b]*")
			path := filepath.Join(dir, "subnet", "remedies")
			e := planned
			e.At = test.planned
			appended(t, path, run(0), e)
			var left []int
			if test.name == "stopped before it" {
				left = []int{0}
			}
			journal(t, dir, test.summary, mad.PortPhysicalStateDisabled, now, test.end, left...)
			if err := Record(dir); err != nil {
				t.Fatal(err)
			}
			os.Remove(apply.JournalIn(filepath.Join(dir, "subnet"))) // the next change replaces it
			l, err := Current(path, dir)
			if err != nil {
				t.Fatal(err)
			}
			if past := l.State.at(a); past.Isolated.IsZero() == test.want || past.Planned.IsZero() != test.want {
				t.Errorf("%+v", past)
			}
			if !test.want {
				return
			}
			// It is applied once, and enabled by the plan to restore it.
			if n := len(l.Entries); n != 3 {
				t.Errorf("%d entries", n)
			}
			back := e
			back.Action, back.At = Restore, now.Add(-time.Second)
			appended(t, path, back)
			journal(t, dir, "fabsh remedy restore", mad.PortPhysicalStatePolling, now, apply.KindConfirmed)
			if l, err = Current(path, dir); err != nil || l.State.at(a).Testing.IsZero() || !l.State.at(a).Isolated.IsZero() {
				t.Errorf("after the restore: %+v, %v", l.State.at(a), err)
			}
		})
	}
}

// TestCheckPlan: a plan of remedies is applied where the log has its actions, within a day.
func TestCheckPlan(t *testing.T) {
	dir := t.TempDir()
	back := isolation(10, "")
	back.Action = Restore
	appended(t, filepath.Join(dir, "subnet", "remedies"), run(0), isolation(0, ""), Entry{At: at(1), Kind: KindApplied, Action: Isolate, Port: a, Peer: b}, back)
	empty := t.TempDir()
	const up, disabled, polling = uint64(mad.PortPhysicalStateLinkUp), uint64(mad.PortPhysicalStateDisabled), uint64(mad.PortPhysicalStatePolling)
	refused := func(dir string) string {
		return "no log of remedies below " + dir + " has port 0x0000000000000010/3 as planned in the last 24 h; make the plan again with fabsh remedy --out, and apply it with the same --state"
	}
	for _, test := range []struct {
		name, dir, from string
		old, new        uint64
		minutes         int
		want            string
	}{
		{"restore", dir, "fabsh remedy mine", disabled, polling, 20, ""},
		{"restore, a day later", dir, "fabsh remedy mine", disabled, polling, 10 + 24*60, refused(dir)},
		{"isolated already", dir, "fabsh remedy mine", up, disabled, 20, refused(dir)},
		{"reset", empty, "fabsh remedy mine", up, polling, 20, ""},
		{"another state", empty, "fabsh remedy mine", disabled, polling, 20, refused(empty)},
		{"of a script", empty, "mine.star", disabled, polling, 20, ""},
	} {
		p := &change.Plan{From: test.from, Sets: []certificate.Change{certificate.Change{Attr: mad.AttrPortInfo, Modifier: uint32(a.Num), Node: a.GUID}.With(stateField, test.old, test.new)}}
		got := ""
		if err := CheckPlan(test.dir, p, at(test.minutes)); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
