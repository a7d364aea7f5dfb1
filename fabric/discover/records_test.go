package discover_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// viaSA discovers by the records of the subnet administrator.
func viaSA(t testing.TB, e *engine.Engine) (*fabric.Fabric, error) {
	t.Helper()
	return discover.ViaSA(t.Context(), &sa.Client{Engine: e}, discover.Options{})
}

func dump(t testing.TB, f *fabric.Fabric) string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Dump(&b, f, "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDiscoverSA: the records make a fabric equal to the one of a sweep, with and without
// faults that a sweep meets.
func TestDiscoverSA(t *testing.T) {
	for _, spec := range []string{
		"fattree", "fattree:k=4,levels=3", "ring:n=1", "ring:n=2", "dragonfly", "pgft:m=4/2,w=1/2,p=1/3", "remove_links=30%", "mesh:links=2",
		"testdata/twoport.topo",
	} {
		swept, _, _ := sweep(t, spec)
		for _, faults := range []string{"", "mkey=0x1234,mkey_level=3", "loss=0.02"} {
			full := spec
			switch {
			case faults == "":
			case strings.ContainsAny(spec, ":="):
				full += "," + faults
			default:
				full += ":" + faults
			}
			synctest.Test(t, func(t *testing.T) {
				e := attach(t, full)
				defer e.Close()
				f, err := viaSA(t, e)
				if err != nil {
					t.Fatal(spec, faults, err)
				}
				if d := cmp.Diff(dump(t, swept), dump(t, f)); d != "" {
					t.Errorf("%s, %s: (-swept +by records):\n%s", spec, faults, d)
				}
				if got, want := f.String(), swept.String()+" by the records of the subnet administrator"; got != want || len(f.Problems()) > 0 {
					t.Errorf("%s, %s: %s, %v", spec, faults, got, f.Problems())
				}
				for i := range f.Nodes() {
					if n := &f.Nodes()[i]; n.Route() != nil || n.LID() == 0 {
						t.Fatalf("%s: route %v, LID %d", n.Label(), n.Route(), n.LID())
					}
				}
			})
		}
	}
}

// filter is a transport that drops or changes some answers.
type filter struct {
	engine.Transport
	change func(d *engine.Datagram)
	drop   func(m []byte) bool
}

func (f *filter) Send(d *engine.Datagram) error {
	if f.drop != nil && f.drop(d.MAD) {
		return nil
	}
	return f.Transport.Send(d)
}

func (f *filter) TrySend(d *engine.Datagram) (bool, error) { return true, f.Send(d) }

func (f *filter) Recv(d *engine.Datagram) error {
	err := f.Transport.Recv(d)
	if err == nil && f.change != nil {
		f.change(d)
	}
	return err
}

func filtered(t testing.TB, spec string, f filter) *engine.Engine {
	t.Helper()
	f.Transport = connect(t, spec)
	return engine.New(&f, engine.Options{})
}

func attributeOf(m []byte) *mad.Attribute {
	h := mad.ParseHeader(m)
	if h.Class != mad.ClassSubnAdm {
		return nil
	}
	return mad.Lookup(h.Class, h.Attribute)
}

// TestDiscoverSACut: where tables are cut, the search record by record makes the
// same fabric.
func TestDiscoverSACut(t *testing.T) {
	for _, spec := range []string{"fattree", "pgft:m=4/2,w=1/2,p=1/3", "testdata/twoport.topo"} {
		swept, _, _ := sweep(t, spec)
		synctest.Test(t, func(t *testing.T) {
			e := filtered(t, spec, filter{change: func(d *engine.Datagram) {
				d.Cut = mad.ParseHeader(d.MAD).Method == mad.MethodGetTableResp
				if d.Cut {
					d.MAD[26] &^= 1 // no segment of anything
				}
			}})
			defer e.Close()
			f, err := viaSA(t, e)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(dump(t, swept), dump(t, f)); d != "" || !f.Complete() {
				t.Errorf("%v %v (-swept +by records):\n%s", f, f.Problems(), d)
			}
		})
	}
}

// TestDiscoverSAPartial: what the administrator does not tell is a problem, and
// all else is kept.
func TestDiscoverSAPartial(t *testing.T) {
	const spec = "ring:n=3"
	drop := func(a *mad.Attribute) filter { return filter{drop: func(m []byte) bool { return attributeOf(m) == a }} }
	for _, test := range []struct {
		name     string
		filter   filter
		want     string
		problems []string
		err      string
	}{
		{"no LinkRecords", drop(mad.AttrLinkRecord), "fabric: 6 nodes (3 switches, 3 CAs), 0 links, incomplete: 1 timed out by the records of the subnet administrator",
			[]string{"timed out: the LinkRecords are unknown: SubnAdmGetTable(LinkRecord) to LID 4: timed out after 3 attempts in 3s; check the subnet manager"}, ""},
		{"no PortInfoRecords", drop(mad.AttrPortInfoRecord), "fabric: 6 nodes (3 switches, 3 CAs), 6 links, incomplete: 1 timed out by the records of the subnet administrator",
			[]string{"timed out: the PortInfoRecords are unknown: SubnAdmGetTable(PortInfoRecord) to LID 4: timed out after 3 attempts in 3s; check the subnet manager"}, ""},
		{"no NodeRecords", drop(mad.AttrNodeRecord), "", nil, "SubnAdmGetTable(NodeRecord) to LID 4: timed out after 3 attempts in 3s"},
		{"no administrator", filter{drop: func([]byte) bool { return true }}, "", nil, "SubnAdmGetTable(NodeRecord) to LID 4: timed out after 3 attempts in 3s"},
		{"records of a port and a node that nobody knows", filter{change: func(d *engine.Datagram) {
			a := attributeOf(d.MAD)
			if d.MAD[31] != 1 || a != mad.AttrPortInfoRecord && a != mad.AttrLinkRecord { // the first segment
				return
			}
			at := mad.SADataOffset // EndportLID of the first record
			if a == mad.AttrLinkRecord {
				at += 4 // ToLID
			}
			binary.BigEndian.PutUint16(d.MAD[at:], 999)
		}}, "fabric: 6 nodes (3 switches, 3 CAs), 6 links, incomplete: 1 failed, 1 invalid by the records of the subnet administrator",
			[]string{
				`failed: no PortInfoRecord of port 0 of "switch-1" (0x0002c90300100000); check the subnet manager`,
				"invalid: a LinkRecord leads from port 1 of LID 1 to port 1 of LID 999, but one of them has no NodeRecord; discover again",
			}, ""},
		{"links one way only, and one of them missing", filter{change: func(d *engine.Datagram) {
			if attributeOf(d.MAD) != mad.AttrLinkRecord || d.MAD[31] != 1 {
				return
			}
			for at := mad.SADataOffset + 8; at < mad.SADataOffset+12*8; at += 8 {
				from, to := binary.BigEndian.Uint16(d.MAD[at:]), binary.BigEndian.Uint16(d.MAD[at+4:])
				if min(from, to) == 1 && max(from, to) == 2 || from < to { // there is the one before, twice
					copy(d.MAD[at:], d.MAD[at-8:at])
				}
			}
		}}, "fabric: 6 nodes (3 switches, 3 CAs), 5 links, incomplete: 2 failed by the records of the subnet administrator", []string{
			`failed: port 2 of "switch-2" (0x0002c90300100010): the node at the other end is unknown: no LinkRecord although the link is up; check that node`,
			`failed: port 3 of "switch-1" (0x0002c90300100000): the node at the other end is unknown: no LinkRecord although the link is up; check that node`,
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := filtered(t, spec, test.filter)
				defer e.Close()
				f, err := viaSA(t, e)
				if test.err != "" {
					if err == nil || err.Error() != test.err {
						t.Errorf("%v, want %s", err, test.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var problems []string
				for _, p := range f.Problems() {
					problems = append(problems, string(p.Kind)+": "+p.Text)
				}
				if d := cmp.Diff(test.problems, problems); f.String() != test.want || d != "" {
					t.Errorf("%v (-want +got):\n%s", f, d)
				}
			})
		})
	}
}

// TestDiscoverSAEnded: the end of the context is the error.
func TestDiscoverSAEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := filtered(t, "ring:n=3", filter{drop: func(m []byte) bool { return true }})
		defer e.Close()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if f, err := discover.ViaSA(ctx, &sa.Client{Engine: e}, discover.Options{}); f != nil || err != cause {
			t.Error(f, err)
		}
	})
}

// TestDiscoverSASpeeds: PortInfoRecords are asked for with Options 0x80, the
// extended speeds.
func TestDiscoverSASpeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		e := filtered(t, "ring:n=3", filter{drop: func(m []byte) bool {
			const active = 1 // RMPPFlags: an ACK
			if attributeOf(m) == mad.AttrPortInfoRecord && m[mad.RMPPOffset+2]&active == 0 {
				f := mad.AttrPortInfoRecord.Field("options")
				if asked++; f.Uint(m[mad.SADataOffset:]) != 0x80 || binary.BigEndian.Uint64(m[mad.SAMaskOffset:]) != f.Mask() {
					t.Errorf("asked with % x", m[mad.SAMaskOffset:mad.SADataOffset+4])
				}
			}
			return false
		}})
		defer e.Close()
		if _, err := viaSA(t, e); err != nil || asked == 0 {
			t.Errorf("%v, asked %d times", err, asked)
		}
	})
}
