package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
)

// place is where a datagram came to, for comparison.
func place(d *Datagram) string {
	return fmt.Sprintf("%v qkey=%#x sl=%d pkey=%d fl=%#x tc=%#x hl=%d", d.Address, d.QKey, d.SL, d.PKeyIndex, d.FlowLabel, d.TrafficClass, d.HopLimit)
}

// agentSet is agents by LID, some of which redirect.
type agentSet struct {
	redirects map[mad.LID]mad.ClassPortInfo
	attribute mad.AttributeID // of redirections; 0: the request's
	dead      map[mad.LID]bool
	came      []string
}

func (o *agentSet) answer(f *fakeTransport, d Datagram) {
	if o.dead[d.LID] {
		return
	}
	o.came = append(o.came, place(&d))
	r := respond(d)
	info, redirected := o.redirects[d.LID]
	switch {
	case redirected && mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSubnAdm:
		withStatus(r, mad.StatusRedirect)
		clear(r.MAD[mad.SADataOffset:])
		info.Encode(r.MAD[mad.SADataOffset:])
	case redirected:
		withStatus(r, mad.StatusRedirect)
		clear(r.MAD[mad.PerfDataOffset:])
		info.Encode(r.MAD[mad.PerfDataOffset:])
		if o.attribute != 0 {
			binary.BigEndian.PutUint16(r.MAD[mad.AttributeOffset:], uint16(o.attribute))
		}
	}
	f.deliver(r)
}

func perfCall(lid mad.LID) *Call {
	c := new(Call)
	c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 7})
	c.SetLID(lid)
	return c
}

const plain = "qkey=0x0 sl=0 pkey=0 fl=0x0 tc=0x0 hl=0"

var gid77 = mad.MakeGID(0xfe80000000000000, 0x77)

