package topology

import (
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// whereParam is a parameter that names a node or a port.
var whereParam = lang.Param{Name: "where", Kind: KindTarget, Doc: "a node, for its chip; or a port, NODE/PORT, for the module in it"}

// temperatureMethod is sim.temperature().
var temperatureMethod = lang.Builtin{
	Name:   "temperature",
	Params: []lang.Param{whereParam, {Name: "celsius", Kind: lang.KindAny, Doc: "degrees Celsius"}},
	Doc: `Sets the temperature of a chip or of a module.
From then on the devices of the fabric have registers (reg_get), as with -F sim:registers=yes.`,
	Example: `
> sim.temperature("leaf-1", 95.5)
> reg_get("MTMP", 1).temperature
95.5
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Where, Celsius starlark.Value }) (starlark.Value, error) {
		celsius, err := numberWithin(a.Celsius, -128, 127)
		if err != nil {
			return nil, lang.ParamError("celsius", "%w", err)
		}
		const chip = -1
		s := c.Recv.(*Sim)
		at, err := s.placeAt(a.Where, chip)
		switch {
		case err != nil:
			return nil, lang.ParamError("where", "%w", err)
		case at.Num == chip:
			return editHardware(c, "where", a.Where, func(h *state.Hardware) error {
				h.Temperature = celsius
				return nil
			})
		}
		return editPort(c, "where", a.Where, func(m *state.Module) { m.Temperature = celsius })
	}),
}

// fanMethod is sim.fan().
var fanMethod = lang.Builtin{
	Name: "fan",
	Params: []lang.Param{
		{Name: "switch", Kind: KindTarget, Doc: "a switch, or its name"},
		{Name: "number", Kind: lang.KindInt, Doc: "number of the fan, from 0"},
		{Name: "rpm", Kind: lang.KindInt, Doc: "revolutions per minute; 0: the fan has failed"},
	},
	Doc: "Sets the speed of a fan. From then on the devices have registers.",
	Example: `
> sim.fan("leaf-1", 2, 0)
> reg_get("MFSM", 1, tacho=2).rpm
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Switch      starlark.Value
		Number, RPM int
	}) (starlark.Value, error) {
		return editHardware(c, "switch", a.Switch, func(h *state.Hardware) error {
			if a.Number < 0 || a.Number >= len(h.Fans) {
				return fmt.Errorf("unknown fan %d; it has %s", a.Number, plural.Count(len(h.Fans), "fan", "fans"))
			}
			if a.RPM < 0 || a.RPM > 0xffff {
				return fmt.Errorf("rpm: %d is out of range, 0..65535", a.RPM)
			}
			h.Fans[a.Number] = a.RPM
			return nil
		})
	}),
}

// supplyMethod is sim.supply().
var supplyMethod = lang.Builtin{
	Name: "supply",
	Params: []lang.Param{
		{Name: "switch", Kind: KindTarget, Doc: "a switch, or its name"},
		{Name: "number", Kind: lang.KindInt, Doc: "number of the power supply, 0 or 1"},
		{Name: "ok", Kind: lang.KindBool, Doc: "whether it works"},
	},
	Doc: "Makes a power supply fail or work again. From then on the devices have registers.",
	Example: `
> sim.supply("leaf-1", 1, False)
> reg_get("MSPS", 1).psu1[:4]
b"P\x00\x00\x00"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Switch starlark.Value
		Number int
		OK     bool
	}) (starlark.Value, error) {
		return editHardware(c, "switch", a.Switch, func(h *state.Hardware) error {
			if a.Number < 0 || a.Number >= len(h.Supplies) {
				return fmt.Errorf("unknown power supply %d; it has %d", a.Number, len(h.Supplies))
			}
			h.Supplies[a.Number] = a.OK
			return nil
		})
	}),
}

// firmwareMethod is sim.firmware().
var firmwareMethod = lang.Builtin{
	Name: "firmware",
	Params: []lang.Param{
		{Name: "node", Kind: KindTarget, Doc: "a node, or its name"},
		{Name: "version", Kind: lang.KindText, Doc: `three numbers: "31.2012.1024"`},
		{Name: "psid", Kind: lang.KindText, Default: "None", Keyword: true, Doc: "identifier of the board; None: unchanged"},
	},
	Doc: "Sets the firmware version of a device. From then on the devices have registers.",
	Example: `
> sim.firmware("leaf-1", "31.2010.4102", psid="MT_0000000069")
> reg_get("MGIR", 1).ext_fw_minor
2010
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Node    starlark.Value
		Version string
		PSID    *string
	}) (starlark.Value, error) {
		var version [3]uint32
		parts := strings.Split(a.Version, ".")
		for i, part := range parts {
			n, err := strconv.ParseUint(part, 10, 32)
			if err != nil || len(parts) != 3 {
				return nil, lang.ParamError("version", "got %q, want three numbers: 31.2012.1024", a.Version)
			}
			version[i] = uint32(n)
		}
		if err := checkLength("psid", a.PSID, len(mad.MGIR{}.PSID)); err != nil {
			return nil, err
		}
		return editHardware(c, "node", a.Node, func(h *state.Hardware) error {
			h.Firmware = version
			if a.PSID != nil {
				h.PSID = *a.PSID
			}
			return nil
		})
	}),
}

