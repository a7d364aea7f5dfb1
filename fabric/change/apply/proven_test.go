package apply_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestTampered: a round that was altered after its proof is not sent, and what was sent before
// is reverted.
func TestTampered(t *testing.T) {
	for at := range 2 {
		for what, alter := range map[string]func(rounds []certificate.Round){
			"an entry":      func(rounds []certificate.Round) { rounds[at].Writes[0].Data[7] ^= 1 },
			"a write less":  func(rounds []certificate.Round) { rounds[at].Writes = rounds[at].Writes[1:] },
			"another write": func(rounds []certificate.Round) { rounds[at].Writes[0].Change++ },
			"a wait":        func(rounds []certificate.Round) { rounds[at].Drain++ },
			"another order": func(rounds []certificate.Round) { rounds[0], rounds[1] = rounds[1], rounds[0] },
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=4")
				sent := 0
				conn, err := r.subnet.Attach(r.node, 1)
				if err != nil {
					t.Fatal(err)
				}
				e := engine.New(setsOf{conn, &sent}, engine.Options{Write: true})
				defer e.Close()
				j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells}, clock{})
				if err != nil {
					t.Fatal(err)
				}
				w := r.change(e, j)
				var proven *apply.Proven
				w.Prove = func(ctx context.Context, now, want [][]byte) (*apply.Proven, error) {
					var err error
					proven, err = byTwos(ctx, now, want)
					if at == 0 {
						alter(proven.Rounds())
					}
					return proven, err
				}
				w.Check = func(context.Context, []mad.GUID) error {
					if at == 1 && j.Last(apply.KindDone) == nil { // after the first round
						alter(proven.Rounds())
					}
					return nil
				}
				err = w.Make(t.Context())
				if check := new(apply.CheckError); !errors.As(err, &check) || !strings.Contains(err.Error(), "differs from the one that was proven; it is not sent") {
					t.Errorf("%s of round %d: %v", what, at+1, err)
				}
				if first := len(proven.Rounds()[0].Writes); at == 0 && sent != 0 || at == 1 && what != "another order" && sent != first {
					t.Errorf("%s of round %d: %d Sets were sent", what, at+1, sent)
				}
				if j.Last(apply.KindApplied) != nil {
					t.Errorf("%s of round %d: the change is recorded as applied", what, at+1)
				}
				w.Prove = byTwos
				if err := w.Revert(t.Context(), "test"); err != nil || !r.are(before) {
					t.Errorf("%s of round %d: not reverted: %v", what, at+1, err)
				}
			})
		}
	}
}

// certified is a plan of the rig's cells with a certificate whose rounds write one block each,
// the last cell first.
func (r *rig) certified(t *testing.T, e *engine.Engine, sm *sa.SM) *change.Plan {
	t.Helper()
	p := swapPlan(t, r, sm)
	live, failed, err := device.ReadRoutes(t.Context(), e, r.f)
	if err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	tables := &change.Tables{Live: live}
	if err := p.Certify(t.Context(), tables); err != nil || !p.Report.OK {
		t.Fatal(err, p.Report)
	}
	var rounds []certificate.Round
	for i := range slices.Backward(p.Sets) {
		rounds = append(rounds, certificate.Round{Writes: []certificate.Write{{Change: i, Data: p.Sets[i].New}}})
	}
	changes := p.Changes()
	in, _, err := tables.Order(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	p.Certificate = &certificate.Certificate{Lanes: 1, Rounds: rounds}
	if _, err := tables.Certify(t.Context(), &in, changes, p.Certificate); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRoundsOfPlan: the rounds of a plan are sent and recorded as its certificate has them. If
// it does not hold, or is missing, a new order is found, and the user sees a line on it.
func TestRoundsOfPlan(t *testing.T) {
	for _, x := range []struct {
		name string
		edit func(c *certificate.Certificate) *certificate.Certificate
		want string // in the log; "": the rounds are those of the plan
	}{
		{"the rounds of the plan", func(c *certificate.Certificate) *certificate.Certificate { return c }, ""},
		{"no certificate", func(*certificate.Certificate) *certificate.Certificate { return nil }, "the plan has no certificate: a new order of 1 round was found, and its certificate holds\n"},
		{"a forged rank", func(c *certificate.Certificate) *certificate.Certificate {
			c.Ranks = certificate.Pack([]uint32{1})
			return c
		}, "the certificate does not hold: too few ranks: a new order of 1 round was found, and its certificate holds\n"},
		{"a write too few", func(c *certificate.Certificate) *certificate.Certificate {
			c.Rounds = c.Rounds[1:]
			return c
		}, " differs from the plan: a new order of 1 round was found, and its certificate holds\n"},
		{"an entry", func(c *certificate.Certificate) *certificate.Certificate {
			w := &c.Rounds[0].Writes[0]
			w.Data = bytes.Clone(w.Data)
			w.Data[9] ^= 1
			return c
		}, " differs from the plan: a new order of 1 round was found, and its certificate holds\n"},
		{"credit loops accepted", func(c *certificate.Certificate) *certificate.Certificate {
			c.AcceptCreditLoops, c.Orders = true, nil
			return c
		}, "the plan accepts credit loops: a new order of 1 round was found, and its certificate holds\n"},
		{"a change that does not exist", func(c *certificate.Certificate) *certificate.Certificate {
			c.Rounds[0].Writes[0].Change = 99
			return c
		}, "it is one of other changes: a new order of 1 round was found, and its certificate holds\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=4")
				r.uplinks()
				conn, err := r.subnet.Attach(r.node, 1)
				if err != nil {
					t.Fatal(err)
				}
				var sent [][]byte
				e := engine.New(taped{conn, &sent}, engine.Options{Write: true})
				defer e.Close()
				var log bytes.Buffer
				h := &apply.Host{Engine: e, SA: &sa.Client{Engine: e}, Clock: clock{}, Log: &log}
				sm, err := h.SA.FindSM(t.Context(), r.f)
				if err != nil {
					t.Fatal(err)
				}
				p := r.certified(t, e, sm)
				proof := *p.Certificate
				planned := slices.Clone(proof.Rounds)
				for i := range proof.Rounds {
					proof.Rounds[i].Writes = slices.Clone(proof.Rounds[i].Writes)
				}
				p.Certificate = x.edit(&proof)
				outcome, err := h.Make(t.Context(), r.f, p, &apply.ChangeOptions{Plan: "x.plan"})
				if outcome != apply.Confirmed || err != nil || !r.are(after) {
					t.Fatalf("%v, %v\n%s", outcome, err, log.String())
				}
				var want [][]byte // one by one, or as a round with a canary
				for _, round := range planned {
					for _, w := range round.Writes {
						want = append(want, w.Data)
					}
				}
				if x.want == "" && (!slices.EqualFunc(sent, want, bytes.Equal) || strings.Count(log.String(), " read back\n") != len(planned) || strings.Contains(log.String(), "new order")) {
					t.Errorf("sent %x, want %x\n%s", sent, want, log.String())
				}
				if !strings.Contains(log.String(), x.want) {
					t.Errorf("no %q in\n%s", x.want, log.String())
				}
			})
		})
	}
}

