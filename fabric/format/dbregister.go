package format

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
)

// dbRegister is a register of a device, or an attribute, whose fields are columns of a section:
// what reg_get and smp_get return on a live fabric, they return on the file.
type dbRegister struct {
	section string
	port    string // the column of the port; "": it is the node's
	attr    *mad.Attribute
	// columns are column=field, where the field is spelt otherwise. A column is found whatever its
	// case, spaces and underscores; one that is missing leaves its field 0.
	columns string
	must    string // the column without whose value there is no answer
	// selects are the columns of which a device has one answer each: the number of a sensor or a fan.
	selects string
	// second: another section has more of it, and counts where both have a line.
	second bool
	finish func(d *dbReader, data []byte, node, num int)
}

// dbRegisters returns all of them.
var dbRegisters = sync.OnceValue(func() []dbRegister {
	return []dbRegister{
		{section: "TEMP_SENSING", attr: mad.RegisterNamed("MTMP"), must: "CurrentTemperature", columns: "CurrentTemperature=temperature"},
		{section: "NODES_INFO", attr: mad.RegisterNamed("MGIR"), must: "HWInfo_DeviceID",
			columns: "HWInfo_DeviceID=device_id HWInfo_DeviceHWRevision=hw_revision HWInfo_UpTime=uptime FWInfo_Major=fw_major FWInfo_Minor=fw_minor FWInfo_SubMinor=fw_sub_minor " +
				"FWInfo_BuildID=fw_build_id FWInfo_Year=fw_year FWInfo_Month=fw_month FWInfo_Day=fw_day FWInfo_Hour=fw_hour FWInfo_PSID=psid FWInfo_INI_File_Version=ini_file_version " +
				"FWInfo_Extended_Major=ext_fw_major FWInfo_Extended_Minor=ext_fw_minor FWInfo_Extended_SubMinor=ext_fw_sub_minor SWInfo_Major=sw_major SWInfo_Minor=sw_minor SWInfo_SubMinor=sw_sub_minor"},
		{section: "GENERAL_INFO_SMP", attr: mad.RegisterNamed("MGIR"), must: "FWInfo_Extended_Major", second: true, finish: (*dbReader).finishGeneral,
			columns: "FWInfo_Extended_Major=ext_fw_major FWInfo_Extended_Minor=ext_fw_minor FWInfo_Extended_SubMinor=ext_fw_sub_minor"},
		{section: "TEMPERATURE_SENSORS", attr: mad.RegisterNamed("MTMP"), must: "Temperature", selects: "SensorIndex=sensor_index", columns: "Temperature=temperature MaxTemperature=max_temperature"},
		{section: "FANS_SPEED", attr: mad.RegisterNamed("MFSM"), must: "FanSpeed", selects: "FanIndex=tacho SensorIndex=tacho", columns: "FanSpeed=rpm", finish: (*dbReader).finishFan},
		{section: "POWER_SUPPLIES", attr: mad.RegisterNamed("MSPS"), must: "IsPresent", finish: (*dbReader).finishSupply},
		{section: "EXTENDED_PORT_INFO", port: "PortNum", attr: mad.AttrExtendedPortInfo, must: "CapabilityMask",
			columns: "StateChangeEnable=state_change_enable RouterLIDEn=router_lid_en SHArPANEn=sharp_an_en AME=ame LinkSpeedSupported=link_speed_supported LinkSpeedEnabled=link_speed_enabled " +
				"LinkSpeedActive=link_speed_active CapabilityMask=capability_mask IsSpecialPort=is_special_port SpecialPortType=special_port_type OOOSLMask=ooo_sl_mask " +
				"AdaptiveTimeoutSLMask=adaptive_timeout_sl_mask UnhealthyReason=unhealthy_reason"},
		{section: "AR_INFO", attr: mad.AttrAdaptiveRoutingInfo, must: "e",
			columns: "e=e is_arn_sup=arn_sup is_frn_sup=frn_sup is_fr_sup=fr_sup fr_enabled=fr_enabled rn_xmit_enabled=rn_xmit_enabled sub_grps_active=sub_grps_active " +
				"group_table_copy_sup=group_table_copy_sup direction_num_sup=dir_num_sup by_sl_cap=by_sl_cap by_sl_en=by_sl_en by_transp_cap=by_transp_cap " +
				"dyn_cap_calc_sup=dyn_cap_calc_sup group_cap=group_cap group_top=group_top group_table_cap=group_table_cap string_width_cap=string_width_cap ar_version_cap=ar_version_cap " +
				"rn_version_cap=rn_version_cap sub_grps_supported=sub_grps_sup enable_by_sl_mask=enable_by_sl_mask ageing_time_value=ageing_time is_hbf_supported=hbf_sup " +
				"by_sl_hbf_en=hbf_en enable_by_sl_mask_hbf=enable_by_sl_mask_hbf is_whbf_supported=whbf_sup whbf_en=whbf_en whbf_granularity=whbf_granularity is_pfrn_supported=pfrn_sup pfrn_enabled=pfrn_en"},
		{section: "VPORTS", port: "PortNum", attr: mad.AttrVPortInfo, must: "VPortGuid", selects: "VPortIndex=", finish: (*dbReader).finishVirtual,
			columns: "VPortGuid=port_guid VPortLid=lid VCapMask=cap_mask VGuidCap=guid_cap VPortClientReg=client_reregister VPortState=vport_state QKEYViolations=q_key_violations PKEYViolations=p_key_violations VPortProfile=port_profile"},
		{section: "PHY_DB12", port: "PortNum", attr: modulePage(), must: "field23", second: true, columns: "field22=vendor_name field23=vendor_pn field24=vendor_rev field26=vendor_sn", finish: (*dbReader).finishPort},
		{section: "PHY_DB16", port: "PortNum", attr: statistics(), must: "field1", finish: (*dbReader).finishStatistics,
			columns: "field0=time_since_last_clear field1=phy_received_bits field2=phy_symbol_errors field3=phy_corrected_bits " +
				"field12=raw_ber_coef field13=raw_ber_magnitude field14=effective_ber_coef field15=effective_ber_magnitude field16=symbol_ber_coef field17=symbol_ber_magnitude"},
		{section: "SYSTEM_GENERAL_INFORMATION", attr: mad.RegisterNamed("MSGI"), must: "SerialNumber",
			columns: "SerialNumber=serial_number PartNumber=part_number Revision=revision ProductName=product_name"},
		{section: "CABLE_INFO", port: "PortNum", attr: modulePage(), must: "PN",
			columns: "Vendor=vendor_name PN=vendor_pn SN=vendor_sn Rev=vendor_rev Temperature=temperature LengthCopperOrActive=cable_length", finish: (*dbReader).finishModule},
		{section: "SM_INFO", attr: mad.AttrSMInfo, must: "SmState", columns: "GUID=guid ActCount=act_count SmState=sm_state Priority=priority"},
	}
})

