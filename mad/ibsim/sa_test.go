package ibsim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// nodeRecords asks OpenSM for the NodeRecords that fit want, or all.
func nodeRecords(e *engine.Engine, m mad.Method, mask uint64, want *mad.NodeRecord) (*engine.Call, error) {
	p, err := e.Port()
	if err != nil {
		return nil, err
	}
	record := make([]byte, mad.AttrNodeRecord.Size)
	if want != nil {
		want.Encode(record)
	}
	c := &engine.Call{Timeout: time.Minute} // what is sent again is counted
	c.PutSA(m, mad.AttrNodeRecord.ID, 0, mask, record)
	c.SetLID(p.SMLID)
	return c, nil
}

const nodeRecordLID = 1 << 0 // component mask

// names are the descriptions in NodeRecords, by LID.
func names(t *testing.T, c *engine.Call) map[mad.LID]string {
	t.Helper()
	records, err := c.Records(mad.AttrNodeRecord.Size)
	if err != nil {
		t.Fatal(err)
	}
	m := map[mad.LID]string{}
	for b := range records {
		var r mad.NodeRecord
		r.Decode(b)
		m[r.LID] = r.NodeDescription.String()
	}
	return m
}

func TestSA(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-1-1"})
	e := connect(t, ibsim.Options{Socket: f.Name, Node: "host-2-2"}, engine.Options{})
	p, err := e.Port()
	if err != nil {
		t.Fatal(err)
	}
	us := map[mad.LID]string{p.LID: "host-2-2 HCA-1"}
	for _, m := range []mad.Method{mad.MethodGet, mad.MethodGetTable} {
		c, err := nodeRecords(e, m, nodeRecordLID, &mad.NodeRecord{LID: p.LID})
		if err != nil {
			t.Fatal(err)
		}
		do(t, e, c)
		if diff := cmp.Diff(us, names(t, c)); diff != "" {
			t.Errorf("%v: -want +got\n%s", m, diff)
		}
	}
	none, err := nodeRecords(e, mad.MethodGetTable, nodeRecordLID, &mad.NodeRecord{LID: 0xbff0})
	if err != nil {
		t.Fatal(err)
	}
	do(t, e, none)
	if got := names(t, none); len(got) != 0 || none.Table == nil {
		t.Errorf("records of a LID that nobody has: %v", got)
	}
	// More than ibsim's library for C programs lets through: an error, never
	// a part of it.
	all, err := nodeRecords(e, mad.MethodGetTable, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Do(t.Context(), all)
	if !errors.Is(all.Err, engine.ErrCut) {
		t.Errorf("a table of 22 records: %v, want %v", all.Err, engine.ErrCut)
	}
}

// A table of thousands of records comes whole where OpenSM makes segments.
func TestWholeTable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const leaves, spines, hosts = 32, 4, 64
	f := ibsimtest.Start(t, ibsimtest.FatTree(leaves, spines, hosts), ibsimtest.FixtureOptions{SM: "host-7-7", RMPP: true})
	e := connect(t, ibsim.Options{Socket: f.Name}, engine.Options{})
	c, err := nodeRecords(e, mad.MethodGetTable, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	do(t, e, c)
	got := map[string]int{}
	for _, name := range names(t, c) {
		kind, _, _ := strings.Cut(name, "-")
		got[kind]++
	}
	if diff := cmp.Diff(map[string]int{"leaf": leaves, "spine": spines, "host": leaves * hosts}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// Those that fit in one segment.
	p, err := e.Port()
	if err != nil {
		t.Fatal(err)
	}
	one, err := nodeRecords(e, mad.MethodGetTable, nodeRecordLID, &mad.NodeRecord{LID: p.LID})
	if err != nil {
		t.Fatal(err)
	}
	do(t, e, one)
	if diff := cmp.Diff(map[mad.LID]string{p.LID: "host-0-0 HCA-1"}, names(t, one)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s := e.Stats(); s.Sent != 2 || s.Answered != 2 {
		t.Errorf("stats %+v, want two requests and their answers, and no ACK", s)
	}
	t.Logf("%d records in %v", len(names(t, c)), c.Elapsed)
}