// taped is a transport that keeps the blocks of forwarding tables that are set.
type taped struct {
	engine.Transport
	sent *[][]byte
}

func (t taped) Send(d *engine.Datagram) error {
	if h := mad.ParseHeader(d.MAD[:]); h.Method == mad.MethodSet && h.Attribute == mad.AttrLinearForwardingTable.ID {
		*t.sent = append(*t.sent, bytes.Clone(d.MAD[h.Class.DataOffset():][:mad.LFTBlock]))
	}
	return t.Transport.Send(d)
}

func (taped) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (taped) BeforeWait(func() bool) bool            { return false }

// TestNewOrder: a reversal, and the rest of a change, have an order with a certificate of its
// own, and the user sees a line on it.
func TestNewOrder(t *testing.T) {
	for _, x := range []struct {
		name   string
		unsafe bool // each switch swaps two ports
		resume bool
		want   string
	}{
		{"revert", false, false, "revert: a new order of 1 round was found, and its certificate holds\n"},
		{"resume", false, true, "the rest of the change: a new order of 1 round was found, and its certificate holds\n"},
		{"a reversal with a credit loop", true, false, "revert: a new order of 1 round was found, and its certificate holds, but does not cover credit loops\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "ring:n=6,hosts=1")
				if !x.unsafe {
					r = newRig(t, "fattree:k=4")
					r.uplinks()
				}
				r.clock = clock{}
				dir := filepath.Join(t.TempDir(), "x")
				text := r.confirmed(dir, &apply.Begin{Summary: "test", Within: time.Minute})
				lines := bytes.SplitAfter(text, []byte("\n"))
				run, end := r.run(dir)
				defer end()
				var log bytes.Buffer
				run.Host.Log = &log
				var err error
				outcome, want, is := apply.Outcome(0), apply.RevertedOnRequest, before
				if x.resume { // from the first round
					if err := os.WriteFile(apply.JournalIn(dir), bytes.Join(lines[:3], nil), 0o600); err != nil {
						t.Fatal(err)
					}
					for _, c := range r.cells[2:] {
						for lid, port := range c.Old {
							if err := r.subnet.Edit.LFT(c.Node, mad.LID(lid), port); lid > 0 && err != nil {
								t.Fatal(err)
							}
						}
					}
					run.Host.StartGuard = r.guard(dir)
					defer r.guards.Wait()
					outcome, err = run.Resume(t.Context(), r.sweep(run))
					want = apply.Expired
				} else {
					outcome, err = run.Revert(t.Context(), r.sweep(run))
				}
				if outcome != want || err != nil || !r.are(is) {
					t.Errorf("%v, %v", outcome, err)
				}
				if !strings.Contains(log.String(), x.want) {
					t.Errorf("no %q in\n%s", x.want, log.String())
				}
			})
		})
	}
}
