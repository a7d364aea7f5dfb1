package builtins

import (
	"strings"
	"testing"
	"time"

	"fabsh/builtins/audits"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// registered is a fabric whose devices have registers.
const registered = "fattree:registers=yes"

// health is a fault that registers show.
func health(name string, do func(b *bench, ca, leaf *fabric.Port) []string) fault {
	return fault{name: name, on: registered, alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"health"}
		return do(b, ca, leaf)
	}}
}

func (b *bench) hardware(p *fabric.Port, change func(h *state.Hardware)) {
	b.must(b.subnet.Edit.Hardware(p.Node().GUID(), p.Num(), func(h *state.Hardware) error { change(h); return nil }))
}

func (b *bench) module(p *fabric.Port, change func(m *state.Module)) {
	b.hardware(p, func(h *state.Hardware) {
		m := h.Module(p.Num())
		change(&m)
		h.SetModule(p.Num(), m)
	})
}

// registerFaults are those of health.
var registerFaults = []fault{
	health("env.temp chip", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Temperature = 90.5 })
		return []string{id("env.temp", audit.OfNode(leaf.Node()))}
	}),
	health("env.temp module", func(b *bench, ca, _ *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.Temperature = 75.5 }) // over its own limit alone
		return []string{id("env.temp", audit.OfPort(ca))}
	}),
	health("env.fan", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Fans[3] = 0 })
		return []string{id("env.fan", audit.OfNode(leaf.Node()))}
	}),
	health("env.fan slow", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Fans[0] = 2900 })
		return []string{id("env.fan", audit.OfNode(leaf.Node()))}
	}),
	health("env.psu", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Supplies[0] = false })
		return []string{id("env.psu", audit.OfNode(leaf.Node()))}
	}),
	health("cable.eeprom dark", func(b *bench, ca, _ *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.RxPower[3] = 0 })
		return []string{id("cable.eeprom", audit.OfPort(ca))}
	}),
	health("cable.eeprom ends", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(leaf, func(m *state.Module) { m.VendorName = "ACME\x1b[2J" })
		return []string{id("cable.eeprom", audit.OfLink(ca, leaf))}
	}),
	health("cable.eeprom vendor", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.VendorName = "" })
		return []string{id("cable.eeprom", audit.OfPort(ca))}
	}),
	health("cable.eeprom --vendors", func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"health", "--vendors", "Mellanox, NVIDIA"}
		for _, p := range []*fabric.Port{ca, leaf} {
			b.module(p, func(m *state.Module) { m.VendorName = "ACME" })
		}
		return []string{id("cable.eeprom", audit.OfPort(ca)), id("cable.eeprom", audit.OfPort(leaf))}
	}),
	health("ctr.fec.raw", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.BER = 2e-5 })
		return []string{id("ctr.fec.raw", audit.OfLink(ca, leaf))}
	}),
	health("ctr.fec.histogram", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(leaf, func(m *state.Module) { m.BER = 2e-4 })
		return []string{id("ctr.fec.raw", audit.OfLink(ca, leaf)), id("ctr.fec.histogram", audit.OfLink(ca, leaf))}
	}),
	health("ctr.fec.uncorrectable", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(leaf, func(m *state.Module) { m.BER = 1e-3 })
		return []string{id("ctr.fec.raw", audit.OfLink(ca, leaf)), id("ctr.fec.histogram", audit.OfLink(ca, leaf)), id("ctr.fec.uncorrectable", audit.OfLink(ca, leaf))}
	}),
	health("fw.outlier", func(b *bench, ca, _ *fabric.Port) []string {
		b.hardware(ca, func(h *state.Hardware) { h.Firmware[2] = 999 })
		return []string{id("fw.outlier", audit.OfNode(ca.Node()))}
	}),
}

// TestHealthWell: nothing is found where nothing is wrong, with registers, with
// modules by CMIS, and without registers, which is no finding and no gap.
func TestHealthWell(t *testing.T) {
	for _, spec := range []string{"fattree:k=4,registers=yes", "fattree:k=4,registers=yes,speed=ndr", "fattree:k=4"} {
		onSimWith(t, spec, nil, nil, nil, func(t *testing.T, f *fixture) {
			r := audited(t, f, audits.RunOptions{}, "health")
			if len(r.Findings) > 0 || !r.Complete() || len(r.Notes) > 0 {
				t.Errorf("%s: %s\nmissing %v, notes %q", spec, told(r), r.Coverage.Missing(), r.Notes)
			}
		})
	}
}

// TestDownReason: what a switch's register tells of a link that went down is in the
// finding.
func TestDownReason(t *testing.T) {
	onSimWith(t, registered, smKey, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
		audited(t, f, audits.RunOptions{Job: "x"}, "links")
		time.Sleep(betweenRuns)
		s := f.Env.Sim
		leaf := s.NodeGUIDs("leaf-1")[0]
		if err := s.Cables.Unlink(leaf, 3); err != nil {
			t.Fatal(err)
		}
		err := s.Edit.Hardware(leaf, 3, func(h *state.Hardware) error {
			m := h.Module(3)
			m.Reason, m.RemoteReason = mad.LinkDownReasonCableWasUnplugged, mad.LinkDownReasonHiBer
			h.SetModule(3, m)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r := audited(t, f, audits.RunOptions{Job: "x"}, "links")
		if got := told(r); !strings.Contains(got, "ago; reason: cable was unplugged at this end and hi ber at the other end") {
			t.Errorf("the reason is not told:\n%s", got)
		}
	})
}
