package sa_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
