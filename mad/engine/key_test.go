package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestKeys: what goes out has its key, where it has none of its own; nothing
// that a caller sees has it.
func TestKeys(t *testing.T) {
	keys := &Keys{M: 0xaaaa, Ports: map[mad.GUID]uint64{0x51: 0xbbbb, 0x61: 0xcccc, 0x71: 0}, SM: 0xdddd, SA: 0xeeee, CC: 0xf1, B: 0xf2, Vendor: 0xf3}
	put := func(class mad.Class, m mad.Method, a mad.AttributeID) func(c *Call) {
		return func(c *Call) {
			c.put(class, m, a, 0, nil)
			c.SetLID(9)
		}
	}
	guarded := func(g Guard) func(c *Call) {
		return func(c *Call) {
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(mad.DirectedRoute{0, 1})
			c.Guard = g
		}
	}
	for _, test := range []struct {
		name string
		call func(c *Call)
		at   int
		want uint64
	}{
		{"an SMP to nobody known", guarded(Guard{}), 24, 0xaaaa},
		{"by port GUID", guarded(Guard{Port: 0x51, Node: 0x61}), 24, 0xbbbb},
		{"by node GUID", guarded(Guard{Port: 0x52, Node: 0x61}), 24, 0xcccc},
		{"a port without a key", guarded(Guard{Port: 0x71}), 24, 0},
		{"SMInfo Get", put(mad.ClassSubn, mad.MethodGet, mad.AttrSMInfo.ID), 72, 0},
		{"SMInfo Set", put(mad.ClassSubn, mad.MethodSet, mad.AttrSMInfo.ID), 72, 0xdddd},
		{"subnet administration", put(mad.ClassSubnAdm, mad.MethodGet, mad.AttrNodeRecord.ID), 36, 0xeeee},
		{"congestion control", put(mad.ClassCongestion, mad.MethodGet, 0x11), 24, 0xf1},
		{"baseboard management", put(mad.ClassBM, mad.MethodGet, 1), 24, 0xf2},
		{"vendor", put(mad.ClassVendor0A, mad.MethodGet, 0x17), 24, 0xf3},
		{"another vendor", put(mad.ClassVendor09, mad.MethodGet, 0x50), 24, 0},
		{"performance management", put(mad.ClassPerf, mad.MethodGet, 0x12), 24, 0},
		{"a key of its own", func(c *Call) {
			guarded(Guard{})(c)
			binary.BigEndian.PutUint64(c.MAD[24:], 0x99)
		}, 24, 0x99},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent uint64
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					sent = binary.BigEndian.Uint64(d.MAD[test.at:])
					f.deliver(respond(d))
				}), Options{Keys: keys, Write: true})
				defer mustClose(t, e)
				var c Call
				test.call(&c)
				own := binary.BigEndian.Uint64(c.MAD[test.at:])
				if err := e.Do(t.Context(), &c); err != nil || c.Err != nil {
					t.Fatal(err, c.Err)
				}
				if sent != test.want {
					t.Errorf("sent key %#x, want %#x", sent, test.want)
				}
				if got := binary.BigEndian.Uint64(c.MAD[test.at:]); got != own && test.at != 72 {
					t.Errorf("the answer has key %#x", got)
				}
			})
		})
	}
}

// TestKeysHidden: keys are in no text made of them, nor of what holds them.
func TestKeysHidden(t *testing.T) {
	keys := &Keys{M: 0x1234567890, Ports: map[mad.GUID]uint64{1: 0x1234567890}}
	for _, text := range []string{
		fmt.Sprint(keys), fmt.Sprintf("%+v", *keys), fmt.Sprintf("%#v", Options{Keys: keys}), fmt.Sprintf("%x", *keys), fmt.Sprintf("%d", keys),
	} {
		if strings.Contains(text, "1234567890") || strings.Contains(text, fmt.Sprint(0x1234567890)) {
			t.Errorf("shown: %s", text)
		}
	}
}

// TestKeysWithoutAnswer: the error of a call has no key, nor has what the call
// holds.
func TestKeysWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(*fakeTransport, Datagram) {}), Options{Keys: &Keys{M: 0x1234567890}})
		defer mustClose(t, e)
		c := getNodeInfo(9)
		if err := e.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if binary.BigEndian.Uint64(c.MAD[24:]) != 0 || strings.Contains(fmt.Sprintf("%+v", c.Err), "1234567890") {
			t.Errorf("%x, %+v", c.MAD[24:32], c.Err)
		}
	})
}

// TestKeyTheft: who redirects gets no key for the place that it names, unless it
// is a port that the keys name, at the LID that the subnet administrator says, or
// another queue pair of the one that was asked.
func TestKeyTheft(t *testing.T) {
	const key = 0x5ec2e7
	redirected := func(lid mad.LID, gid mad.GID) mad.ClassPortInfo {
		return mad.ClassPortInfo{RedirectLID: lid, RedirectGID: gid, RedirectQP: 5}
	}
	for _, test := range []struct {
		name string
		to   mad.ClassPortInfo
		own  bool   // the key is in the request itself
		want uint64 // at the new place
	}{
		{"to a stranger", redirected(30, mad.GID{}), false, 0},
		{"to a stranger's GID", redirected(30, mad.MakeGID(0xfe80000000000000, 0x66)), false, 0},
		{"to a named port", redirected(31, gid77), false, key},
		{"to a named port, by its GID alone", redirected(0, gid77), false, key},
		{"to a stranger's LID, under the name of another", redirected(30, gid77), false, 0},
		{"to a named port that the administrator does not know", redirected(31, mad.MakeGID(0xfe80000000000000, 0x78)), false, 0},
		{"within the port", redirected(9, mad.GID{}), false, key},
		{"to a stranger, a key of its own", redirected(30, mad.GID{}), true, 0},
		{"within the port, with its GID", redirected(9, mad.MakeGID(0xfe80000000000000, 0x66)), false, key},
	} {
		synctest.Test(t, func(t *testing.T) {
			var came []uint64
			f := newFake(func(f *fakeTransport, d Datagram) {
				came = append(came, binary.BigEndian.Uint64(d.MAD[mad.SAKeyOffset:]))
				r := respond(d)
				if d.QP == 1 {
					withStatus(r, mad.StatusRedirect)
					test.to.Encode(r.MAD[mad.SADataOffset:])
				}
				f.deliver(r)
			})
			keys := &Keys{SA: key, Ports: map[mad.GUID]uint64{0x77: 1, 0x78: 1}}
			resolve := func(_ context.Context, _ *Engine, gid mad.GID) (mad.LID, error) {
				if gid != gid77 {
					return 0, errors.New("there is none")
				}
				return 31, nil
			}
			if test.own {
				keys = nil
			}
			e := New(f, Options{Keys: keys, Resolve: resolve})
			e.KnowLMCs(maps.All(map[mad.LID]uint8{30: 0, 31: 0}))
			defer mustClose(t, e)
			for range 2 { // the redirection is remembered
				c := new(Call)
				c.PutSA(mad.MethodGet, mad.AttrNodeRecord.ID, 0, 0, nil)
				if test.own {
					binary.BigEndian.PutUint64(c.MAD[mad.SAKeyOffset:], key)
				}
				c.SetLID(9)
				if err := e.Do(t.Context(), c); err != nil || c.Err != nil {
					t.Fatal(err, c.Err)
				}
			}
			if diff := cmp.Diff([]uint64{key, test.want, test.want}, came); diff != "" {
				t.Errorf("%s: keys (-want +got)\n%s", test.name, diff)
			}
		})
	}
}