func TestRedirection(t *testing.T) {
	loop := "the redirections go round in a circle: LID 9, LID 10, LID 9; the agents there are set up wrongly"
	for _, test := range []struct {
		name      string
		redirects map[mad.LID]mad.ClassPortInfo
		attribute mad.AttributeID
		resolve   func(context.Context, *Engine, mad.GID) (mad.LID, error)
		came      []string // at which agents, when it is asked twice
		err       string
	}{
		{
			name:      "by LID",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 1, RedirectQKey: mad.GeneralQKey, RedirectPKey: 0xffff}},
			came:      []string{"LID 9 " + plain, "LID 30 qkey=0x0 sl=0 pkey=1 fl=0x0 tc=0x0 hl=0", "LID 30 qkey=0x0 sl=0 pkey=1 fl=0x0 tc=0x0 hl=0"},
		},
		{
			name:      "called ClassPortInfo",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 1}}, attribute: 1,
			came: []string{"LID 9 " + plain, "LID 30 " + plain, "LID 30 " + plain},
		},
		{
			name: "all that it can say",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 0x42, RedirectQKey: 0x11, RedirectPKey: 0x8005, RedirectSL: 3,
				RedirectGID: gid77, RedirectFL: 0x12345, RedirectTC: 9}},
			came: []string{"LID 9 " + plain, "GID fe80::77 queue pair 0x42 qkey=0x11 sl=3 pkey=2 fl=0x12345 tc=0x9 hl=255", "GID fe80::77 queue pair 0x42 qkey=0x11 sl=3 pkey=2 fl=0x12345 tc=0x9 hl=255"},
		},
		{
			name:      "by GID: the resolver knows the LID",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectQP: 1, RedirectGID: gid77}},
			resolve:   func(context.Context, *Engine, mad.GID) (mad.LID, error) { return 31, nil },
			came: []string{"LID 9 " + plain,
				"GID fe80::77 qkey=0x0 sl=0 pkey=0 fl=0x0 tc=0x0 hl=255", "GID fe80::77 qkey=0x0 sl=0 pkey=0 fl=0x0 tc=0x0 hl=255"},
		},
		{
			name:      "by GID: nobody to ask",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectQP: 1, RedirectGID: gid77}},
			came:      []string{"LID 9 " + plain, "LID 9 " + plain},
			err:       "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): the agent redirects to GID fe80::77 without a LID, and no subnet administrator can resolve it",
		},
		{
			name:      "by GID: the resolver has nobody to ask",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectQP: 1, RedirectGID: gid77}},
			resolve:   func(context.Context, *Engine, mad.GID) (mad.LID, error) { return 0, ErrNoSA },
			came:      []string{"LID 9 " + plain, "LID 9 " + plain},
			err:       "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): the agent redirects to GID fe80::77 without a LID, and no subnet administrator can resolve it",
		},
		{
			name:      "by GID: the resolver is redirected by GID",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectQP: 1, RedirectGID: gid77}, 2: {RedirectQP: 1, RedirectGID: gid77}},
			resolve: func(ctx context.Context, e *Engine, gid mad.GID) (mad.LID, error) {
				c := new(Call)
				c.PutSA(mad.MethodGet, mad.AttrPathRecord.ID, 0, 0, gid[:])
				c.SetLID(2)
				return 0, cmp.Or(e.Do(ctx, c), c.Err)
			},
			came: []string{"LID 9 " + plain, "LID 2 " + plain, "LID 9 " + plain, "LID 2 " + plain},
			err:  "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): the agent redirects to GID fe80::77 without a LID, and the query of the LID failed: SubnAdmGet(PathRecord) to LID 2: redirection required (status 0x0002): query GID fe80::77 instead",
		},
		{
			name:      "twice",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 1}, 30: {RedirectLID: 31, RedirectQP: 1}},
			came:      []string{"LID 9 " + plain, "LID 30 " + plain, "LID 31 " + plain, "LID 31 " + plain},
		},
		{
			name:      "in a circle",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 10, RedirectQP: 1}, 10: {RedirectLID: 9, RedirectQP: 1}},
			came:      []string{"LID 9 " + plain, "LID 10 " + plain, "LID 9 " + plain, "LID 10 " + plain},
			err:       "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): " + loop,
		},
		{
			name: "too often",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 10, RedirectQP: 1}, 10: {RedirectLID: 11, RedirectQP: 1}, 11: {RedirectLID: 12, RedirectQP: 1},
				12: {RedirectLID: 13, RedirectQP: 1}, 13: {RedirectLID: 14, RedirectQP: 1}},
			came: slices.Concat(chain, chain),
			err:  "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): there are more than 4 redirections: LID 9, LID 10, LID 11, LID 12, LID 13, LID 14; the agents there are set up wrongly",
		},
		{
			name:      "to nowhere",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectQP: 1}},
			came:      []string{"LID 9 " + plain, "LID 9 " + plain},
			err:       "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): the agent redirects to nowhere: it names neither LID nor GID",
		},
		{
			name:      "to no queue pair",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30}},
			came:      []string{"LID 9 " + plain, "LID 9 " + plain},
			err:       "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): the agent redirects to queue pair 0, which is not valid for its class",
		},
		{
			name:      "to a partition of others",
			redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 1, RedirectPKey: 0x8009}},
			came:      []string{"LID 9 " + plain, "LID 9 " + plain},
			err:       "PerfGet(PortCounters) to LID 9: redirection required (status 0x0002): the agent redirects to partition 0x8009, which the local port is not in",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &agentSet{redirects: test.redirects, attribute: test.attribute}
				f := newFake(o.answer)
				f.port = Port{LID: 1, SMLID: 2, SMSL: 1, PKeys: []uint16{0, 0xffff, 5}}
				e := New(f, Options{Resolve: test.resolve})
				defer mustClose(t, e)
				for range 2 {
					c := perfCall(9)
					if err := e.Do(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					if got := fmt.Sprint(c.Err); test.err != "" && got != test.err || test.err == "" && c.Err != nil {
						t.Errorf("error %v\n want %s", got, test.err)
					}
					if c.Err == nil && (c.Header().Attribute != mad.AttrPortCounters.ID || c.Data()[1] != 7) {
						t.Errorf("the answer is %v, %x", c.Header(), c.Data()[:8])
					}
				}
				if !slices.Equal(o.came, test.came) {
					t.Errorf("came to\n%s\nwant\n%s", strings.Join(o.came, "\n"), strings.Join(test.came, "\n"))
				}
			})
		})
	}
}

