package spec

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
)

// The generated nodes are NVIDIA's Quantum switch and ConnectX-6 adapter, by
// their PCI identifiers, with GUIDs like theirs.
const (
	vendorID     = 0x02c9
	switchDevice = 0xd2f0
	caDevice     = 0x101b
	caPartitions = 128
	swPartitions = 32
	firstSwitch  = mad.GUID(0x0002c903_00100000)
	firstCA      = mad.GUID(0x0002c903_10000000)
	guidStride   = 0x10 // a node's ports have GUIDs of their own
)

// builder builds a topology.
type builder struct {
	*fabric.Builder
	switches, cas int
	err           error // the first
}

func (p *builder) addSwitch(name string, ports int) int {
	p.switches++
	guid := firstSwitch + mad.GUID(p.switches-1)*guidStride
	return p.AddNode(fabric.NodeSpec{
		Name: name,
		Info: nodeInfo(mad.NodeTypeSwitch, ports, guid, guid, switchDevice, swPartitions),
	})
}

// addAdapter adds adapter r of a host, both from 0. image is the SystemImageGUID of the host,
// which is the GUID of its first adapter: it is set if it is 0.
func (p *builder) addAdapter(host, r, ports int, image *mad.GUID) int {
	p.cas++
	guid := firstCA + mad.GUID(p.cas-1)*guidStride
	if *image == 0 {
		*image = guid
	}
	info := nodeInfo(mad.NodeTypeCA, ports, guid, guid+1, caDevice, caPartitions)
	info.SystemImageGUID = *image
	id := p.AddNode(fabric.NodeSpec{Name: fmt.Sprintf("node-%04d HCA-%d", host+1, r+1), Info: info})
	for num := 2; num <= ports; num++ {
		p.SetPortGUID(id, num, guid+mad.GUID(num))
	}
	return id
}

func (p *builder) link(a, pa, b, pb int) {
	if err := p.Link(a, pa, b, pb); err != nil && p.err == nil {
		p.err = err
	}
}

// addHosts puts hosts on the first ports of switches.
func (p *builder) addHosts(switches []int, hosts int) {
	for i, sw := range switches {
		for j := range hosts {
			p.link(p.addAdapter(i*hosts+j, 0, 1, new(mad.GUID)), 1, sw, j+1)
		}
	}
}

func (p *builder) build() (*fabric.Fabric, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.Build(), nil
}

func nodeInfo(t mad.NodeType, ports int, node, port mad.GUID, device uint16, partitions uint16) mad.NodeInfo {
	return mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1,
		NodeType: t, NumPorts: uint8(ports),
		SystemImageGUID: node, NodeGUID: node, PortGUID: port,
		PartitionCap: partitions, DeviceID: device, VendorID: vendorID, LocalPortNum: 1,
	}
}
