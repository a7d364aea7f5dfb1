package ibsimtest

import (
	"fmt"
	"strings"
	"testing"
)

func TestStart(t *testing.T) {
	for _, c := range []struct {
		name, net   string
		sm          string
		cas, sws, r int
	}{
		{"ring", Net(t, "ring"), "h1", 7, 5, 0},
		{"mesh", Net(t, "mesh"), "login", 9, 7, 0},
		{"names", Net(t, "names"), "a0", 6, 5, 1},
		{"fattree", FatTree(4, 2, 4), "host-3-3", 16, 6, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := Start(t, c.net, FixtureOptions{SM: c.sm})
			out := f.Run(t, "ibnetdiscover", "-l")
			got := [3]int{strings.Count("\n"+out, "\nCa"), strings.Count("\n"+out, "\nSwitch"), strings.Count("\n"+out, "\nRouter")}
			if want := [3]int{c.cas, c.sws, c.r}; got != want {
				t.Errorf("ibnetdiscover found %v CAs, switches, routers, want %v:\n%s", got, want, out)
			}
			if clients := f.Attached(t); len(clients) != 1 || !strings.Contains(clients[0], fmt.Sprintf("connected at %q", c.sm)) {
				t.Errorf("attached: %q, want OpenSM alone", clients)
			}
		})
	}
}
