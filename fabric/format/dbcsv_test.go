package format

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

const (
	dbPortColumns = "NodeGuid,PortGuid,PortNum,MKey,GIDPrfx,MSMLID,LID,CapMsk,M_KeyLeasePeriod,DiagCode,LinkWidthActv,LinkWidthSup,LinkWidthEn,LocalPortNum,LinkSpeedEn,LinkSpeedActv,LMC,MKeyProtBits,LinkDownDefState,PortPhyState,PortState,LinkSpeedSup,VLArbHighCap,VLHighLimit,InitType,VLCap,MSMSL,NMTU,FilterRawOutb,FilterRawInb,PartEnfOutb,PartEnfInb,OpVLs,HoQLife,VLStallCnt,MTUCap,InitTypeReply,VLArbLowCap,PKeyViolations,MKeyViolations,SubnTmo,MulticastPKeyTrapSuppressionEnabled,ClientReregister,GUIDCap,QKeyViolations,MaxCreditHint,OverrunErrs,LocalPhyError,RespTimeValue,LinkRoundTripLatency,OOOSLMask,CapMsk2,FECActv,RetransActv\n"
	// A port that runs 4x NDR: 0xf07 are the speeds up to QDR, and FDR to NDR.
	dbPortRow     = "%s,%s,%d,0x77,0xfe80000000000000,2,%d,2757847114,15,0,2,3,3,1,0xf07,0x800,0,0,2,5,4,0xf07,8,4,0,4,0,5,0,0,1,1,4,7,7,5,0,8,3,0,18,0,0,32,0,85,8,8,16,N/A,0xffff,10,14,0\n"
	dbPMColumns   = "NodeGUID,PortGUID,PortNumber,LinkDownedCounter,LinkErrorRecoveryCounter,SymbolErrorCounter,PortRcvRemotePhysicalErrors,PortRcvErrors,PortXmitDiscards,PortRcvSwitchRelayErrors,ExcessiveBufferOverrunErrors,LocalLinkIntegrityErrors,PortRcvConstraintErrors,PortXmitConstraintErrors,VL15Dropped,PortXmitData,PortRcvData,PortXmitPkts,PortRcvPkts,PortXmitWait,PortInactiveDiscards,PortNeighborMTUDiscards,PortSwLifetimeLimitDiscards,PortSwHOQLifetimeLimitDiscards\n"
	dbNodeColumns = "NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID,PartitionCap,revision,VendorID,LocalPortNum\n"
)

// DBSample is a data base of a switch and two hosts, of which one is gone from PORTS.
var DBSample = "# made by hand\n# Running version : \"IBDIAGNET 2\"\n\n" +
	"START_NODES\n" + dbNodeColumns +
	"\"MF0;sw \"\"1\"\", spare:MQM9700/U1\",4,2,1,1,0xa0,0xa0,0xa0,54002,8,0xa0,0x02c9,1\n" +
	"\"node-1 mlx5_0\",1,1,1,1,0xb0,0xb0,0xb1,4129,128,0,713,1\n" +
	"node-2,1,1,1,1,0xc0,0xc0,0xc1,4129,128,0,713,1\n" +
	"END_NODES\n\n\n" +
	"START_PORTS\n" + dbPortColumns +
	fmt.Sprintf(dbPortRow, "0xa0", "0xa0", 0, 1) + fmt.Sprintf(dbPortRow, "0xa0", "0xa0", 1, 1) +
	strings.Replace(strings.Replace(fmt.Sprintf(dbPortRow, "0xa0", "0xa0", 2, 1), ",0x800,", ",65536,", 1), ",0,2,5,4,", ",0,2,2,1,", 1) +
	strings.Replace(fmt.Sprintf(dbPortRow, "0xb0", "0xb1", 1, 5), ",5,0,0,1,1,", ",N/A,0,0,1,1,", 1) +
	"END_PORTS\r\n" +
	"START_EXTENDED_NODE_INFO\nNodeGUID,x\nSTART_PORTS\nEND_EXTENDED_NODE_INFO\n" +
	"START_SWITCHES\nENP0,NodeGUID,LinearFDBCap,RandomFDBCap,MCastFDBCap,LinearFDBTop,DefPort,DefMCastPriPort,DefMCastNotPriPort,LifeTimeValue,PortStateChange,OptimizedSLVLMapping,LidsPerPort,PartEnfCap,InbEnfCap,OutbEnfCap,FilterRawInbCap,FilterRawOutbCap,MCastFDBTop\n" +
	"1,0xa0,49152,0,16384,48,255,255,255,18,0,0,0,32,1,1,1,1,0xbfff\nEND_SWITCHES\n" +
	"START_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n0xa0,1,0xb0,1\n0xc0,1,0xa0,2\nEND_LINKS\n" +
	"START_PM_INFO\n" + dbPMColumns +
	"0xa0,0xa0,1,2,0,7,0,0,0,0,0,0,0,0,0,4294967295,0xff,5,6,0,N/A,0,0,0\n" +
	"0xa0,0xa0,2,2,0,0xfffffffffffffffe,0,0,0,0,0,0,0,0,0,1,2,3,4,0,9,8,7,6\n" +
	"END_PM_INFO\n"

