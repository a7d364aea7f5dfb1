package sa_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// paths is a transport on which paths have service level 4, which counts the
// requests for paths.
type paths struct {
	engine.Transport
	gets, tables int
	answer       func(h mad.Header) bool // nil: all
	records      int                     // in a table, if that is one datagram
}

func (p *paths) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if h.Attribute == mad.AttrPathRecord.ID {
		switch h.Method {
		case mad.MethodGet:
			p.gets++
		case mad.MethodGetTable:
			if d.MAD[mad.RMPPOffset+2] == 0 { // no ACK
				p.tables++
			}
		}
		if p.answer != nil && !p.answer(h) {
			return nil
		}
	}
	return p.Transport.Send(d)
}

func (p *paths) TrySend(d *engine.Datagram) (bool, error) { return true, p.Send(d) }

func (p *paths) Recv(d *engine.Datagram) error {
	err := p.Transport.Recv(d)
	if h := mad.ParseHeader(d.MAD); err == nil && h.Attribute == mad.AttrPathRecord.ID {
		records := 1
		if h.Method == mad.MethodGetTableResp {
			records = p.records
		}
		for i := range records {
			mad.AttrPathRecord.Field("sl").SetUint(d.MAD[mad.SADataOffset+i*mad.AttrPathRecord.Size:], 4)
		}
	}
	return err
}

// TestLearnPaths: one Get for each target, one GetTable for many; what is known
// is not asked for again, and where the administrator does not tell nothing is.
func TestLearnPaths(t *testing.T) {
	lids := func(from, to mad.LID) (list []mad.LID) {
		for lid := from; lid <= to; lid++ {
			list = append(list, lid, lid)
		}
		return list
	}
	silent := func(mad.Header) bool { return false }
	for _, test := range []struct {
		name         string
		spec         string
		answer       func(mad.Header) bool
		port         func(*engine.Port)
		steps        [][]mad.LID
		gets, tables int
		errs         []string
		to           mad.LID // of a packet
		sl           uint8   // that it takes
	}{
		{"few", "ring:n=40", nil, nil, [][]mad.LID{lids(1, 63), lids(1, 63), lids(60, 65)}, 65, 0, []string{"", "", ""}, 5, 4},
		{"many", "ring:n=40", nil, nil, [][]mad.LID{lids(1, 64), lids(1, 64), lids(1, 80)}, 0, 1, []string{"", "", ""}, 5, 0},
		{"many, of which two are there", "ring:n=1", nil, nil, [][]mad.LID{lids(1, 66), lids(1, 66)}, 64, 1,
			[]string{"SubnAdmGet(PathRecord) to LID 2: no records (status 0x0300)", ""}, 1, 4},
		{"no LID", "ring:n=40", nil, nil, [][]mad.LID{{0}}, 0, 0, []string{""}, 5, 0},
		{"few, silent", "ring:n=40", silent, nil, [][]mad.LID{lids(4, 5), lids(6, 7)}, 2, 0,
			[]string{"SubnAdmGet(PathRecord) to LID 41: timed out after 1 attempt in 1s", ""}, 5, 0},
		{"many, silent", "ring:n=40", silent, nil, [][]mad.LID{lids(1, 64), lids(1, 64)}, 0, 1,
			[]string{"SubnAdmGetTable(PathRecord) to LID 41: timed out after 1 attempt in 1s", ""}, 5, 0},
		{"unknown targets", "ring:n=40", nil, nil, [][]mad.LID{{5, 99}, {99}}, 2, 0, []string{"SubnAdmGet(PathRecord) to LID 41: no records (status 0x0300)", ""}, 5, 4},
		{"nobody to ask", "ring:n=40", nil, func(p *engine.Port) { p.SMLID = 0 }, [][]mad.LID{{5}, {6}}, 0, 0, []string{sa.ErrNoSM.Error(), ""}, 5, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, o, err := sim.Parse(test.spec)
				if err != nil {
					t.Fatal(err)
				}
				conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
				if err != nil {
					t.Fatal(err)
				}
				p := &paths{Transport: conn, answer: test.answer}
				if test.spec == "ring:n=1" {
					p.records = 2
				}
				c := &sa.Client{Engine: engine.New(p, engine.Options{Retries: -1})}
				defer c.Engine.Close()
				port, err := c.Engine.Port()
				if err != nil {
					t.Fatal(err)
				}
				if test.port != nil {
					test.port(&port)
				}
				var errs []string
				for _, lids := range test.steps {
					var unknown *sa.PathError
					err := c.LearnPaths(t.Context(), &port, lids)
					switch {
					case err == nil:
						errs = append(errs, "")
					case errors.As(err, &unknown):
						errs = append(errs, err.Error())
					default:
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(test.errs, errs); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if p.gets != test.gets || p.tables != test.tables {
					t.Errorf("%d Gets and %d GetTables, want %d and %d", p.gets, p.tables, test.gets, test.tables)
				}
				var call engine.Call
				call.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
				if err := c.PutGMP(&call, &port, test.to); err != nil {
					t.Error(err)
				}
				if want := (engine.Address{LID: test.to, QP: 1, SL: test.sl}); call.To != want {
					t.Errorf("to %+v, want %+v", call.To, want)
				}
			})
		})
	}
}

