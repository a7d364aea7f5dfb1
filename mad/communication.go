package mad

// ConnectRequest (REQ) requests a connection to a service.
//
//mad:attr class=ComMgt id=0x0010 methods=Send size=232 section=12.6.5
//mad:source linux include/rdma/ibta_vol1_c12.h CM_REQ fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_req_msg_t
type ConnectRequest struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	_                    uint32 `mad:"32:32"`
	// ServiceID is the service that is requested.
	ServiceID uint64 `mad:"64:64,hex"`
	// LocalCAGUID is the GUID of the sender's channel adapter.
	LocalCAGUID GUID   `mad:"128:64,name=Local_CA_GUID"`
	_           uint32 `mad:"192:32"`
	// LocalQKey is the Q_Key of the sender's queue pair, of datagrams only.
	LocalQKey uint32 `mad:"224:32,name=Local_Q_Key,hex"`
	// LocalQPN is the sender's queue pair.
	LocalQPN uint32 `mad:"256:24,name=Local_QPN,hex"`
	// ResponderResources is how many RDMA reads and atomic operations of the receiver the sender takes at a time.
	ResponderResources uint8 `mad:"280:8,name=Responder_Resources"`
	// LocalEECN is the sender's end-to-end context, of reliable datagrams only.
	LocalEECN uint32 `mad:"288:24,name=Local_EECN,hex"`
	// InitiatorDepth is how many RDMA reads and atomic operations the sender starts at a time.
	InitiatorDepth uint8 `mad:"312:8,name=Initiator_Depth"`
	// RemoteEECN is the receiver's end-to-end context, of reliable datagrams only.
	RemoteEECN uint32 `mad:"320:24,name=Remote_EECN,hex"`
	// RemoteCMResponseTimeout is the time in which the receiver has to answer: 4.096 us times 2 to the power of it.
	RemoteCMResponseTimeout uint8 `mad:"344:5,name=Remote_CM_Response_Timeout"`
	// TransportServiceType is the transport service of the connection.
	TransportServiceType TransportService `mad:"349:2,name=Transport_Service_Type"`
	// EndToEndFlowControl is set if the sender supports end-to-end flow control.
	EndToEndFlowControl bool `mad:"351:1,name=End_to_End_Flow_Control"`
	// StartingPSN is the packet sequence number at which the receiver begins.
	StartingPSN uint32 `mad:"352:24,name=Starting_PSN,hex"`
	// LocalCMResponseTimeout is the time in which the sender answers: 4.096 us times 2 to the power of it.
	LocalCMResponseTimeout uint8 `mad:"376:5,name=Local_CM_Response_Timeout"`
	// RetryCount is how often a packet is sent again before an error.
	RetryCount uint8 `mad:"381:3,name=Retry_Count"`
	// PartitionKey is the partition of the connection.
	PartitionKey uint16 `mad:"384:16,name=Partition_Key,hex"`
	// PathPacketPayloadMTU is the code of the MTU of the path.
	PathPacketPayloadMTU uint8 `mad:"400:4,name=Path_Packet_Payload_MTU"`
	// RDCExists is set if the reliable-datagram channel exists.
	RDCExists bool `mad:"404:1,name=RDC_Exists"`
	// RNRRetryCount is how often a packet is sent again to a receiver that is not ready; 7: always.
	RNRRetryCount uint8 `mad:"405:3,name=RNR_Retry_Count"`
	// MaxCMRetries is how often messages of connection management are sent again.
	MaxCMRetries uint8 `mad:"408:4,name=Max_CM_Retries"`
	// SRQ is set if the sender's queue pair has a shared receive queue.
	SRQ bool `mad:"412:1"`
	// ExtendedTransportType is the transport if TransportServiceType is extended: 1 is XRC.
	ExtendedTransportType uint8 `mad:"413:3,name=Extended_Transport_Type"`
	// PrimaryLocalPortLID is the sender's LID on the primary path.
	PrimaryLocalPortLID LID `mad:"416:16,name=Primary_Local_Port_LID"`
	// PrimaryRemotePortLID is the receiver's LID on the primary path.
	PrimaryRemotePortLID LID `mad:"432:16,name=Primary_Remote_Port_LID"`
	// PrimaryLocalPortGID is the sender's GID on the primary path.
	PrimaryLocalPortGID GID `mad:"448:128,name=Primary_Local_Port_GID"`
	// PrimaryRemotePortGID is the receiver's GID on the primary path.
	PrimaryRemotePortGID GID `mad:"576:128,name=Primary_Remote_Port_GID"`
	// PrimaryFlowLabel is the flow label of the primary path.
	PrimaryFlowLabel uint32 `mad:"704:20,name=Primary_Flow_Label"`
	_                uint8  `mad:"724:6"`
	// PrimaryPacketRate is the code of the rate of the primary path.
	PrimaryPacketRate uint8 `mad:"730:6,name=Primary_Packet_Rate"`
	// PrimaryTrafficClass is the traffic class of the primary path.
	PrimaryTrafficClass uint8 `mad:"736:8,name=Primary_Traffic_Class"`
	// PrimaryHopLimit is the hop limit of the primary path.
	PrimaryHopLimit uint8 `mad:"744:8,name=Primary_Hop_Limit"`
	// PrimarySL is the service level of the primary path.
	PrimarySL uint8 `mad:"752:4,name=Primary_SL"`
	// PrimarySubnetLocal is set if the primary path leads through no router.
	PrimarySubnetLocal bool  `mad:"756:1,name=Primary_Subnet_Local"`
	_                  uint8 `mad:"757:3"`
	// PrimaryLocalACKTimeout is the sender's timeout on the primary path: 4.096 us times 2 to the power of it.
	PrimaryLocalACKTimeout uint8 `mad:"760:5,name=Primary_Local_ACK_Timeout"`
	_                      uint8 `mad:"765:3"`
	// AlternateLocalPortLID is the sender's LID on the alternate path; 0: unset.
	AlternateLocalPortLID LID `mad:"768:16,name=Alternate_Local_Port_LID"`
	// AlternateRemotePortLID is the receiver's LID on the alternate path.
	AlternateRemotePortLID LID `mad:"784:16,name=Alternate_Remote_Port_LID"`
	// AlternateLocalPortGID is the sender's GID on the alternate path.
	AlternateLocalPortGID GID `mad:"800:128,name=Alternate_Local_Port_GID"`
	// AlternateRemotePortGID is the receiver's GID on the alternate path.
	AlternateRemotePortGID GID `mad:"928:128,name=Alternate_Remote_Port_GID"`
	// AlternateFlowLabel is the flow label of the alternate path.
	AlternateFlowLabel uint32 `mad:"1056:20,name=Alternate_Flow_Label"`
	_                  uint8  `mad:"1076:6"`
	// AlternatePacketRate is the code of the rate of the alternate path.
	AlternatePacketRate uint8 `mad:"1082:6,name=Alternate_Packet_Rate"`
	// AlternateTrafficClass is the traffic class of the alternate path.
	AlternateTrafficClass uint8 `mad:"1088:8,name=Alternate_Traffic_Class"`
	// AlternateHopLimit is the hop limit of the alternate path.
	AlternateHopLimit uint8 `mad:"1096:8,name=Alternate_Hop_Limit"`
	// AlternateSL is the service level of the alternate path.
	AlternateSL uint8 `mad:"1104:4,name=Alternate_SL"`
	// AlternateSubnetLocal is set if the alternate path leads through no router.
	AlternateSubnetLocal bool  `mad:"1108:1,name=Alternate_Subnet_Local"`
	_                    uint8 `mad:"1109:3"`
	// AlternateLocalACKTimeout is the sender's timeout on the alternate path: 4.096 us times 2 to the power of it.
	AlternateLocalACKTimeout uint8 `mad:"1112:5,name=Alternate_Local_ACK_Timeout"`
	_                        uint8 `mad:"1117:3"`
	// PrivateData is data of the users of the connection.
	PrivateData [92]byte `mad:"1120:736,bytes"`
}

