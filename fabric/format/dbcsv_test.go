package format

import (
	"fmt"
	"os"
	"slices"
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
left out: db: 1 section is kept as text: EXTENDED_NODE_INFO
left out: db: 3 columns of section PORTS kept as text: OOOSLMask, FECActv, RetransActv
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
	if len(answers) != 3 || answers[0].ID != mad.AttrPerfClassPortInfo.ID || answers[1].Port != 1 || answers[2].Port != 2 || answers[2].ID != mad.AttrPortXmitDiscardDetails.ID {
		t.Fatalf("answers %+v", answers)
	}
	var agent mad.ClassPortInfo
	agent.Decode(answers[0].Data)
	counters.Decode(answers[1].Data)
	details.Decode(answers[2].Data)
	if want := uint16(mad.PerfCapabilityMaskPortCountersXmitWaitSupported); agent.CapabilityMask != want || agent.CapabilityMask2 != 0 {
		t.Errorf("ClassPortInfo %+v", agent)
	}
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
		columns := a.columns + " " + a.maybe
		for _, set := range a.sets {
			columns += " " + set.columns
		}
		for _, word := range strings.Fields(columns) {
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
	const lacks = `cut short: db has no section PORTS; the file may be cut short
left out: db has no section PM_INFO
left out: db has no section SWITCHES
links are unknown: db has no section LINKS: links are unknown
`
	if got := describe(f); !strings.HasSuffix(got, lacks) || f.NodeByGUID(0xa0)[0].Port(1).Info() != nil || f.NodeByGUID(0xa0)[0].SwitchInfo() != nil {
		t.Errorf("got %s", got)
	}
}

// TestDBUnsupported: -1 is no value. A device that lacks single counters of an attribute of details
// sends 0 for them; a set of counters that it lacks is not announced; other attributes that lack a counter are left
// out.
func TestDBUnsupported(t *testing.T) {
	const nodes = "START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,3\nEND_NODES\nSTART_RUN_INFO\nDate\n\"2026-01-31 23:00:18 UTC +0000\"\nEND_RUN_INFO\n"
	const details = "PortLocalPhysicalErrors,PortMalformedPacketErrors,PortBufferOverrunErrors,PortDLIDMappingErrors,PortVLMappingErrors,PortLoopingErrors"
	f, err := Load(strings.NewReader(nodes+"START_PM_INFO\nNodeGUID,PortNumber,"+details+",PortXmitDataExtended,PortRcvDataExtended,PortXmitPktsExtended,PortRcvPktsExtended,PortUniCastXmitPkts,PortUniCastRcvPkts,PortMultiCastXmitPkts,PortMultiCastRcvPkts\n"+
		"0xa0,1,5,0,0,0,0,-1,9,8,7,6,-1,0,0,0\n"+
		"0xa0,2,-1,-1,-1,-1,-1,-1,9,-1,7,6,5,0,0,0\n"+
		"END_PM_INFO\n"), "db", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.CountersRead().UTC().String(); got != "2026-01-31 23:00:18 +0000 UTC" {
		t.Errorf("counters read %s", got)
	}
	var got []string
	for _, a := range f.Answers() {
		got = append(got, fmt.Sprintf("%s %d % x", mad.Lookup(a.Class, a.ID).Name, a.Port, a.Data[:12]))
	}
	want := []string{
		"ClassPortInfo 0 01 01 04 00 00 00 00 00 00 00 00 00",
		"PortRcvErrorDetails 1 00 01 00 00 00 05 00 00 00 00 00 00",
		"PortCountersExtended 1 00 01 00 00 00 00 00 00 00 00 00 00",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
	if got := describe(f); !strings.Contains(got, "left out: db does not know PortRcvDataExtended, so has no PortCountersExtended of that port or node\n") ||
		!strings.Contains(got, "left out: db has -1 as PortLoopingErrors, which the device does not count: 0 in PortRcvErrorDetails\n") {
		t.Errorf("got %s", got)
	}
}

// TestIbdiagnetFiles: the files of a plain run load, with the labels of ports.
func TestIbdiagnetFiles(t *testing.T) {
	for _, name := range []string{"ibdiagnet2.db_csv", "ibdiagnet2.ibnetdiscover"} {
		file, err := os.Open("testdata/ibdiagnet/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		f, err := Load(file, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.String(); !strings.HasPrefix(got, "fabric: 7 nodes (3 switches, 4 CAs), 8 links") {
			t.Errorf("%s: %s", name, got)
		}
		leaf, host := f.NodeByGUID(0x2c90300aa0040)[0].Port(61), f.NodeByGUID(0x2c90300bb0010)[0].Port(1)
		if leaf.PanelLabel() != "1/31/1" || leaf.Panel() != "cage 31/1" || host.PanelLabel() != "B26D0F0/0/0/1" || host.Panel() != "" || host.GUID() != 0x2c90300bb0010 {
			t.Errorf("%s: labels %q %q %q %q", name, leaf.PanelLabel(), leaf.Panel(), host.PanelLabel(), host.Panel())
		}
	}
}

// TestDBKeys: no message quotes a line that has a key, or a cell where a key may stand.
func TestDBKeys(t *testing.T) {
	const nodes = "START_NODES\nNodeGUID,NodeType,NumPorts\n0xa0,2,2\nEND_NODES\n"
	for _, in := range []string{
		"START_PORTS\nNodeGuid,PortNum,MKey\n0xa0,0x5ec7e7\nEND_PORTS\n",
		"START_PORTS\nNodeGuid,PortNum,MKey\n0xa0,1,0x5ec7e7,1\nEND_PORTS\n",
		"START_PORTS\nNodeGuid,PortNum,MKey\n0xa0,1,\"0x5ec7e7\nEND_PORTS\n",
		"START_PM_INFO\nNodeGUID,PortNumber,Sm_Key\n0xa0,0x5ec7e7\nEND_PM_INFO\n",
	} {
		if _, err := Load(strings.NewReader(nodes+in), "db", nil); err == nil || strings.Contains(err.Error(), "5ec7e7") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestDBRegisters: sections about devices become registers and tables, as live devices have them, and
// what nothing is made of is kept as text, without keys.
func TestDBRegisters(t *testing.T) {
	const in = "START_NODES\nNodeGUID,NodeType,NumPorts,PartitionCap\n0xa0,2,2,8\n0xb0,1,1,32\nEND_NODES\n" +
		"START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0xa0,46\n0xb0,N/A\n0xc0,9\nEND_TEMP_SENSING\n" +
		"START_NODES_INFO\nNodeGUID,HWInfo_DeviceID,FWInfo_PSID,FWInfo_Extended_Major,FWInfo_Extended_Minor,FWInfo_Extended_SubMinor,New\n0xa0,0xd2f2,MT_1,0x0000001f,0x000007dc,0x00000400,x\nEND_NODES_INFO\n" +
		"START_CABLE_INFO\nNodeGuid,PortGuid,PortNum,Vendor,PN,SN,LengthDesc,TypeDesc,Temperature\n0xa0,0xa0,2,\"V, Inc \",P,S1,\"3 m\",\"850 nm VCSEL\",58C\n0xb0,0xb0,1,V,P,S2,2 m,Copper cable- unequalized,0C\n0xa0,0xa0,9,V,P,S2,,,\nEND_CABLE_INFO\n" +
		"START_SM_INFO\nNodeGUID,PortGUID,PortNumber,GUID,Sm_Key,ActCount,SmState,Priority\n0xa0,0xa0,0,0xa0,0x5ec7e7,7,3,14\nEND_SM_INFO\n" +
		"START_PKEY\nNodeGUID,PortGUID,LocalPortNum,BlockNum,Index,PKey,Membership\n0xb0,0xb0,1,0,0,0x7fff,1\n0xb0,0xb0,1,0,3,0x0001,0\nEND_PKEY\n" +
		"START_WARNINGS_FW_CHECK\nScope,EventName,Summary,MKey\nNODE,X,\"a, b\",0x5ec7e7\nNODE,Y,\"a,0x5ec7e7\n1,2,3,4,0x5ec7e7\nEND_WARNINGS_FW_CHECK\nSTART_EMPTY\nEND_EMPTY\n"
	f, err := Load(strings.NewReader(in), "db", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range f.Answers() {
		if a.ID == mad.AttrAccessRegister.ID && a.Class == mad.ClassVendor0A {
			layout := mad.LookupRegister(uint16(a.Modifier))
			for i, fields := 0, layout.Resolve(a.Data, 0).Flat(); i < len(fields); i++ {
				switch f := &fields[i]; {
				case f.Type == mad.FieldTypeText && f.Text(a.Data) != "":
					got = append(got, fmt.Sprintf("%d/%d %s %s %q", a.Node, a.Port, layout.Name, f.Script, f.Text(a.Data)))
				case f.Type != mad.FieldTypeText && f.Count == 1 && f.Bits <= 64 && f.Uint(a.Data) != 0:
					got = append(got, fmt.Sprintf("%d/%d %s %s %v", a.Node, a.Port, layout.Name, f.Script, f.Number(a.Data, 0)))
				}
			}
			continue
		}
		got = append(got, fmt.Sprintf("%d/%d %s %#x % x", a.Node, a.Port, mad.Lookup(a.Class, a.ID).Name, a.Modifier, a.Data[:24]))
	}
	want := []string{
		"0/-1 GeneralInfo 0x4 00 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
		"0/0 SMInfo 0x0 00 00 00 00 00 00 00 a0 00 00 00 00 00 00 00 00 00 00 00 07 e3 00 00 00",
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no %s in\n%s", w, strings.Join(got, "\n"))
		}
	}
	for _, w := range []string{
		"0/0 MTMP temperature 46", "0/0 MGIR ext_fw_minor 2012", `0/0 MGIR psid "MT_1"`, `0/2 PDDR vendor_name "V, Inc"`, `0/2 PDDR vendor_sn "S1"`, "0/2 PDDR cable_length 3", "0/2 PDDR temperature 58",
		"0/2 PDDR monitor_cap_mask 1", "0/2 PDDR cable_type 2", "1/1 PDDR cable_type 3",
		"1/1 P_KeyTable 0x0 ff ff 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
	} {
		if !slices.Contains(got, w) {
			t.Errorf("no %s in\n%s", w, strings.Join(got, "\n"))
		}
	}
	if text := fmt.Sprint(f.Sections()); strings.Contains(text, "5ec7e7") || !strings.Contains(text, "WARNINGS_FW_CHECK [Scope EventName Summary] [[NODE X a, b]]") {
		t.Errorf("sections %s", text)
	}
	if text := describe(f); !strings.Contains(text, "db: 1 column of section NODES_INFO kept as text: New\n") || !strings.Contains(text, "db: 2 lines of sections not kept") {
		t.Errorf("problems %s", text)
	}
}

// TestDBDeviceSections: sections of plug-ins and of NVIDIA's attributes become what live devices answer.
func TestDBDeviceSections(t *testing.T) {
	for i := range dbRegisters() {
		r := &dbRegisters()[i]
		for word := range strings.FieldsSeq(r.columns + " " + r.selects) {
			if _, field, _ := strings.Cut(word, "="); field != "" && r.attr.Field(field) == nil {
				t.Errorf("section %s: %s has no field %s", r.section, r.attr.Name, field)
			}
		}
	}
	const in = "START_NODES\nNodeGUID,NodeType,NumPorts,DeviceID\n0xa0,2,2,54002\n0xb0,1,1,4129\nEND_NODES\n" +
		"START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0xa0,46\nEND_TEMP_SENSING\n" +
		"START_TEMPERATURE_SENSORS\nNodeGuid,SensorIndex,Temperature,MaxTemperature\n0xa0,0,44,50\n0xa0,3,51,60\nEND_TEMPERATURE_SENSORS\n" +
		"START_FANS_SPEED\nNodeGUID,FanIndex,FanSpeed,MinSpeed\n0xa0,0,9000,1\n0xa0,2,0,1\n0xa0,99,7,1\nEND_FANS_SPEED\n" +
		"START_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState,FanState\n0xa0,0,Yes,OK,OK\n0xa0,1,No,N/A,N/A\n0xa0,2,Yes,OK,OK\nEND_POWER_SUPPLIES\n" +
		"START_GENERAL_INFO_SMP\nNodeGUID,FWInfo_Extended_Major,FWInfo_Extended_Minor,FWInfo_Extended_SubMinor,CapabilityMask_0,CapabilityMask_1,CapabilityMask_2,CapabilityMask_3\n" +
		"0xa0,0x1f,0x1,0x2,0x2,0x0,0x0,0x0\n0xb0,0x1c,0x7dc,0x400,0x00000200,0x0,0x0,0x0\nEND_GENERAL_INFO_SMP\n" +
		"START_NODES_INFO\nNodeGUID,HWInfo_DeviceID,FWInfo_PSID,FWInfo_Extended_Major\n0xa0,0xd2f2,MT_1,0x20\nEND_NODES_INFO\n" +
		"START_EXTENDED_PORT_INFO\nNodeGuid,PortGuid,PortNum,UnhealthyReason,IsSpecialPort,SpecialPortType,CapabilityMask\n0xa0,0xa0,1,0x06,1,1,0x0200\nEND_EXTENDED_PORT_INFO\n" +
		"START_AR_INFO\nNodeGUID,e,fr_enabled,group_top,by_transport_disable\n0xa0,1,1,7,9\nEND_AR_INFO\n" +
		"START_VPORTS\nNodeGuid,PortGUID,PortNum,VPortIndex,VPortGuid,VPortLid,VPortState\n0xb0,0xb0,1,0,0xb1,164,4\n0xb0,0xb0,1,3,0xb2,0,2\nEND_VPORTS\n" +
		"START_PHY_DB12\nNodeGuid,PortGuid,PortNum,Version,field22,field23,field24,field26\n0xa0,0xa0,1,1,V,P12,A,S12\n0xa0,0xa0,2,1,V,P12,A,S13\nEND_PHY_DB12\n" +
		"START_CABLE_INFO\nNodeGuid,PortGuid,PortNum,Vendor,PN,SN\n0xa0,0xa0,2,V,PC,S13\nEND_CABLE_INFO\n"
	f, err := Load(strings.NewReader(in), "db", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range f.Answers() {
		layout := mad.Lookup(a.Class, a.ID)
		if layout == mad.AttrAccessRegister {
			layout = mad.LookupRegister(uint16(a.Modifier))
		}
		line := fmt.Sprintf("%d/%d %s %#x", a.Node, a.Port, layout.Name, a.Modifier)
		for _, x := range layout.Resolve(a.Data, 0).Flat() {
			switch {
			case x.Type == mad.FieldTypeText && x.Text(a.Data) != "":
				line += " " + x.Script + "=" + x.Text(a.Data)
			case x.Bits > 64 && layout.Name == "MSPS":
				line += fmt.Sprintf(" %x", x.Bytes(a.Data)[:8])
			case x.Type != mad.FieldTypeText && x.Count == 1 && x.Bits <= 64 && x.Uint(a.Data) != 0:
				line += fmt.Sprintf(" %s=%v", x.Script, x.Number(a.Data, 0))
			}
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := []string{
		"0/-1 GeneralInfo 0x4", "0/0 AdaptiveRoutingInfo 0x0 fr_enabled=1 e=1 group_top=7", "0/0 MFCR 0x9001 tacho_active=5",
		"0/0 MFSM 0x9003 rpm=9000", "0/0 MFSM 0x9003 tacho=2", "0/0 MGIR 0x9020 device_id=54002 psid=MT_1 ext_fw_major=32",
		"0/0 MSPS 0x900d 5000001000000002 4000000000000003", "0/0 MTMP 0x900a sensor_index=3 temperature=51 max_temperature=60", "0/0 MTMP 0x900a temperature=46",
		"0/1 ExtendedPortInfo 0x1 unhealthy_reason=6 capability_mask=512 is_special_port=1 special_port_type=1",
		"0/1 PDDR 0x5031 local_port=1 pnat=1 page_select=3 vendor_name=V vendor_pn=P12 vendor_rev=A vendor_sn=S12", "0/2 PDDR 0x5031 local_port=2 pnat=1 page_select=3 vendor_name=V vendor_pn=PC vendor_sn=S13",
		"1/-1 GeneralInfo 0x4", "1/0 MGIR 0x9020 device_id=4129 ext_fw_major=28 ext_fw_minor=2012 ext_fw_sub_minor=1024",
		"1/1 VPortInfo 0x0 vport_state=4 lid_required=1 lid=164 port_guid=177", "1/1 VPortInfo 0x3 vport_state=2 port_guid=178", "1/1 VirtualizationInfo 0x1 vport_index_top=3 virtualization_enable=1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var virtual []string
	for _, v := range f.VirtualPorts() {
		virtual = append(virtual, fmt.Sprintf("%d %v %d", v.Port.Num(), v.GUID(), v.LID()))
	}
	if got, want := strings.Join(virtual, ", "), "1 0x00000000000000b1 164, 1 0x00000000000000b2 0"; got != want {
		t.Errorf("virtual ports %s, want %s", got, want)
	}
}
