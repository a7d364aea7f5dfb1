package fabric_test

import (
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestPanel: ports of switches with two in a cage have the label of their panel.
func TestPanel(t *testing.T) {
	for _, test := range []struct {
		info mad.NodeInfo
		num  int
		want string
	}{
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 1, "cage 1/1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 2, "cage 1/2"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 31, "cage 16/1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 64, "cage 32/2"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 65, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 0, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f0}, 1, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x1, DeviceID: 0xd2f2}, 1, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA, VendorID: 0x2c9, DeviceID: 0xd2f2}, 1, ""},
	} {
		test.info.NodeGUID, test.info.NumPorts = 1, 65
		b := fabric.NewBuilder()
		b.AddNode(fabric.NodeSpec{Info: test.info, Name: "sw"})
		if p := b.Build().Nodes()[0].Port(test.num); p == nil || p.Panel() != test.want {
			t.Errorf("%v of %+v: %v, want %q", test.num, test.info, p, test.want)
		}
	}
}
