package mad

import (
	"fmt"
	"testing"
)

// TestAnswers: what answers, and what is answered. Of a baseboard's Sends bit 0
// of the modifier tells.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		class    Class
		method   Method
		modifier uint32
		want     string // is an answer, is answered
	}{
		{ClassSubn, MethodGet, 1, "false true"},
		{ClassSubn, MethodGetResp, 0, "true false"},
		{ClassSubnAdm, MethodReport, 0, "false true"},
		{ClassSubnAdm, MethodReportResp, 0, "true false"},
		{ClassSubn, MethodTrap, 1, "false false"},
		{ClassSubn, MethodTrapRepress, 1, "false false"},
		{ClassComMgt, MethodSend, 1, "false false"},
		{ClassBM, MethodSend, 0, "false true"},
		{ClassBM, MethodSend, 1, "true false"},
		{ClassBM, MethodSend, 2, "false true"},
		{ClassBM, MethodGet, 1, "false true"},
	} {
		h := Header{Class: test.class, Method: test.method, Modifier: test.modifier}
		if got := fmt.Sprint(h.IsAnswer(), h.IsAnswered()); got != test.want {
			t.Errorf("%v %#02x, modifier %d: %s, want %s", test.class, uint8(test.method), test.modifier, got, test.want)
		}
	}
}