func TestLoadDBCSV(t *testing.T) {
	if got := Recognise([]byte(DBSample)); got != KindDBCSV {
		t.Fatalf("recognised as %q", got)
	}
	f, err := Load(strings.NewReader(DBSample), "db", nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `fabric: 3 nodes (1 switch, 2 CAs), 2 links, complete
switch "MF0;sw \"1\", spare:MQM9700/U1" guid a0 image a0 vendor 2c9 device d2f2 ports 4 port guid a0 lid 1 lmc 0 enhanced true
  1 - 1 node-1 mlx5_0/1 4xndr
  2 - 2 node-2/1 4xfdr10
ca "node-1 mlx5_0" guid b0 image b0 vendor 2c9 device 1021 ports 1
  1 - 0 MF0;sw "1", spare:MQM9700/U1/1  guid b1 lid 0 lmc 0
ca "node-2" guid c0 image c0 vendor 2c9 device 1021 ports 1
  1 - 0 MF0;sw "1", spare:MQM9700/U1/2  guid c1 lid 0 lmc 0
left out: db does not know NMTU, so has no PortInfo of that port or node
left out: db does not know PortInactiveDiscards, so has no PortXmitDiscardDetails of that port or node
left out: db does not know SymbolErrorCounter, so has no PortCounters of that port or node
left out: db has no PortCountersExtended: section PM_INFO has no column PortXmitDataExtended, PortRcvDataExtended, PortXmitPktsExtended, ...
left out: db has no PortRcvErrorDetails: section PM_INFO has no column PortLocalPhysicalErrors, PortMalformedPacketErrors, PortBufferOverrunErrors, ...
left out: db: 1 section was not read: EXTENDED_NODE_INFO
`
	if d := cmp.Diff(want, describe(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	info := *f.NodeByGUID(0xa0)[0].Port(1).Info()
	wantInfo := mad.PortInfo{
		GIDPrefix: 0xfe80000000000000, LID: 1, MasterSMLID: 2, CapabilityMask: 2757847114, MKeyLeasePeriod: 15, LocalPortNum: 1,
		LinkWidthEnabled: 3, LinkWidthSupported: 3, LinkWidthActive: mad.LinkWidth4x, LinkSpeedSupported: 7, PortState: mad.PortStateActive,
		PortPhysicalState: mad.PortPhysicalStateLinkUp, LinkDownDefaultState: 2, LinkSpeedEnabled: 7, NeighborMTU: 5, VLCap: 4, VLHighLimit: 4,
		VLArbitrationHighCap: 8, VLArbitrationLowCap: 8, MTUCap: 5, VLStallCount: 7, HOQLife: 7, OperationalVLs: 4, PartitionEnforcementInbound: true,
		PartitionEnforcementOutbound: true, PKeyViolations: 3, GUIDCap: 32, SubnetTimeOut: 18, RespTimeValue: 16, LocalPhyErrors: 8, OverrunErrors: 8,
		MaxCreditHint: 85, CapabilityMask2: 10, LinkSpeedExtActive: mad.LinkSpeedExtNDR, LinkSpeedExtSupported: 15, LinkSpeedExtEnabled: 15,
	}
	if d := cmp.Diff(wantInfo, info); d != "" {
		t.Errorf("PortInfo (-want +got):\n%s", d)
	}
	sw := *f.NodeByGUID(0xa0)[0].SwitchInfo()
	if want := (mad.SwitchInfo{LinearFDBCap: 49152, MulticastFDBCap: 16384, LinearFDBTop: 48, DefaultPort: 255, DefaultMulticastPrimaryPort: 255, DefaultMulticastNotPrimaryPort: 255,
		LifeTimeValue: 18, PartitionEnforcementCap: 32, InboundEnforcementCap: true, OutboundEnforcementCap: true, FilterRawInboundCap: true, FilterRawOutboundCap: true,
		EnhancedPort0: true, MulticastFDBTop: 0xbfff}); sw != want {
		t.Errorf("SwitchInfo %+v", sw)
	}
	var counters mad.PortCounters
	var details mad.PortXmitDiscardDetails
	answers := f.Answers()
	if len(answers) != 2 || answers[0].Port != 1 || answers[1].Port != 2 || answers[1].ID != mad.AttrPortXmitDiscardDetails.ID {
		t.Fatalf("answers %+v", answers)
	}
	counters.Decode(answers[0].Data)
	details.Decode(answers[1].Data)
	if want := (mad.PortCounters{PortSelect: 1, SymbolErrorCounter: 7, LinkDownedCounter: 2, PortXmitData: 1<<32 - 1, PortRcvData: 255, PortXmitPkts: 5, PortRcvPkts: 6}); counters != want {
		t.Errorf("PortCounters %+v", counters)
	}
	if want := (mad.PortXmitDiscardDetails{PortSelect: 2, PortInactiveDiscards: 9, PortNeighborMTUDiscards: 8, PortSwLifetimeLimitDiscards: 7, PortSwHOQLifetimeLimitDiscards: 6}); details != want {
		t.Errorf("PortXmitDiscardDetails %+v", details)
	}
}

// TestDBFields: each column has a field, and no field two.
func TestDBFields(t *testing.T) {
	for _, a := range dbAttributes {
		fields := map[string]bool{}
		for _, word := range strings.Fields(a.columns + " " + a.maybe) {
			column, field, apart := strings.Cut(word, "=")
			if !apart {
				field = mad.SnakeName(column)
			}
			if field == "" && a.attr == mad.AttrPortInfo && strings.HasPrefix(column, "LinkSpeed") {
				continue
			}
			if a.attr.Field(field) == nil || fields[field] {
				t.Errorf("%s: column %s is field %q", a.attr.Name, column, field)
			}
			fields[field] = true
		}
	}
}

func TestDBErrors(t *testing.T) {
	const nodes = "START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,2\n0xb0,1,1\nEND_NODES\n"
	for in, want := range map[string]string{
		"START_NODES\nNodeGUID,NodeType,NumPorts\nEND_NODES\n": "db: no section NODES with a line for each node",
		"START_X\n":                "db:1: expected END_X: the file is cut short",
		"START_NODES\n":            "db:1: expected END_NODES: the file is cut short",
		"START_NODES\nEND_NODES\n": "db:2: expected END_NODES: the file is cut short",
		"START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,2\n":                                                                                   "db:3: expected END_NODES: the file is cut short",
		"START_NODES\nNodeGUID,NodeType\n":                                                                                                      `db:2: expected column NumPorts in section NODES: "NodeGUID,NodeType"`,
		"START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,255\n":                                                                                 `db:3: expected a number up to 254 in column NumPorts, not "255"`,
		"START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,N/A\n":                                                                                 `db:3: expected a number up to 254 in column NumPorts, not "N/A"`,
		"START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2\n":                                                                                     `db:3: expected a number up to 254 in column NumPorts, not ""`,
		"START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,1,1\n":                                                                                 `db:3: expected 3 fields, as many as section NODES has columns, not 4: "0xa0,2,1,1"`,
		"START_NODES\nNodeGUID,NodeType,NumPorts\nhost,2,1\n":                                                                                   `db:3: expected a number up to 18446744073709551613 in column NodeGUID, not "host"`,
		"START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,1\n0xa0,2,1\n":                                                                         "db:4: expected one node with GUID 0x00000000000000a0",
		nodes + "START_PORTS\nNodeGuid,PortNum\n0xa0,3\nEND_PORTS\n":                                                                            "db:8: expected a port that node 0x00000000000000a0 has, and one line for it, not port 3",
		nodes + "START_PORTS\nNodeGuid,PortNum\n0xa0,1\n0xa0,1\nEND_PORTS\n":                                                                    "db:9: expected a port that node 0x00000000000000a0 has, and one line for it, not port 1",
		nodes + "START_PORTS\nNodeGuid,PortNum\n0xc0,1\nEND_PORTS\n":                                                                            "db:8: expected the GUID of a node of section NODES, above, in column NodeGuid, not 0x00000000000000c0",
		nodes + "START_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n0xa0,1,0xb0,1\n0xa0,1,0xa0,2\nEND_LINKS\n":                                 "db:9: expected ports that are free: port 1 of 0x00000000000000a0 is already connected to port 1 of 0x00000000000000b0",
		nodes + "START_PORTS\n" + dbPortColumns + strings.Replace(fmt.Sprintf(dbPortRow, "0xa0", "0xa0", 1, 1), ",8,8,16,", ",8,16,16,", 1):     `db:8: expected a number that local_phy_error of PortInfo can have in column LocalPhyError, not "16"`,
		nodes + "START_PORTS\n" + dbPortColumns + strings.Replace(fmt.Sprintf(dbPortRow, "0xa0", "0xa0", 1, 1), ",0x800,", ",0x8800000000,", 1): `db:8: expected four bytes of speeds in column LinkSpeedActv, not "0x8800000000"`,
		nodes + "START_PORTS\n" + dbPortColumns + strings.Replace(fmt.Sprintf(dbPortRow, "0xa0", "0xa0", 1, 1), ",0x800,", ",0x80,", 1):         `db:8: expected speeds that PortInfo has in column LinkSpeedActv, not "0x80"`,
		nodes + "START_PM_INFO\n" + dbPMColumns + "0xb0,0xb0,1,18446744073709551616" + strings.Repeat(",0", 20) + "\nEND_PM_INFO\n":             `db:8: expected a number that link_downed_counter of PortCounters can have in column LinkDownedCounter, not "18446744073709551616"`,
	} {
		_, err := Load(strings.NewReader(in), "db", nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", in, err, want)
		}
	}
	f, err := Load(strings.NewReader(nodes), "db", nil)
	if err != nil {
		t.Fatal(err)
	}
	const lacks = `left out: db has no section LINKS
left out: db has no section PM_INFO
left out: db has no section PORTS
left out: db has no section SWITCHES
`
	if got := describe(f); !strings.HasSuffix(got, lacks) || f.NodeByGUID(0xa0)[0].Port(1).Info() != nil || f.NodeByGUID(0xa0)[0].SwitchInfo() != nil {
		t.Errorf("got %s", got)
	}
}
