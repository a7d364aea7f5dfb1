package format_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// saDumped is a file with a line of each kind, as OpenSM writes them.
const saDumped = `GUIDInfo Record: base_guid=0x0000000000000021 lid=0x0002 block_num=0x0 guid0=0x0000000000000021 guid1=0x0000000000000a21 guid2=0x0000000000000000 guid3=0x0000000000000000 guid4=0x0000000000000000 guid5=0x0000000000000000 guid6=0x0000000000000000 guid7=0x0000000000000000

GUIDInfo Record: base_guid=0x0000000000000099 lid=0x0009 block_num=0x0 guid0=0x0000000000000099 guid1=0x0000000000000000 guid2=0x0000000000000000 guid3=0x0000000000000000 guid4=0x0000000000000000 guid5=0x0000000000000000 guid6=0x0000000000000000 guid7=0x0000000000000000

MC Group 0xc000  (well known): mgid=0xff12401bffff0000:0x00000000ffffffff port_gid=0x0000000000000000:0x0000000000000000 qkey=0x00000b1b mlid=0xc000 mtu=0x84 tclass=0x00 pkey=0xffff rate=0x83 pkt_life=0x92 sl_flow_hop=0x10000002 scope_state=0x21 proxy_join=0x0

mcm_port: port_gid=0xfe80000000000000:0x0000000000000021 scope_state=0x21 proxy_join=0x0

mcm_port: port_gid=0xfe80000000000000:0x0000000000000010 scope_state=0x24 proxy_join=0x1

MC Group 0xc001 : mgid=0xff12401b80010000:0x00000000ffffffff port_gid=0x0000000000000000:0x0000000000000000 qkey=0x00000b1b mlid=0xc001 mtu=0x84 tclass=0x00 pkey=0x8001 rate=0x83 pkt_life=0x92 sl_flow_hop=0x00000000 scope_state=0x21 proxy_join=0x0

InformInfo Record: subscriber_gid=0xfe80000000000000:0x0000000000000021 subscriber_enum=0x0 InformInfo: gid=0x0000000000000000:0x0000000000000000 lid_range_begin=0xffff lid_range_end=0x0 is_generic=0x1 subscribe=0x1 trap_type=0xffff trap_num=0x40 qpn_resp_time_val=0x113 node_type=0xffffff rep_addr: lid=0x0002 path_bits=0x00 static_rate=0x00 remote_qp=0x01000000 remote_qkey=0x00000180 pkey_ix=0x0000 sl=0x00

Service Record: id=0x1000000000000001 gid=0xfe80000000000000:0x0000000000000021 pkey=0xffff lease=0xffffffff key=0x5ec7e75ec7e75ec7:0x5ec7e75ec7e75ec7 name='a's data8=0x11 service' data8=0x0102030405060708:0x090a0b0c0d0e0f10 data16=0x0001000200030004:0x0005000600070008 data32=0x0000000100000002:0x0000000300000004 data64=0x0000000000000001:0x0000000000000002 modified_time=0x1 lease_period=0xffffffff

`

