package mad

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
	"fabsh/mad/internal/erf"
)

// tshark dissects what we encode, in requests and responses of every attribute,
// and must show in each field the value that we wrote.

// vector is one MAD in the capture.
type vector struct {
	mad    []byte
	layout *Attribute // what the test is about
	at     int        // where it stands in the MAD, bytes
}

func TestTshark(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.SplitSeq(tshark(t, "-G", "fields"), "\n") {
		if f := strings.Split(line, "\t"); len(f) > 2 && f[0] == "F" {
			known[f[2]] = true
		}
	}

	vectors := makeVectors(rand.New(rand.NewPCG(5, 6)))
	capture := filepath.Join(t.TempDir(), "mads.pcap")
	writeCapture(t, capture, vectors)

	// A column for each name that tshark knows.
	var columns []string
	args := []string{"-r", capture, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;", "-E", "separator=/t"}
	for _, a := range tables() {
		for i := range a.Flat() {
			for _, name := range namesOf(a, &a.Flat()[i]) {
				name, _, _ = strings.Cut(name, "#")
				if known[name] && !slices.Contains(columns, name) {
					columns = append(columns, name)
					args = append(args, "-e", name)
				}
			}
		}
	}
	for _, name := range frame {
		columns = append(columns, name)
		args = append(args, "-e", name)
	}
	rows := strings.Split(strings.TrimSuffix(tshark(t, args...), "\n"), "\n")
	if len(rows) != len(vectors) {
		t.Fatalf("%d packets dissected of %d", len(rows), len(vectors))
	}

	bad := map[*Field]string{} // what tshark made of it
	for i, row := range rows {
		v := vectors[i]
		shown := map[string][]string{}
		for c, cell := range strings.Split(row, "\t") {
			if cell != "" {
				shown[columns[c]] = strings.Split(cell, ";")
			}
		}
		got := map[string]uint64{}
		for _, name := range frame {
			for _, n := range numbers(shown[name]) {
				got[name] = n
			}
		}
		if d := cmp.Diff(frameOf(v.mad), got); d != "" {
			t.Fatalf("packet %d: headers (-ours +tshark):\n%s", i+1, d)
		}
		data := v.mad[v.at:]
		for i := range v.layout.Flat() {
			f := &v.layout.Flat()[i]
			if bad[f] != "" {
				continue
			}
			if why := compareShown(f, namesOf(v.layout, f), shown, data); why != "" {
				h := ParseHeader(v.mad)
				bad[f] = fmt.Sprintf("%v %s: %s", h.Class, h.Method.Name(h.Class, h.ClassVersion), why)
			}
		}
	}
	report := t.Errorf
	if version := tshark(t, "--version"); !strings.Contains(version, " "+unknownToVersion) {
		report = t.Logf // a later one may have learned something
	}
	used := map[string]bool{}
	for _, a := range tables() {
		if !slices.ContainsFunc(vectors, func(v vector) bool { return v.layout == a }) && a.Class == 0 {
			continue // part of others
		}
		if isUnknown(a) || a.Class != 0 && !dissected(a) {
			checkUnknownLayout(t, a, known)
			continue
		}
		for i := range a.Flat() {
			f := &a.Flat()[i]
			id, own, listed := a.Name+"."+f.Name, fieldID(a, f), false
			if owner, _, _ := strings.Cut(own, "."); slices.ContainsFunc(tables(), func(a *Attribute) bool { return a.Name == owner && isUnknown(a) }) {
				continue
			}
			for _, name := range []string{id, own} {
				if unknownFields[name] != "" {
					listed, used[name] = true, true
				}
			}
			if bad[f] != "" && !listed {
				t.Errorf("%s: %s", own, bad[f])
			} else if bad[f] == "" && listed {
				report("%s: tshark sees it right: take it off the list", own)
			}
		}
	}
	for id := range unknownFields {
		if !used[id] {
			t.Errorf("%s is listed, but there is no such field", id)
		}
	}
}

// dissected: tshark knows attributes of the class.
func dissected(a *Attribute) bool {
	return a.Class == ClassSubn || a.Class == ClassSubnAdm && a.Version == 2 || a.Class == ClassPerf
}

// checkUnknownLayout: a layout that tshark does not know has two public sources,
// or is unconfirmed, and tshark knows none of its fields.
func checkUnknownLayout(t *testing.T, a *Attribute, known map[string]bool) {
	projects := map[string]bool{}
	for _, s := range a.Sources {
		project, _, _ := strings.Cut(s, " ")
		projects[project] = true
	}
	if a.Confirmed && len(projects) < 2 {
		t.Errorf("%s: %d witnesses", a.Name, len(projects))
	}
	if a.Class != 0 && !dissected(a) {
		return
	}
	for i := range a.Flat() {
		for _, name := range namesOf(a, &a.Flat()[i]) {
			if known[name] {
				t.Errorf("%s: tshark knows %s", a.Name, name)
			}
		}
	}
}

// frame are tshark's names of the fields before an attribute.
var frame = []string{
	"infiniband.mad.mgmtclass", "infiniband.mad.classversion", "infiniband.mad.method", "infiniband.mad.attributeid",
	"infiniband.mad.attributemodifier", "infiniband.mad.transactionid", "infiniband.mad.status",
	"infiniband.smplid.mkey", "infiniband.smpdirected.hopcount", "infiniband.smpdirected.drslid", "infiniband.smpdirected.drdlid",
}

// frameOf reads the fields in frame with ParseHeader and RouteOf.
func frameOf(mad []byte) map[string]uint64 {
	h := ParseHeader(mad)
	m := map[string]uint64{
		"infiniband.mad.mgmtclass":         uint64(h.Class),
		"infiniband.mad.classversion":      uint64(h.ClassVersion),
		"infiniband.mad.method":            uint64(h.Method),
		"infiniband.mad.attributeid":       uint64(h.Attribute),
		"infiniband.mad.attributemodifier": uint64(h.Modifier),
		"infiniband.mad.transactionid":     h.TID,
		"infiniband.mad.status":            uint64(binary.BigEndian.Uint16(mad[StatusOffset:])), // D is part of it
	}
	if h.Class.Family() == ClassSubn {
		m["infiniband.smplid.mkey"] = binary.BigEndian.Uint64(mad[SMPKeyOffset:])
	}
	if h.Class == ClassSubnDirected {
		m["infiniband.smpdirected.hopcount"] = uint64(RouteOf(mad).Hops())
		m["infiniband.smpdirected.drslid"] = uint64(binary.BigEndian.Uint16(mad[SMPDrSLIDOffset:]))
		m["infiniband.smpdirected.drdlid"] = uint64(binary.BigEndian.Uint16(mad[SMPDrSLIDOffset+2:]))
	}
	return m
}

// fieldID is f's name in the lists of tshark_fields_test.go: by the attribute
// that declares it.
func fieldID(a *Attribute, f *Field) string {
	for i := range a.Fields {
		if s := a.Fields[i].Struct; s != nil && s.Field(f.Script) != nil && a.Fields[i].Offset <= f.Offset {
			return fieldID(s, f)
		}
	}
	return a.Name + "." + f.Name
}

// namesOf are tshark's names of f.
func namesOf(a *Attribute, f *Field) []string {
	id := fieldID(a, f)
	if names, ok := tsharkNames[id]; ok {
		full := make([]string, len(names))
		for i, n := range names {
			full[i] = "infiniband." + n
		}
		return full
	}
	attr, name, _ := strings.Cut(id, ".")
	if attr == "PortCountersExtended" {
		attr = "portcounters_ext"
	}
	if attr == "ClassPortInfo" {
		name = strings.ReplaceAll(name, "_", "")
	}
	return []string{"infiniband." + strings.ToLower(attr+"."+name)}
}

// compareShown compares what tshark shows of f with data, and returns the
// difference.
func compareShown(f *Field, names []string, shown map[string][]string, data []byte) string {
	name, nth, _ := strings.Cut(names[0], "#")
	texts := shown[name]
	if n, err := strconv.Atoi(nth); err == nil && n < len(texts) {
		texts = texts[n : n+1]
	}
	if len(texts) == 0 && f.Type == FieldTypeText && f.Text(data) == "" {
		return ""
	}
	if len(texts) == 0 {
		return fmt.Sprintf("%s is not shown", names[0])
	}
	if whole := hex.EncodeToString(f.Bytes(data)); len(texts) == 1 && len(whole) > 16 && strings.ReplaceAll(texts[0], ":", "") == whole {
		return "" // shown as bytes
	}
	var back []byte // the field as tshark's text gives it
	back = append(back, data...)
	switch f.Type {
	case FieldTypeText:
		if got := texts[0]; got != f.Text(data) {
			return fmt.Sprintf("%s is shown as %q, not as %q", names[0], got, f.Text(data))
		}
		f.SetBytes(back, []byte(texts[0]))
	case FieldTypeGID:
		if len(texts) != f.Count {
			return fmt.Sprintf("%s is shown %d times, not %d", names[0], len(texts), f.Count)
		}
		for i, text := range texts {
			addr, err := netip.ParseAddr(text)
			if err != nil || f.At(i).GID(data) != GID(addr.As16()) {
				return fmt.Sprintf("%s is shown as %s, not as %v", names[0], text, f.At(i).GID(data))
			}
			f.At(i).SetGID(back, GID(addr.As16()))
		}
	case FieldTypeBytes:
		return fmt.Sprintf("%s is shown as %s, not as %x", names[0], texts[0], f.Bytes(data))
	default:
		values := numbers(texts)
		if len(names) == 2 {
			values = join(names[1], values, numbers(shown[names[1]]))
		}
		if len(values) != f.Count {
			return fmt.Sprintf("%s is shown %d times, not %d", names[0], len(values), f.Count)
		}
		for i, v := range values {
			if want := f.UintAt(data, i); v != want {
				return fmt.Sprintf("%s is shown as %#x, not as %#x", names[0], v, want)
			}
			f.SetUintAt(back, i, v)
		}
	}
	if !bytes.Equal(back, data) {
		return fmt.Sprintf("%s: encoded from %q it becomes %x, not %x", names[0], texts, back, data)
	}
	return ""
}

// join makes one list of the parts that tshark shows separately.
func join(second string, a, b []uint64) (list []uint64) {
	for i := range min(len(a), len(b)) {
		if second == "infiniband.p_keytable.p_keybase" {
			list = append(list, a[i]<<15|b[i])
		} else {
			list = append(list, a[i], b[i])
		}
	}
	return list
}

func numbers(texts []string) []uint64 {
	list := make([]uint64, len(texts))
	for i, s := range texts {
		list[i], _ = strconv.ParseUint(s, 0, 64)
	}
	return list
}

// writeCapture writes MADs as InfiniBand packets in a capture file.
func writeCapture(t *testing.T, path string, vectors []vector) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := erf.NewWriter(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		p := erf.Packet{Time: time.Unix(int64(i), 0), SLID: 1, DLID: 2, PKey: 0xffff, DestQP: 1, SrcQP: 1, QKey: 0x80010000, Payload: v.mad}
		if Class(v.mad[ClassOffset]).Family() == ClassSubn {
			p.VL, p.DestQP, p.SrcQP, p.QKey = 15, 0, 0, 0
		}
		if err := w.Write(&p); err != nil {
			t.Fatal(err)
		}
	}
}

