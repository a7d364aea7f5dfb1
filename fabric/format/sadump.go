package format

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindSADump is the data base of OpenSM's subnet administrator.
const KindSADump FormatName = "opensm-sa"

var saDump = fileFormat{
	kind:       KindSADump,
	about:      "records of OpenSM's subnet administrator (opensm-sa.dump), which are read with the topology in the same directory or archive",
	file:       "`opensm-sa.dump` of OpenSM: multicast groups and members, services, subscriptions, alias GUIDs, for the topology in the same directory or archive",
	beginnings: []string{"MC Group 0x", "mcm_port: port_gid=", "InformInfo Record: subscriber_gid=", "Service Record: id=", "GUIDInfo Record: base_guid="},
	answers:    readSADump,
	same: func(f *fabric.Fabric) bool {
		return slices.ContainsFunc(f.AnswersOf(fabric.NoNode), func(a fabric.Answer) bool { return a.ID == mad.AttrMCMemberRecord.ID })
	},
}

// maxRecords is how many records are read.
const maxRecords = 1 << 20

// saReader reads the file: lines of a record, with words NAME=VALUE in hexadecimal (opensm osm_sa.c, sa_dump_one_mgrp,
// sa_dump_one_inform, sa_dump_one_service, sa_dump_one_port_guidinfo).
type saReader struct {
	*lines
	words   map[string]string // of the line
	answers []fabric.Answer
	group   []byte // the MCMemberRecord of the group; nil: no group yet
	alone   bool   // the group has no member yet
}

// readSADump makes the records that the subnet administrator would return to a trusted request. The keys of
// services are left out.
func readSADump(in io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	d := &saReader{lines: newLines(in, name)}
	ports := map[mad.GUID]*fabric.Port{}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.GUID() != 0 {
			ports[p.GUID()] = p
		}
	}
	strangers, stray := 0, 0
	for d.next() {
		text := string(d.text)
		kind, _, _ := strings.Cut(text, ":")
		d.keyed = kind == "Service Record"
		d.split(text)
		switch {
		case strings.HasPrefix(kind, "MC Group"):
			d.multicastGroup()
		case kind == "mcm_port" && d.group != nil:
			d.member()
		case kind == "Service Record":
			d.service(text)
		case kind == "InformInfo Record":
			d.subscription()
		case kind == "GUIDInfo Record":
			guid := mad.GUID(d.number("base_guid", 64))
			block := d.number("block_num", 8)
			a := fabric.Answer{Class: mad.ClassSubn, ID: mad.AttrGUIDInfo.ID, Modifier: uint32(block), Data: make([]byte, mad.AttrGUIDInfo.Size)}
			for i := range 8 {
				binary.BigEndian.PutUint64(a.Data[8*i:], d.number(fmt.Sprintf("guid%d", i), 64))
			}
			if p := ports[guid]; p == nil {
				strangers++
			} else {
				a.Node, a.Port = int32(p.Node().ID()), int16(p.Num())
				d.answers = append(d.answers, a)
			}
		case len(text) > 0 && text[0] != '#':
			stray++
		}
		if len(d.answers) > maxRecords && d.err == nil {
			d.fail("at most %d records", maxRecords)
		}
	}
	d.endGroup()
	if d.err == nil && d.cut {
		d.fail("the end of the last line: the file is cut short")
	}
	r := fabric.Reading{Answers: d.answers}
	for _, x := range []struct {
		n    int
		text string
	}{{strangers, "left out: the topology does not have their ports"}, {stray, "not read: no record begins like this"}} {
		if x.n > 0 {
			r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s: %s %s", name, plural.Count(x.n, "line", "lines"), x.text)})
		}
	}
	return r, d.err
}

// split takes the words of a line. Of two with one name the first counts.
func (d *saReader) split(text string) {
	d.words = map[string]string{}
	for word := range strings.FieldsSeq(text) {
		if name, value, ok := strings.Cut(word, "="); ok {
			if _, twice := d.words[name]; !twice {
				d.words[name] = value
			}
		}
	}
}

// number returns a number of at most so many bits.
func (d *saReader) number(name string, bits int) uint64 {
	text, ok := d.words[name]
	v, rest, isHex := hex([]byte(text))
	if !ok || !isHex || len(rest) > 0 || bits < 64 && v>>bits != 0 {
		if d.err == nil {
			d.fail("%s=, with a hexadecimal number of %d bits: %q", name, bits, d.shown())
		}
		return 0
	}
	return v
}

