package sim

import (
	"fabsh/fabric"
	"fabsh/mad"
)

// onMlnx: the device has Mellanox' ExtendedPortInfo. OpenSM asks each that may.
func onMlnx(r *request) bool {
	var info mad.NodeInfo
	info.Decode(r.in.node.info[:])
	return fabric.HasExtPortInfo(&info)
}

// getMlnxPortInfo tells whether a link runs FDR10.
func (r *request) getMlnxPortInfo() mad.Status {
	p := r.portOfModifier(int(r.Modifier))
	if p == nil {
		return mad.StatusBadValue
	}
	clear(r.data)
	var info mad.MlnxExtPortInfo
	if p.fdr10 {
		info.LinkSpeedSupported, info.LinkSpeedEnabled = 1, 1
		if p.up {
			info.LinkSpeedActive = 1
		}
	}
	info.Encode(r.data)
	return mad.StatusOK
}

// setMlnxPortInfo refuses all changes: links keep their speed.
func (r *request) setMlnxPortInfo() mad.Status {
	var asked, now mad.MlnxExtPortInfo
	asked.Decode(r.data)
	status := r.getMlnxPortInfo()
	now.Decode(r.data)
	if status == mad.StatusOK && asked.LinkSpeedEnabled != now.LinkSpeedEnabled {
		return mad.StatusBadValue
	}
	return status
}