// tshark runs tshark; it skips the test where there is none.
func tshark(t *testing.T, args ...string) string {
	t.Helper()
	cmd := ibsimtest.Command(t, "tshark", args...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir()) // no settings of the user's
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark %s: %v\n%s", args[0], err, &stderr)
	}
	return string(out)
}

// tables are all layouts: attributes, attributes with each of their variants,
// headers.
func tables() (list []*Attribute) {
	for _, a := range attributes {
		list = append(append(list, a), a.derived().variants...)
	}
	return append(list, headers...)
}

// makeVectors writes MADs with every attribute that tshark may know: each
// field all ones and nothing else in a response, and random values by every
// method, requests and responses, SMPs by LID and by directed route.
func makeVectors(r *rand.Rand) (list []vector) {
	add := func(a *Attribute, c Class, m Method, data []byte) {
		mad := make([]byte, Size)
		h := Header{Class: c, ClassVersion: a.Version, Method: m, TID: r.Uint64(), Attribute: a.ID, Modifier: r.Uint32()}
		if m.IsResponse() {
			h.Status = Status(r.Uint32())
		}
		h.Put(mad)
		if c.Family() == ClassSubn {
			binary.BigEndian.PutUint64(mad[SMPKeyOffset:], r.Uint64())
		}
		if c == ClassSubnDirected {
			SetRoute(mad, DirectedRoute{0, 1, 2})
		}
		if c == ClassSubnAdm {
			sa := SAHeader{AttributeOffset: uint16(a.Size+7) / 8}
			sa.Encode(mad[SAKeyOffset:])
			rmpp := RMPPHeader{RMPPVersion: 1}
			if m == MethodGetTableResp {
				rmpp.RMPPType, rmpp.RMPPFlags, rmpp.SegmentNumber = RMPPTypeData, RMPPFlagsActive|RMPPFlagsFirst|RMPPFlagsLast, 1
				rmpp.PayloadLength = uint32(SADataOffset - SAKeyOffset + a.Size)
			}
			rmpp.Encode(mad[RMPPOffset:])
		}
		at := a.Offset()
		copy(mad[at:], data)
		list = append(list, vector{mad, a, at})
	}
	for _, a := range tables() {
		if a.Class == 0 || !dissected(a) || isUnknown(a) {
			continue
		}
		classes := []Class{a.Class}
		if a.Class == ClassSubn {
			classes = append(classes, ClassSubnDirected)
		}
		for _, c := range classes {
			for i := range a.Flat() {
				f := &a.Flat()[i]
				data := make([]byte, a.Size)
				for i := range f.Count {
					switch f.Type {
					case FieldTypeText:
						f.SetBytes(data, []byte("all in A row"))
					case FieldTypeBytes:
						f.SetBytes(data, slices.Repeat([]byte{0xff}, f.Bits/8))
					default:
						f.SetUintAt(data, i, ^uint64(0))
					}
				}
				makeValid(r, a, data)
				add(a, c, MethodGetResp, data)
			}
			for _, m := range a.Methods {
				for range 10 {
					request, response := randomAttribute(r, a), randomAttribute(r, a)
					add(a, c, m, request)
					if m == MethodSet {
						m = MethodGet // a Set is answered by GetResp
					}
					if m != MethodTrap && m != MethodTrapRepress {
						add(a, c, m|Response, response)
					}
				}
			}
		}
	}
	for range 40 { // headers, with a record behind them
		mad := make([]byte, Size)
		copy(mad, randomAttribute(r, LayoutMADHeader))
		h := ParseHeader(mad)
		h.Class, h.ClassVersion, h.Method, h.Attribute = ClassSubnAdm, 2, MethodGetTableResp, AttrLinkRecord.ID
		h.Put(mad)
		rmpp := randomAttribute(r, LayoutRMPPHeader)
		LayoutRMPPHeader.Field("rmpp_type").SetUint(rmpp, uint64(RMPPTypeData))
		copy(mad[RMPPOffset:], rmpp)
		copy(mad[SAKeyOffset:], randomAttribute(r, LayoutSAHeader))
		list = append(list, vector{mad, LayoutRMPPHeader, RMPPOffset}, vector{mad, LayoutSAHeader, SAKeyOffset}, vector{mad, LayoutMADHeader, 0})
	}
	for range 40 { // of a directed-route SMP, with NodeInfo between them
		mad := make([]byte, Size)
		copy(mad, randomAttribute(r, LayoutDirectedMADHeader))
		h := ParseHeader(mad)
		h.Class, h.ClassVersion, h.Method, h.Attribute = ClassSubnDirected, 1, MethodGetResp, AttrNodeInfo.ID
		h.Status |= Status(mad[StatusOffset]&0x80) << 8
		h.Put(mad)
		mad[HopCountOffset] &= 0x3f
		copy(mad[SMPKeyOffset:], randomAttribute(r, LayoutDirectedSMPHeader))
		copy(mad[SMPInitialPathOffset:], randomAttribute(r, LayoutDirectedPaths))
		list = append(list, vector{mad, LayoutDirectedMADHeader, 0}, vector{mad, LayoutDirectedSMPHeader, SMPKeyOffset}, vector{mad, LayoutDirectedPaths, SMPInitialPathOffset})
	}
	return list
}