var chain = []string{"LID 9 " + plain, "LID 10 " + plain, "LID 11 " + plain, "LID 12 " + plain, "LID 13 " + plain}

// TestRedirectionForgotten: where nobody answers any more, the next call begins
// where the first did.
func TestRedirectionForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &agentSet{redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 1}}, dead: map[mad.LID]bool{}}
		e := New(newFake(o.answer), Options{})
		defer mustClose(t, e)
		ask := func() error {
			c := perfCall(9)
			if err := e.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			return c.Err
		}
		if err := ask(); err != nil {
			t.Error(err)
		}
		o.dead[30] = true
		want := "PerfGet(PortCounters) to LID 9, redirected to LID 30: timed out after 6 attempts in 3s"
		if err := ask(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		delete(o.redirects, 9)
		if err := ask(); err != nil {
			t.Error(err)
		}
		if want := []string{"LID 9 " + plain, "LID 30 " + plain, "LID 9 " + plain}; !slices.Equal(o.came, want) {
			t.Errorf("came to %v", o.came)
		}
	})
}

// TestRedirectionOfMany: of many calls to one agent, all go on; those to others
// do not, and a cause ends them.
func TestRedirectionOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &agentSet{redirects: map[mad.LID]mad.ClassPortInfo{9: {RedirectLID: 30, RedirectQP: 1}}}
		e := New(newFake(o.answer), Options{})
		defer mustClose(t, e)
		var calls []*Call
		for i := range 100 {
			calls = append(calls, perfCall(mad.LID(9+i%2)))
		}
		if err := e.Do(t.Context(), calls...); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, at := range o.came {
			count[at]++
		}
		if count["LID 30 "+plain] != 50 || count["LID 10 "+plain] != 50 {
			t.Errorf("came to %v", count)
		}
		for _, c := range calls {
			if c.Err != nil {
				t.Error(c.Err)
			}
		}

		o.dead = map[mad.LID]bool{30: true}
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := e.Do(ctx, perfCall(9), perfCall(10)); err != cause {
			t.Errorf("Do: %v", err)
		}
	})
}

// TestRedirectionOfTables: long answers and long requests go on as others do.
func TestRedirectionOfTables(t *testing.T) {
	for _, segmented := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			want := randomTable(rand.New(rand.NewPCG(9, 0)), 2000)
			f, _ := newMultiAgent(4, (*fakeTransport).deliver)
			c := getMulti(want)
			if !segmented {
				f, _ = agent(func(Datagram) []byte { return want }, (*fakeTransport).deliver)
				c = getTable(1)
			}
			c.SetLID(9)
			there := f.peer
			f.peer = func(f *fakeTransport, d Datagram) {
				if d.LID != 9 {
					there(f, d)
					return
				}
				r := withStatus(respond(d), mad.StatusRedirect)
				clear(r.MAD[mad.RMPPOffset:])
				info := mad.ClassPortInfo{RedirectLID: 30, RedirectQP: 1}
				info.Encode(r.MAD[mad.SADataOffset:])
				f.deliver(r)
			}
			e := New(f, Options{})
			defer mustClose(t, e)
			e.Do(t.Context(), c)
			if c.Err != nil || !bytes.Equal(c.Table, want) {
				t.Errorf("segmented %v: %v, %d bytes", segmented, c.Err, len(c.Table))
			}
			synctest.Wait()
		})
	}
}
