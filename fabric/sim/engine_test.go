package sim

import (
	"context"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// attach opens an engine on the subnet manager's port.
func attach(t testing.TB, s *Subnet, f *fabric.Fabric) *mad.Engine {
	t.Helper()
	tr, err := s.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	e := mad.NewEngine(tr, mad.Options{Write: true, Timeout: time.Second})
	t.Cleanup(func() { e.Close() })
	return e
}

func TestX(t *testing.T) {
	f, o := mustParse(t, "fattree:k=8,levels=3")
	s := New(f, o)
	e := attach(t, s, f)
	c := &mad.Call{}
	c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	c.SetRoute(mad.DirectedRoute{0, 1, 5})
	c2 := &mad.Call{}
	c2.PutSA(mad.MethodGetTable, mad.AttrPathRecord.ID, 0, 0, nil)
	c2.SetLID(s.sm.lid)
	c3 := &mad.Call{}
	c3.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, 0, 0, nil)
	c3.SetLID(s.sm.lid)
	start := time.Now()
	if err := e.Do(context.Background(), c, c2, c3); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*mad.Call{c, c2, c3} {
		t.Log(c.Err, c.Elapsed, len(c.Table), time.Since(start))
	}
	var ni mad.NodeInfo
	ni.Decode(c.Data())
	t.Logf("%+v", ni)
	var pr mad.PathRecord
	pr.Decode(c2.Table[64*300:])
	t.Logf("%+v", pr)
	var nr mad.NodeRecord
	nr.Decode(c3.Table[112*90:])
	t.Logf("%+v", nr)
}