// modulePage returns register PDDR with the page of the module.
var modulePage = sync.OnceValue(func() *mad.Attribute { return mad.RegisterNamed("PDDR").Resolve(selectModule(), 0) })

// selectModule returns a PDDR that selects the page of the module.
func selectModule() []byte {
	pddr := mad.RegisterNamed("PDDR")
	data := make([]byte, pddr.Size)
	pddr.Field("page_select").SetUint(data, uint64(mad.DiagnosticPageModule))
	return data
}

// statistics returns register PPCNT with the counters for bit error rates.
var statistics = sync.OnceValue(func() *mad.Attribute { return mad.RegisterNamed("PPCNT").Resolve(selectStatistics(), 0) })

// selectStatistics returns a PPCNT that selects these counters.
func selectStatistics() []byte {
	ppcnt := mad.RegisterNamed("PPCNT")
	data := make([]byte, ppcnt.Size)
	ppcnt.Field("grp").SetUint(data, uint64(mad.CounterGroupStatistical))
	return data
}

// bitErrorRates are the fields of statistics that are bit error rates, from before all correction to after it.
var bitErrorRates = []string{"raw_ber", "effective_ber", "symbol_ber"}

// finishStatistics sets the port, and drops the bit error rates of a line whose places hold something else:
// the section has no names, and other versions of ibdiagnet may have more fields before them. After correction a rate is
// not higher than before.
func (d *dbReader) finishStatistics(data []byte, _, num int) {
	setStatisticsPort(data, num)
	last := math.Inf(1)
	for _, rate := range bitErrorRates {
		coef, magnitude := statistics().Field(rate+"_coef").Uint(data), statistics().Field(rate+"_magnitude").Uint(data)
		ber := float64(coef) * math.Pow10(-int(magnitude))
		if coef == 0 || magnitude == 0 || ber > last {
			for _, rate := range bitErrorRates {
				statistics().Field(rate+"_coef").SetUint(data, 0)
				statistics().Field(rate+"_magnitude").SetUint(data, 0)
			}
			d.lacks["has bit error rates in section PHY_DB16 at other places than known: they are kept as text"]++
			return
		}
		last = ber
	}
}

