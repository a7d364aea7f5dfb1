package fabric

import (
	"fmt"
	"testing"

	"fabsh/mad"
)

// rated is the PortInfo of a port that is up, with masks as they are read.
func rated(width mad.LinkWidth, speed mad.LinkSpeed, ext mad.LinkSpeedExt) *mad.PortInfo {
	return &mad.PortInfo{
		PortPhysicalState: mad.PortPhysicalStateLinkUp, CapabilityMask: mad.CapabilityMaskIsExtendedSpeedsSupported,
		LinkWidthSupported: 3, LinkWidthEnabled: 3, LinkWidthActive: width,
		LinkSpeedSupported: 7, LinkSpeedEnabled: 7, LinkSpeedActive: speed,
		LinkSpeedExtSupported: 7, LinkSpeedExtEnabled: 7, LinkSpeedExtActive: ext,
	}
}

func TestBest(t *testing.T) {
	for name, test := range map[string]struct {
		edit  func(p, q *mad.PortInfo) // of a link that runs at 4x hdr
		fdr10 bool
		want  string // best width and speed; degraded, known
	}{
		"best":                  {nil, false, "4x hdr false true"},
		"slower":                {func(p, q *mad.PortInfo) { p.LinkSpeedExtActive = mad.LinkSpeedExtEDR }, false, "4x hdr true true"},
		"narrower":              {func(p, q *mad.PortInfo) { p.LinkWidthActive = mad.LinkWidth1x }, false, "4x hdr true true"},
		"the neighbour cannot":  {func(p, q *mad.PortInfo) { q.LinkSpeedExtSupported = 1 }, false, "4x fdr false true"},
		"the neighbour may not": {func(p, q *mad.PortInfo) { q.LinkWidthEnabled = 1 }, false, "1x hdr false true"},
		"switched off": {func(p, q *mad.PortInfo) {
			p.LinkSpeedExtEnabled = mad.LinkSpeedExtDisabled
			p.LinkSpeedExtActive = 0
			p.LinkSpeedActive = 4
		}, false, "4x qdr false true"},
		"no extended speeds": {func(p, q *mad.PortInfo) { q.CapabilityMask = 0 }, false, "4x qdr false true"},
		"fdr10":              {func(p, q *mad.PortInfo) { p.LinkSpeedExtEnabled = 30; p.LinkSpeedExtActive = 0; p.LinkSpeedActive = 4 }, true, "4x fdr10 false true"},
		"down":               {func(p, q *mad.PortInfo) { p.PortPhysicalState = mad.PortPhysicalStatePolling }, false, "4x hdr false false"},
		"nothing told":       {func(p, q *mad.PortInfo) { q.LinkSpeedSupported, q.LinkSpeedExtSupported = 0, 0 }, false, "4x  false false"},
		"nothing in common":  {func(p, q *mad.PortInfo) { q.LinkWidthSupported, q.LinkWidthEnabled = 8, 8 }, false, " hdr false false"},
		"bits that have no meaning": {func(p, q *mad.PortInfo) {
			for _, i := range []*mad.PortInfo{p, q} {
				i.LinkWidthSupported, i.LinkWidthEnabled, i.LinkSpeedSupported, i.LinkSpeedEnabled, i.LinkSpeedExtSupported, i.LinkSpeedExtEnabled, i.LinkSpeedExtSupported2, i.LinkSpeedExtEnabled2 = 255, 255, 15, 15, 31, 31, 255, 255
			}
		}, false, "12x ndr true true"},
	} {
		p, q := rated(mad.LinkWidth4x, mad.LinkSpeedQDR, mad.LinkSpeedExtHDR), rated(mad.LinkWidth4x, mad.LinkSpeedQDR, mad.LinkSpeedExtHDR)
		if test.edit != nil {
			test.edit(p, q)
		}
		b := NewBuilder()
		x := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: 1, NumPorts: 2}})
		y := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: 2, NumPorts: 2}})
		b.Link(x, 1, y, 1)
		b.SetPort(x, 1, p)
		b.SetPort(y, 1, q)
		b.SetPort(y, 2, q)
		b.SetFDR10(x, 1, test.fdr10)
		f := b.Build()
		port := f.NodeByGUID(1)[0].Port(1)
		degraded, known := port.Degraded()
		if got := fmt.Sprint(port.BestWidth(), " ", port.BestSpeed(), " ", degraded, " ", known); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if free := f.NodeByGUID(2)[0].Port(2); free.BestWidth()+free.BestSpeed() != "" {
			t.Errorf("a port without a peer has a best width or speed")
		}
	}
}