// TransportService is a transport service of a connection (IBA 12.6.5).
//
//mad:enum
type TransportService uint8

const (
	TransportServiceRC       TransportService = 0
	TransportServiceUC       TransportService = 1
	TransportServiceRD       TransportService = 2
	TransportServiceExtended TransportService = 3
)

// MsgRcptAck (MRA) states that a message has arrived and that the answer takes longer.
//
//mad:attr class=ComMgt id=0x0011 methods=Send size=232 section=12.6.6
//mad:source linux include/rdma/ibta_vol1_c12.h CM_MRA fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_mra_msg_t
type MsgRcptAck struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// MessageMRAed is the message that has arrived: 0 REQ, 1 REP, 2 LAP.
	MessageMRAed uint8 `mad:"64:2,name=Message_MRAed"`
	_            uint8 `mad:"66:6"`
	// ServiceTimeout is the time in which the answer follows: 4.096 us times 2 to the power of it.
	ServiceTimeout uint8 `mad:"72:5"`
	_              uint8 `mad:"77:3"`
	// PrivateData is data of the users of the connection.
	PrivateData [222]byte `mad:"80:1776,bytes"`
}

// ConnectReject (REJ) rejects a connection.
//
//mad:attr class=ComMgt id=0x0012 methods=Send size=232 section=12.6.7
//mad:source linux include/rdma/ibta_vol1_c12.h CM_REJ fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_rej_msg_t
type ConnectReject struct {
	// LocalCommunicationID identifies the connection at the sender; 0: the sender has no such connection.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// MessageRejected is the message that is rejected: 0 REQ, 1 REP, 2 another.
	MessageRejected uint8 `mad:"64:2,name=Message_REJected"`
	_               uint8 `mad:"66:6"`
	// RejectInfoLength is how many bytes of ARI are valid.
	RejectInfoLength uint8 `mad:"72:7"`
	_                uint8 `mad:"79:1"`
	// Reason is why.
	Reason RejectReason `mad:"80:16"`
	// ARI is additional information, which depends on the reason: the value that would have been accepted.
	ARI [72]byte `mad:"96:576,bytes"`
	// PrivateData is data of the users of the connection.
	PrivateData [148]byte `mad:"672:1184,bytes"`
}

