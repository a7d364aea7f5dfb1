package mad

// NodeType is the kind of a node (IBA 14.2.5.3).
//
//mad:enum
type NodeType uint8

const (
	NodeTypeCA     NodeType = 1
	NodeTypeSwitch NodeType = 2
	NodeTypeRouter NodeType = 3
)

// PortState is the logical state of a port (IBA 14.2.5.6 PortInfo.PortState).
//
//mad:enum
type PortState uint8

const (
	PortStateNoChange   PortState = 0 // in a Set: leave unchanged
	PortStateDown       PortState = 1
	PortStateInitialize PortState = 2
	PortStateArmed      PortState = 3
	PortStateActive     PortState = 4
)

// PortPhysicalState is the state of a port's link training (IBA 14.2.5.6).
//
//mad:enum
type PortPhysicalState uint8

const (
	PortPhysicalStateNoChange                  PortPhysicalState = 0 // in a Set: leave unchanged
	PortPhysicalStateSleep                     PortPhysicalState = 1
	PortPhysicalStatePolling                   PortPhysicalState = 2
	PortPhysicalStateDisabled                  PortPhysicalState = 3
	PortPhysicalStatePortConfigurationTraining PortPhysicalState = 4
	PortPhysicalStateLinkUp                    PortPhysicalState = 5
	PortPhysicalStateLinkErrorRecovery         PortPhysicalState = 6
	PortPhysicalStatePhyTest                   PortPhysicalState = 7
)

// LinkDownDefaultState is the state of a port after its link goes down (IBA
// 14.2.5.6).
//
//mad:enum
type LinkDownDefaultState uint8

const (
	LinkDownDefaultStateNoChange LinkDownDefaultState = 0 // in a Set: leave unchanged
	LinkDownDefaultStateSleep    LinkDownDefaultState = 1
	LinkDownDefaultStatePolling  LinkDownDefaultState = 2
)

// LinkWidth is a set of link widths, or the one in use (IBA 14.2.5.6).
//
//mad:mask
type LinkWidth uint8

const (
	LinkWidth1x        LinkWidth = 1 << 0
	LinkWidth4x        LinkWidth = 1 << 1
	LinkWidth8x        LinkWidth = 1 << 2
	LinkWidth12x       LinkWidth = 1 << 3
	LinkWidth2x        LinkWidth = 1 << 4
	LinkWidthSupported LinkWidth = 255 // in a Set: all of LinkWidthSupported
)

// LinkSpeed is a set of lane speeds up to 10 Gb/s, or the one in use
// (IBA 14.2.5.6).
//
//mad:mask
type LinkSpeed uint8

const (
	LinkSpeedExtended  LinkSpeed = 0      // as LinkSpeedActive: see LinkSpeedExtActive
	LinkSpeedSDR       LinkSpeed = 1 << 0 // 2.5 Gb/s a lane
	LinkSpeedDDR       LinkSpeed = 1 << 1 // 5 Gb/s
	LinkSpeedQDR       LinkSpeed = 1 << 2 // 10 Gb/s
	LinkSpeedSupported LinkSpeed = 15     // in a Set: all of LinkSpeedSupported
)

// LinkSpeedExt is a set of lane speeds from 14 to 100 Gb/s, or the one in use
// (IBA 14.2.5.6).
//
//mad:mask
type LinkSpeedExt uint8

const (
	LinkSpeedExtNone      LinkSpeedExt = 0      // as LinkSpeedExtActive: see LinkSpeedActive
	LinkSpeedExtFDR       LinkSpeedExt = 1 << 0 // 14.0625 Gb/s a lane
	LinkSpeedExtEDR       LinkSpeedExt = 1 << 1 // 25.78125 Gb/s
	LinkSpeedExtHDR       LinkSpeedExt = 1 << 2 // 53.125 Gb/s
	LinkSpeedExtNDR       LinkSpeedExt = 1 << 3 // 106.25 Gb/s
	LinkSpeedExtDisabled  LinkSpeedExt = 30     // as LinkSpeedExtEnabled: none of them
	LinkSpeedExtSupported LinkSpeedExt = 31     // in a Set: all of LinkSpeedExtSupported
)

// LinkSpeedExt2 is a set of lane speeds from 200 Gb/s on, or the one in use
// (rdma-core libibmad/fields.c, "More PortInfo fields (XDR)").
//
//mad:mask
type LinkSpeedExt2 uint8

const (
	LinkSpeedExt2None LinkSpeedExt2 = 0      // as LinkSpeedExtActive2: see LinkSpeedExtActive
	LinkSpeedExt2XDR  LinkSpeedExt2 = 1 << 0 // 212.5 Gb/s a lane
)

// MTU is a packet size in bytes, as a code (IBA 14.2.5.6, PortInfo.MTUCap).
//
//mad:enum
type MTU uint8

const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// VLs is a range of data virtual lanes (IBA 14.2.5.6, PortInfo.VLCap).
//
//mad:enum
type VLs uint8

