package adaptive

import (
	"testing"
)

func TestDescribe(t *testing.T) {
	other := example()
	other.SLs, other.Static, other.FastRecovery = AllSLs, 0, true
	other.Tables[0].Groups.Set(2, 0, PortSet(9))
	for _, x := range []struct {
		list []*Switch
		want string
	}{
		{nil, ""},
		{[]*Switch{nil, {}}, ""},
		{[]*Switch{example(), nil}, "on at 1 of 2 switches; SLs 0-2; not UC, UD; groups of 3 ports; hash-based forwarding at 1"},
		{[]*Switch{example(), other, {Unknown: "no answer"}}, "on at 2 of 3 switches; different SLs; different transports; groups of 1 to 3 ports; hash-based forwarding at 2; fast recovery at 1; unknown at 1"},
	} {
		if got := Describe(x.list); got != x.want {
			t.Errorf("got  %s\nwant %s", got, x.want)
		}
	}
	if got := SLs(0).String(); got != "none" {
		t.Errorf("no SLs: %s", got)
	}
}