// RejectReason is why a connection is rejected (IBA 12.6.7.2).
//
//mad:enum
type RejectReason uint16

const (
	RejectReasonNoQP                       RejectReason = 1 // "no_qp_available"
	RejectReasonNoEEC                      RejectReason = 2 // "no_eec_available"
	RejectReasonNoResources                RejectReason = 3
	RejectReasonTimeout                    RejectReason = 4
	RejectReasonUnsupportedRequest         RejectReason = 5
	RejectReasonInvalidCommID              RejectReason = 6 // "invalid_communication_id"
	RejectReasonInvalidCommInstance        RejectReason = 7 // "invalid_communication_instance"
	RejectReasonInvalidServiceID           RejectReason = 8 // "invalid_service_id"
	RejectReasonInvalidServiceType         RejectReason = 9 // "invalid_transport_service_type"
	RejectReasonStaleConnection            RejectReason = 10
	RejectReasonRDCDoesNotExist            RejectReason = 11 // "rdc_does_not_exist"
	RejectReasonPrimaryGIDRejected         RejectReason = 12 // "primary_remote_port_gid_rejected"
	RejectReasonPrimaryLIDRejected         RejectReason = 13 // "primary_remote_port_lid_rejected"
	RejectReasonInvalidPrimarySL           RejectReason = 14 // "invalid_primary_sl"
	RejectReasonInvalidPrimaryTrafficClass RejectReason = 15
	RejectReasonInvalidPrimaryHopLimit     RejectReason = 16
	RejectReasonInvalidPrimaryPacketRate   RejectReason = 17
	RejectReasonAlternateGIDRejected       RejectReason = 18 // "alternate_remote_port_gid_rejected"
	RejectReasonAlternateLIDRejected       RejectReason = 19 // "alternate_remote_port_lid_rejected"
	RejectReasonInvalidAlternateSL         RejectReason = 20 // "invalid_alternate_sl"
	RejectReasonInvalidAlternateClass      RejectReason = 21 // "invalid_alternate_traffic_class"
	RejectReasonInvalidAlternateHopLimit   RejectReason = 22
	RejectReasonInvalidAlternateRate       RejectReason = 23 // "invalid_alternate_packet_rate"
	RejectReasonPortAndCMRedirection       RejectReason = 24 // "port_and_cm_redirection"
	RejectReasonPortRedirection            RejectReason = 25
	RejectReasonInvalidPathMTU             RejectReason = 26 // "invalid_path_mtu"
	RejectReasonInsufficientResources      RejectReason = 27 // "insufficient_responder_resources"
	RejectReasonConsumerReject             RejectReason = 28
	RejectReasonRNRRetryCount              RejectReason = 29 // "rnr_retry_count_rejected"
	RejectReasonDuplicateCommID            RejectReason = 30 // "duplicate_local_communication_id"
	RejectReasonUnsupportedClassVersion    RejectReason = 31
	RejectReasonInvalidPrimaryFlowLabel    RejectReason = 32
	RejectReasonInvalidAlternateFlowLabel  RejectReason = 33
)