// makeValid sets the fields of data on which its layout depends.
func makeValid(r *rand.Rand, a *Attribute, data []byte) {
	if a == AttrMultiPathRecord { // as many GIDs as there are
		a.Field("sgid_count").SetUint(data, 5)
		a.Field("dgid_count").SetUint(data, 6)
	}
	satisfy(r, a, data)
}

// satisfy sets the fields of data to what the conditions of a's variant ask for,
// and returns such a modifier.
func satisfy(r *rand.Rand, a *Attribute, data []byte) (modifier uint32) {
	base := LookupVersion(a.Class, a.Version, a.ID)
	if base == nil {
		return 0
	}
	for _, v := range base.Variants {
		if v.Name != a.Variant {
			continue
		}
		for _, c := range v.When {
			one := c.Values[r.IntN(len(c.Values))]
			n := one[0] + r.Uint64N(one[1]-one[0]+1)
			if c.Modifier {
				i := slices.IndexFunc(a.Modifier, func(p ModifierPart) bool { return p.Name == c.Name })
				modifier |= uint32(n) << a.Modifier[i].Shift
			} else {
				base.Field(c.Name).SetUint(data, n)
			}
		}
	}
	return modifier
}

// randomAttribute has random values in all fields, letters in texts.
func randomAttribute(r *rand.Rand, a *Attribute) []byte {
	random, data := randomBytes(r, a.Size), make([]byte, a.Size)
	copyFields(a, random, data)
	for i := range a.Flat() {
		if f := &a.Flat()[i]; f.Type == FieldTypeText {
			letters := make([]byte, 1+r.IntN(f.Bits/8))
			for i := range letters {
				letters[i] = 'a' + byte(r.IntN(26))
			}
			f.SetBytes(data, letters)
		}
	}
	if c := codecs[a]; c != nil { // through the struct, for it is what we send
		c.Decode(data)
		c.Encode(data)
	}
	makeValid(r, a, data)
	return data
}
