package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// fakeDevice answers what decides which of a vendor's attributes are requested from it,
// and all other requests.
type fakeDevice struct {
	info    mad.NodeInfo
	caps    *mad.GeneralInfoCapabilities // nil: GeneralInfo is not supported
	ar      mad.AdaptiveRoutingInfo
	vsClass uint16 // CapabilityMask of class 0x0A
	silent  bool   // GeneralInfo is not answered
}

// devices is a peer of devices by LID; sent gets each request.
func devices(byLID map[mad.LID]*fakeDevice, sent *[]string) func(*fakeTransport, Datagram) {
	return func(f *fakeTransport, d Datagram) {
		h := mad.ParseHeader(d.MAD)
		a := mad.Lookup(h.Class, h.Attribute)
		f.mu.Lock()
		*sent = append(*sent, fmt.Sprintf("%d %s", d.LID, a.Name))
		f.mu.Unlock()
		node := byLID[d.LID]
		r := respond(d)
		data := r.MAD[a.Offset():]
		switch a {
		case mad.AttrNodeInfo:
			node.info.Encode(data)
		case mad.AttrGeneralInfo:
			switch {
			case node.silent:
				return
			case node.caps == nil || h.Modifier != 4:
				r = withStatus(r, mad.StatusBadMethodAttribute)
			default:
				node.caps.Encode(data)
			}
		case mad.AttrAdaptiveRoutingInfo:
			node.ar.Encode(data)
		case mad.AttrVendor0AClassPortInfo:
			(&mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, CapabilityMask: node.vsClass}).Encode(data)
		}
		go f.deliver(r)
	}
}

const (
	nvidiaGUID = 0x506b4b0300000001
	otherGUID  = 0x0011750000000001
)