func setStatisticsPort(data []byte, num int) {
	statistics().Field("local_port").SetUint(data, uint64(num))
	statistics().Field("pnat").SetUint(data, uint64(mad.PortAccessIBPort))
}

// plainColumn is the name of a column for comparisons: readers and versions of ibdiagnet spell NodeGUID,
// NodeGuid, FW Version and FWVersion.
func plainColumn(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// like returns the cell of a column, however it is spelt.
func (d *dbReader) like(name string) []byte {
	i, ok := d.plain[plainColumn(name)]
	if !ok {
		return nil
	}
	return d.field(i)
}

// register takes a line of a section that a register is made of. Values that do not parse leave
// their fields 0: the line is kept as text.
func (d *dbReader) register(r *dbRegister) {
	guid, known, ok := dbNumber(d.like("NodeGUID"))
	i, found := d.ids[mad.GUID(guid)]
	num := 0
	if r.port != "" {
		v, knownPort, okPort := dbNumber(d.like(r.port))
		known, ok, num = known && knownPort, ok && okPort, int(min(v, maxPorts+1))
	}
	if !known || !ok || !found || num > int(d.nodes[i].Info.NumPorts) || len(cellText(d.like(r.must))) == 0 {
		return
	}
	if len(d.answers) >= maxRegisters {
		d.lacks["has more about devices than is read: section "+r.section+" is read in part"]++
		return
	}
	data := make([]byte, r.attr.Size)
	switch r.attr {
	case modulePage():
		copy(data, selectModule())
	case statistics():
		copy(data, selectStatistics())
	}
	which := uint64(0)
	for word := range strings.FieldsSeq(r.selects) {
		column, field, _ := strings.Cut(word, "=")
		if v, known, ok := dbNumber(d.like(column)); known && ok && v < 1<<16 {
			which = v
			if f := r.attr.Field(field); f != nil && v <= f.Max() {
				f.SetUint(data, v)
			} else if f != nil {
				return
			}
		}
	}
	for word := range strings.FieldsSeq(r.columns) {
		column, field, _ := strings.Cut(word, "=")
		setText(r.attr.Field(field), data, 0, d.like(column))
	}
	a := fabric.Answer{Node: int32(i), Port: int16(num), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(r.attr.Register), Data: data}
	switch r.attr {
	case mad.AttrExtendedPortInfo:
		a.Class, a.ID, a.Modifier = r.attr.Class, r.attr.ID, uint32(num)
	case mad.AttrVPortInfo:
		a.Class, a.ID, a.Modifier = r.attr.Class, r.attr.ID, uint32(which)
	default:
		if r.attr.Register == 0 {
			a.Class, a.ID, a.Modifier = r.attr.Class, r.attr.ID, 0
		} else {
			d.hasRegisters[i] = true
		}
	}
	if r.finish != nil {
		r.finish(d, data, i, num)
	}
	key := dbRegisterKey{dbKey{i, num, a.ID}, r.attr.Register, uint32(which)}
	switch at, twice := d.registers[key]; {
	case !twice:
		d.registers[key] = dbRegisterAt{len(d.answers), r.second}
		d.answers = append(d.answers, a)
	case at.second && !r.second:
		d.answers[at.index] = a
		d.registers[key] = dbRegisterAt{at.index, false}
	} // else of two lines the first counts
}

// maxRegisters limits what is made of the sections about devices.
const maxRegisters = 2 * maxTotalPorts

// dbRegisterKey is what a file has one line of.
type dbRegisterKey struct {
	dbKey
	register uint16
	which    uint32
}

// dbRegisterAt is where an answer is, and whether another section may have more of it.
type dbRegisterAt struct {
	index  int
	second bool
}

// finishPort sets the port of a register.
func (d *dbReader) finishPort(data []byte, _, num int) {
	modulePage().Field("local_port").SetUint(data, uint64(num))
	modulePage().Field("pnat").SetUint(data, uint64(mad.PortAccessIBPort))
}

// finishGeneral keeps what a device announces by its GeneralInfo.
func (d *dbReader) finishGeneral(data []byte, node, _ int) {
	mad.RegisterNamed("MGIR").Field("device_id").SetUint(data, uint64(d.nodes[node].Info.DeviceID))
	announced := make([]byte, mad.AttrGeneralInfo.Size)
	for i := range 4 {
		v, known, ok := dbNumber(d.like(fmt.Sprintf("CapabilityMask_%d", i)))
		if !known || !ok || v >= 1<<32 {
			return
		}
		binary.BigEndian.PutUint32(announced[4*i:], uint32(v))
	}
	d.announced[node] = announced
}

// finishFan adds the fan to those that MFCR of the node names.
func (d *dbReader) finishFan(data []byte, node, _ int) {
	mfcr := mad.RegisterNamed("MFCR")
	f, tacho := mfcr.Field("tacho_active"), mad.RegisterNamed("MFSM").Field("tacho").Uint(data)
	if tacho >= uint64(f.Bits) {
		return
	}
	key := dbRegisterKey{dbKey{node, 0, mad.AttrAccessRegister.ID}, mfcr.Register, 0}
	at, ok := d.registers[key]
	if !ok {
		at = dbRegisterAt{index: len(d.answers)}
		d.registers[key] = at
		d.answers = append(d.answers, fabric.Answer{Node: int32(node), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(mfcr.Register), Data: make([]byte, mfcr.Size)})
	}
	f.SetUint(d.answers[at.index].Data, f.Uint(d.answers[at.index].Data)|1<<tacho)
}

// finishSupply puts a supply in MSPS of its node, as lib/environment.star reads it: the bits of MSPS have no
// public documentation. The first two lines of a node are its supplies 0 and 1.
func (d *dbReader) finishSupply(data []byte, node, _ int) {
	n := d.supplies[node]
	d.supplies[node]++
	state := make([]byte, 12)
	isTrue := func(column string) bool {
		text := strings.ToLower(string(cellText(d.like(column))))
		return text == "yes" || text == "ok" || text == "true" || text == "1"
	}
	if state[0] = 0x40; isTrue("IsPresent") {
		state[0] = 0x50
	}
	if isTrue("DCState") {
		state[3] = 0x10
	}
	state[7] = 3 // unknown
	if text := cellText(d.like("FanState")); len(text) > 0 {
		if state[7] = 1; isTrue("FanState") {
			state[7] = 2
		}
	}
	field := func(i int) *mad.Field { return mad.RegisterNamed("MSPS").Field(fmt.Sprintf("psu%d", i)) }
	if n > 1 {
		return
	}
	if n == 1 { // the line of supply 0 made the answer
		data = d.answers[d.registers[dbRegisterKey{dbKey{node, 0, mad.AttrAccessRegister.ID}, mad.RegisterNamed("MSPS").Register, 0}].index].Data
	}
	field(n).SetBytes(data, append(state, make([]byte, field(n).Bits/8-len(state))...))
}

// finishVirtual sets whether the virtual port has a LID, and what its port has of virtual ports.
func (d *dbReader) finishVirtual(data []byte, node, num int) {
	attr := mad.AttrVPortInfo
	if attr.Field("lid").Uint(data) != 0 {
		attr.Field("lid_required").SetUint(data, 1)
	}
	index, _, _ := dbNumber(d.like("VPortIndex"))
	info := mad.AttrVirtualizationInfo
	key := dbRegisterKey{dbKey{node, num, info.ID}, 0, 0}
	at, ok := d.registers[key]
	if !ok {
		at = dbRegisterAt{index: len(d.answers)}
		d.registers[key] = at
		d.answers = append(d.answers, fabric.Answer{Node: int32(node), Port: int16(num), Class: info.Class, ID: info.ID, Modifier: uint32(num), Data: make([]byte, info.Size)})
	}
	x := d.answers[at.index].Data
	info.Field("virtualization_enable").SetUint(x, 1)
	if top := info.Field("vport_index_top"); top != nil && index <= top.Max() && index > top.Uint(x) {
		top.SetUint(x, index)
	}
}

// cellText is a cell without the words for no value.
func cellText(cell []byte) []byte {
	cell = bytes.TrimSpace(cell)
	switch string(cell) {
	case "N/A", "NA", dbUnsupported:
		return nil
	}
	return cell
}

// setText sets element i of a field from text: a text, or a number with or without a unit, 58C or 2 m.
// It is false where the text has no such value.
func setText(f *mad.Field, data []byte, i int, cell []byte) bool {
	cell = cellText(cell)
	switch {
	case f == nil, len(cell) == 0:
		return false
	case f.Type == mad.FieldTypeText:
		f.SetBytes(data, append(slices.Clone(cell[:min(len(cell), f.Bits/8)]), make([]byte, max(0, f.Bits/8-len(cell)))...))
		return true
	}
	if v, known, ok := dbNumber(cell); ok && known && f.Scale == 0 && v <= f.Max() {
		f.SetUintAt(data, i, v)
		return true
	}
	number, err := strconv.ParseFloat(strings.TrimRight(strings.TrimSpace(strings.TrimRight(string(cell), "CcVvmW%")), "u"), 64)
	code, ok := f.Code(number)
	if err != nil || !ok {
		return false
	}
	f.SetUintAt(data, i, code)
	return true
}

// finishModule sets what of a module's page is no plain column: its port, its type, what it
// measures, and its optical powers, in dBm, which ibdiagnet prints as unsigned: 65496 is -40.
func (d *dbReader) finishModule(data []byte, _, num int) {
	set := func(field string, v uint64) {
		if f := modulePage().Field(field); f != nil {
			f.SetUint(data, v)
		}
	}
	set("local_port", uint64(num))
	set("pnat", uint64(mad.PortAccessIBPort))
	kind, measures := mad.CableTypeUnidentified, mad.ModuleMonitors(0)
	text := strings.ToLower(string(d.like("TypeDesc")) + string(d.like("Type")))
	switch {
	case strings.Contains(text, "copper"):
		kind = mad.CableTypePassiveCopper
	case strings.Contains(text, "nm"), strings.Contains(text, "optical"):
		kind = mad.CableTypeOptical
	}
	set("cable_type", uint64(kind))
	if modulePage().Field("cable_length").Uint(data) == 0 {
		setText(modulePage().Field("cable_length"), data, 0, []byte(cmp.Or(string(cellText(d.like("LengthDesc"))), string(d.like("Length")))))
	}
	if t := cellText(d.like("Temperature")); len(t) > 0 && !(kind == mad.CableTypePassiveCopper && strings.HasPrefix(string(t), "0C")) {
		measures |= mad.ModuleMonitorsTemperature
	}
	for _, power := range []struct {
		name string
		is   mad.ModuleMonitors
	}{{"rx", mad.ModuleMonitorsRxPower}, {"tx", mad.ModuleMonitorsTxPower}} {
		if kind == mad.CableTypePassiveCopper {
			break
		}
		f, lanes := modulePage().Field(power.name+"_power_lane"), 0
		for lane := range f.Count {
			if v, ok := dBm(d.like(fmt.Sprintf("%s%d Power", power.name, lane+1))); ok {
				f.SetUintAt(data, lane, uint64(uint16(v)))
				lanes++
			}
		}
		low, okLow := dBm(d.like(power.name + "PowerLowThresh"))
		high, okHigh := dBm(d.like(power.name + "PowerHighThresh"))
		if lanes > 0 && okLow && okHigh {
			set(power.name+"_power_low_th", uint64(uint16(low)))
			set(power.name+"_power_high_th", uint64(uint16(high)))
			measures |= power.is
		}
	}
	for column, field := range map[string]string{"AlarmTemperatureHighThresh": "temperature_high_th", "AlarmTemperatureLowThresh": "temperature_low_th"} {
		if t := cellText(d.like(column)); len(t) > 0 && string(t) != "0C" {
			setText(modulePage().Field(field), data, 0, t)
		}
	}
	set("monitor_cap_mask", uint64(measures))
}

// dBm parses an optical power: "inf mW, 65496.000 dBm", or a number of dBm, of 16 bits without sign.
func dBm(cell []byte) (int16, bool) {
	text := string(cellText(cell))
	if i := strings.LastIndexByte(text, ','); i >= 0 {
		text = text[i+1:]
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "dBm")), 64)
	if err != nil || !(v >= -1<<15 && v < 1<<16) {
		return 0, false
	}
	return int16(uint16(int64(v))), true
}

