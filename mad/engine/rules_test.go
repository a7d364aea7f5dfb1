package engine

import (
	"errors"
	"testing"
	"time"

	"fabsh/mad"
)

// eachQuestion calls do with devices in each state that a rule may depend on, and all attributes that
// devices announce.
func eachQuestion(do func(d *device, node mad.GUID, a *mad.Attribute)) {
	silent := announcement{err: errors.New("timed out"), until: time.Now().Add(time.Hour)}
	general := []*announcement{nil, {}, &silent}
	for i := range 40 {
		data := make([]byte, mad.AttrGeneralInfo.Size)
		if data[i*len(data)/40] = 0xff; i == 0 {
			clear(data)
		}
		general = append(general, &announcement{data: data})
	}
	for _, a := range mad.Attributes() {
		if !a.IsAnnounced() {
			continue
		}
		infos := []*mad.NodeInfo{nil}
		for _, vendor := range []uint32{mad.VendorBull, 0x2c9, 0x1234} {
			for _, kind := range []mad.NodeType{mad.NodeTypeSwitch, mad.NodeTypeRouter} {
				infos = append(infos, &mad.NodeInfo{VendorID: vendor, NodeType: kind, DeviceID: 1}, &mad.NodeInfo{VendorID: vendor, NodeType: kind, DeviceID: 0xc738}) // the second has ExtendedPortInfo
				if older := mad.OlderOf(a); older != nil {
					infos = append(infos, &mad.NodeInfo{VendorID: vendor, NodeType: kind, DeviceID: older.Device})
				}
			}
		}
		for _, node := range []mad.GUID{0x0002c90300000001, 0x1234000000000001} {
			for _, info := range infos {
				for _, answer := range general {
					d := &device{answers: map[*mad.Attribute]announcement{}}
					if info != nil {
						d.learn(info)
					}
					if answer != nil {
						d.answers[mad.AttrGeneralInfo] = *answer
					}
					do(d, node, a)
				}
			}
		}
	}
}

// TestRules: each rule decides for some device, so that none is hidden by the rules before it.
func TestRules(t *testing.T) {
	decides := make([]int, len(rules))
	eachQuestion(func(d *device, node mad.GUID, a *mad.Attribute) {
		q := d.question(node, a)
		for i := range rules {
			if rules[i].when(q) {
				decides[i]++
				break
			}
		}
	})
	for i, n := range decides {
		if n == 0 {
			t.Errorf("rule %d decides for no device", i)
		}
	}
}