// ConnectReply (REP) accepts a connection.
//
//mad:attr class=ComMgt id=0x0013 methods=Send size=232 section=12.6.8
//mad:source linux include/rdma/ibta_vol1_c12.h CM_REP fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_rep_msg_t
type ConnectReply struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// LocalQKey is the Q_Key of the sender's queue pair, of datagrams only.
	LocalQKey uint32 `mad:"64:32,name=Local_Q_Key,hex"`
	// LocalQPN is the sender's queue pair.
	LocalQPN uint32 `mad:"96:24,name=Local_QPN,hex"`
	_        uint8  `mad:"120:8"`
	// LocalEECN is the sender's end-to-end context, of reliable datagrams only.
	LocalEECN uint32 `mad:"128:24,name=Local_EE_Context_Number,hex"`
	_         uint8  `mad:"152:8"`
	// StartingPSN is the packet sequence number at which the receiver begins.
	StartingPSN uint32 `mad:"160:24,name=Starting_PSN,hex"`
	_           uint8  `mad:"184:8"`
	// ResponderResources is how many RDMA reads and atomic operations of the receiver the sender takes at a time.
	ResponderResources uint8 `mad:"192:8,name=Responder_Resources"`
	// InitiatorDepth is how many RDMA reads and atomic operations the sender starts at a time.
	InitiatorDepth uint8 `mad:"200:8,name=Initiator_Depth"`
	// TargetACKDelay is how long the sender takes to acknowledge a packet: 4.096 us times 2 to the power of it.
	TargetACKDelay uint8 `mad:"208:5,name=Target_ACK_Delay"`
	// FailoverAccepted states whether the alternate path is accepted: 0 yes, 1 not supported, 2 rejected.
	FailoverAccepted uint8 `mad:"213:2,name=Failover_Accepted"`
	// EndToEndFlowControl is set if the sender supports end-to-end flow control.
	EndToEndFlowControl bool `mad:"215:1,name=End_to_End_Flow_Control"`
	// RNRRetryCount is how often a packet is sent again to a receiver that is not ready; 7: always.
	RNRRetryCount uint8 `mad:"216:3,name=RNR_Retry_Count"`
	// SRQ is set if the sender's queue pair has a shared receive queue.
	SRQ bool  `mad:"219:1"`
	_   uint8 `mad:"220:4"`
	// LocalCAGUID is the GUID of the sender's channel adapter.
	LocalCAGUID GUID `mad:"224:64,name=Local_CA_GUID"`
	// PrivateData is data of the users of the connection.
	PrivateData [196]byte `mad:"288:1568,bytes"`
}

