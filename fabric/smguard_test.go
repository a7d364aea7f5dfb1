package fabric

import (
	"errors"
	"testing"
	"testing/synctest"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestFindSMRefused: an answer that says no is an answer, and a question that
// nobody heard is not silence.
func TestFindSMRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		class   mad.Class // of what is heard
		status  mad.Status
		broken  error
		sm, err string
	}{
		{name: "refusal", class: mad.ClassSubn, status: mad.StatusBadMethodAttribute, sm: "a subnet manager at LID 1001"},
		{name: "redirection", class: mad.ClassSubnAdm, status: mad.StatusRedirect, sm: "a subnet manager at LID 1001"},
		{name: "transport gone", broken: errors.New("unplugged"), err: "SubnGet(SMInfo) to LID 1001: unplugged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := new(fakeNet)
				n.link(n.ca(0x10, 1, "host"), 1, n.ca(0x11, 1, "sm"), 1)
				n.local.ports[1].info.MasterSMLID = n.local.ports[1].info.LID
				n.status = func(*packet) mad.Status { return test.status }
				n.lost = func(p *packet) bool { return p.h.Class != test.class }
				c := n.attach()
				if test.broken != nil {
					c.fail(test.broken)
				}
				e := engine.New(c, engine.Options{})
				defer e.Close()
				sm, err := FindSM(t.Context(), e, nil)
				if got := text(sm); got != test.sm {
					t.Errorf("found %q, want %q", got, test.sm)
				}
				if (err != nil || test.err != "") && (err == nil || err.Error() != test.err) {
					t.Errorf("got %v, want %s", err, test.err)
				}
			})
		})
	}
}

func text(sm *SM) string {
	if sm == nil {
		return ""
	}
	return sm.String()
}