// moduleMethod is sim.module().
var moduleMethod = lang.Builtin{
	Name: "module",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "vendor", Kind: lang.KindText, Default: "None", Keyword: true, Doc: "its vendor"},
		{Name: "part", Kind: lang.KindText, Default: "None", Keyword: true, Doc: "its part number"},
		{Name: "serial", Kind: lang.KindText, Default: "None", Keyword: true, Doc: "its serial number"},
		{Name: "length", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "m"},
		{Name: "rx_power", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "received power of its first lane, in uW"},
		{Name: "tx_power", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "transmitted power of its first lane, in uW"},
		{Name: "ber", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "bit error rate of received data, before FEC: 1e-9"},
	},
	Doc: "Changes the module in a port. Parameters that are None stay unchanged. From then on the devices have registers.",
	Example: `
> sim.module("leaf-1/2", vendor="ACME", rx_power=20)
> reg_get("EEPROM", 1, 2).vendor_name.strip()
"ACME"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port                          starlark.Value
		Vendor, Part, Serial          *string
		Length, RxPower, TxPower, BER starlark.Value
	}) (starlark.Value, error) {
		type number struct {
			name  string
			value starlark.Value
			most  float64
			to    func(m *state.Module) *float64
		}
		var set []func(m *state.Module)
		for _, n := range []number{
			{"length", a.Length, 6300, func(m *state.Module) *float64 { return &m.Length }},
			{"rx_power", a.RxPower, 6553, func(m *state.Module) *float64 { return &m.RxPower[0] }},
			{"tx_power", a.TxPower, 6553, func(m *state.Module) *float64 { return &m.TxPower[0] }},
			{"ber", a.BER, 0.5, func(m *state.Module) *float64 { return &m.BER }},
		} {
			if n.value == nil {
				continue
			}
			x, err := numberWithin(n.value, 0, n.most)
			if err != nil {
				return nil, lang.ParamError(n.name, "%w", err)
			}
			set = append(set, func(m *state.Module) { *n.to(m) = x })
		}
		for _, text := range []struct {
			param string
			given *string
		}{{"vendor", a.Vendor}, {"part", a.Part}, {"serial", a.Serial}} {
			if err := checkLength(text.param, text.given, len(mad.SFF8636{}.VendorName)); err != nil {
				return nil, err
			}
		}
		return editPort(c, "port", a.Port, func(m *state.Module) {
			for _, text := range []struct {
				given *string
				to    *string
			}{{a.Vendor, &m.VendorName}, {a.Part, &m.PartNumber}, {a.Serial, &m.Serial}} {
				if text.given != nil {
					*text.to = *text.given
				}
			}
			for _, do := range set {
				do(m)
			}
		})
	}),
}

// downReasonMethod is sim.down_reason().
var downReasonMethod = lang.Builtin{
	Name: "down_reason",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "local", Kind: lang.KindText, Default: `"no_link_down_indication"`, Doc: "reason at this end, a word of PDDRLinkDown"},
		{Name: "remote", Kind: lang.KindText, Default: `"no_link_down_indication"`, Keyword: true, Doc: "reason at the other end"},
	},
	Doc: "Sets the reason why the link of a port last went down. From then on the devices have registers.",
	Example: `
> sim.down_reason("leaf-1/2", "cable_was_unplugged")
> reg_get("PDDR", 1, 2, page_select="link_down").local_reason_opcode
"cable_was_unplugged"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port          starlark.Value
		Local, Remote string
	}) (starlark.Value, error) {
		var codes [2]uint64
		for i, word := range []string{a.Local, a.Remote} {
			code, ok := mad.WordsLinkDownReason.Code()[word]
			if word != "" && !ok {
				var words []string
				for w := range mad.WordsLinkDownReason.Code() {
					words = append(words, w)
				}
				return nil, lang.ParamError([]string{"local", "remote"}[i], "unknown reason %q%s; help(%q) lists them", word, fabric.DidYouMean(word, words), "PDDRLinkDown.LocalReasonOpcode")
			}
			codes[i] = code
		}
		return editPort(c, "port", a.Port, func(m *state.Module) {
			m.Reason, m.RemoteReason = mad.LinkDownReason(codes[0]), mad.LinkDownReason(codes[1])
		})
	}),
}

// numberWithin returns a number if it is from low to high.
func numberWithin(v starlark.Value, low, high float64) (float64, error) {
	x, ok := starlark.AsFloat(v)
	if _, isBool := v.(starlark.Bool); isBool || !ok || !(low <= x && x <= high) {
		return 0, fmt.Errorf("got %v, want a number from %g to %g", v, low, high)
	}
	return x, nil
}

// checkLength checks that a text, if given, has at most most bytes, the size of its field.
func checkLength(param string, s *string, most int) error {
	if s != nil && len(*s) > most {
		return lang.ParamError(param, "got %d bytes, want at most %d", len(*s), most)
	}
	return nil
}

// editHardware changes the register values of a node; param is the parameter's name.
func editHardware(c *lang.Call, param string, node starlark.Value, change func(h *state.Hardware) error) (starlark.Value, error) {
	s := c.Recv.(*Sim)
	guid, err := s.nodeAt(node)
	if err != nil {
		return nil, lang.ParamError(param, "%w", err)
	}
	return changeSim(c, func() error { return s.Edit.Hardware(guid, 0, change) })
}

// editPort changes the module in a port; param is the parameter's name.
func editPort(c *lang.Call, param string, port starlark.Value, change func(m *state.Module)) (starlark.Value, error) {
	s := c.Recv.(*Sim)
	at, err := s.portAt(port)
	if err != nil {
		return nil, lang.ParamError(param, "%w", err)
	}
	if at.Num == 0 {
		return nil, lang.ParamError(param, "port 0 of a switch has no cable")
	}
	return changeSim(c, func() error {
		return s.Edit.Hardware(at.Node, at.Num, func(h *state.Hardware) error {
			m := h.Module(at.Num)
			change(&m)
			h.SetModule(at.Num, m)
			return nil
		})
	})
}