// pkey takes a line of PKEY: an entry of a P_Key table.
func (d *dbReader) pkey() {
	i := d.nodeOf("NodeGUID")
	num, block, index := int(d.number("LocalPortNum", maxPorts, true)), d.number("BlockNum", 1<<16-1, true), d.number("Index", 31, true)
	key, full := d.number("PKey", 0xffff, true), d.number("Membership", 3, true)
	if d.err != nil || num > int(d.nodes[i].Info.NumPorts) {
		return
	}
	at := dbBlockKey{i, num, uint32(block)}
	if len(d.pkeys) >= maxTotalPorts {
		d.fail("at most %d blocks of P_Keys", maxTotalPorts)
		return
	}
	if d.pkeys[at] == nil {
		d.pkeys[at] = make([]byte, mad.AttrPKeyTable.Size)
	}
	mad.AttrPKeyTable.Flat()[0].SetUintAt(d.pkeys[at], int(index), key&0x7fff|full&1<<15)
}

// dbBlockKey is a block of a table of a port.
type dbBlockKey struct {
	node, num int
	block     uint32
}

// generalInfos returns what devices announce by GeneralInfo; of those with registers without it, that they
// have registers.
func (d *dbReader) generalInfos() (list []fabric.Answer) {
	for i := range d.nodes {
		data := d.announced[i]
		if data == nil && !d.hasRegisters[i] {
			continue
		}
		var info mad.GeneralInfoCapabilities
		if data == nil {
			data = make([]byte, mad.AttrGeneralInfo.Size)
		}
		info.Decode(data)
		if d.hasRegisters[i] {
			info.CapMask0 |= mad.Capabilities0AccessRegister
		}
		info.Encode(data)
		list = append(list, fabric.Answer{Node: int32(i), Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrGeneralInfo.ID, Modifier: mad.GeneralInfoFormCapabilities, Data: data})
	}
	return list
}