const (
	VLs0     VLs = 1 // "vl0"
	VLs0To1  VLs = 2 // "vl0_1"
	VLs0To3  VLs = 3 // "vl0_3"
	VLs0To7  VLs = 4 // "vl0_7"
	VLs0To14 VLs = 5 // "vl0_14"
)

// OperationalVLs are VLs for which 0 also has a meaning (IBA 14.2.5.6,
// PortInfo.OperationalVLs).
//
//mad:enum
type OperationalVLs uint8

const (
	OperationalVLsNoChange OperationalVLs = 0 // in a Set: leave unchanged
	OperationalVLs0        OperationalVLs = 1 // "vl0"
	OperationalVLs0To1     OperationalVLs = 2 // "vl0_1"
	OperationalVLs0To3     OperationalVLs = 3 // "vl0_3"
	OperationalVLs0To7     OperationalVLs = 4 // "vl0_7"
	OperationalVLs0To14    OperationalVLs = 5 // "vl0_14"
)

// Count returns the number of lanes; 0: unknown.
func (v OperationalVLs) Count() int {
	return map[OperationalVLs]int{OperationalVLs0: 1, OperationalVLs0To1: 2, OperationalVLs0To3: 4, OperationalVLs0To7: 8, OperationalVLs0To14: 15}[v]
}

// SMState is the state of a subnet manager (IBA 14.4.1, SMInfo.SMState).
//
//mad:enum
type SMState uint8

const (
	SMStateNotActive   SMState = 0
	SMStateDiscovering SMState = 1
	SMStateStandby     SMState = 2
	SMStateMaster      SMState = 3
)

// CapabilityMask is what a port supports (IBA 14.2.5.6, PortInfo.CapabilityMask).
//
//mad:mask
type CapabilityMask uint32

const (
	CapabilityMaskIsSM                                  CapabilityMask = 1 << 1
	CapabilityMaskIsNoticeSupported                     CapabilityMask = 1 << 2
	CapabilityMaskIsTrapSupported                       CapabilityMask = 1 << 3
	CapabilityMaskIsOptionalIPDSupported                CapabilityMask = 1 << 4
	CapabilityMaskIsAutomaticMigrationSupported         CapabilityMask = 1 << 5
	CapabilityMaskIsSLMappingSupported                  CapabilityMask = 1 << 6
	CapabilityMaskIsMKeyNVRAM                           CapabilityMask = 1 << 7
	CapabilityMaskIsPKeyNVRAM                           CapabilityMask = 1 << 8
	CapabilityMaskIsLEDInfoSupported                    CapabilityMask = 1 << 9
	CapabilityMaskIsSMdisabled                          CapabilityMask = 1 << 10
	CapabilityMaskIsSystemImageGUIDsupported            CapabilityMask = 1 << 11
	CapabilityMaskIsPKeySwitchExternalPortTrapSupported CapabilityMask = 1 << 12
	CapabilityMaskIsCableInfoSupported                  CapabilityMask = 1 << 13
	CapabilityMaskIsExtendedSpeedsSupported             CapabilityMask = 1 << 14
	CapabilityMaskIsCapabilityMask2Supported            CapabilityMask = 1 << 15
	CapabilityMaskIsCommunicationManagementSupported    CapabilityMask = 1 << 16
	CapabilityMaskIsSNMPTunnelingSupported              CapabilityMask = 1 << 17
	CapabilityMaskIsReinitSupported                     CapabilityMask = 1 << 18
	CapabilityMaskIsDeviceManagementSupported           CapabilityMask = 1 << 19
	CapabilityMaskIsVendorClassSupported                CapabilityMask = 1 << 20
	CapabilityMaskIsDRNoticeSupported                   CapabilityMask = 1 << 21
	CapabilityMaskIsCapabilityMaskNoticeSupported       CapabilityMask = 1 << 22
	CapabilityMaskIsBootManagementSupported             CapabilityMask = 1 << 23
	CapabilityMaskIsLinkRoundTripLatencySupported       CapabilityMask = 1 << 24
	CapabilityMaskIsClientReregistrationSupported       CapabilityMask = 1 << 25
	CapabilityMaskIsOtherLocalChangesNoticeSupported    CapabilityMask = 1 << 26
	CapabilityMaskIsLinkSpeedWidthPairsTableSupported   CapabilityMask = 1 << 27
	CapabilityMaskIsVendorSpecificMadsTableSupported    CapabilityMask = 1 << 28
	CapabilityMaskIsMcastPKeyTrapSuppressionSupported   CapabilityMask = 1 << 29
	CapabilityMaskIsMulticastFDBTopSupported            CapabilityMask = 1 << 30
	CapabilityMaskIsHierarchyInfoSupported              CapabilityMask = 1 << 31
)