// bytes puts a value of 0x and digits, or several with colons between them, into data.
func (d *saReader) bytes(name string, data []byte) {
	text := strings.NewReplacer("0x", "", ":", "").Replace(d.words[name])
	ok := len(text) == 2*len(data)
	for i := 0; ok && i < len(data); i++ {
		v, rest, digits := hexDigits([]byte(text[2*i : 2*i+2]))
		data[i], ok = byte(v), digits && len(rest) == 0
	}
	if !ok && d.err == nil {
		d.fail("%s=, with %d hexadecimal digits: %q", name, 2*len(data), d.shown())
	}
}

// add takes a record of the subnet administrator.
func (d *saReader) add(attr *mad.Attribute, data []byte) {
	if d.err == nil {
		d.answers = append(d.answers, fabric.Answer{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: attr.ID, Data: data})
	}
}

// multicastGroup takes a group, whose members follow.
func (d *saReader) multicastGroup() {
	d.endGroup()
	attr := mad.AttrMCMemberRecord
	data := make([]byte, attr.Size)
	d.bytes("mgid", data[:16])
	d.bytes("port_gid", data[16:32])
	for _, x := range []struct {
		name         string
		offset, bits int
	}{{"qkey", 32, 32}, {"mlid", 36, 16}, {"mtu", 38, 8}, {"tclass", 39, 8}, {"pkey", 40, 16}, {"rate", 42, 8}, {"pkt_life", 43, 8}, {"sl_flow_hop", 44, 32}} {
		v := d.number(x.name, x.bits)
		for i := range x.bits / 8 {
			data[x.offset+i] = byte(v >> (x.bits - 8 - 8*i))
		}
	}
	d.membership(data)
	d.group, d.alone = data, true
}

// membership puts what groups and members have into a record.
func (d *saReader) membership(data []byte) {
	data[48] = byte(d.number("scope_state", 8))
	mad.AttrMCMemberRecord.Field("proxy_join").SetUint(data, min(1, d.number("proxy_join", 8)))
}

// member takes a member of the group.
func (d *saReader) member() {
	data := slices.Clone(d.group)
	d.bytes("port_gid", data[16:32])
	d.membership(data)
	d.add(mad.AttrMCMemberRecord, data)
	d.alone = false
}

// endGroup adds a group without members.
func (d *saReader) endGroup() {
	if d.group != nil && d.alone {
		d.add(mad.AttrMCMemberRecord, d.group)
	}
	d.group = nil
}

// service takes a ServiceRecord, without its key. The name, in quotes, may have any text.
func (d *saReader) service(text string) {
	attr := mad.AttrServiceRecord
	data := make([]byte, attr.Size)
	before, rest, ok := strings.Cut(text, " name='")
	i := strings.LastIndex(rest, "' data8=")
	if !ok || i < 0 {
		d.fail("name='...' and data8= of a service: %q", d.shown())
		return
	}
	d.split(before + rest[i+1:])
	attr.Field("service_id").SetUint(data, d.number("id", 64))
	attr.Field("service_p_key").SetUint(data, d.number("pkey", 16))
	attr.Field("service_lease").SetUint(data, d.number("lease", 32))
	d.bytes("gid", attr.Field("service_gid").Bytes(data))
	name := attr.Field("service_name").Bytes(data)
	copy(name[:len(name)-1], rest[:i])
	const first = 112 // byte of ServiceData8
	for i, field := range []string{"data8", "data16", "data32", "data64"} {
		d.bytes(field, data[first+16*i:first+16*(i+1)])
	}
	d.add(attr, data)
}

// subscription takes an InformInfoRecord.
func (d *saReader) subscription() {
	attr := mad.AttrInformInfoRecord
	data := make([]byte, attr.Size)
	d.bytes("subscriber_gid", data[:16])
	d.bytes("gid", data[24:40])
	for _, x := range []struct {
		name         string
		offset, bits int
	}{{"subscriber_enum", 16, 16}, {"lid_range_begin", 40, 16}, {"lid_range_end", 42, 16}, {"is_generic", 46, 8}, {"subscribe", 47, 8}, {"trap_type", 48, 16}, {"trap_num", 50, 16}, {"qpn_resp_time_val", 52, 32}, {"node_type", 57, 24}} {
		v := d.number(x.name, x.bits)
		for i := range x.bits / 8 {
			data[x.offset+i] = byte(v >> (x.bits - 8 - 8*i))
		}
	}
	d.add(attr, data)
}