// TestLearnPathsGiven: with a service level of its own the Client asks nobody,
// and a P_Key that the port does not have is an error.
func TestLearnPathsGiven(t *testing.T) {
	sl := uint8(7)
	c := &sa.Client{SL: &sl, PKey: 0x7fff} // no Engine: asking would panic
	port := engine.Port{LID: 1, SMLID: 3, PKeys: []uint16{0x8001, 0xffff}}
	if err := c.LearnPaths(t.Context(), &port, []mad.LID{5}); err != nil {
		t.Error(err)
	}
	var call engine.Call
	call.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
	if err := c.PutGMP(&call, &port, 5); err != nil {
		t.Error(err)
	}
	if want := (engine.Address{LID: 5, QP: 1, SL: 7, PKeyIndex: 1}); call.To != want {
		t.Errorf("to %+v, want %+v", call.To, want)
	}
	c.PKey = 0x8002
	const want = "the local port is not in the partition of --pkey 0x8002: it has 0x8001, 0xffff; the subnet manager sets them (OpenSM: partitions.conf)"
	for _, err := range []error{c.LearnPaths(t.Context(), &port, []mad.LID{5}), c.PutGMP(&call, &port, 5)} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLearnPathsEnded: the end of the context is the error, and nothing is
// taken for known.
func TestLearnPathsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paths{Transport: attachRing(t)}
		c := &sa.Client{Engine: engine.New(p, engine.Options{})}
		defer c.Engine.Close()
		port, _ := c.Engine.Port()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		many := slices.Repeat([]mad.LID{1}, 1)
		if err := c.LearnPaths(ctx, &port, many); err != cause {
			t.Error(err)
		}
		if err := c.LearnPaths(t.Context(), &port, many); err != nil || p.gets != 1 {
			t.Errorf("%v, %d Gets", err, p.gets)
		}
	})
}

// redirecting is a transport over which all answers of one class that come from
// a LID redirect to a GID.
type redirecting struct {
	engine.Transport
	class  mad.Class
	from   mad.LID
	to     mad.GID
	silent mad.Class // requests of it are lost
	noSM   bool
	asked  []string
}

func (r *redirecting) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	words := fmt.Sprintf("%v to LID %d SL %d", h.Class, d.LID, d.SL)
	if h.Class == mad.ClassSubnAdm {
		var path mad.PathRecord
		path.Decode(d.MAD[mad.SADataOffset:])
		words += strings.ReplaceAll(fmt.Sprintf(" from %v to %v", path.SGID, path.DGID), r.to.String(), "us")
	}
	r.asked = append(r.asked, words)
	if h.Class == r.silent {
		return nil
	}
	return r.Transport.Send(d)
}

func (r *redirecting) TrySend(d *engine.Datagram) (bool, error) { return true, r.Send(d) }

func (r *redirecting) Recv(d *engine.Datagram) error {
	err := r.Transport.Recv(d)
	if h := mad.ParseHeader(d.MAD); err == nil && h.Class == r.class && d.LID == r.from {
		h.Status = mad.StatusRedirect
		h.Put(d.MAD)
		data := d.MAD[h.Class.DataOffset():]
		clear(data)
		info := mad.ClassPortInfo{RedirectQP: 1, RedirectGID: r.to}
		info.Encode(data)
	}
	return err
}

func (r *redirecting) Port() (engine.Port, error) {
	p, err := r.Transport.Port()
	if r.noSM {
		p.SMLID = 0
	}
	return p, err
}

// TestResolve: where an agent redirects to a GID alone, the subnet administrator
// is asked for the LID, once, as the client says; if it does not tell, the error
// says why.
func TestResolve(t *testing.T) {
	const asked, redirected = 1, "PerfGet(PortCounters) to LID 1: redirection required (status 0x0002): the agent redirects to GID %v without a LID, and "
	sl := uint8(7)
	for name, test := range map[string]*struct {
		r      redirecting
		client sa.Client
		asked  []string
		err    string
	}{
		"resolved": {redirecting{class: mad.ClassPerf}, sa.Client{},
			[]string{"Perf to LID 1 SL 0", "SubnAdm to LID 3 SL 0 from us to us", "Perf to LID 3 SL 0"}, ""},
		"no subnet manager but the client's": {redirecting{class: mad.ClassPerf, noSM: true}, sa.Client{SMLID: 3, SL: &sl},
			[]string{"Perf to LID 1 SL 0", "SubnAdm to LID 3 SL 7 from us to us", "Perf to LID 3 SL 0"}, ""},
		"no P_Key": {redirecting{class: mad.ClassPerf}, sa.Client{PKey: 0x8002},
			[]string{"Perf to LID 1 SL 0"}, redirected + "the query of the LID failed: the local port is not in the partition of --pkey 0x8002: it has 0xffff; the subnet manager sets them (OpenSM: partitions.conf)"},
		"no subnet manager": {redirecting{class: mad.ClassPerf, noSM: true}, sa.Client{},
			[]string{"Perf to LID 1 SL 0"}, redirected + "no subnet administrator can resolve it"},
		"silent": {redirecting{class: mad.ClassPerf, silent: mad.ClassSubnAdm}, sa.Client{},
			[]string{"Perf to LID 1 SL 0", "SubnAdm to LID 3 SL 0 from us to us"},
			redirected + "the query of the LID failed: SubnAdmGet(PathRecord) to LID 3: timed out after 1 attempt in 1s after 1 attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := test.r
				r.Transport = attachRing(t)
				p, err := r.Transport.Port()
				if err != nil {
					t.Fatal(err)
				}
				r.from, r.to = asked, mad.MakeGID(p.GIDPrefix, p.PortGUID)
				e := engine.New(&r, engine.Options{Retries: -1, Resolve: test.client.Resolve})
				defer e.Close()
				c := new(engine.Call)
				c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 1})
				c.SetLID(asked)
				if err := e.Do(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				got, want := fmt.Sprint(c.Err), "<nil>"
				if test.err != "" {
					want = fmt.Sprintf(test.err, r.to)
				}
				if got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if diff := cmp.Diff(test.asked, r.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}
