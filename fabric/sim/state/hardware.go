package state

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fabsh/mad"
)

// Hardware is what the registers of a node show: temperature, fans and supplies, firmware, and
// the modules in its ports. It is healthy until it is changed. It has no access to the subnet:
// a RegisterView of the caller says which ports exist. Hardware is guarded by the subnet's
// lock.
type Hardware struct {
	Temperature float64   // of the chip, degrees Celsius
	Fans        []int     // turns a minute
	Supplies    []bool    // they work
	Firmware    [3]uint32 // the parts of the version
	PSID        string
	serial      string
	isSwitch    bool
	modules     map[int]Module // by port: modules that were changed
}

// Module is the module in a port, and what the port knows of its link.
type Module struct {
	VendorName, PartNumber, Serial string
	Length                         float64 // m
	Temperature                    float64 // degrees Celsius
	RxPower, TxPower               [8]float64
	BER                            float64 // bit errors for FEC to correct
	Reason, RemoteReason           mad.LinkDownReason
	Status                         mad.TroubleshootingStatus
}

// RegisterPort is what a register needs to know of a port.
type RegisterPort struct {
	Cabled, Up bool
	Rate       float64 // of the link, bits a second
	Lanes      int
	CMIS       bool // the module is of a generation with CMIS
}

// RegisterView is what a query needs to know of the node.
type RegisterView struct {
	Info   mad.NodeInfo
	Port   func(num int) RegisterPort
	Uptime time.Duration
}

// NewHardware returns the hardware of a node with that GUID.
func NewHardware(guid mad.GUID, isSwitch bool) *Hardware {
	h := &Hardware{isSwitch: isSwitch, serial: fmt.Sprintf("MT%010d", uint64(guid)%1e10)}
	spread := float64(uint64(guid) % 5)
	if isSwitch {
		h.Temperature, h.Fans, h.Supplies = 44+spread, []int{6000, 6020, 5980, 6010}, []bool{true, true}
		h.Firmware, h.PSID = [3]uint32{31, 2012, 1024}, "MT_0000000063"
		return h
	}
	h.Temperature, h.Firmware, h.PSID = 52+spread, [3]uint32{28, 39, 1002}, "MT_0000000838"
	return h
}

// Module returns the module in a port.
func (h *Hardware) Module(num int) Module {
	if m, ok := h.modules[num]; ok {
		return m
	}
	m := Module{VendorName: "Mellanox", PartNumber: "MMA4Z00-NS", Serial: fmt.Sprintf("%s%03d", h.serial, num), Length: 3, Temperature: 41 + float64(num%4), BER: 1e-9, Status: mad.TroubleshootingStatusNoIssueObserved}
	for lane := range m.RxPower {
		m.RxPower[lane], m.TxPower[lane] = 900+float64(lane), 1000+float64(lane)
	}
	return m
}

// SetModule changes the module in a port.
func (h *Hardware) SetModule(num int, m Module) {
	if h.modules == nil {
		h.modules = map[int]Module{}
	}
	h.modules[num] = m
}

// moduleSensors is the first temperature sensor of modules (linux mlxsw
// reg.h reg_mtmp_sensor_index).
const moduleSensors = 64

// Query answers a query of a register: content selects what is read, and afterwards contains
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

// counters are the counters of a port's physical layer.
func (h *Hardware) counters(content []byte, view RegisterView) mad.RegisterStatus {
	var c mad.PPCNT
	c.Decode(content)
	port := view.Port(portNumber(c.LocalPort, c.LPMSB))
	if c.Clr || c.PNAT != mad.PortAccessIBPort {
		return mad.RegisterStatusBadParameter
	}
	m := h.Module(portNumber(c.LocalPort, c.LPMSB))
	f := m.errors(port, view.Uptime.Seconds())
	ms := uint64(view.Uptime.Milliseconds())
	switch c.Grp {
	case mad.CounterGroupPhysicalLayer:
		(&mad.PPCNTPhysicalLayer{
			TimeSinceLastClear: ms, SymbolErrors: f.uncorrectable, RSFECCorrectedBlocks: f.corrected, RSFECUncorrectableBlocks: f.uncorrectable,
			RSFECNoErrorsBlocks: f.bins[0], RSFECCorrectedSymbolsTotal: f.wrongBits,
		}).Encode(c.CounterSet[:])
	case mad.CounterGroupStatistical:
		s := mad.PPCNTStatistical{TimeSinceLastClear: ms, PhyReceivedBits: f.bits, PhySymbolErrors: f.uncorrectable, PhyCorrectedBits: f.wrongBits}
		s.RawBERCoef, s.RawBERMagnitude = errorRate(f.wrongBits, f.bits)
		s.EffectiveBERCoef, s.EffectiveBERMagnitude = errorRate(f.uncorrectable, f.bits)
		s.SymbolBERCoef, s.SymbolBERMagnitude = s.EffectiveBERCoef, s.EffectiveBERMagnitude
		for lane := range min(port.Lanes, len(s.PhyRawErrorsLane)) {
			s.PhyRawErrorsLane[lane] = f.wrongBits / uint64(port.Lanes)
		}
		s.Encode(c.CounterSet[:])
	case mad.CounterGroupRSFECHistogram:
		(&mad.PPCNTHistogram{Hist: f.bins}).Encode(c.CounterSet[:])
	default:
		return mad.RegisterStatusBadParameter
	}
	c.Encode(content)
	return mad.RegisterStatusOK
}

