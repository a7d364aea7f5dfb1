package diff

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestModules: modules are known by their serial numbers, cables by one serial number at both ends.
func TestModules(t *testing.T) {
	f := tree(t)
	before := map[string]string{ // both ends of a cable, and a module of its own at each end
		"leaf-1/1": "S1", "node-0001/1": "S1", "leaf-1/2": "S2", "node-0002/1": "S2", "leaf-2/1": "S3", "node-0003/1": "S4",
	}
	for _, test := range []struct {
		name string
		now  map[string]string // a serial number of "": no module
		want string
	}{
		{"nothing", nil, ""},
		{"a cable replaced", map[string]string{"leaf-1/1": "S9", "node-0001/1": "S9"}, "link.replaced leaf-1/1 - node-0001/1 [V P S1 > V P S9]\n"},
		{"a module replaced", map[string]string{"leaf-2/1": "S9"}, "module.new leaf-2/1 [V P S3 > V P S9]\n"},
		{"two modules swapped", map[string]string{"leaf-2/1": "S4", "node-0003/1": "S3"}, "" +
			"module.moved leaf-2/1 [V P S3 > V P S4] it was at node-0003/1\n" +
			"module.moved node-0003/1 [V P S4 > V P S3] it was at leaf-2/1\n"},
		{"two cables swapped", map[string]string{"leaf-1/1": "S2", "node-0001/1": "S2", "leaf-1/2": "S1", "node-0002/1": "S1"}, "" +
			"module.moved leaf-1/1 - node-0001/1 [V P S1 > V P S2] it was at leaf-1/2 and node-0002/1\n" +
			"module.moved leaf-1/2 - node-0002/1 [V P S2 > V P S1] it was at leaf-1/1 and node-0001/1\n"},
		{"a module gone", map[string]string{"leaf-2/1": ""}, "module.gone leaf-2/1 [V P S3 > ]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := maps.Clone(before)
			maps.Copy(now, test.now)
			check(t, withModules(f, before), withModules(f, now), test.want)
		})
	}
}

// withModules returns f with modules, by the names of their ports.
func withModules(f *fabric.Fabric, serials map[string]string) *fabric.Fabric {
	pddr := mad.RegisterNamed("PDDR")
	var answers []fabric.Answer
	for _, name := range slices.Sorted(maps.Keys(serials)) {
		node, num, _ := strings.Cut(name, "/")
		port, _ := strconv.Atoi(num)
		if serials[name] == "" {
			continue
		}
		data := make([]byte, pddr.Size)
		pddr.Field("page_select").SetUint(data, uint64(mad.DiagnosticPageModule))
		page := pddr.Resolve(data, 0)
		for field, text := range map[string]string{"vendor_name": "V", "vendor_pn": "P", "vendor_sn": serials[name]} {
			copy(page.Field(field).Bytes(data), text)
		}
		for i := range f.Nodes() {
			if n := &f.Nodes()[i]; n.Name() == node {
				answers = append(answers, fabric.Answer{Node: int32(n.ID()), Port: int16(port), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(pddr.Register), Data: data})
			}
		}
	}
	return f.With(fabric.Reading{Answers: answers})
}