// ReadyToUse (RTU) states that a connection is ready.
//
//mad:attr class=ComMgt id=0x0014 methods=Send size=232 section=12.6.9
//mad:source linux include/rdma/ibta_vol1_c12.h CM_RTU fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_rtu_msg_t
type ReadyToUse struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// PrivateData is data of the users of the connection.
	PrivateData [224]byte `mad:"64:1792,bytes"`
}

// DisconnectRequest (DREQ) ends a connection.
//
//mad:attr class=ComMgt id=0x0015 methods=Send size=232 section=12.6.10
//mad:source linux include/rdma/ibta_vol1_c12.h CM_DREQ fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_dreq_msg_t
type DisconnectRequest struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// RemoteQPN is the receiver's queue pair, or its end-to-end context.
	RemoteQPN uint32 `mad:"64:24,name=Remote_QPN_EECN,hex"`
	_         uint8  `mad:"88:8"`
	// PrivateData is data of the users of the connection.
	PrivateData [220]byte `mad:"96:1760,bytes"`
}

// DisconnectReply (DREP) answers a DisconnectRequest.
//
//mad:attr class=ComMgt id=0x0016 methods=Send size=232 section=12.6.11
//mad:source linux include/rdma/ibta_vol1_c12.h CM_DREP fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_drep_msg_t
type DisconnectReply struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// PrivateData is data of the users of the connection.
	PrivateData [224]byte `mad:"64:1792,bytes"`
}

// ServiceIDResReq (SIDR_REQ) requests the queue pair of a service of datagrams.
//
//mad:attr class=ComMgt id=0x0017 methods=Send size=232 section=12.11.1
//mad:source linux include/rdma/ibta_vol1_c12.h CM_SIDR_REQ fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_sidr_req_msg_t
type ServiceIDResReq struct {
	// RequestID identifies the request.
	RequestID uint32 `mad:"0:32,hex"`
	// PartitionKey is the partition of the service.
	PartitionKey uint16 `mad:"32:16,name=Partition_Key,hex"`
	_            uint16 `mad:"48:16"`
	// ServiceID is the service that is requested.
	ServiceID uint64 `mad:"64:64,hex"`
	// PrivateData is data of the users.
	PrivateData [216]byte `mad:"128:1728,bytes"`
}

// ServiceIDResReqResp (SIDR_REP) answers a ServiceIDResReq.
//
//mad:attr class=ComMgt id=0x0018 methods=Send size=232 section=12.11.2
//mad:source linux include/rdma/ibta_vol1_c12.h CM_SIDR_REP fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_sidr_rep_msg_t
type ServiceIDResReqResp struct {
	// RequestID identifies the request.
	RequestID uint32 `mad:"0:32,hex"`
	// Status is 0 if QPN is valid, else why it is not: 1 service ID not supported, 2 rejected, 3 no queue pair, 4 redirected, 5 class version not supported.
	Status uint8 `mad:"32:8"`
	// AdditionalInformationLength is how many bytes of AdditionalInformation are valid.
	AdditionalInformationLength uint8  `mad:"40:8"`
	_                           uint16 `mad:"48:16"`
	// QPN is the queue pair of the service.
	QPN uint32 `mad:"64:24,hex"`
	_   uint8  `mad:"88:8"`
	// ServiceID is the service that is requested.
	ServiceID uint64 `mad:"96:64,hex"`
	// QKey is the Q_Key of the queue pair.
	QKey uint32 `mad:"160:32,name=Q_Key,hex"`
	// AdditionalInformation depends on Status.
	AdditionalInformation [72]byte `mad:"192:576,bytes"`
	// PrivateData is data of the users.
	PrivateData [136]byte `mad:"768:1088,bytes"`
}

