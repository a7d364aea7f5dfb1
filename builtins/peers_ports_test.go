//go:build linux

package builtins

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestIbportstate: ibportstate sees what port_disable and the others did, and
// these see what it did. In ibsim a disabled link stays up and speeds take
// effect at once, but what is asked for is kept.
func TestIbportstate(t *testing.T) {
	f := onIbsim(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: quiet}, func(o *SessionOptions) { o.Write, o.OverrideSM = true, true })
	fab := f.sweep(t)
	host := fab.NodeByName("host-2-1 HCA-1")
	if len(host) != 1 {
		t.Fatal("no such host")
	}
	p := host[0].Port(1).Peer()
	at := fmt.Sprintf("%d, %d", p.LID(), p.Num())
	state := func() map[string]string {
		fields := map[string]string{}
		// It fails when it cannot ask the neighbour, after it has told of the port.
		out, _ := f.peer.Command(t, "", "ibportstate", "-D", p.Route().String(), fmt.Sprint(p.Num()), "query").Output()
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "Peer PortInfo:") {
				break
			}
			// Mellanox' fields, which follow, have the same names.
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && fields[name] == "" {
				fields[name] = strings.TrimLeft(value, ".")
			}
		}
		return fields
	}
	compare := func(what string, want map[string]string) {
		t.Helper()
		got := state()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: ibportstate has %s %q, want %q", what, name, got[name], value)
			}
		}
	}
	var i attributes
	f.eval(t, &i, "[discover(), smp_get('PortInfo', %s)][1]", at)
	before := state()
	if before["LinkState"] != "Active" || before["PhysLinkState"] != "LinkUp" || before["LinkWidthEnabled"] != "1X or 4X" {
		t.Fatalf("ibportstate has %q", before)
	}
	f.eval(t, &i, "port_disable(%q)", p.Name())
	compare("disabled", map[string]string{"PhysLinkState": "Disabled"})
	if i.text("port_physical_state") != "disabled" {
		t.Errorf("after port_disable: %v", i)
	}
	f.eval(t, &i, "port_enable(%q, wait='50ms')", p.Name())
	compare("enabled", map[string]string{"PhysLinkState": "Polling"})
	f.eval(t, &i, "port_set(%q, speed='edr', width='1x')", p.Name())
	compare("set", map[string]string{"LinkWidthEnabled": "1X", "LinkSpeedEnabled": "2.5 Gbps or 5.0 Gbps or 10.0 Gbps", "LinkSpeedExtEnabled": "14.0625 Gbps or 25.78125 Gbps"})
	f.eval(t, &i, "port_set(%q, width=['1x', '4x'], speed='hdr')", p.Name())
	compare("set back", map[string]string{"LinkWidthEnabled": "1X or 4X", "LinkSpeedExtEnabled": before["LinkSpeedExtEnabled"]})

	f.peer.Run(t, "ibportstate", "-D", p.Route().String(), fmt.Sprint(p.Num()), "disable")
	f.eval(t, &i, "port_disable(%q)", p.Name())
	if i.text("port_physical_state") != "disabled" {
		t.Errorf("after ibportstate's disable: %v", i)
	}
	f.eval(t, &i, "port_enable(%q, wait='50ms')", p.Name())
	f.peer.Run(t, "ibportstate", "-D", p.Route().String(), fmt.Sprint(p.Num()), "width", "1")
	f.eval(t, &i, "smp_get('PortInfo', %q)", p.Name())
	if fmt.Sprint(i["link_width_enabled"]) != "[1x]" {
		t.Errorf("after ibportstate's width: %v", i)
	}
}
