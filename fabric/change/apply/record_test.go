package apply_test

import (
	"encoding/json"
	"testing"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/jsonfile/jsonfiletest"
	"fabsh/mad"
)

// TestRecordMembers: a record without any one of its members is refused, or documented to be valid.
func TestRecordMembers(t *testing.T) {
	block := make([]byte, 64)
	cell := &certificate.Change{Node: 1, Name: "leaf-1", Routes: []mad.DirectedRoute{{0, 1}}, LID: 1, PortGUID: 1, Attr: mad.AttrPortInfo, Modifier: 1, Fields: []string{"lid"}, Old: block, New: block}
	begin := &apply.Begin{
		ID: "1", Summary: "m.star", By: "root", Port: 1, Prefix: 2, Switches: []apply.Member{{GUID: 1, Route: mad.DirectedRoute{0, 1}}}, Within: time.Minute, Drains: 1, Manager: 3,
		Cells: []*certificate.Change{cell}, AcceptCreditLoops: true, Levels: "sl.txt", Links: []apply.Ports{{Node: 1, Name: "leaf-1", Ports: []int{1}, Rates: []string{"4x hdr"}}}, Written: []apply.Ports{{Node: 2, Name: "leaf-2", Ports: []int{1}, Rates: []string{"4x hdr"}}}, Static: []mad.GUID{1}, LinkByLink: true,
		Staged: &apply.Staged{File: "lfts", Reload: "1", Before: []byte{1}},
	}
	at := time.Unix(1e9, 0).UTC()
	var examples [][]byte
	for _, rec := range []apply.Record{
		{Kind: apply.KindBegin, At: at, Begin: begin},
		{Kind: apply.KindRound, At: at, Number: 1, Rounds: 2, Round: certificate.Round{Writes: []certificate.Write{{Change: 0, Data: block}}, Drain: time.Second}},
		{Kind: apply.KindDone, At: at, Number: 1},
		{Kind: apply.KindApplied, At: at, Within: time.Minute, Left: []int{1}},
		{Kind: apply.KindFailed, At: at, Why: "timed out"},
	} {
		text, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, text)
	}
	load := func(text []byte) error {
		_, err := apply.ReadRecord(text)
		return err
	}
	jsonfiletest.Members(t, apply.RecordMembers(), load, examples...)
}

// TestFormerRecord: the first record of a journal of fabsh 0.9.0, which had a member that is unknown
// today, and none of those added since.
func TestFormerRecord(t *testing.T) {
	const text = `{"kind":"begin","at":"2026-10-02T03:04:05.6Z","begin":{"id":"a1","summary":"--routes ftree","by":"root","subnet":"sm-0x0002c90300000001","port":12884901889,"prefix":18338657682652659712,"within":60000000000,"drains":2,"manager":0,"cells":[{"node":1,"name":"leaf-1 LIDs 0..63","routes":["AAE="],"lid":4,"port_guid":1,"attribute":25,"modifier":0,"old":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==","new":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQ=="}]}}`
	rec, err := apply.ReadRecord([]byte(text))
	if err != nil || len(rec.Begin.Cells) != 1 || rec.Begin.Cells[0].Attr != mad.AttrLinearForwardingTable || rec.Begin.Cells[0].New[63] != 1 {
		t.Errorf("%v: %+v", err, rec)
	}
}
