package state

import (
	"encoding/binary"
	"math"

	"fabsh/mad"
)

// moduleSensors is the first sensor of temperature that is a module's (linux mlxsw
// reg.h reg_mtmp_sensor_index).
const moduleSensors = 64

// Query answers a query of a register: data selects what is read, and afterwards contains
// the register.
func (h *Hardware) Query(id uint16, content []byte, view RegisterView) mad.RegisterStatus {
	switch id {
	case mad.LayoutMTMP.Register:
		return h.sensor(content, view)
	case mad.LayoutMTCAP.Register:
		(&mad.MTCAP{SensorCount: 1, SensorMap: 1}).Encode(content)
	case mad.LayoutMGIR.Register:
		h.general(content, view)
	case mad.LayoutMCIA.Register:
		return h.eeprom(content, view)
	case mad.LayoutPPCNT.Register:
		return h.counters(content, view)
	case mad.LayoutPDDR.Register:
		return h.diagnostics(content, view)
	case mad.LayoutPPLM.Register:
		return h.fec(content, view)
	default:
		if !h.isSwitch {
			return mad.RegisterStatusRegisterNotSupported
		}
		return h.chassis(id, content)
	}
	return mad.RegisterStatusOK
}

// chassis are the registers of a system around the chip.
func (h *Hardware) chassis(id uint16, content []byte) mad.RegisterStatus {
	switch id {
	case mad.LayoutMFCR.Register:
		(&mad.MFCR{PWMActive: 1, TachoActive: 1<<len(h.Fans) - 1}).Encode(content)
	case mad.LayoutMFSM.Register:
		var fan mad.MFSM
		fan.Decode(content)
		if int(fan.Tacho) >= len(h.Fans) {
			return mad.RegisterStatusBadParameter
		}
		fan.RPM = uint16(h.Fans[fan.Tacho])
		fan.Encode(content)
	case mad.LayoutMSPS.Register:
		var s mad.MSPS
		supply(&s.PSU0, h.Supplies[0])
		supply(&s.PSU1, h.Supplies[1])
		s.Encode(content)
	case mad.LayoutMSGI.Register:
		var s mad.MSGI
		copy(s.SerialNumber[:], h.serial)
		copy(s.PartNumber[:], "MQM9790-NS2F")
		copy(s.Revision[:], "A1")
		copy(s.ProductName[:], "Simulated switch")
		s.Encode(content)
	default:
		return mad.RegisterStatusRegisterNotSupported
	}
	return mad.RegisterStatusOK
}

// supply is the state of a power supply as ibswinfo takes it: the first digit 5
// where there is one, the last but one 1 where it gives power; in the second word
// 2 where its fan turns; in the third the power in W (stanford-rc ibswinfo.sh,
// which guesses).
func supply(psu *[80]byte, ok bool) {
	state, fan, watts := uint32(0x5000_0000), uint32(0), uint32(0)
	if ok {
		state, fan, watts = state|0x10, 2, 145
	}
	binary.BigEndian.PutUint32(psu[:], state)
	binary.BigEndian.PutUint32(psu[4:], fan)
	binary.BigEndian.PutUint32(psu[8:], 0x8000_0000|watts)
}

// sensor is a sensor of temperature: the chip's, or a module's.
func (h *Hardware) sensor(content []byte, view RegisterView) mad.RegisterStatus {
	var s mad.MTMP
	s.Decode(content)
	switch {
	case s.SlotIndex != 0:
		return mad.RegisterStatusBadParameter
	case s.SensorIndex == 0:
		s.Temperature, s.TemperatureThresholdHi, s.TemperatureThresholdLo = eighths(h.Temperature), eighths(105), eighths(95)
		s.SensorName = [8]byte{'a', 's', 'i', 'c'}
	case s.SensorIndex >= moduleSensors:
		num := int(s.SensorIndex) - moduleSensors + 1
		if !view.Port(num).Cabled {
			return mad.RegisterStatusBadParameter
		}
		s.Temperature, s.TemperatureThresholdHi, s.TemperatureThresholdLo = eighths(h.Module(num).Temperature), eighths(70), eighths(65)
		copy(s.SensorName[:], "module")
	default:
		return mad.RegisterStatusBadParameter
	}
	s.MTE, s.MaxTemperature = true, s.Temperature
	s.Encode(content)
	return mad.RegisterStatusOK
}

// eighths is a temperature in MTMP: two's complement of 0.125 degrees.
func eighths(celsius float64) uint16 { return uint16(int16(math.Round(8 * celsius))) }

// general identifies the device and its firmware.
func (h *Hardware) general(content []byte, view RegisterView) {
	g := mad.MGIR{
		HWRevision: uint16(view.Info.Revision), DeviceID: view.Info.DeviceID, Uptime: uint32(view.Uptime.Seconds()),
		ExtFWMajor: h.Firmware[0], ExtFWMinor: h.Firmware[1], ExtFWSubMinor: h.Firmware[2],
	}
	copy(g.PSID[:], h.PSID)
	g.Encode(content)
}
