package capture

import (
	"bytes"
	"testing"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestUnasked: what came unasked is recorded with its answer, and neither is a
// request that a replay would answer; nor does it tell of events.
func TestUnasked(t *testing.T) {
	f, o, err := sim.Parse("ring:n=2")
	if err != nil {
		t.Fatal(err)
	}
	subnet := sim.New(f, o)
	conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	recording := new(file)
	r, err := Record(conn, recording)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(r, engine.Options{})
	l, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil)
	if err != nil {
		t.Fatal(err)
	}
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.InformTypeAll, TrapNumber: 128, ProducerType: mad.ProducerTypeAll}
	data := make([]byte, mad.AttrInformInfo.Size)
	info.Encode(data)
	ask := func() {
		t.Helper()
		subscribe := &engine.Call{Subscribes: true}
		subscribe.PutSA(mad.MethodSet, mad.AttrInformInfo.ID, 0, 0, data)
		subscribe.SetLID(3)
		if err := e.Do(t.Context(), subscribe); err != nil || subscribe.Err != nil {
			t.Fatal(err, subscribe.Err)
		}
	}
	ask()
	if err := subnet.Cables.Unlink(f.NodeByName("switch-2")[0].GUID(), 1); err != nil {
		t.Fatal(err)
	}
	var d engine.Datagram
	if _, err := l.Next(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	ask() // by now ReportResp is sent
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	methods := map[mad.Method]int{}
	for _, p := range packets(t, recording.Bytes()) {
		if h := mad.ParseHeader(p.Payload); h.Class == mad.ClassSubnAdm {
			methods[h.Method]++
		}
	}
	if methods[mad.MethodReport] != 1 || methods[mad.MethodReportResp] != 1 {
		t.Errorf("recorded: %v", methods)
	}
	loaded, err := Load(bytes.NewReader(recording.Bytes()), "a")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(loaded.requests); n != 1 {
		t.Errorf("%d requests", n)
	}
	again := engine.New(NewReplay(loaded), engine.Options{})
	defer again.Close()
	if _, err := again.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err == nil || err.Error() != "a replay does not deliver events; those of a are in the file" {
		t.Errorf("listening to a replay: %v", err)
	}
}
