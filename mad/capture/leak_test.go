package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// secret are the identities of a recording.
const (
	secretName   = "zeus42n0003"
	secretGUID   = uint64(0x0002c903_00123456)
	secretPrefix = uint64(0xfec0_0102_0304_0506)
)

// secretRecording returns a recording of a node with the identities, and of other datagrams.
func secretRecording(t testing.TB, more ...[]byte) []byte {
	t.Helper()
	port := localPort()
	at := &engine.Address{LID: 3, QP: 1}
	description := answerOf(mad.AttrNodeDescription)
	copy(description[mad.SMPDataOffset:], secretName+" HCA-1")
	info := answerOf(mad.AttrNodeInfo)
	(&mad.NodeInfo{NodeGUID: mad.GUID(secretGUID)}).Encode(info[mad.SMPDataOffset:])
	portInfo := answerOf(mad.AttrPortInfo)
	(&mad.PortInfo{GIDPrefix: secretPrefix}).Encode(portInfo[mad.SMPDataOffset:])
	var list []erf.Packet
	for i, m := range append([][]byte{description, info, portInfo}, more...) {
		list = append(list, packet(ifaceReceived, time.Unix(int64(i), 0), at, &port, m))
	}
	return pcap(t, list...)
}

// leaksOf returns what an anonymous recording still has of the identities.
func leaksOf(t testing.TB, recording []byte) (found []string) {
	t.Helper()
	a, err := Anonymize(recording)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{
		"name": []byte(secretName), "part of a name": []byte(secretName[:6]), "GUID": binary.BigEndian.AppendUint64(nil, secretGUID),
		"GUID in the other order": binary.LittleEndian.AppendUint64(nil, secretGUID), "prefix": binary.BigEndian.AppendUint64(nil, secretPrefix),
	} {
		if bytes.Contains(a.Recording, text) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// TestUndecoded: what does not decode as a whole is zero.
func TestUndecoded(t *testing.T) {
	c := table(mad.AttrNodeRecord)
	record := make([]byte, 112)
	node := mad.NodeRecord{NodeInfo: mad.NodeInfo{NodeGUID: mad.GUID(secretGUID)}}
	node.Encode(record)
	copy(record[mad.AttrNodeRecord.Field("node_string").Offset/8:], secretName+" HCA-1")
	single := bytes.Clone(c.MAD[:]) // a table without RMPP ends within its second record
	(&mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGetTableResp, Attribute: mad.AttrNodeRecord.ID}).Put(single)
	clear(single[mad.RMPPOffset:])
	binary.BigEndian.PutUint16(single[mad.SAAttrOffsetOffset:], 112/8)
	copy(single[mad.SADataOffset:], bytes.Repeat(record, 2))
	short := bytes.Clone(single) // of which only the beginning of the name is left
	clear(short[len(short)-32:])
	unknown := answerOf(mad.AttrNodeInfo)
	(&mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodGetResp, Attribute: 0xff77}).Put(unknown)
	copy(unknown[mad.SMPDataOffset+3:], secretName[:6])
	vendor := make([]byte, mad.Size)
	(&mad.Header{Class: 0x35, ClassVersion: 1, Method: mad.MethodGetResp, Attribute: 0x1234}).Put(vendor)
	copy(vendor[100:], secretName[:6])
	tail := answerOf(mad.AttrNodeInfo)
	copy(tail[mad.SMPDataOffset+mad.AttrNodeInfo.Size+1:], secretName[:6])
	var lost [][]byte // a record of more than one segment, without the first
	for i, s := range segments(engine.Datagram{MAD: c.MAD[:]}, bytes.Repeat([]byte(secretName[:6]+"\x00"), 100)) {
		(&mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGetResp, Attribute: mad.AttrNodeRecord.ID}).Put(s.MAD)
		if i > 0 {
			lost = append(lost, s.MAD)
		}
	}
	for what, more := range map[string][][]byte{
		"an incomplete record": {single}, "the beginning of a name": {short}, "an unknown attribute": {unknown}, "an unknown class": {vendor},
		"what follows an attribute": {tail}, "a record without its beginning": lost,
	} {
		if found := leaksOf(t, secretRecording(t, more...)); found != nil {
			t.Errorf("%s: %v", what, found)
		}
	}
}

