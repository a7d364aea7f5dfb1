package engine

import (
	"fmt"
	"testing"

	"fabsh/mad"
)

// TestAnswers: what answers, and what is answered. Of a baseboard's Sends bit 0
// of the modifier tells.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		class    mad.Class
		method   mad.Method
		modifier uint32
		want     string // is an answer, is answered
	}{
		{mad.ClassSubn, mad.MethodGet, 1, "false true"},
		{mad.ClassSubn, mad.MethodGetResp, 0, "true false"},
		{mad.ClassSubnAdm, mad.MethodReport, 0, "false true"},
		{mad.ClassSubnAdm, mad.MethodReportResp, 0, "true false"},
		{mad.ClassSubn, mad.MethodTrap, 1, "false false"},
		{mad.ClassSubn, mad.MethodTrapRepress, 1, "false false"},
		{mad.ClassComMgt, mad.MethodSend, 1, "false false"},
		{mad.ClassBM, mad.MethodSend, 0, "false true"},
		{mad.ClassBM, mad.MethodSend, 1, "true false"},
		{mad.ClassBM, mad.MethodSend, 2, "false true"},
		{mad.ClassBM, mad.MethodGet, 1, "false true"},
	} {
		h := mad.Header{Class: test.class, Method: test.method, Modifier: test.modifier}
		if got := fmt.Sprint(h.IsAnswer(), h.IsAnswered()); got != test.want {
			t.Errorf("%v %#02x, modifier %d: %s, want %s", test.class, uint8(test.method), test.modifier, got, test.want)
		}
	}
}
