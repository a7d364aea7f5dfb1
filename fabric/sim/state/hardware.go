// Package registers contains the registers of simulated devices: temperature, fans and
// supplies, firmware, and the modules in their ports.
//
//	hardware.go  Hardware and Module: the state, healthy until somebody changes it
//	query.go     Query: a register of it
//	port.go      the registers of a port: counters of the physical layer, trouble
//	eeprom.go    the EEPROM of a module
//	fault.go     what can be broken by name
//
// It knows only registers, not the subnet: package sim decides which ports exist.

package state

import (
	"fmt"
	"time"

	"fabsh/mad"
)

// Hardware is what the registers of a node show.
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
