package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

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