// spellings returns forms in which data may have an identity.
func spellings() map[string][]byte {
	forms := map[string][]byte{}
	guid := binary.BigEndian.AppendUint64(nil, secretGUID)
	gid := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, secretPrefix), secretGUID)
	word := func(name string, b []byte) {
		forms[name] = b
		reversed := slices.Clone(b)
		slices.Reverse(reversed)
		forms[name+" reversed"] = reversed
		for _, n := range []int{2, 4} {
			swapped := bytes.Clone(b)
			for len(swapped)%n != 0 {
				swapped = append(swapped, 0)
			}
			for part := range slices.Chunk(swapped, n) {
				slices.Reverse(part)
			}
			forms[fmt.Sprintf("%s in swapped words of %d bytes", name, n)] = swapped
		}
		var little, big []byte
		for _, c := range b {
			little, big = append(little, c, 0), append(big, 0, c)
		}
		forms[name+" in UTF-16LE"], forms[name+" in UTF-16BE"] = little, big
	}
	word("name", []byte(secretName))
	word("name in capitals", []byte(strings.ToUpper(secretName)))
	word("GUID as text", []byte("0002c90300123456"))
	word("GUID with 0x", []byte("0x0002C90300123456"))
	word("GUID in groups", []byte("0002:c903:0012:3456"))
	word("GUID in bytes", []byte("00:02:c9:03:00:12:34:56"))
	word("GID as text", []byte("fec0:102:304:506:2:c903:12:3456"))
	forms["GUID"], forms["GID"] = guid, gid
	slices.Reverse(guid[:4])
	forms["GUID in two words"] = append(slices.Clone(guid[:4]), binary.LittleEndian.AppendUint32(nil, uint32(secretGUID&0xffffffff))...)
	forms["GUID"] = binary.BigEndian.AppendUint64(nil, secretGUID)
	reversed := slices.Clone(gid)
	slices.Reverse(reversed)
	forms["GID reversed"] = reversed
	return forms
}

// TestLeaks: identities in data without a layout are found, wherever they are and however they are
// written, and are zero in an anonymous recording.
func TestLeaks(t *testing.T) {
	a, err := Anonymize(secretRecording(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check("text", "node-0001 node-0002 HCA-1 MT4123 0x0002c9a000000120 fe80::2:c9a0:0:1 "+secretName+"4 x"+secretName); err != nil {
		t.Errorf("what is not an identity: %v", err)
	}
	for name, form := range spellings() {
		for _, at := range []int{0, 8} {
			text := slices.Concat(make([]byte, at), form, make([]byte, 8-len(form)%8))
			if err := a.Check("text", string(text)); err == nil || !strings.HasPrefix(err.Error(), "text: a ") || !strings.HasSuffix(err.Error(), " is not replaced; nothing is saved") {
				t.Errorf("%s at %d: %v", name, at, err)
			}
		}
		if len(form) > 56 {
			continue
		}
		m := answerOf(mad.AttrVendorDiag)
		copy(m[mad.SMPDataOffset+8:], form)
		file := secretRecording(t, m)
		if !bytes.Contains(file, form) {
			t.Fatalf("%s is not in the recording", name)
		}
		out, err := Anonymize(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if bytes.Contains(out.Recording, form) {
			t.Errorf("%s is in the recording", name)
		}
		if err := out.leaks.checkRecording(file); err == nil {
			t.Errorf("%s, and all others, are not found in the original", name)
		}
	}
}

// TestLeaksCommon: names that models, or replacements, have too do not make a recording useless.
func TestLeaksCommon(t *testing.T) {
	for _, name := range []string{"node", "NODE-0001", "text", "0001", "HCA-1", "mlx5_0", "switch", "x", "", "node-0001 HCA-1", "text-0001"} {
		m := answerOf(mad.AttrNodeDescription)
		copy(m[mad.SMPDataOffset:], name)
		a, err := Anonymize(secretRecording(t, m))
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got, guid := a.Node(secretName+" HCA-1", mad.GUID(secretGUID)); !strings.HasPrefix(got, "node-") || !strings.HasSuffix(got, " HCA-1") || !bytes.Contains(a.Recording, []byte(got)) || uint64(guid) == secretGUID {
			t.Errorf("%q: the other node is %q, %v", name, got, guid)
		}
	}
}
