package history

import (
	"math"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Module is a module or cable in a port, with its readings; NaN is an unknown reading. The serial number is
// empty if it is unknown, and of a port without a module.
type Module struct {
	Node         mad.GUID
	Port         int
	Serial, Part string
	Temperature  float64 // degrees Celsius
	RxPower      float64 // of the weakest lane, in mW
	TxPower      float64
}

// BER is the bit error rates of a port; NaN is an unknown rate.
type BER struct {
	Node      mad.GUID
	Port      int
	Up        time.Duration // since the link came up, or its counters were cleared; negative: not known
	Raw       float64       // before FEC
	Effective float64       // after FEC
	Symbol    float64       // of symbols, after FEC and retransmission
}

// Grades of bit error rates, by NVIDIA's limits: raw 1e-5, effective and symbol 1e-14.
const (
	GradeNormal = 0
	GradeRaw    = 1 // before FEC above the limit
	GradeHigh   = 2 // after FEC above the limit
)

const (
	rawLimit    = 1e-5
	symbolLimit = 1e-14
)

// Grade returns the grade of the rates.
func (b *BER) Grade() int {
	switch {
	case b.Effective > symbolLimit || b.Symbol > symbolLimit:
		return GradeHigh
	case b.Raw > rawLimit:
		return GradeRaw
	}
	return GradeNormal
}

// ModulesOf returns the modules among the answers that came with a fabric (device.ReadRegisters): their page
// of PDDR.
func ModulesOf(f *fabric.Fabric) (list []Module) {
	layout := mad.RegisterNamed("PDDR")
	for _, a := range f.Answers() {
		if a.Node == fabric.NoNode || a.Class != mad.ClassVendor0A || a.ID != mad.AttrAccessRegister.ID || a.Modifier != uint32(layout.Register) || len(a.Data) < layout.Size {
			continue
		}
		page := layout.Resolve(a.Data, 0)
		if page.Field("vendor_sn") == nil {
			continue
		}
		if page.Field("cable_type").Uint(a.Data) == uint64(mad.CableTypeUnplugged) {
			list = append(list, Module{Node: f.Nodes()[a.Node].GUID(), Port: int(a.Port), Temperature: math.NaN(), RxPower: math.NaN(), TxPower: math.NaN()})
			continue
		}
		text := func(field string) string { return strings.TrimSpace(page.Field(field).Text(a.Data)) }
		m := Module{Node: f.Nodes()[a.Node].GUID(), Port: int(a.Port), Serial: text("vendor_sn"), Part: text("vendor_pn"), Temperature: math.NaN(), RxPower: math.NaN(), TxPower: math.NaN()}
		monitors := mad.ModuleMonitors(page.Field("monitor_cap_mask").Uint(a.Data))
		if monitors&mad.ModuleMonitorsTemperature != 0 {
			m.Temperature = page.Field("temperature").Number(a.Data, 0)
		}
		weakest := func(field string) float64 {
			x, lowest := page.Field(field), math.Inf(1)
			for lane := range x.Count {
				lowest = min(lowest, x.Number(a.Data, lane))
			}
			return math.Pow(10, lowest/10) // of dBm
		}
		if monitors&mad.ModuleMonitorsRxPower != 0 {
			m.RxPower = weakest("rx_power_lane")
		}
		if monitors&mad.ModuleMonitorsTxPower != 0 {
			m.TxPower = weakest("tx_power_lane")
		}
		list = append(list, m)
	}
	return list
}

// RatesOf returns the bit error rates among the answers that came with a fabric (device.ReadErrorRates).
func RatesOf(f *fabric.Fabric) (list []BER) {
	layout := mad.RegisterNamed("PPCNT")
	for _, a := range f.Answers() {
		if a.Node == fabric.NoNode || a.Class != mad.ClassVendor0A || a.ID != mad.AttrAccessRegister.ID || a.Modifier != uint32(layout.Register) || len(a.Data) < layout.Size {
			continue
		}
		page := layout.Resolve(a.Data, 0)
		if page.Field("raw_ber_coef") == nil {
			continue
		}
		rate := func(name string) float64 {
			magnitude := page.Field(name + "_ber_magnitude").Uint(a.Data)
			switch {
			case magnitude == 0: // not measured
				return math.NaN()
			case magnitude >= 254: // 15e-255: no error was counted
				return 0
			}
			return float64(page.Field(name+"_ber_coef").Uint(a.Data)) * math.Pow(10, -float64(magnitude))
		}
		b := BER{Node: f.Nodes()[a.Node].GUID(), Port: int(a.Port), Up: -1, Raw: rate("raw"), Effective: rate("effective"), Symbol: rate("symbol")}
		if ms := page.Field("time_since_last_clear").Uint(a.Data); ms < math.MaxInt64/uint64(time.Millisecond) {
			b.Up = time.Duration(ms) * time.Millisecond
		}
		list = append(list, b)
	}
	return list
}

// WantsModules reports whether the modules have not been recorded on the day of now, UTC.
func (r *Recorder) WantsModules(now time.Time) bool {
	return r.modulesDay < dayOf(now.Unix())
}

// modules keeps the lives of modules and cables, by serial number, and their readings of the day. A cable
// that shows one serial number at both ends is one row.
func (w *writer) modules(list []Module) {
	if list == nil || w.err != nil {
		return
	}
	type place struct{ a, b int64 }
	w.after = append(w.after, func() { w.Recorder.modulesDay = dayOf(w.t) })
	w.mark("modules", dayOf(w.t))
	now, parts := map[string][]int64{}, map[string]string{}
	readings := map[string]map[int64]float64{SampleTemperature: {}, SampleRxPower: {}, SampleTxPower: {}}
	looked := map[int64]bool{} // ports whose module is known
	for _, m := range list {
		id := w.port(portKey{m.Node, m.Port}, 0)
		looked[id] = true
		for kind, v := range map[string]float64{SampleTemperature: m.Temperature, SampleRxPower: m.RxPower, SampleTxPower: m.TxPower} {
			if !math.IsNaN(v) {
				readings[kind][id] = v
			}
		}
		if m.Serial != "" {
			now[m.Serial], parts[m.Serial] = append(now[m.Serial], id), m.Part
		}
	}
	places := map[string][]place{}
	for serial, ports := range now {
		slices.Sort(ports)
		ports = slices.Compact(ports)
		if len(ports) == 2 {
			places[serial] = []place{{ports[0], ports[1]}}
			continue
		}
		for _, p := range ports { // of a cable, where one end is not read; more than two: no serial number
			places[serial] = append(places[serial], place{a: p})
		}
	}
	open := w.rows(tableCable, "till is null")
	is, before := map[string][]place{}, map[string]bool{}
	for _, row := range open {
		serial, _ := row[0].(string)
		at := place{number(row[1]), number(row[2])}
		before[serial] = true
		// One end of a cable, where the other was not read.
		if x := places[serial]; len(x) == 1 && x[0].b == 0 && (x[0].a == at.a && !looked[at.b] || x[0].a == at.b && !looked[at.a]) {
			places[serial][0] = at
		}
		if slices.Contains(places[serial], at) || places[serial] == nil && !looked[at.a] && !looked[at.b] {
			is[serial] = append(is[serial], at)
			continue
		}
		ended := slices.Clone(row)
		ended[4] = w.t
		w.put(tableCable, row, ended)
		if places[serial] == nil {
			w.cableEvent(CableGone, serial, at.a, at.b)
		}
	}
	for _, serial := range sortedKeys(places) {
		for _, at := range places[serial] {
			if slices.Contains(is[serial], at) {
				continue
			}
			var b any
			if at.b != 0 {
				b = at.b
			}
			w.insert(tableCable, serial, at.a, b, w.t, nil, parts[serial])
			switch {
			case before[serial]:
				w.cableEvent(CableMoved, serial, at.a, at.b)
			case len(open) > 0:
				w.cableEvent(CableNew, serial, at.a, at.b)
			}
		}
	}
	for _, kind := range []string{SampleTemperature, SampleRxPower, SampleTxPower} {
		w.keepDaily(kind, readings[kind], kind == SampleTemperature)
	}
}

// cableEvent adds an event of a module or cable.
func (w *writer) cableEvent(kind, serial string, a, b int64) {
	e := Event{Kind: kind, Port: noNum, PeerPort: noNum, Subject: serial}
	for k, id := range w.portsByID(a, b) {
		if id == a {
			e.Node, e.Port = k.node, k.num
		} else {
			e.PeerNode, e.PeerPort = k.node, k.num
		}
	}
	if e.Node != 0 {
		e.Now = portName(w.sweep, portKey{e.Node, e.Port})
	}
	if e.PeerNode != 0 {
		e.Now += " - " + portName(w.sweep, portKey{e.PeerNode, e.PeerPort})
	}
	if kind == CableGone {
		e.Was, e.Now = e.Now, ""
	}
	w.event(e)
}

// portsByID returns the ports of ids.
func (w *writer) portsByID(ids ...int64) map[portKey]int64 {
	list := map[portKey]int64{}
	for _, known := range []map[portKey]int64{w.ids, w.added} {
		for k, id := range known {
			if k.num != noNum && id != 0 && slices.Contains(ids, id) {
				list[k] = id
			}
		}
	}
	return list
}

// keepDaily writes samples of the day: the largest reading of it, or the smallest.
func (w *writer) keepDaily(kind string, values map[int64]float64, largest bool) {
	if len(values) == 0 || w.err != nil {
		return
	}
	day, id := dayOf(w.t), w.word("sample", kind)
	var ports []byte
	for _, row := range w.rows(tableHour, "t = ? and kind = ?", day, id) {
		data, _ := row[2].([]byte)
		if was, err := decodeHour(data); err == nil {
			ports = was
		}
	}
	for port, v := range values {
		if port <= 0 || port >= maxPorts {
			continue
		}
		if int(port) >= len(ports) {
			ports = append(ports, make([]byte, int(port)+1-len(ports))...)
		}
		b := encodeSample(kind, v)
		if old := ports[port]; old == noSample || b > old == largest {
			ports[port] = b
		}
	}
	w.putHour(day, kind, ports)
}

// errorRates keeps the bit error rates that are not normal, or whose grade has changed, and the grades of
// the day.
func (w *writer) errorRates(list []BER) {
	if list == nil || w.err != nil {
		return
	}
	if w.grades == nil {
		w.Recorder.grades = map[int64]int64{}
		rows, err := w.tx.QueryContext(w.ctx, "select b.port, b.grade from ber b join (select port, max(t) as t from ber group by port) l on l.port = b.port and l.t = b.t")
		if err != nil {
			w.err = err
			return
		}
		for rows.Next() && w.err == nil {
			var port, grade int64
			w.err = rows.Scan(&port, &grade)
			w.grades[port] = grade
		}
		rows.Close()
	}
	grades := map[int64]float64{}
	known := func(v float64) any {
		if math.IsNaN(v) {
			return nil
		}
		return v
	}
	done := map[int64]bool{}
	for i := range list {
		b := &list[i]
		id, grade := w.port(portKey{b.Node, b.Port}, 0), int64(b.Grade())
		if done[id] {
			continue
		}
		done[id], grades[id] = true, float64(grade)
		if grade == GradeNormal && w.grades[id] == GradeNormal {
			continue
		}
		up := int64(-1)
		if b.Up >= 0 {
			up = int64(b.Up / time.Second)
		}
		w.insert(tableBER, id, w.t, up, known(b.Raw), known(b.Effective), known(b.Symbol), grade)
		w.after = append(w.after, func() { w.Recorder.grades[id] = grade })
	}
	w.keepDaily(SampleBERGrade, grades, true)
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
