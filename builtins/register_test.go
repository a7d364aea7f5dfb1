package builtins

import (
	"bytes"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// hostile is a transport to devices that answer queries of registers otherwise
// than they were asked.
type hostile struct {
	engine.Transport
	spoil func(m []byte)
	sent  int // requests about registers
}

func (h *hostile) Send(d *engine.Datagram) error {
	if isRegister(d.MAD) {
		h.sent++
	}
	return h.Transport.Send(d)
}

func (h *hostile) TrySend(d *engine.Datagram) (bool, error) { return true, h.Send(d) }

func (h *hostile) Recv(d *engine.Datagram) error {
	if err := h.Transport.Recv(d); err != nil {
		return err
	}
	if isRegister(d.MAD) && h.spoil != nil {
		d.MAD = bytes.Clone(d.MAD)
		h.spoil(d.MAD)
	}
	return nil
}

func isRegister(m []byte) bool {
	h := mad.ParseHeader(m)
	return h.Class == mad.ClassVendor0A || h.Class.Family() == mad.ClassSubn && h.Attribute == mad.AttrMlnxAccessRegister.ID
}

// TestHostileRegisters: an answer that is malformed, or about something else, is an
// error of its target and no value; text is harmless.
func TestHostileRegisters(t *testing.T) {
	const bySMP, byGMP = `catch(reg_get, "MTMP", dr("0,1"))`, `catch(reg_get, "MTMP", 1)`
	op := mad.AttrMlnxAccessRegister.Offset()
	content := mad.AttrAccessRegister.Offset() + 12
	for _, tt := range []struct {
		what, ask string
		spoil     func(m []byte)
		want      string
	}{
		{"another register", bySMP, func(m []byte) { m[op+4], m[op+5] = 0x90, 0x20 }, "for another register"},
		{"a length of 0", bySMP, func(m []byte) { m[op+16], m[op+17] = 0x18, 0 }, "for another register, or malformed"},
		{"a length beyond the datagram", bySMP, func(m []byte) { m[op+16], m[op+17] = 0x1f, 0xff }, "malformed"},
		{"no register behind it", bySMP, func(m []byte) { m[op+16] = 0 }, "malformed"},
		{"a write", bySMP, func(m []byte) { m[op+6] = 0x82 }, "malformed"},
		{"a status", bySMP, func(m []byte) { m[op+2] = 7 }, "bad parameter"},
		{"a status of no name", bySMP, func(m []byte) { m[op+2] = 0x33 }, "unknown(51)"},
		{"not supported", bySMP, func(m []byte) { m[op+2] = 4 }, "does not have register MTMP"},
		{"another register, by GMP", byGMP, func(m []byte) { m[22], m[23] = 0x90, 0x20 }, "for another register"},
		{"another block", byGMP, func(m []byte) { m[33] = 1 }, "for another register"},
		{"not supported, by GMP", byGMP, func(m []byte) { m[5] = 0x14 }, "does not have register MTMP"},
		{"another page", `catch(reg_get, "PDDR", 1, 2, page_select="module")`, func(m []byte) { m[content+7] = 6 }, "for another part"},
		{"a text that clears the screen", `reg_get("MTMP", 1)`, func(m []byte) { copy(m[content+24:], "\x1b[2J\n") }, `\x1b[2J\n`},
		{"all ones", `reg_get("PPCNT", 1, 2, grp="rs_fec_histogram").hist[0]`, func(m []byte) {
			for i := content + 8; i < len(m); i++ {
				m[i] = 0xff
			}
		}, "18446744073709551615"},
		{"a module of no kind", `catch(reg_get, "EEPROM", 1, 2)`, func(m []byte) { m[content+16] = 0x77 }, "unknown layout of modules of kind unknown(119)"},
		{"a module that is not there", `catch(reg_get, "EEPROM", 1, 2)`, func(m []byte) { m[content+3] = 3 }, "not connected"},
	} {
		h := &hostile{spoil: tt.spoil}
		onSimWith(t, "registers=yes", nil, func(tr engine.Transport) engine.Transport { h.Transport = tr; return h }, nil, func(t *testing.T, f *fixture) {
			if got, _, _ := f.run("show(" + tt.ask + ")"); !strings.Contains(got, tt.want) || strings.Contains(got, "\x1b") {
				t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
			}
		})
	}
}

// TestRegisterWritesAreNotSent: nothing of a write reaches the transport, in a
// session that may write too.
func TestRegisterWritesAreNotSent(t *testing.T) {
	h := new(hostile)
	onSimWith(t, "registers=yes", nil, func(tr engine.Transport) engine.Transport { h.Transport = tr; return h }, nil, func(t *testing.T, f *fixture) {
		for _, code := range []string{
			`mad_send("MlnxAccessRegister", dr("0,1"), method="get", operation_type=1, operation_len=4, register_id=0x900a, register_method="write", operation_class=1, register_type=3, register_len=9)`,
			`mad_send("MlnxAccessRegister", dr("0,1"), method="set", register_id=0x900a, register_method="write")`,
			`mad_send(0xff52, 1, mgmt_class=0x81, method="get", data="0804 0000 900a 0201", header={})`,
			`mad_send("MlnxAccessRegister", dr("0,1"), method="get", register_id=0x900a, register_method="write", class_version=7, header={})`,
			`mad_set("AccessRegister", 1, modifier=0x5008, data="00")`,
			`mad_get("AccessRegister", 1, modifier=0x9052)`,
			`mad_set("ConfigSpace", 1, mgmt_class=0x0a, data="00")`,
			`reg_get("PPCNT", 1, 2, grp=0x12, clr=1)`,
		} {
			if _, explained, status := f.run(code); status != 2 || !strings.Contains(explained, "refused") {
				t.Errorf("%s: status %d, %s", code, status, explained)
			}
		}
		if h.sent > 0 {
			t.Errorf("%d datagrams were sent", h.sent)
		}
	})
}
