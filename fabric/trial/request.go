package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Outcome is the outcome of a request.
type Outcome uint8

// The outcomes.
const (
	Answered    Outcome = iota
	Unsupported         // the device reports that it does not have it
	Refused             // another status
	TimedOut            // no answer came
	Malformed           // the answer is not one
	NotSent             // the device does not announce it, or the transport cannot send it
	Unread              // the trial did not request it
)

var outcomeWords = []string{"answered", "unsupported", "refused", "timed_out", "malformed", "not_announced", "not_read"}

// Outcomes lists the words of all outcomes, in their order.
func Outcomes() []string { return append([]string(nil), outcomeWords...) }

// String returns the outcome as a word: "timed_out".
func (o Outcome) String() string { return outcomeWords[o] }

// Result is the outcome of a request to a device.
type Result struct {
	Class, Attribute string
	Place            string // "port 1, block 0"
	Outcome          Outcome
	Detail           string // the status, or why it was not requested
	Count            int    // of records

	attr     *mad.Attribute
	modifier uint32
	data     []byte
}

// ask sends a request to a device: SMPs along its route, the others to its LID. The error is
// the end of ctx.
func (t *trial) ask(ctx context.Context, d *Device, call *engine.Call, r *Result) error {
	if d.timeouts >= maxTimeouts {
		r.Outcome, r.Detail = Unread, fmt.Sprintf("%d requests to the device timed out", maxTimeouts)
		return nil
	}
	if mad.Class(call.MAD[mad.ClassOffset]).Family() == mad.ClassSubn {
		fabric.Dest{Route: d.Node.Route(), Guard: d.Node.Guard()}.Address(call)
	} else if err := t.Client.PutGMP(call, &t.port, d.LID()); err != nil {
		r.Outcome = NotSent
		return nil
	}
	if err := t.e.Do(ctx, call); err != nil {
		return err
	}
	r.judge(call.Err)
	if r.Outcome == TimedOut {
		d.timeouts++
	}
	return nil
}

// judge sets the outcome of a request that ended with err. A recording does not have the
// requests that were not sent, whatever the reason was.
func (r *Result) judge(err error) {
	e, _ := errors.AsType[*engine.Error](err)
	switch {
	case err == nil:
		r.Outcome = Answered
	case errors.Is(err, errBudget):
		r.Outcome, r.Detail = Unread, "the budget of datagrams is used up"
	case errors.Is(err, engine.ErrTimeout) && e != nil && e.Attempts > 0:
		r.Outcome = TimedOut // otherwise the question whether the device announces it
	case e != nil && e.Status != 0:
		r.Outcome, r.Detail = Refused, e.Status.Text(e.Class)
		switch e.Status & 0x1c { // IBA 13.4.7
		case mad.StatusBadVersion, mad.StatusBadMethod, mad.StatusBadMethodAttribute:
			r.Outcome = Unsupported
		}
	case e != nil && e.Attempts > 0 && !isSendError(err):
		r.Outcome, r.Detail = Malformed, e.Err.Error()
	default:
		r.Outcome = NotSent
	}
}

func isSendError(err error) bool {
	_, ok := errors.AsType[*engine.SendError](err)
	return ok
}

// mandatory are the attributes that each device must have (IBA 14.2.5, 16.1.3). They are read
// first: a request without an answer counts as one that timed out, and some agents discard
// what they do not have. A sweep does not request the first.
var mandatory = []*mad.Attribute{
	mad.AttrGUIDInfo, mad.AttrNodeInfo, mad.AttrNodeDescription, mad.AttrSwitchInfo, mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrSLtoVLMappingTable,
	mad.AttrVLArbitrationTable, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable,
	mad.AttrPerfClassPortInfo, mad.AttrPortCounters, mad.AttrPortSamplesControl, mad.AttrPortSamplesResult, mad.AttrPortCountersExtended,
}

