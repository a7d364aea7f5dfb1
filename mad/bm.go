package mad

// BKeyInfo is the key that protects baseboard management.
//
//mad:attr class=BM id=0x0010 methods=Get,Set size=192 section=16.2.3.3 unconfirmed
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BKEY_INFO
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_bkey_info_t (which has a B_Key of 32 bits)
type BKeyInfo struct {
	// BKey is the key: 64 bits by one source; by the other 32, and what follows it.
	BKey [8]byte `mad:"0:64,bytes,name=B_Key,key"`
	// More is the rest of the attribute as it came.
	More [184]byte `mad:"64:1472,bytes"`
}

// BMParameters is a command to a baseboard, or its answer.
//
// Bit 0 of the modifier is set in answers.
//
//mad:attr class=BM id=0x0020 name=WriteVPD methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; writes vital product data.
//mad:attr class=BM id=0x0021 name=ReadVPD methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; reads vital product data.
//mad:attr class=BM id=0x0022 name=ResetIBML methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; resets the management link.
//mad:attr class=BM id=0x0023 name=SetModulePMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a module's power management.
//mad:attr class=BM id=0x0024 name=GetModulePMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets a module's power management.
//mad:attr class=BM id=0x0025 name=SetUnitPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a unit's power management.
//mad:attr class=BM id=0x0026 name=GetUnitPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets a unit's power management.
//mad:attr class=BM id=0x0027 name=SetIOCPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets an I/O controller's power management.
//mad:attr class=BM id=0x0028 name=GetIOCPMControl methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets an I/O controller's power management.
//mad:attr class=BM id=0x0029 name=SetModuleState methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a module's state.
//mad:attr class=BM id=0x002a name=SetModuleAttention methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; sets a module's attention light.
//mad:attr class=BM id=0x002b name=GetModuleStatus methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; gets a module's status.
//mad:attr class=BM id=0x002c name=IB2IBML methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; passes a command on to the management link.
//mad:attr class=BM id=0x002d name=IB2CME methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; passes a command on to the chassis' management entity.
//mad:attr class=BM id=0x002e name=IB2MME methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; passes a command on to the module's management entity.
//mad:attr class=BM id=0x002f name=OEM methods=Send size=192 section=16.2.3 modifier=answer:0:1 ; is a vendor's command.
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BM_SEND
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_vpd_t
type BMParameters struct {
	// BMSequence ties an answer to its command.
	BMSequence uint16 `mad:"0:16"`
	// BMSourceDevice is the sending device: 0xfe for the baseboard manager.
	BMSourceDevice uint8 `mad:"16:8,hex"`
	// BMParameterCount is the number of bytes of parameters.
	BMParameterCount uint8 `mad:"24:8"`
	// BMParameters are the parameters; they depend on the command.
	BMParameters [188]byte `mad:"32:1504,bytes"`
}

// VPDRequest are the parameters of ReadVPD and WriteVPD.
//
//mad:header size=188 section=16.2.3
//mad:variant of=BMParameters.BMParameters name=vpd_request only=ReadVPD,WriteVPD when=modifier.answer:0
//mad:source opa-ff IbAccess/Common/Inc/ib_bm.h BM_REQ_GET_VPD_*
//mad:source ibutils ibis/src/ibbbm_base.h ib_bbm_vpd_t
type VPDRequest struct {
	// VPDDeviceSelector selects the memory.
	VPDDeviceSelector uint8 `mad:"0:8,hex"`
	// VPDBytes is the number of bytes to read or write.
	VPDBytes uint16 `mad:"8:16"`
	// VPDOffset is the position of the first byte in the memory.
	VPDOffset uint16 `mad:"24:16"`
	// VPDData are the bytes to write.
	VPDData [183]byte `mad:"40:1464,bytes"`
}