// TestSADump: the records of OpenSM's dump are those of the subnet administrator, without keys of services.
func TestSADump(t *testing.T) {
	files := fstest.MapFS{"net.txt": {Data: []byte(twoNodes)}, "opensm-sa.dump": {Data: []byte(saDumped)}}
	f, err := format.LoadDir(files, "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range f.AnswersOf(fabric.NoNode) { // in no order
		attr := mad.Lookup(a.Class, a.ID)
		text := attr.Name
		for _, field := range map[string][]string{
			"MCMemberRecord":   {"mlid", "mtu", "rate", "packet_life_time", "sl", "hop_limit", "join_state", "proxy_join"},
			"ServiceRecord":    {"service_id", "service_p_key", "service_lease"},
			"InformInfoRecord": {"lid_range_begin", "type", "trap_number", "qpn", "resp_time_value", "producer_type"},
		}[attr.Name] {
			for i := range attr.Flat() {
				if x := &attr.Flat()[i]; mad.SnakeName(x.Name) == field {
					text += fmt.Sprintf(" %s=%d", field, x.Uint(a.Data))
				}
			}
		}
		switch attr.Name {
		case "MCMemberRecord":
			text += fmt.Sprintf(" port=%x", a.Data[24:32])
		case "ServiceRecord":
			text += fmt.Sprintf(" key=%x name=%q data=%x", attr.Field("service_key").Bytes(a.Data), attr.Field("service_name").Text(a.Data), a.Data[112:144])
		}
		got = append(got, text)
	}
	want := `InformInfoRecord lid_range_begin=65535 type=65535 trap_number=64 qpn=1 resp_time_value=19 producer_type=16777215
MCMemberRecord mlid=49152 mtu=4 rate=3 packet_life_time=18 sl=1 hop_limit=2 join_state=1 proxy_join=0 port=0000000000000021
MCMemberRecord mlid=49152 mtu=4 rate=3 packet_life_time=18 sl=1 hop_limit=2 join_state=4 proxy_join=1 port=0000000000000010
MCMemberRecord mlid=49153 mtu=4 rate=3 packet_life_time=18 sl=0 hop_limit=0 join_state=1 proxy_join=0 port=0000000000000000
ServiceRecord service_id=1152921504606846977 service_p_key=65535 service_lease=4294967295 key=00000000000000000000000000000000 name="a's data8=0x11 service" data=0102030405060708090a0b0c0d0e0f1000010002000300040005000600070008`
	slices.Sort(got)
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	alias := ""
	for _, a := range f.AnswersOf(f.NodeByGUID(0x20)[0].ID()) {
		if a.ID == mad.AttrGUIDInfo.ID && a.Class == mad.ClassSubn {
			alias = fmt.Sprintf("%d %x", a.Port, a.Data[8:16])
		}
	}
	if alias != "1 0000000000000a21" {
		t.Errorf("alias GUID %q", alias)
	}
	if texts := problemTexts(f); len(texts) != 1 || texts[0] != "d/opensm-sa.dump: 1 line left out: the topology does not have their ports" {
		t.Errorf("problems %q", texts)
	}

	for damaged, want := range map[string]string{
		strings.Replace(saDumped, "mtu=0x84", "mtu=0x184", 1):                  `opensm-sa.dump:5: expected mtu=, with a hexadecimal number of 8 bits`,
		strings.Replace(saDumped, "0x00000000ffffffff port", "0xffff port", 1): `opensm-sa.dump:5: expected mgid=, with 32 hexadecimal digits`,
		strings.Replace(saDumped, " lease=0xffffffff", " lease=", 1):           `opensm-sa.dump:15: expected lease=, with a hexadecimal number of 32 bits: "(not shown: it may hold a key)"`,
		strings.TrimRight(saDumped, "\n"):                                      `opensm-sa.dump:15: expected the end of the last line: the file is cut short`,
	} {
		files["opensm-sa.dump"] = &fstest.MapFile{Data: []byte(damaged)}
		f, err := format.LoadDir(files, "d", nil)
		if err != nil {
			t.Fatal(err)
		}
		if texts := strings.Join(problemTexts(f), "\n"); !strings.Contains(texts, want) || strings.Contains(texts, "5ec7e7") {
			t.Errorf("got %q, want %q", texts, want)
		}
		if len(f.AnswersOf(fabric.NoNode)) > 0 {
			t.Errorf("%s: records of a damaged file", want)
		}
	}
}

// TestManagerDump: subnet managers are read from OpenSM's data base; alone it is no topology.
func TestManagerDump(t *testing.T) {
	const dump = "START_INDEX_TABLE\nName , Offset\nEND_INDEX_TABLE\n\nSTART_SMS\nPortGUID           , LID, Priority, State\n0x0000000000000021 ,   2,       12, 3\n0x0000000000000099 ,   9,        0, 2\nEND_SMS\n\n" +
		"START_NODES\nNodeGUID, NodeType, NodeDesc\n0x0000000000000010, 2, sw, 1\nEND_NODES\n"
	if _, err := format.Load(strings.NewReader(dump), "x.dump", nil); err == nil || err.Error() != "x.dump: a data base of OpenSM (opensm-smdb.dump), which lacks the numbers of ports of nodes; name opensm-subnet.lst, or the directory with both" {
		t.Error(err)
	}
	files := fstest.MapFS{"net.txt": {Data: []byte(twoNodes)}, "opensm-smdb.dump": {Data: []byte(dump)}}
	f, err := format.LoadDir(files, "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, a := range f.Answers() {
		var i mad.SMInfo
		i.Decode(a.Data)
		got += fmt.Sprintf("%s %d %s %d %v;", f.Nodes()[a.Node].Name(), a.Port, i.GUID, i.Priority, i.SMState)
	}
	if got != "h 1 0x0000000000000021 12 master;" {
		t.Errorf("got %q", got)
	}
	want := []string{"d/opensm-smdb.dump is read for subnet managers (SMS); not read: NODES, which are in the topology or not used",
		"d/opensm-smdb.dump: 1 record was left out: the topology does not have its node or port"}
	if texts := problemTexts(f); !slices.Equal(texts, want) {
		t.Errorf("problems %q", texts)
	}
	files["opensm-smdb.dump"] = &fstest.MapFile{Data: []byte(dump[:180])}
	if f, err = format.LoadDir(files, "d", nil); err != nil {
		t.Fatal(err)
	}
	if texts := problemTexts(f); len(texts) != 1 || !strings.Contains(texts[0], "END_SMS: the file is cut short") {
		t.Errorf("problems %q", texts)
	}
}