// classes are the classes in the order in which they are read: classes that devices rarely
// have are the last.
var classes = []mad.Class{mad.ClassSubn, mad.ClassPerf, mad.ClassVendor0A, mad.ClassCongestion, mad.ClassVendor0C, mad.ClassDevMgt, mad.ClassComMgt, mad.ClassSNMP, mad.ClassBM}

// attributes returns all attributes that devices may have, in the order in which they are
// read: after the mandatory ones what devices announce, then the others by class.
func attributes() []*mad.Attribute {
	var announced, others []*mad.Attribute
	for _, class := range classes {
		for _, a := range mad.Attributes() {
			switch {
			case a.Class != class || a.Older || a.Effect(mad.MethodGet) != mad.EffectRead || slices.Contains(mandatory, a) || a == mad.AttrGeneralInfo:
			case a.IsAnnounced() && class == mad.ClassSubn:
				announced = append(announced, a)
			default:
				others = append(others, a)
			}
		}
	}
	slices.SortStableFunc(others, func(a, b *mad.Attribute) int { // the rare SMPs after performance management
		return cmp.Compare(rank(a), rank(b))
	})
	return slices.Concat(mandatory, []*mad.Attribute{mad.AttrGeneralInfo}, announced, others)
}

func rank(a *mad.Attribute) int {
	if a.Class == mad.ClassPerf {
		return -1
	}
	return 0
}