// TestAnnounced: of a vendor's attributes only those are requested that the device
// announces, and it is asked once.
func TestAnnounced(t *testing.T) {
	ar := &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AR}
	none := &mad.GeneralInfoCapabilities{}
	const what = "unsupported: the device does not announce it by "
	for _, tt := range []struct {
		name   string
		device fakeDevice
		attrs  []*mad.Attribute
		guard  bool // the node is known
		sent   []string
		errs   []string
	}{
		{"announced", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: ar},
			[]*mad.Attribute{mad.AttrAdaptiveRoutingInfo, mad.AttrAdaptiveRoutingLFT, mad.AttrPrivateLFTInfo}, true,
			[]string{"GeneralInfo", "AdaptiveRoutingInfo", "AdaptiveRoutingLFT", "NodeInfo"}, []string{"", "", what + "private_lft of GeneralInfo; no request was sent"}},
		{"by address", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: ar}, []*mad.Attribute{mad.AttrAdaptiveRoutingInfo, mad.AttrAdaptiveRoutingGroupTable}, false,
			[]string{"NodeInfo", "GeneralInfo", "AdaptiveRoutingInfo", "NodeInfo", "AdaptiveRoutingGroupTable"}, []string{"", ""}},
		{"by vendor", fakeDevice{info: mad.NodeInfo{NodeGUID: otherGUID, VendorID: 0x2c9}, caps: ar}, []*mad.Attribute{mad.AttrAdaptiveRoutingInfo}, true,
			[]string{"NodeInfo", "GeneralInfo", "AdaptiveRoutingInfo"}, []string{""}},
		{"nothing announced", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: none}, []*mad.Attribute{mad.AttrAdaptiveRoutingInfo, mad.AttrExtendedPortInfo}, true,
			[]string{"GeneralInfo"}, []string{what + "ar or ar_rev1 of GeneralInfo; no request was sent", what + "extended_port_info of GeneralInfo; no request was sent"}},
		{"GeneralInfo refused", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}}, []*mad.Attribute{mad.AttrAdaptiveRoutingInfo, mad.AttrAdaptiveRoutingLFT}, true,
			[]string{"GeneralInfo"}, []string{what + "ar or ar_rev1 of GeneralInfo; no request was sent", what + "ar or ar_rev1 of GeneralInfo; no request was sent"}},
		{"GeneralInfo not answered", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, silent: true}, []*mad.Attribute{mad.AttrAdaptiveRoutingInfo, mad.AttrAdaptiveRoutingLFT}, true,
			slices.Repeat([]string{"GeneralInfo"}, 6), []string{"SubnGet(GeneralInfo 4) to LID 9: timed out after 6 attempts in 3s", "SubnGet(GeneralInfo 4) to LID 9: timed out after 6 attempts in 3s"}},
		{"another vendor", fakeDevice{info: mad.NodeInfo{NodeGUID: otherGUID, VendorID: 0x1175}, caps: ar},
			[]*mad.Attribute{mad.AttrAdaptiveRoutingInfo, mad.AttrGeneralInfo, mad.AttrEnhancedCongestionInfo, mad.AttrVSKeyInfo}, true,
			[]string{"NodeInfo"}, []string{what + "ar or ar_rev1 of GeneralInfo; no request was sent", "unsupported: the device is not of NVIDIA or Mellanox; no request was sent",
				what + "congestion_control of GeneralInfo; no request was sent", what + "ClassPortInfo.capability_mask; no request was sent"}},
		{"by another attribute", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: ar, ar: mad.AdaptiveRoutingInfo{HBFSup: true}},
			[]*mad.Attribute{mad.AttrHBFConfig, mad.AttrPFRNConfig}, true,
			[]string{"GeneralInfo", "AdaptiveRoutingInfo", "HBFConfig"}, []string{"", what + "ar or ar_rev1 of GeneralInfo, AdaptiveRoutingInfo.pfrn_sup; no request was sent"}},
		{"key", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, vsClass: 0x100}, []*mad.Attribute{mad.AttrVSKeyInfo}, true, []string{"ClassPortInfo", "KeyInfo"}, []string{""}},
		{"no key", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, vsClass: 0xff}, []*mad.Attribute{mad.AttrVSKeyInfo}, true, []string{"ClassPortInfo"},
			[]string{what + "ClassPortInfo.capability_mask; no request was sent"}},
		{"register", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AccessRegister}},
			[]*mad.Attribute{mad.AttrAccessRegister, mad.AttrMlnxConfigSpace}, true, []string{"GeneralInfo", "AccessRegister"}, []string{"", what + "config_space_access of GeneralInfo; no request was sent"}},
		{"no register", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: ar}, []*mad.Attribute{mad.AttrAccessRegister}, true, []string{"GeneralInfo"},
			[]string{what + "access_register of GeneralInfo; no request was sent"}},
		{"register of a device whose M_Key hides GeneralInfo", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, silent: true}, []*mad.Attribute{mad.AttrAccessRegister}, true,
			append(slices.Repeat([]string{"GeneralInfo"}, 6), "AccessRegister"), []string{""}},
		{"register of another vendor", fakeDevice{info: mad.NodeInfo{NodeGUID: otherGUID, VendorID: 0x1175}}, []*mad.Attribute{mad.AttrAccessRegister}, true,
			[]string{"NodeInfo"}, []string{what + "access_register of GeneralInfo; no request was sent"}},
		{"older", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, DeviceID: 0xbd36}, caps: none}, []*mad.Attribute{mad.AttrMlnxPrivateLFTMap}, true,
			[]string{"GeneralInfo", "NodeInfo", "PrivateLFTInfo"}, []string{""}},
		{"port of a listed device, not announced", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, DeviceID: 0x1003}, caps: ar}, []*mad.Attribute{mad.AttrExtendedPortInfo}, true,
			[]string{"GeneralInfo"}, []string{what + "extended_port_info of GeneralInfo; no request was sent"}},
		{"port of a listed device, refused", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, DeviceID: 0x1003}}, []*mad.Attribute{mad.AttrExtendedPortInfo, mad.AttrAdaptiveRoutingInfo}, true,
			[]string{"GeneralInfo", "NodeInfo", "ExtendedPortInfo"}, []string{"", what + "ar or ar_rev1 of GeneralInfo; no request was sent"}},
		{"port of a listed device, silent", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, DeviceID: 0xc738}, silent: true}, []*mad.Attribute{mad.AttrExtendedPortInfo, mad.AttrExtendedPortInfo, mad.AttrAdaptiveRoutingInfo}, true,
			append(slices.Repeat([]string{"GeneralInfo"}, 6), "NodeInfo", "ExtendedPortInfo", "ExtendedPortInfo"), []string{"", "", "SubnGet(GeneralInfo 4) to LID 9: timed out after 6 attempts in 3s"}},
		{"port of another device, refused", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, DeviceID: 0x1002}}, []*mad.Attribute{mad.AttrExtendedPortInfo}, true,
			[]string{"GeneralInfo", "NodeInfo"}, []string{what + "extended_port_info of GeneralInfo; no request was sent"}},
		{"port of another device, silent", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, DeviceID: 0x1002}, silent: true}, []*mad.Attribute{mad.AttrExtendedPortInfo}, true,
			append(slices.Repeat([]string{"GeneralInfo"}, 6), "NodeInfo"), []string{"SubnGet(GeneralInfo 4) to LID 9: timed out after 6 attempts in 3s"}},
		{"port of Bull", fakeDevice{info: mad.NodeInfo{NodeGUID: otherGUID, VendorID: mad.VendorBull, DeviceID: 0x1b02}}, []*mad.Attribute{mad.AttrExtendedPortInfo, mad.AttrAdaptiveRoutingInfo}, true,
			[]string{"NodeInfo", "ExtendedPortInfo"}, []string{"", what + "ar or ar_rev1 of GeneralInfo; no request was sent"}},
		{"port of another vendor with a listed number", fakeDevice{info: mad.NodeInfo{NodeGUID: otherGUID, VendorID: 0x1175, DeviceID: 0x1003}}, []*mad.Attribute{mad.AttrExtendedPortInfo}, true,
			[]string{"NodeInfo"}, []string{what + "extended_port_info of GeneralInfo; no request was sent"}},
		{"router", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, NodeType: mad.NodeTypeRouter}}, []*mad.Attribute{mad.AttrRouterInfo}, true, []string{"NodeInfo", "RouterInfo"}, []string{""}},
		{"not a router", fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID, NodeType: mad.NodeTypeSwitch}}, []*mad.Attribute{mad.AttrRouterInfo}, true, []string{"NodeInfo"},
			[]string{what + "node type router; no request was sent"}},
		{"standard", fakeDevice{}, []*mad.Attribute{mad.AttrPortInfo}, false, []string{"PortInfo"}, []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []string
				e := New(newFake(devices(map[mad.LID]*fakeDevice{9: &tt.device}, &sent)), Options{})
				defer e.Close()
				var errs []string
				for _, a := range tt.attrs {
					c := getOf(a, 9)
					if tt.guard {
						c.Guard.Node = tt.device.info.NodeGUID
					}
					if err := e.Do(context.Background(), c); err != nil {
						t.Fatal(err)
					}
					text := ""
					if c.Err != nil {
						text = strings.TrimPrefix(c.Err.Error(), fmt.Sprintf("%s(%s) to LID 9: ", c.Err.(*Error).Op, a.Name))
						text = strings.TrimPrefix(text, "Vendor(0x0a)Get(AccessRegister 36896) to LID 9: ")
						if c.Attempts != 0 {
							t.Errorf("%s: sent %d times", a.Name, c.Attempts)
						}
						if _, _, status := c.Err.(*Error).Describe(); errors.Is(c.Err, ErrUnsupported) && status != "unsupported" {
							t.Errorf("%s: status %q", a.Name, status)
						}
						if Unanswered(c.Err) != tt.device.silent {
							t.Errorf("%s: unanswered %v", a.Name, !tt.device.silent)
						}
					}
					errs = append(errs, text)
				}
				for i, s := range sent {
					sent[i] = strings.TrimPrefix(s, "9 ")
				}
				if d := cmp.Diff(tt.sent, sent) + cmp.Diff(tt.errs, errs); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func getOf(a *mad.Attribute, lid mad.LID) *Call {
	c := new(Call)
	h := mad.Header{Class: a.Class, ClassVersion: a.Version, Method: mad.MethodGet, Attribute: a.ID}
	if a == mad.AttrAccessRegister {
		h.Modifier = uint32(mad.LayoutMGIR.Register)
	}
	c.PutMAD(h, nil)
	c.SetLID(lid)
	return c
}

// TestAnnouncedOnce: concurrent calls to many devices ask each device once, and silent
// ones again after a while.
func TestAnnouncedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byLID := map[mad.LID]*fakeDevice{}
		for lid := mad.LID(1); lid <= 50; lid++ {
			byLID[lid] = &fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID + mad.GUID(lid)}, caps: &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AR * mad.Capabilities0(lid%2)}}
		}
		byLID[50].silent = true
		var sent []string
		e := New(newFake(devices(byLID, &sent)), Options{Window: 8, Retries: -1})
		defer e.Close()
		ask := func() (unsupported int) {
			done := make(chan int)
			for range 4 {
				go func() {
					var calls []*Call
					for lid, d := range byLID {
						for range 3 {
							c := getOf(mad.AttrAdaptiveRoutingLFT, lid)
							c.Guard.Node = d.info.NodeGUID
							calls = append(calls, c)
						}
					}
					if err := e.Do(context.Background(), calls...); err != nil {
						t.Error(err)
					}
					n := 0
					for _, c := range calls {
						if errors.Is(c.Err, ErrUnsupported) {
							n++
						}
					}
					done <- n
				}()
			}
			for range 4 {
				unsupported += <-done
			}
			return unsupported
		}
		count := func(what string) int {
			return len(slices.DeleteFunc(slices.Clone(sent), func(s string) bool { return !strings.HasSuffix(s, what) }))
		}
		for i, want := range []int{50, 50, 51} {
			if i == 2 {
				time.Sleep(silentFor + time.Minute)
			}
			if n := ask(); n != 4*3*24 {
				t.Errorf("%d calls are unsupported, want those of 24 devices", n)
			}
			if n := count("GeneralInfo"); n != want {
				t.Errorf("%d requests for GeneralInfo, want %d", n, want)
			}
		}
		if n := count("AdaptiveRoutingLFT"); n != 3*4*3*25 {
			t.Errorf("%d requests, want those of 25 devices", n)
		}
	})
}

