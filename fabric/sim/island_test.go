package sim

import (
	"testing"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestIsland: the subnet administrator does not know ports that its sweep does not
// reach, in paths, groups and services either.
func TestIsland(t *testing.T) {
	r := newRig(t, small)
	lid, far := r.lid("node-0004 HCA-1"), r.lid("node-0003 HCA-1")
	guid := r.at("node-0004 HCA-1", 1).GUID
	status := func(m mad.Method, a *mad.Attribute, mask uint64, record []byte) mad.Status {
		t.Helper()
		c := saCall(m, a, 0, mask, record, r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		return c.Header().Status
	}
	check := func(when string, paths int, others mad.Status, byGID mad.Status) {
		t.Helper()
		e := engine.New(r.attach("node-0001 HCA-1"), engine.Options{})
		defer e.Close()
		for what, q := range map[string]struct {
			mask uint64
			rec  mad.PathRecord
		}{
			"both":   {pathSLIDMask | pathDLIDMask, mad.PathRecord{SLID: far, DLID: lid}},
			"itself": {pathSLIDMask | pathDLIDMask, mad.PathRecord{SLID: lid, DLID: lid}},
		} {
			if got := r.records(e, mad.AttrPathRecord, 0, q.mask, encode(&q.rec)); len(got) != paths {
				t.Errorf("%s: %d paths of %s, want %d", when, len(got), what, paths)
			}
		}
		gid := mad.MakeGID(state.GIDPrefix, guid)
		if got := status(mad.MethodGet, mad.AttrPathRecord, pathSGIDMask|pathDGIDMask, encode(&mad.PathRecord{SGID: gid, DGID: gid})); got != byGID {
			t.Errorf("%s: a path by GID: %v, want %v", when, got, byGID)
		}
		join := encode(&mad.MCMemberRecord{MGID: r.state.Groups[0].MGID, PortGID: gid, JoinState: mad.JoinStateFullMember})
		if got := status(mad.MethodSet, mad.AttrMCMemberRecord, joinMask, join); got != others {
			t.Errorf("%s: a join: %v, want %v", when, got, others)
		}
		guids := encode(&mad.GUIDInfoRecord{LID: lid})
		if got := status(mad.MethodSet, mad.AttrGUIDInfoRecord, guidRecordMask, guids); got != others {
			t.Errorf("%s: its GUIDs: %v, want %v", when, got, others)
		}
	}
	check("before", 1, mad.StatusOK, mad.StatusOK)
	for num := 3; num <= 4; num++ {
		if err := r.Cables.Unlink(r.named("leaf-2").GUID(), num); err != nil {
			t.Fatal(err)
		}
	}
	check("cut off", 0, mad.StatusRequestInvalid, mad.StatusInvalidGID)
	if err := r.Cables.Link(r.named("leaf-2").GUID(), 3); err != nil {
		t.Fatal(err)
	}
	check("again", 1, mad.StatusOK, mad.StatusOK)
}
