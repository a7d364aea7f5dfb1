package mad

// MADHeader is the first part of every MAD.
//
// A manager chooses TransactionIDs so that no two outstanding operations to the
// same class of the same port have the same one. A response has the
// TransactionID of its request, and so does every MAD of a transfer. A repeated
// trap for the same event may have another.
//
//mad:header size=24 section=13.4.3
//mad:source python-rdma codegen/iba_13_4.xml MADHeader
//mad:source rdma-core libibumad/umad_types.h umad_hdr
type MADHeader struct {
	// BaseVersion is the version of this header; 1.
	BaseVersion uint8 `mad:"0:8"`
	// MgmtClass selects the agent or manager that the MAD is for.
	MgmtClass uint8 `mad:"8:8,hex"`
	// ClassVersion is the version of what follows the header; it depends on the class.
	ClassVersion uint8 `mad:"16:8"`
	// Response is set in the answer to a request.
	Response bool `mad:"24:1,name=R"`
	// Method is the operation on the attribute; its numbers from 0x10 on depend on the class.
	Method uint8 `mad:"25:7,hex"`
	// Status is the result of the request, in a response; 0 on success.
	Status uint16 `mad:"32:16,hex"`
	// ClassSpecific is for the class to use; only directed-route SMPs do.
	ClassSpecific uint16 `mad:"48:16,hex"`
	// TransactionID ties a response to its request, and the MADs of a transfer to each other.
	TransactionID uint64 `mad:"64:64,hex"`
	// AttributeID names the attribute, within the class.
	AttributeID uint16 `mad:"128:16,hex"`
	_           uint16 `mad:"144:16"`
	// AttributeModifier selects a part of the attribute: a port, a block.
	AttributeModifier uint32 `mad:"160:32,hex"`
}

// DirectedMADHeader is the MADHeader of directed-route SMPs.
//
//mad:header size=24 section=14.2.1.2
//mad:source python-rdma codegen/iba_13_4.xml MADHeaderDirected
//mad:source rdma-core libibumad/umad_sm.h umad_smp
type DirectedMADHeader struct {
	// BaseVersion is the version of this header; 1.
	BaseVersion uint8 `mad:"0:8"`
	// MgmtClass is 0x81.
	MgmtClass uint8 `mad:"8:8,hex"`
	// ClassVersion is the version of the class; 1.
	ClassVersion uint8 `mad:"16:8"`
	// Response is set in the answer to a request.
	Response bool `mad:"24:1,name=R"`
	// Method is the operation on the attribute.
	Method uint8 `mad:"25:7,hex"`
	// D is 0 on the way out and 1 on the way back.
	D bool `mad:"32:1"`
	// Status is the result of the request, in a response; 0 on success.
	Status uint16 `mad:"33:15,hex"`
	// HopPointer is the position of the SMP on its path, in hops.
	HopPointer uint8 `mad:"48:8"`
	// HopCount is the length of the path in hops.
	HopCount uint8 `mad:"56:8"`
	// TransactionID ties a response to its request.
	TransactionID uint64 `mad:"64:64,hex"`
	// AttributeID names the attribute.
	AttributeID uint16 `mad:"128:16,hex"`
	_           uint16 `mad:"144:16"`
	// AttributeModifier selects a part of the attribute: a port, a block.
	AttributeModifier uint32 `mad:"160:32,hex"`
}

// SMPHeader follows the MADHeader in LID-routed SMPs, at SMPKeyOffset.
//
//mad:header size=40 section=14.2.1.1
//mad:source python-rdma codegen/iba_14.xml SMPFormat
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_lid_class_hdr_t
type SMPHeader struct {
	// MKey authorizes the request.
	MKey uint64    `mad:"0:64,name=M_Key,key,hex"`
	_    [32]uint8 `mad:"64:8"`
}

// DirectedSMPHeader follows the DirectedMADHeader, at SMPKeyOffset.
//
//mad:header size=40 section=14.2.1.2
//mad:source python-rdma codegen/iba_14.xml SMPFormatDirected
//mad:source rdma-core libibumad/umad_sm.h umad_smp
type DirectedSMPHeader struct {
	// MKey authorizes the request.
	MKey uint64 `mad:"0:64,name=M_Key,key,hex"`
	// DrSLID is the LID where the directed part of the path begins; 65535 if it begins at the sender.
	DrSLID LID `mad:"64:16"`
	// DrDLID is the LID where the directed part of the path ends; 65535 if it ends at the receiver.
	DrDLID LID       `mad:"80:16"`
	_      [28]uint8 `mad:"96:8"`
}

// DirectedPaths are at the end of directed-route SMPs, at SMPInitialPathOffset.
//
//mad:header size=128 section=14.2.1.2
//mad:source python-rdma codegen/iba_14.xml SMPFormatDirected
//mad:source rdma-core libibumad/umad_sm.h umad_smp
type DirectedPaths struct {
	// InitialPath are the ports that the SMP leaves through, from element 1 on.
	InitialPath [64]uint8 `mad:"0:8"`
	// ReturnPath are the ports that it came in through, from element 1 on; the nodes on the path fill it in.
	ReturnPath [64]uint8 `mad:"512:8"`
}

// CCHeader follows the MADHeader in MADs of congestion control. There is room
// for log data between it and the attribute.
//
//mad:header size=8 section=A10.4.1
//mad:source rdma-core libibmad/fields.c IB_CC_CCKEY_F
//mad:source opensm include/iba/ib_types.h ib_cc_mad_t
type CCHeader struct {
	// CCKey authorizes the request.
	CCKey uint64 `mad:"0:64,name=CC_Key,key,hex"`
}

// BMHeader follows the MADHeader in MADs of baseboard management.
//
//mad:header size=8 section=16.2.1
//mad:source rdma-core libibmad/bm.c bm_call_via
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_vpd_t
type BMHeader struct {
	// BKey authorizes the request.
	BKey uint64 `mad:"0:64,name=B_Key,key,hex"`
}

// VendorHeader follows the RMPPHeader in MADs of the vendor classes from 0x30
// on, at SAKeyOffset.
//
//mad:header size=4 section=16.5.1
//mad:source python-rdma codegen/iba_16_5.xml VendOUIFormat
//mad:source rdma-core libibmad/fields.c IB_VEND2_OUI_F
type VendorHeader struct {
	_ uint8 `mad:"0:8"`
	// OUI is the IEEE number of the vendor who defines the MAD.
	OUI uint32 `mad:"8:24,hex"`
}