// TestAnnouncedSilence: many devices that do not answer cost the time of one.
func TestAnnouncedSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byLID := map[mad.LID]*fakeDevice{}
		var calls []*Call
		for lid := mad.LID(1); lid <= 700; lid++ {
			byLID[lid] = &fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID + mad.GUID(lid), DeviceID: 0x1003}, silent: true}
			c := getOf(mad.AttrExtendedPortInfo, lid)
			c.Guard.Node = byLID[lid].info.NodeGUID
			calls = append(calls, c)
		}
		var sent []string
		e := New(newFake(devices(byLID, &sent)), Options{})
		defer e.Close()
		start := time.Now()
		if err := e.Do(context.Background(), calls...); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if c.Err != nil {
				t.Fatal(c.Err)
			}
		}
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("took %v; one takes 3s", d)
		}
	})
}

// TestAnnouncedEnds: the end of the context ends the calls, and what was not answered is
// asked again.
func TestAnnouncedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := &fakeDevice{info: mad.NodeInfo{NodeGUID: nvidiaGUID}, caps: &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AR}, silent: true}
		var sent []string
		e := New(newFake(devices(map[mad.LID]*fakeDevice{9: dev}, &sent)), Options{})
		defer e.Close()
		c, plain := getOf(mad.AttrAdaptiveRoutingInfo, 9), getOf(mad.AttrPortInfo, 9)
		c.Guard.Node = nvidiaGUID
		ctx, cancel := context.WithCancelCause(context.Background())
		stop := errors.New("stopped")
		go func() { synctest.Wait(); cancel(stop) }()
		if err := e.Do(ctx, plain, c); err != stop || !errors.Is(c.Err, stop) || !errors.Is(plain.Err, stop) {
			t.Errorf("%v; %v; %v", err, c.Err, plain.Err)
		}
		dev.silent = false
		if err := e.Do(context.Background(), c); err != nil || c.Err != nil {
			t.Errorf("then %v, %v", err, c.Err)
		}
	})
}

// TestStartUnannounced: Start does not send what Do has not found announced.
func TestStartUnannounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		e := New(newFake(devices(nil, &sent)), Options{})
		defer e.Close()
		c := getOf(mad.AttrAdaptiveRoutingInfo, 9)
		done := make(chan struct{})
		c.Notify = CompleterFunc(func(*Call) { close(done) })
		e.Start(c)
		<-done
		if !errors.Is(c.Err, ErrUnsupported) || len(sent) > 0 {
			t.Errorf("%v; sent %v", c.Err, sent)
		}
	})
}
