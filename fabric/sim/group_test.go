package sim

import (
	"testing"

	"fabsh/mad"
)

// TestForeignMember: only the port itself may end its membership, but that of a
// proxy join may be ended by others too.
func TestForeignMember(t *testing.T) {
	r := newRig(t, small)
	const one, two = "node-0001 HCA-1", "node-0002 HCA-1"
	ask := func(from string, m mad.Method, member string) mad.Status {
		record := make([]byte, mad.AttrMCMemberRecord.Size)
		rec := mad.MCMemberRecord{MGID: mad.MakeGID(0xff12000100000000, 7), PortGID: r.at(member, 1).GID(), JoinState: mad.JoinStateFullMember, PKey: mad.DefaultPKey}
		rec.Encode(record)
		c := saCall(m, mad.AttrMCMemberRecord, 0, createMask, record, r.state.SM.LID)
		if !r.attach(from).ask(t, c) {
			t.Fatal("no answer")
		}
		return c.Header().Status
	}
	for i, step := range []struct {
		from   string
		method mad.Method
		member string
		want   mad.Status
	}{
		{one, mad.MethodSet, one, 0},
		{two, mad.MethodDelete, one, mad.StatusRequestInvalid},
		{two, mad.MethodSet, one, mad.StatusRequestInvalid},
		{one, mad.MethodSet, two, 0},
		{two, mad.MethodDelete, two, 0},
		{one, mad.MethodDelete, one, 0},
		{one, mad.MethodDelete, one, mad.StatusRequestInvalid},
	} {
		if got := ask(step.from, step.method, step.member); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