// addRegisters adds the registers and tables, and what announces them. Blocks of
// P_Keys of which ibdiagnet has no entry are empty.
func (d *dbReader) addRegisters(b *fabric.Builder) {
	for _, a := range d.answers {
		b.AddAnswer(a)
	}
	for _, a := range d.generalInfos() {
		b.AddAnswer(a)
	}
	ports := map[[2]int]bool{}
	for at := range d.pkeys {
		ports[[2]int{at.node, at.num}] = true
	}
	for port := range ports {
		n := &d.nodes[port[0]].Info
		size := int(n.PartitionCap)
		if n.NodeType == mad.NodeTypeSwitch && port[1] > 0 {
			if size = 0; d.nodes[port[0]].Switch != nil {
				size = int(d.nodes[port[0]].Switch.PartitionEnforcementCap)
			}
		}
		const most = 32 // blocks: no device has more, and a file may claim 2,048 for each port
		for block := range uint32(min((size+31)/32, most)) {
			at := dbBlockKey{port[0], port[1], block}
			if d.pkeys[at] == nil {
				d.pkeys[at] = make([]byte, mad.AttrPKeyTable.Size)
			}
		}
	}
	for at, data := range d.pkeys {
		a := fabric.Answer{Node: int32(at.node), Port: int16(at.num), Class: mad.ClassSubn, ID: mad.AttrPKeyTable.ID, Modifier: at.block, Data: data}
		if d.nodes[at.node].Info.NodeType == mad.NodeTypeSwitch {
			a.Modifier |= uint32(at.num) << 16
		}
		b.AddAnswer(a)
	}
}