// LoadAlternatePath (LAP) states another alternate path of a connection.
//
//mad:attr class=ComMgt id=0x0019 methods=Send size=232 section=12.8.1
//mad:source linux include/rdma/ibta_vol1_c12.h CM_LAP fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_lap_msg_t
type LoadAlternatePath struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	_                     uint32 `mad:"64:32"`
	// RemoteQPN is the receiver's queue pair, or its end-to-end context.
	RemoteQPN uint32 `mad:"96:24,name=Remote_QPN_EECN,hex"`
	// RemoteCMResponseTimeout is the time in which the receiver has to answer: 4.096 us times 2 to the power of it.
	RemoteCMResponseTimeout uint8  `mad:"120:5,name=Remote_CM_Response_Timeout"`
	_                       uint8  `mad:"125:3"`
	_                       uint32 `mad:"128:32"`
	// AlternateLocalPortLID is the sender's LID on the alternate path.
	AlternateLocalPortLID LID `mad:"160:16,name=Alternate_Local_Port_LID"`
	// AlternateRemotePortLID is the receiver's LID on the alternate path.
	AlternateRemotePortLID LID `mad:"176:16,name=Alternate_Remote_Port_LID"`
	// AlternateLocalPortGID is the sender's GID on the alternate path.
	AlternateLocalPortGID GID `mad:"192:128,name=Alternate_Local_Port_GID"`
	// AlternateRemotePortGID is the receiver's GID on the alternate path.
	AlternateRemotePortGID GID `mad:"320:128,name=Alternate_Remote_Port_GID"`
	// AlternateFlowLabel is the flow label of the alternate path.
	AlternateFlowLabel uint32 `mad:"448:20,name=Alternate_Flow_Label"`
	_                  uint8  `mad:"468:4"`
	// AlternateTrafficClass is the traffic class of the alternate path.
	AlternateTrafficClass uint8 `mad:"472:8,name=Alternate_Traffic_Class"`
	// AlternateHopLimit is the hop limit of the alternate path.
	AlternateHopLimit uint8 `mad:"480:8,name=Alternate_Hop_Limit"`
	_                 uint8 `mad:"488:2"`
	// AlternatePacketRate is the code of the rate of the alternate path.
	AlternatePacketRate uint8 `mad:"490:6,name=Alternate_Packet_Rate"`
	// AlternateSL is the service level of the alternate path.
	AlternateSL uint8 `mad:"496:4,name=Alternate_SL"`
	// AlternateSubnetLocal is set if the alternate path leads through no router.
	AlternateSubnetLocal bool  `mad:"500:1,name=Alternate_Subnet_Local"`
	_                    uint8 `mad:"501:3"`
	// AlternateLocalACKTimeout is the sender's timeout on the alternate path: 4.096 us times 2 to the power of it.
	AlternateLocalACKTimeout uint8 `mad:"504:5,name=Alternate_Local_ACK_Timeout"`
	_                        uint8 `mad:"509:3"`
	// PrivateData is data of the users of the connection.
	PrivateData [168]byte `mad:"512:1344,bytes"`
}

// AlternatePathResponse (APR) answers a LoadAlternatePath.
//
//mad:attr class=ComMgt id=0x001a methods=Send size=232 section=12.8.2
//mad:source linux include/rdma/ibta_vol1_c12.h CM_APR fields
//mad:source illumos usr/src/uts/common/sys/ib/mgt/ibcm/ibcm_impl.h ibcm_apr_msg_t
type AlternatePathResponse struct {
	// LocalCommunicationID identifies the connection at the sender.
	LocalCommunicationID uint32 `mad:"0:32,name=Local_Communication_ID,hex"`
	// RemoteCommunicationID identifies the connection at the receiver.
	RemoteCommunicationID uint32 `mad:"32:32,name=Remote_Communication_ID,hex"`
	// AdditionalInformationLength is how many bytes of AdditionalInformation are valid.
	AdditionalInformationLength uint8 `mad:"64:8"`
	// APStatus is 0 if the path is loaded, else why it is not.
	APStatus uint8  `mad:"72:8"`
	_        uint16 `mad:"80:16"`
	// AdditionalInformation depends on APStatus.
	AdditionalInformation [72]byte `mad:"96:576,bytes"`
	// PrivateData is data of the users of the connection.
	PrivateData [148]byte `mad:"672:1184,bytes"`
}
