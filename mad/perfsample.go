package mad

// PortSamplesControl measures counters of a port during an interval.
//
//mad:attr class=Perf id=0x0010 methods=Get,Set size=80 section=16.1.3.2 modifier=mechanism:0:32
//mad:source rdma-core libibmad/fields.c PortSamplesControl fields
//mad:source opensm include/iba/ib_types.h ib_port_samples_control_t
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortSamplesControl
type PortSamplesControl struct {
	// OpCode is the operation code, for counters of one operation code.
	OpCode uint8 `mad:"0:8,hex"`
	// PortSelect is the port.
	PortSelect uint8 `mad:"8:8"`
	// Tick is the length of a tick, as a code: 0 is 4 ns, each further code doubles it, 255 is a bit time.
	Tick uint8 `mad:"16:8,hex"`
	_    uint8 `mad:"24:5"`
	// CounterWidth is the width of the counters, as a code: 0 is 16 bits, each further code adds 4 bits.
	CounterWidth uint8 `mad:"29:3"`
	_            uint8 `mad:"32:2"`
	// CounterMask0 is what counter 0 can count: everything, some things or nothing.
	CounterMask0 uint8 `mad:"34:3,hex"`
	// CounterMasks1to9 are the same for counters 1 to 9, 3 bits each.
	CounterMasks1to9 uint32 `mad:"37:27,hex"`
	_                uint8  `mad:"64:1"`
	// CounterMasks10to14 are the same for counters 10 to 14, 3 bits each.
	CounterMasks10to14 uint16 `mad:"65:15,hex"`
	// SampleMechanisms is one less than the number of measurements that can run at a time.
	SampleMechanisms uint8 `mad:"80:8"`
	_                uint8 `mad:"88:6"`
	// SampleStatus is the progress of the measurement.
	SampleStatus SampleStatus `mad:"94:2"`
	// OptionMask are the things that can be counted, a bit each.
	OptionMask uint64 `mad:"96:64,hex"`
	// VendorMask are the vendor-specific things that can be counted, a bit each.
	VendorMask uint64 `mad:"160:64,hex"`
	// SampleStart is the time before the measurement, in ticks.
	SampleStart uint32 `mad:"224:32"`
	// SampleInterval is the length of the measurement, in ticks.
	SampleInterval uint32 `mad:"256:32"`
	// Tag is copied to the results.
	Tag uint16 `mad:"288:16,hex"`
	// CounterSelect is what each counter counts.
	CounterSelect [15]SampleSelect `mad:"304:16,hex"`
	_             uint32           `mad:"544:32"`
	// SamplesOnlyOptionMask are the things that can be counted only in a measurement, a bit each.
	SamplesOnlyOptionMask uint64 `mad:"576:64,hex"`
}

// SampleStatus is the progress of a measurement (IBA 16.1.3.2).
//
//mad:enum
type SampleStatus uint8

const (
	SampleStatusDone     SampleStatus = 0
	SampleStatusNotBegun SampleStatus = 1
	SampleStatusRunning  SampleStatus = 2
)

// SampleSelect is what a counter counts (IBA 16.1.3.3; opensm
// include/iba/ib_types.h IB_CS_PORT_*).
//
//mad:enum
type SampleSelect uint16

const (
	SampleSelectNone         SampleSelect = 0
	SampleSelectPortXmitData SampleSelect = 1
	SampleSelectPortRcvData  SampleSelect = 2
	SampleSelectPortXmitPkts SampleSelect = 3
	SampleSelectPortRcvPkts  SampleSelect = 4
	SampleSelectPortXmitWait SampleSelect = 5
)

// PortSamplesResult are the results of a measurement.
//
//mad:attr class=Perf id=0x0011 methods=Get size=64 section=16.1.3.4 modifier=mechanism:0:32
//mad:source rdma-core libibmad/fields.c PortSamplesResult fields
//mad:source opensm include/iba/ib_types.h ib_port_samples_result_t
//mad:source python-rdma codegen/iba_16_1.xml PMPortSamplesRes
type PortSamplesResult struct {
	// Tag is that of PortSamplesControl.
	Tag uint16 `mad:"0:16,ro,hex"`
	_   uint16 `mad:"16:14"`
	// SampleStatus is the progress of the measurement.
	SampleStatus SampleStatus `mad:"30:2,ro"`
	// Counter are the counters, in the order of PortSamplesControl.CounterSelect.
	Counter [15]uint32 `mad:"32:32,ro"`
}

// PortSamplesResultExtended are the results of a measurement, with wider
// counters.
//
//mad:attr class=Perf id=0x001e methods=Get size=128 section=16.1.4.10 modifier=mechanism:0:32
//mad:source python-rdma codegen/iba_16_1.xml PMPortSamplesResExt
//mad:source opa-ff IbAccess/Common/Inc/ib_pm.h PortSamplesResultExtended
type PortSamplesResultExtended struct {
	// Tag is that of PortSamplesControl.
	Tag uint16 `mad:"0:16,ro,hex"`
	_   uint16 `mad:"16:14"`
	// SampleStatus is the progress of the measurement.
	SampleStatus SampleStatus `mad:"30:2,ro"`
	// ExtendedWidth is 1 if the counters have 48 bits, 2 if they have 64.
	ExtendedWidth uint8  `mad:"32:2,ro"`
	_             uint32 `mad:"34:30"`
	// Counter are the counters, in the order of PortSamplesControl.CounterSelect.
	Counter [15]uint64 `mad:"64:64,ro"`
}