// CapabilityMask2 is what else a port supports (IBA 14.2.5.6,
// PortInfo.CapabilityMask2; rdma-core libibmad/dump.c mad_dump_portcapmask2,
// libibmad/iba_types.h IB_PORT_CAP2_*).
//
//mad:mask
type CapabilityMask2 uint16

const (
	CapabilityMask2IsSetNodeDescriptionSupported   CapabilityMask2 = 1 << 0
	CapabilityMask2IsPortInfoExtendedSupported     CapabilityMask2 = 1 << 1
	CapabilityMask2IsVirtualizationSupported       CapabilityMask2 = 1 << 2
	CapabilityMask2IsSwitchPortStateTableSupported CapabilityMask2 = 1 << 3
	CapabilityMask2IsLinkWidth2xSupported          CapabilityMask2 = 1 << 4
	CapabilityMask2IsLinkSpeedHDRSupported         CapabilityMask2 = 1 << 5
	CapabilityMask2IsMKeyProtectBitsExtSupported   CapabilityMask2 = 1 << 6
	CapabilityMask2IsEnhancedTrap128Supported      CapabilityMask2 = 1 << 7
	CapabilityMask2IsPartitionTopSupported         CapabilityMask2 = 1 << 8
	CapabilityMask2IsEnhancedQoSArbiterSupported   CapabilityMask2 = 1 << 9
	CapabilityMask2IsLinkSpeedNDRSupported         CapabilityMask2 = 1 << 10
	CapabilityMask2IsExtendedSpeeds2Supported      CapabilityMask2 = 1 << 11
	CapabilityMask2IsLinkSpeedXDRSupported         CapabilityMask2 = 1 << 12
)

// ActiveSpeed returns the speed that p's link runs at: "sdr", "ddr", "qdr", "fdr",
// "edr", "hdr", "ndr", "xdr", or "" if it is unknown. It is not valid while the
// link is down. FDR10 shows as "qdr": see [ExtendedPortInfo.IsFDR10].
//
// The speeds are in three fields, of three versions of the specification. The
// latest field that is not 0 counts: agents leave an unsupported field at 0
// (rdma-core libibnetdisc/ibnetdisc.c
// ibnd_get_agg_linkspeedext_field, infiniband-diags/iblinkinfo.c).
func ActiveSpeed(p *PortInfo) string {
	var word string
	switch {
	case p.LinkSpeedExtActive2 != 0:
		word = WordsLinkSpeedExt2.Word()[uint64(p.LinkSpeedExtActive2)]
	case p.LinkSpeedExtActive != 0:
		word = WordsLinkSpeedExt.Word()[uint64(p.LinkSpeedExtActive)]
	default:
		word = WordsLinkSpeed.Word()[uint64(p.LinkSpeedActive)]
	}
	if SpeedGbps(word) == 0 { // not the word of one speed
		return ""
	}
	return word
}

// IsFDR10 reports whether the link runs at FDR10 where PortInfo shows QDR
// (rdma-core libibmad/iba_types.h FDR10, infiniband-diags/iblinkinfo.c).
func (t *ExtendedPortInfo) IsFDR10() bool { return t.LinkSpeedActive&1 != 0 }

// ActiveWidth returns the width that p's link runs at: "1x", "2x", "4x", "8x",
// "12x", or "" if it is unknown.
func ActiveWidth(p *PortInfo) string {
	word := WordsLinkWidth.Word()[uint64(p.LinkWidthActive)]
	if WidthLanes(word) == 0 {
		return ""
	}
	return word
}

// Speeds returns the words of all speeds, the slowest first.
func Speeds() []string { return rateWords(speeds[:]) }

// SpeedGbps returns the signalling rate of one lane in Gb/s at a speed of
// ActiveSpeed; 0 for others.
func SpeedGbps(speed string) float64 { return rateOf(speeds[:], speed) }

// Widths returns the words of all widths, the narrowest first.
func Widths() []string { return rateWords(widths[:]) }

// WidthLanes returns the number of lanes of a width of ActiveWidth; 0 for others.
func WidthLanes(width string) int { return int(rateOf(widths[:], width)) }

// rate is a word with its number: Gb/s a lane, or lanes.
type rate struct {
	word   string
	number float64
}

var (
	speeds = [...]rate{
		{"sdr", 2.5}, {"ddr", 5}, {"qdr", 10}, {"fdr10", 10.3125}, {"fdr", 14.0625}, {"edr", 25.78125}, {"hdr", 53.125}, {"ndr", 106.25}, {"xdr", 212.5},
	}
	widths = [...]rate{{"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}}
)

func rateOf(rates []rate, word string) float64 {
	for _, r := range rates {
		if r.word == word {
			return r.number
		}
	}
	return 0
}

func rateWords(rates []rate) []string {
	words := make([]string, len(rates))
	for i, r := range rates {
		words[i] = r.word
	}
	return words
}

// IsRate reports whether a word is one of Speeds or Widths.
func IsRate(word string) bool { return SpeedGbps(word) > 0 || WidthLanes(word) > 0 }