// read reads a device.
func (t *trial) read(ctx context.Context, d *Device) error {
	if d.Unread != "" {
		return nil
	}
	absent := map[mad.Class]string{}
	learned := false
	for _, a := range attributes() {
		if lid := d.LID(); lid != 0 && !learned && a.Class != mad.ClassSubn {
			learned = true
			if err := t.Client.LearnPaths(ctx, &t.port, []mad.LID{lid}); ctx.Err() != nil {
				return err
			}
		}
		first, err := t.attribute(ctx, d, a, absent[a.Class])
		if err != nil {
			return err
		}
		switch {
		case a == mandatory[0] && first.Outcome == NotSent && t.e.Traits().Recorded:
			d.Unread, d.Results = mkeyProtected, nil // keys are not in a recording, nor is the first request
			return nil
		case a.ID == classPortInfo && a.Class != mad.ClassSubn && first.Outcome != Answered:
			absent[a.Class] = "the device does not have the class"
		}
		if a == mad.AttrVendor0AClassPortInfo { // devices announce registers by GeneralInfo
			if err := t.registers(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// classPortInfo is ClassPortInfo in all classes (IBA 13.4.8.1).
const classPortInfo mad.AttributeID = 1

// attribute reads an attribute of a device, and returns the first result. absent is why it is
// not read, or "".
func (t *trial) attribute(ctx context.Context, d *Device, a *mad.Attribute, absent string) (*Result, error) {
	if absent == "" {
		absent = d.lacks(a)
	}
	if absent != "" {
		r := &Result{Attribute: a.Name, Class: a.Class.String(), Outcome: Unread, Detail: absent}
		d.Results = append(d.Results, r)
		return r, nil
	}
	var first *Result
	for _, p := range d.places(a) {
		for _, c := range d.contents(a) {
			r := &Result{Attribute: a.Name, Class: a.Class.String(), Place: strings.Trim(p.text+", "+c.text, ", "), attr: a, modifier: p.modifier}
			call := &engine.Call{Guard: d.Node.Guard()}
			h := mad.Header{Class: a.Class, ClassVersion: a.Version, Method: mad.MethodGet, Attribute: a.ID, Modifier: p.modifier}
			call.PutMAD(h, nil)
			copy(call.MAD[a.Offset():], c.data)
			if t.endsSM(d, a) {
				r.Outcome = NotSent
			} else if err := t.ask(ctx, d, call, r); err != nil {
				return nil, err
			}
			if r.Outcome == Answered {
				r.data = slices.Clone(call.MAD[a.Offset():][:min(a.Size, len(call.MAD)-a.Offset())])
			}
			if first == nil {
				first = r
			}
			d.Results = append(d.Results, r)
			if a == mad.AttrGeneralInfo && r.Outcome == TimedOut {
				d.unannounced = true // its other forms would time out too
				return first, nil
			}
		}
	}
	return first, nil
}

// endsSM reports whether a request would stop the subnet manager at a node of ibsim: that passes
// what it does not simulate on to the program at the node, and OpenSM 3.3.23 there then answers
// nothing more.
func (t *trial) endsSM(d *Device, a *mad.Attribute) bool {
	if t.e.Traits().Name != "ibsim" || a.Class == mad.ClassSubn || d.LID() != t.port.SMLID {
		return false
	}
	return !slices.Contains(mandatory, a) || a == mad.AttrPortSamplesControl || a == mad.AttrPortSamplesResult
}

// contents returns the contents of the requests for an attribute: of performance management,
// the ports that they select.
func (d *Device) contents(a *mad.Attribute) (list []content) {
	f := a.Field("port_select")
	if f == nil || a.Class != mad.ClassPerf {
		return []content{{}}
	}
	for _, num := range d.externalPorts() {
		c := content{make([]byte, a.Size), fmt.Sprintf("port %d", num)}
		f.SetUint(c.data, uint64(num))
		list = append(list, c)
	}
	return list
}

// lacks returns why an attribute is not read from device d; "": it is.
func (d *Device) lacks(a *mad.Attribute) string {
	info := d.port.Info()
	capability := func(word string) string {
		f, g := mad.AttrPortInfo.Field("capability_mask"), mad.AttrPortInfo.Field("capability_mask2")
		switch {
		case uint64(info.CapabilityMask)&f.Words.Code()[word] != 0, uint64(info.CapabilityMask2)&g.Words.Code()[word] != 0:
			return ""
		case g.Words.Code()[word] != 0:
			return "not in PortInfo.CapabilityMask2"
		}
		return "not in PortInfo.CapabilityMask"
	}
	switch a {
	case mad.AttrCongestionLog:
		return "a Get resets its count of events"
	case mad.AttrSwitchInfo, mad.AttrLinearForwardingTable, mad.AttrRandomForwardingTable, mad.AttrMulticastForwardingTable:
		return d.lacksTable(a)
	case mad.AttrSubnNotice:
		return capability("is_notice_supported")
	case mad.AttrPortInfoExtended:
		return capability("is_port_info_extended_supported")
	case mad.AttrSwitchPortStateTable:
		return capability("is_switch_port_state_table_supported")
	case mad.AttrEnhQoSArbiterInfo, mad.AttrEnhPortVLArbiter, mad.AttrEnhSLArbiter:
		return capability("is_enhanced_qos_arbiter_supported")
	case mad.AttrSMInfo: // others discard it
		return capability("is_sm")
	case mad.AttrLedInfo:
		return capability("is_led_info_supported")
	case mad.AttrCableInfo:
		return capability("is_cable_info_supported")
	case mad.AttrLinkSpeedWidthPairsTable:
		return capability("is_link_speed_width_pairs_table_supported")
	case mad.AttrVendorSpecificMadsTable:
		return capability("is_vendor_specific_mads_table_supported")
	case mad.AttrHierarchyInfo:
		return capability("is_hierarchy_info_supported")
	}
	switch {
	case d.unannounced && len(a.Capabilities) > 0 && !a.Class.IsVendor():
		return "the device did not answer what it announces (GeneralInfo)"
	case a.UnknownModifier:
		return "no public source has its modifier"
	case a.Class != mad.ClassSubn && d.LID() == 0:
		return "the device does not have a LID"
	case a.Class == mad.ClassDevMgt:
		return capability("is_device_management_supported")
	case a.Class == mad.ClassComMgt:
		return capability("is_communication_management_supported")
	case a.Class == mad.ClassSNMP:
		return capability("is_snmp_tunneling_supported")
	case a.Class.IsVendor() && !d.isNVIDIA():
		return "only of NVIDIA's devices"
	}
	return ""
}

// lacksTable is lacks of the attributes of switches.
func (d *Device) lacksTable(a *mad.Attribute) string {
	info := d.Node.SwitchInfo()
	switch {
	case !d.Node.IsSwitch():
		return "only of switches"
	case info != nil && (a == mad.AttrRandomForwardingTable && info.RandomFDBCap == 0 || a == mad.AttrMulticastForwardingTable && info.MulticastFDBCap == 0):
		return "the switch does not have the table, by SwitchInfo"
	}
	return ""
}

// registers reads the registers of a device, by the class of the vendor and, if they are
// short enough, by SMPs.
func (t *trial) registers(ctx context.Context, d *Device) error {
	for _, layout := range mad.Registers() {
		for _, c := range variants(layout) {
			d.selectPort(layout, c.data)
			for _, class := range []mad.Class{mad.ClassVendor0A, mad.ClassSubn} {
				if class == mad.ClassSubn && layout.Size > mad.SMPRegisterSize {
					continue
				}
				if err := t.register(ctx, d, layout, class, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// selectPort makes data, a request for a register, select a port with a link, and 48 bytes of
// the memory of a module (linux mlxsw reg.h MLXSW_REG_MCIA_EEPROM_SIZE).
func (d *Device) selectPort(layout *mad.Attribute, data []byte) {
	port := d.externalPorts()[0]
	set := func(name string, v int) {
		if f := layout.Field(name); f != nil {
			f.SetUint(data, uint64(v))
		}
	}
	set("local_port", port&0xff)
	set("lp_msb", port>>8)
	if layout.Field("local_port") != nil {
		set("pnat", int(mad.PortAccessIBPort))
	}
	if layout == mad.LayoutMCIA {
		set("module", port-1)
		set("i2c_device_address", 0x50)
		set("size", 48)
	}
}

// register reads one register.
func (t *trial) register(ctx context.Context, d *Device, layout *mad.Attribute, class mad.Class, c content) error {
	h := mad.Header{Class: mad.ClassVendor0A, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrAccessRegister.ID, Modifier: uint32(layout.Register)}
	r := &Result{Class: "register", Attribute: layout.Name, Place: strings.Trim(c.text+", by GMP", ", ")}
	if class == mad.ClassSubn {
		h = mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrMlnxAccessRegister.ID}
		r.Place = strings.Trim(c.text+", by SMP", ", ")
	}
	d.Results = append(d.Results, r)
	switch {
	case !d.isNVIDIA():
		r.Outcome, r.Detail = Unread, "only of NVIDIA's devices"
		return nil
	case class != mad.ClassSubn && d.LID() == 0:
		r.Outcome, r.Detail = Unread, "the device does not have a LID"
		return nil
	}
	call := &engine.Call{Guard: d.Node.Guard()}
	call.PutMAD(h, nil)
	mad.PutRegister(call.MAD[:], layout, c.data)
	if err := t.ask(ctx, d, call, r); err != nil {
		return err
	}
	if e, ok := errors.AsType[*engine.Error](call.Err); ok && class != mad.ClassSubn {
		if s := mad.RegisterStatusOf(e.Status); s != mad.RegisterStatusOK {
			r.Outcome, r.Detail = registerOutcome(s)
		}
	}
	if r.Outcome != Answered {
		return nil
	}
	data, status, ok := mad.RegisterContent(call.MAD[:], layout)
	switch {
	case !ok:
		r.Outcome, r.Detail = Malformed, "the answer is for another register"
	case status != mad.RegisterStatusOK:
		r.Outcome, r.Detail = registerOutcome(status)
	default:
		r.data, r.attr = slices.Clone(data), layout
	}
	return nil
}

// registerOutcome returns the outcome of a query with a status of the device.
func registerOutcome(s mad.RegisterStatus) (Outcome, string) {
	text := strings.ReplaceAll(s.String(), "_", " ")
	if s.Unsupported() {
		return Unsupported, text
	}
	return Refused, text
}