// errorRate returns a bit error rate as its coefficient, up to 9, and its magnitude: 15 and 255 without an error.
func errorRate(errors, bits uint64) (coef, magnitude uint8) {
	switch {
	case bits == 0:
		return 0, 0 // not measured
	case errors == 0:
		return 15, 255
	}
	rate := float64(errors) / float64(bits)
	e := math.Ceil(-math.Log10(rate))
	c := math.Round(rate * math.Pow(10, e))
	if c == 10 {
		c, e = 1, e-1
	}
	return uint8(c), uint8(e)
}

// portNumber returns the port that a register selects.
func portNumber(local, msb uint8) int { return int(msb)<<8 | int(local) }

// fecStatistics are the blocks that FEC has received.
type fecStatistics struct {
	bits, wrongBits, corrected, uncorrectable uint64
	bins                                      [16]uint64
}

// RS-FEC(544,514): symbols of 10 bits, of which it corrects 15 (IEEE 802.3 clause 91).
const (
	fecBlockBits   = 5440
	fecCorrectable = 15
)

// errors returns what was received up to a time, in seconds: blocks whose wrong symbols
// follow a Poisson distribution.
func (m *Module) errors(port RegisterPort, seconds float64) (f fecStatistics) {
	if !port.Up {
		return f
	}
	bits := port.Rate * seconds
	blocks := bits / fecBlockBits
	expected := fecBlockBits * m.BER
	f.bits, f.wrongBits = uint64(bits), uint64(bits*m.BER)
	share, rest := math.Exp(-expected), 1.0
	for n := range f.bins {
		if n > 0 {
			share *= expected / float64(n)
		}
		f.bins[n] = uint64(blocks * share)
		rest -= share
		if n > 0 {
			f.corrected += f.bins[n]
		}
	}
	if m.BER > 1e-5 { // below, rest is only rounding error
		f.uncorrectable = uint64(blocks * max(rest, 0))
	}
	return f
}

// diagnostics are what a port knows of its faults.
func (h *Hardware) diagnostics(content []byte, view RegisterView) mad.RegisterStatus {
	var d mad.PDDR
	d.Decode(content)
	num := portNumber(d.LocalPort, d.LPMSB)
	port, m := view.Port(num), h.Module(num)
	if d.PNAT != mad.PortAccessIBPort {
		return mad.RegisterStatusBadParameter
	}
	switch d.PageSelect {
	case mad.DiagnosticPageTroubleshooting:
		if !port.Cabled {
			m.Status = mad.TroubleshootingStatusCableUnplugged
		}
		t := mad.PDDRTroubleshooting{StatusOpcode: m.Status}
		copy(t.StatusMessage[:], troubleshootingTexts[m.Status])
		t.Encode(d.PageData[:])
	case mad.DiagnosticPageLinkDown:
		l := mad.PDDRLinkDown{LocalReasonOpcode: m.Reason, RemoteReasonOpcode: m.RemoteReason}
		switch {
		case m.Reason != 0:
			l.DownBlame = mad.DownBlameLocal
		case m.RemoteReason != 0:
			l.DownBlame = mad.DownBlameRemote
		}
		l.Encode(d.PageData[:])
	case mad.DiagnosticPageModule:
		p := m.page(port)
		p.Encode(d.PageData[:])
	default:
		return mad.RegisterStatusBadParameter
	}
	d.Encode(content)
	return mad.RegisterStatusOK
}

// troubleshootingTexts are texts of the troubleshooting page.
var troubleshootingTexts = map[mad.TroubleshootingStatus]string{
	mad.TroubleshootingStatusNoIssueObserved:    "No issue was observed",
	mad.TroubleshootingStatusCableUnplugged:     "Cable is unplugged",
	mad.TroubleshootingStatusBadSignalIntegrity: "Bad signal integrity",
}

