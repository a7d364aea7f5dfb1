package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// TestNames: of descriptions, the part that names a host or a switch is replaced; what names
// only a model stays.
func TestNames(t *testing.T) {
	x := newIdentities()
	list := []string{
		"cn01 HCA-1", "cn01 mlx5_0", "cn02 mlx5_0", "core switch, row 7", "MF0;dc1-sw:MQM8700/U1", "MF0;dc1:x:MCS7500/L01/U1", "node-0002",
		"Mellanox Technologies Aggregation Node", "Quantum Mellanox Technologies", "MT4123 ConnectX6   Mellanox Technologies", "", "100% mlx5_1",
	}
	fields := make([][]byte, len(list))
	for i, s := range list {
		fields[i] = make([]byte, 64)
		copy(fields[i], s)
		x.collect(kindNode, fields[i])
	}
	x.assign()
	var got []string
	for _, b := range fields {
		x.replace(kindNode, b)
		got = append(got, untilNUL(b))
	}
	want := []string{
		"node-0003 HCA-1", "node-0003 mlx5_0", "node-0004 mlx5_0", "node-0005", "MF0;node-0006:MQM8700/U1", "MF0;node-0007:MCS7500/L01/U1", "node-0008",
		"Mellanox Technologies Aggregation Node", "Quantum Mellanox Technologies", "MT4123 ConnectX6   Mellanox Technologies", "", "node-0001 mlx5_1",
	}
	for i := range want { // numbers are in the order of the names
		if !strings.HasPrefix(got[i], want[i][:min(5, len(want[i]))]) {
			t.Errorf("%q became %q", list[i], got[i])
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestGUIDs: manufacturer and order stay, neighbours stay neighbours, and no replacement is a
// GUID of the recording.
func TestGUIDs(t *testing.T) {
	x := newIdentities()
	list := []uint64{0, 1, 5, 0x0002c9_03_00001000, 0x0002c9_03_00001001, 0x0002c9_03_00002000, 0x0002c9a0_00000000, 0x506b4b_03_00000001, 1<<64 - 1}
	for _, g := range list {
		x.guids[g] = 0
	}
	x.assign()
	var got strings.Builder
	last := uint64(0)
	for i, g := range list {
		to := x.guids[g]
		fmt.Fprintf(&got, "%016x %016x\n", g, to)
		if i > 0 && to <= last {
			t.Errorf("%#x: the order changed", g)
		}
		last = to
	}
	const want = `0000000000000000 0000000000000000
0000000000000001 000000a100001000
0000000000000005 000000a100001004
0002c90300001000 0002c9a100001000
0002c90300001001 0002c9a100001001
0002c90300002000 0002c9a100001101
0002c9a000000000 0002c9a100001201
506b4b0300000001 506b4ba100001000
ffffffffffffffff ffffffffffffffff
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestGIDs: prefixes and GUIDs in them are replaced, groups of IPv4 are not.
func TestGIDs(t *testing.T) {
	x := newIdentities()
	gid := func(prefix, low uint64) []byte { g := mad.MakeGID(prefix, mad.GUID(low)); return g[:] }
	list := [][]byte{
		gid(0xfe80<<48, 0x0002c90300001000), gid(0xfec1_0000_1234_0000, 0x0002c90300001000), gid(0xff12401b_ffff0000, 0xffffffff), gid(0xff12601b_ffff0000, 0x1_ff00_1000),
	}
	for _, b := range list {
		x.collect(kindGID, b)
	}
	x.assign()
	var got []string
	for _, b := range list {
		x.replace(kindGID, b)
		got = append(got, mad.GID(b).String())
	}
	want := []string{"fe80::2:c9a0:0:0", "fec0::1:2:c9a0:0:0", "ff12:401b:ffff::ffff:ffff", "ff12:601b:ffff::1:ff00:1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestScrub: GUIDs in data without a layout are replaced, in both orders of bytes and anywhere.
func TestScrub(t *testing.T) {
	x := newIdentities()
	const guid, small = 0x506b4b_03_00123456, 0x17
	x.guids[guid], x.guids[small] = 0, 0
	x.assign()
	both := func(guid uint64) []byte {
		b := binary.BigEndian.AppendUint64([]byte{1, 2, 3}, guid)
		b = binary.LittleEndian.AppendUint64(append(b, 4), guid)
		return binary.BigEndian.AppendUint64(b, small) // a number, not known to be a GUID
	}
	got := both(guid)
	x.scrub(got)
	if want := both(x.guids[guid]); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	m := answerOf(mad.AttrVendorDiag)
	binary.LittleEndian.PutUint64(m[mad.SMPDataOffset+9:], guid)
	node := answerOf(mad.AttrNodeInfo)
	binary.BigEndian.PutUint64(node[mad.SMPDataOffset+mad.AttrNodeInfo.Field("node_guid").Offset/8:], guid)
	port := localPort()
	at := &engine.Address{LID: 3}
	out, err := Anonymize(pcap(t, packet(ifaceReceived, time.Unix(1, 0), at, &port, m), packet(ifaceReceived, time.Unix(2, 0), at, &port, node)))
	if err != nil || bytes.Contains(out.Recording, binary.LittleEndian.AppendUint64(nil, guid)) {
		t.Errorf("the GUID is in the recording; %v", err)
	}
}

// answerOf is an answer to a LID-routed Get, without content.
func answerOf(a *mad.Attribute) []byte {
	m := make([]byte, mad.Size)
	(&mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodGetResp, Attribute: a.ID}).Put(m)
	return m
}

// TestSegmentNumbers: the numbers of segments do not determine how much memory is used, and the
// records of a transfer without its beginning are replaced too.
func TestSegmentNumbers(t *testing.T) {
	c := table(mad.AttrNodeRecord)
	const guid = 0x506b4b_03_00123456
	records := make([]byte, 0, 5*112)
	for range 5 {
		r := make([]byte, 112)
		(&mad.NodeRecord{NodeInfo: mad.NodeInfo{NodeGUID: guid, PortGUID: guid + 1}}).Encode(r)
		records = append(records, r...)
	}
	port := localPort()
	at := &engine.Address{LID: 3, QP: 1}
	var list []erf.Packet
	for i, s := range segments(engine.Datagram{Address: *at, MAD: c.MAD[:]}, records) {
		binary.BigEndian.PutUint16(s.MAD[mad.SAAttrOffsetOffset:], 112/8)
		if i > 0 { // the first is lost
			list = append(list, packet(ifaceReceived, time.Unix(1, 0), at, &port, s.MAD))
		}
	}
	far := bytes.Clone(list[0].Payload)
	binary.BigEndian.PutUint32(far[mad.RMPPOffset+4:], 1<<32-1)
	list = append(list, packet(ifaceReceived, time.Unix(1, 0), at, &port, far))
	size := 0
	for _, u := range unitsOf(list) {
		size += len(u.data)
	}
	if size > len(list)*mad.Size {
		t.Errorf("%d bytes for %d packets", size, len(list))
	}
	out, err := Anonymize(pcap(t, list[:len(list)-1]...))
	if err != nil || bytes.Contains(out.Recording, binary.BigEndian.AppendUint64(nil, guid)) {
		t.Errorf("the GUID is in the recording; %v", err)
	}
}

// TestKinds: it is decided of each text and each field of raw data whether it can identify a
// device. A new one belongs in this list.
func TestKinds(t *testing.T) {
	var got []string
	for _, a := range append(mad.Attributes(), mad.Headers()...) {
		for i := range a.Fields {
			f := &a.Fields[i]
			if f.Type != mad.FieldTypeText && f.Type != mad.FieldTypeBytes || f.Key {
				continue
			}
			word := map[identityKind]string{kindNone: "kept", kindNode: "node", kindText: "text", kindWipe: "wiped"}[kindOf(a, f)]
			if line := fmt.Sprintf("%s %s.%s", word, a.Name, f.Script); len(got) == 0 || got[len(got)-1] != line {
				got = append(got, line)
			}
		}
	}
	var wanted []string
	for line := range strings.Lines(kinds) {
		wanted = append(wanted, strings.TrimSpace(line))
	}
	if d := cmp.Diff(wanted, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzAnonymize: no file makes Anonymize panic, and what could be loaded still can.
func FuzzAnonymize(f *testing.F) {
	f.Add(recordTwo(f))
	c := table(mad.AttrNodeRecord)
	list := facts(localPort())
	at := &engine.Address{LID: 3, QP: 1}
	port := localPort()
	for _, s := range segments(engine.Datagram{Address: *at, MAD: c.MAD[:]}, count(500)) {
		list = append(list, packet(ifaceReceived, list[0].Time, at, &port, s.MAD))
	}
	f.Add(pcap(f, list...))
	f.Add(unsealed(pcap(f, list...)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		out, err := Anonymize(file)
		if err != nil {
			return
		}
		var packets []erf.Packet
		if packets, err = readPackets(bytes.NewReader(out.Recording)); err != nil {
			t.Fatal(err)
		}
		if before, _ := readPackets(bytes.NewReader(file)); len(before) != len(packets) {
			t.Errorf("%d packets became %d", len(before), len(packets))
		}
		if _, err := Load(bytes.NewReader(file), "a"); err == nil {
			if _, err := Load(bytes.NewReader(out.Recording), "a"); err != nil {
				t.Error(err)
			}
		}
	})
}

// kinds are what Anonymize does with texts and raw data.
const kinds = `kept Notice.data_details
node NodeDescription.node_string
kept LinkSpeedWidthPairsTable.data
kept VendorSpecificMadsTable.data
kept VendorDiag.diag_data
wiped CableInfo.data
kept EnhPortVLArbiter.arbiter
kept EnhVPortQoSArbiterInfo.data
kept EnhVPortSLArbiter.data
kept PrivateLFTMap.port_group_mask
kept GeneralInfo.data
text ChassisInfo.chassis_id
kept AdaptiveRoutingGroupTable.sub_group_a
kept AdaptiveRoutingGroupTable.sub_group_b
kept LinearForwardingTableSplit.data
kept NVLHBFConfig.data
wiped MlnxConfigSpace.records
kept MlnxAccessRegister.register
kept MlnxSemaphore.data
kept EndPortPlaneFilterConfig.data
wiped MlnxCableInfo.memory
kept ContainAndDrainInfo.data
kept ContainAndDrainPortState.data
kept AnycastLIDInfo.data
kept RailFilterConfig.data
wiped FabricManagerInfo.data
wiped VNodeDescription.data
wiped VPortGUIDInfo.data
kept VPortPKeyTable.data
kept Notice.data_details
kept LinkSpeedWidthPairsTableRecord.data
text ServiceRecord.service_name
wiped RangeRecord.data
wiped MCGroupRecord.data
text ServiceAssociationRecord.service_name
wiped HierarchyInfoRecord.data
wiped CableInfoRecord.data
wiped NoticeRecord.data
wiped SAResponse.data
kept PortExtendedSpeedsCounters.counters
kept Notice.data_details
wiped BKeyInfo.more
wiped WriteVPD.bm_parameters
wiped ReadVPD.bm_parameters
wiped ResetIBML.bm_parameters
wiped SetModulePMControl.bm_parameters
wiped GetModulePMControl.bm_parameters
wiped SetUnitPMControl.bm_parameters
wiped GetUnitPMControl.bm_parameters
wiped SetIOCPMControl.bm_parameters
wiped GetIOCPMControl.bm_parameters
wiped SetModuleState.bm_parameters
wiped SetModuleAttention.bm_parameters
wiped GetModuleStatus.bm_parameters
wiped IB2IBML.bm_parameters
wiped IB2CME.bm_parameters
wiped IB2MME.bm_parameters
wiped OEM.bm_parameters
kept Notice.data_details
text IOControllerProfile.id_string
wiped ConnectRequest.private_data
wiped MsgRcptAck.private_data
wiped ConnectReject.ari
wiped ConnectReject.private_data
wiped ConnectReply.private_data
wiped ReadyToUse.private_data
wiped DisconnectRequest.private_data
wiped DisconnectReply.private_data
wiped ServiceIDResReq.private_data
wiped ServiceIDResReqResp.additional_information
wiped ServiceIDResReqResp.private_data
wiped LoadAlternatePath.private_data
wiped AlternatePathResponse.additional_information
wiped AlternatePathResponse.private_data
wiped CommunityInfo.data
wiped PDUInfo.data
wiped PDUInfo.more
wiped ConfigSpace.records
wiped ConfigSpaceMode.content
kept Notice.data_details
kept FlashOpen.content
kept FlashClose.content
kept FlashSetBank.content
wiped FlashReadSector.content
kept FlashWriteSector.content
kept FlashEraseSector.content
kept SoftReset.content
kept ExtPortAccess.access
kept VSMulticastForwardingTable.content
kept IBPortConfig.content
kept GeneralInfo.psid
kept GeneralInfo.software
kept Mirror.content
wiped ConfigSpace.records
kept AccessRegister.content
kept AccessRegisterLong.register
kept Notice.data_details
kept CongestionLog.log
kept SwitchCongestionSetting.victim_mask
kept SwitchCongestionSetting.credit_mask
kept CongestionHCAAlgoConfig.encapsulation
wiped HostPing.data
text SysStatPing.text
text HostInfo.text
text CPUInfo.text
kept CMIS.vendor_name
kept CMIS.vendor_pn
kept CMIS.vendor_rev
text CMIS.vendor_sn
kept CMIS.date_code
wiped I2CAccess.content
wiped MCIA.eeprom
kept MGIR.psid
text MSGI.serial_number
kept MSGI.part_number
kept MSGI.revision
kept MSGI.product_name
wiped MSPS.psu0
wiped MSPS.psu1
kept MTMP.sensor_name
kept NVIDIANotice.details
kept NVIDIANoticeContainAndDrain.block_mask
kept NVIDIANoticeMKey.dr_path
kept NVIDIANoticeRecovered.port_mask
kept NVIDIANoticeSMGUID.dr_path
kept NVIDIANoticeSMKey.dr_path
kept PDDR.page_data
kept PDDRModule.vendor_name
kept PDDRModule.vendor_pn
kept PDDRModule.vendor_rev
text PDDRModule.vendor_sn
kept PDDRTroubleshooting.status_message
kept PPCNT.counter_set
kept SFF8636.vendor_name
kept SFF8636.vendor_pn
kept SFF8636.vendor_rev
text SFF8636.vendor_sn
kept SFF8636.date_code
text ServiceEntry.service_name
kept SwitchCongestionLog.port_map
wiped VPDRequest.vpd_data`
