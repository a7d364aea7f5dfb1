package state

import (
	"math"

	"fabsh/mad"
)

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

// portNumber returns the port that a register selects.
func portNumber(local, msb uint8) int { return int(msb)<<8 | int(local) }

// fec are the blocks that FEC has received.
type fec struct {
	bits, wrongBits, corrected, uncorrectable uint64
	bins                                      [16]uint64
}

// RS-FEC(544,514): symbols of 10 bits, of which it corrects 15 (IEEE 802.3 clause 91).
const (
	blockBits = 5440
	mends     = 15
)

// errors returns what was received up to a time, in seconds: blocks whose wrong symbols
// follow a Poisson distribution.
func (m *Module) errors(port RegisterPort, seconds float64) (f fec) {
	if !port.Up {
		return f
	}
	bits := port.Rate * seconds
	blocks := bits / blockBits
	expected := blockBits * m.BER
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
		copy(t.StatusMessage[:], messages[m.Status])
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

// messages are texts of the troubleshooting page.
var messages = map[mad.TroubleshootingStatus]string{
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
	pad(p.VendorName[:], m.VendorName)
	pad(p.VendorPN[:], m.PartNumber)
	pad(p.VendorRev[:], "A2")
	pad(p.VendorSN[:], m.Serial)
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