// page is the data of the module as the device has read it.
func (m *Module) page(port RegisterPort) mad.PDDRModule {
	p := mad.PDDRModule{CableType: mad.CableTypeUnplugged}
	if !port.Cabled {
		return p
	}
	p.CableType, p.CableIdentifier, p.CableLength = mad.CableTypeOptical, mad.CableIdentifierQSFP28, uint8(m.Length)
	if port.CMIS {
		p.CableIdentifier, p.CableLength = mad.CableIdentifierOSFP, cmisLength(m.Length)
	}
	padBlank(p.VendorName[:], m.VendorName)
	padBlank(p.VendorPN[:], m.PartNumber)
	padBlank(p.VendorRev[:], "A2")
	padBlank(p.VendorSN[:], m.Serial)
	p.Temperature, p.Voltage = uint16(int16(256*m.Temperature)), 33000
	for lane := range min(port.Lanes, 8) {
		p.RxPowerLane[lane], p.TxPowerLane[lane], p.TxBiasLane[lane] = dBm(m.RxPower[lane]), dBm(m.TxPower[lane]), 3500
	}
	p.TemperatureHighTh, p.TemperatureLowTh = uint16(75*256), 0xfb00 // 75, -5
	p.RxPowerHighTh, p.RxPowerLowTh = 5, 0xfff2                      // 5, -14 dBm
	p.TxPowerHighTh, p.TxPowerLowTh = 5, 0xfff4                      // 5, -12 dBm
	p.MonitorCapMask = mad.ModuleMonitorsTemperature | mad.ModuleMonitorsVoltage | mad.ModuleMonitorsTxPower | mad.ModuleMonitorsRxPower | mad.ModuleMonitorsTxBias
	return p
}

// dBm is a power of light, in uW, as a whole number of dBm; without any it is -40.
func dBm(microwatts float64) uint16 {
	return uint16(int16(math.Round(max(-40, 10*math.Log10(microwatts/1000)))))
}

// fec is the FEC of a port.
func (h *Hardware) fec(content []byte, view RegisterView) mad.RegisterStatus {
	var p mad.PPLM
	p.Decode(content)
	if p.PNAT != mad.PortAccessIBPort {
		return mad.RegisterStatusBadParameter
	}
	p.FECModeActive = 0
	if view.Port(portNumber(p.LocalPort, p.LPMSB)).Up {
		p.FECModeActive = mad.ActiveFECRS544
	}
	p.Encode(content)
	return mad.RegisterStatusOK
}

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
	padBlank(s.VendorName[:], m.VendorName)
	padBlank(s.VendorPN[:], m.PartNumber)
	padBlank(s.VendorRev[:], "A2")
	padBlank(s.VendorSN[:], m.Serial)
	padBlank(s.DateCode[:], "240115")
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
	padBlank(c.VendorName[:], m.VendorName)
	padBlank(c.VendorPN[:], m.PartNumber)
	padBlank(c.VendorRev[:], "A2")
	padBlank(c.VendorSN[:], m.Serial)
	padBlank(c.DateCode[:], "240115")
	b := make([]byte, mad.LayoutCMIS.Size)
	c.Encode(b)
	return b
}

// padBlank writes a text with blanks behind, as modules have it.
func padBlank(to []byte, text string) {
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

// hardwareFault is a fault that the key registers= of a simulated fabric can cause.
type hardwareFault struct {
	name   string
	atPort func(m *Module)        // nil: not a fault of ports
	atNode func(h *Hardware) bool // nil: not a fault of nodes; false: this node cannot have it
}

var hardwareFaults = []hardwareFault{
	{"hot", func(m *Module) { m.Temperature = 86 }, func(h *Hardware) bool { h.Temperature = 108; return true }},
	{"ber", func(m *Module) { m.BER = 1e-4 }, nil},
	{"dark", func(m *Module) { m.RxPower[0] = 3 }, nil},
	{"fan", nil, func(h *Hardware) bool {
		if len(h.Fans) > 0 {
			h.Fans[1] = 0
		}
		return len(h.Fans) > 0
	}},
	{"supply", nil, func(h *Hardware) bool {
		if len(h.Supplies) > 0 {
			h.Supplies[1] = false
		}
		return len(h.Supplies) > 0
	}},
	{"firmware", nil, func(h *Hardware) bool { h.Firmware[2]--; return true }},
}

// hardwareFaultNames returns the names that Hardware.Break accepts.
func hardwareFaultNames() (names []string) {
	for _, f := range hardwareFaults {
		names = append(names, f.name)
	}
	return names
}

// Break causes a fault, by its name, at a port or, with 0, at the node.
func (h *Hardware) Break(name string, num int) error {
	i := slices.IndexFunc(hardwareFaults, func(f hardwareFault) bool { return f.name == name })
	if i < 0 {
		return fmt.Errorf("unknown fault %q; faults: %s", name, strings.Join(hardwareFaultNames(), ", "))
	}
	switch f := &hardwareFaults[i]; {
	case num > 0 && f.atPort == nil:
		return fmt.Errorf("%s is a fault of a node, not of a port", name)
	case num > 0:
		m := h.Module(num)
		f.atPort(&m)
		h.SetModule(num, m)
	case f.atNode == nil:
		return fmt.Errorf("%s is a fault of a port: write NODE/PORT", name)
	case !f.atNode(h):
		return fmt.Errorf("%s is a fault of a switch", name)
	}
	return nil
}
