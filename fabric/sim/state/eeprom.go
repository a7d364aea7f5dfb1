package state

import (
	"math"

	"fabsh/mad"
)

// eeprom reads a part of a module's EEPROM.
func (h *Hardware) eeprom(content []byte, view RegisterView) mad.RegisterStatus {
	var c mad.MCIA
	c.Decode(content)
	c.EEPROM = [128]byte{}
	num := int(c.Module) + 1
	port := view.Port(num)
	switch memory := h.Module(num).memory(port); {
	case c.SlotIndex != 0, c.I2CDeviceAddress != 0x50, c.Size == 0 || c.Size > 48:
		return mad.RegisterStatusBadParameter
	case !port.Cabled:
		c.ModuleStatus = mad.ModuleStatusNotConnected
	default:
		at := int(c.DeviceAddress)
		switch {
		case at >= 128 && c.PageNumber == 0x11 && port.CMIS:
			at += 128
		case at >= 128 && c.PageNumber != 0, c.DeviceAddress >= 256:
			at = len(memory)
		}
		copy(c.EEPROM[:c.Size], memory[min(at, len(memory)):])
	}
	c.Encode(content)
	return mad.RegisterStatusOK
}

// memory is the EEPROM of a module, by its layout.
func (m Module) memory(port RegisterPort) []byte {
	if port.CMIS {
		return m.cmis(port)
	}
	s := mad.SFF8636{
		Identifier: mad.ModuleIdentifierQSFP28, RevCompliance: 8, Temperature: uint16(int16(256 * m.Temperature)), Voltage: 33000,
		Connector: 0x0c, LengthAssembly: uint8(min(m.Length, 255)), VendorOUI: 0x0002c9,
	}
	for lane := range s.RxPower {
		s.RxPower[lane], s.TxPower[lane], s.TxBias[lane] = tenths(m.RxPower[lane]), tenths(m.TxPower[lane]), 3500
		if m.RxPower[lane] < lowPower {
			s.RxPowerAlarms[lane] = mad.ModuleAlarmsLowAlarm
		}
		if m.TxPower[lane] < lowPower {
			s.TxPowerAlarms[lane] = mad.ModuleAlarmsLowAlarm
		}
	}
	if m.Temperature > highTemperature {
		s.TemperatureAlarms = mad.ModuleAlarmsHighAlarm
	}
	pad(s.VendorName[:], m.VendorName)
	pad(s.VendorPN[:], m.PartNumber)
	pad(s.VendorRev[:], "A2")
	pad(s.VendorSN[:], m.Serial)
	pad(s.DateCode[:], "240115")
	b := make([]byte, mad.LayoutSFF8636.Size)
	s.Encode(b)
	return b
}

// When a module alarms: above degrees Celsius, below uW of light.
const (
	highTemperature = 75
	lowPower        = 40
)

func (m Module) cmis(port RegisterPort) []byte {
	c := mad.CMIS{
		Identifier: mad.ModuleIdentifierOSFP, RevCompliance: 0x50, ModuleState: 3, Temperature: uint16(int16(256 * m.Temperature)), Voltage: 33000,
		MediaType: 1, MaxPower: 64, LengthMultiplier: cmisLength(m.Length) >> 6, LengthValue: cmisLength(m.Length) & 0x3f, Connector: 0x0c, VendorOUI: 0x0002c9,
	}
	for lane := range min(port.Lanes, 8) {
		c.RxPower[lane], c.TxPower[lane], c.TxBias[lane] = tenths(m.RxPower[lane]), tenths(m.TxPower[lane]), 3500
		if m.RxPower[lane] < lowPower {
			c.RxPowerLowAlarm |= 1 << lane
		}
		if m.TxPower[lane] < lowPower {
			c.TxPowerLowAlarm |= 1 << lane
		}
	}
	if m.Temperature > highTemperature {
		c.TemperatureAlarms = mad.CMISAlarmsHighAlarm
	}
	pad(c.VendorName[:], m.VendorName)
	pad(c.VendorPN[:], m.PartNumber)
	pad(c.VendorRev[:], "A2")
	pad(c.VendorSN[:], m.Serial)
	pad(c.DateCode[:], "240115")
	b := make([]byte, mad.LayoutCMIS.Size)
	c.Encode(b)
	return b
}

// pad writes a text with blanks behind, as modules have it.
func pad(to []byte, text string) {
	for i := copy(to, text); i < len(to); i++ {
		to[i] = ' '
	}
}

// tenths is a power in units of 0.1 uW.
func tenths(microwatts float64) uint16 { return uint16(min(math.Round(10*microwatts), 0xffff)) }

// cmisLength is a length as CMIS has it: two bits for the unit, six for the number.
func cmisLength(m float64) uint8 {
	for unit, scale := range []float64{0.1, 1, 10, 100} {
		if n := math.Round(m / scale); n < 64 {
			return uint8(unit)<<6 | uint8(n)
		}
	}
	return 0xff
}
