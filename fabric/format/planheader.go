package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"fabsh/fabric"
)

// planHeader is the row of a table that names its columns.
type planHeader struct {
	kind   planTableKind
	ends   [2]map[string]int // columns by field, of both ends of a cable
	common map[string]int    // columns of the cable, or of the other tables
	names  []string          // as the table spells them
	// adapter: a number in the port column of that end is the number of an adapter where the device
	// is a host.
	adapter [2]bool
	inherit bool // empty cells of the place and type are those of the row above (Cornelis)
}

type planTableKind int

const (
	tableLinks    planTableKind = iota // cables
	tableNodes                         // devices
	tableProfiles                      // adapters of a profile, by the names of their interfaces
	tableFloor                         // racks and halls
	tableAdapters                      // numbers and names of adapters (hca_mapping)
	tablePartitions
)

// endWords are the words by which names of columns show to which end they belong.
var endWords = map[string]int{
	"a": 0, "start": 0, "src": 0, "source": 0, "local": 0, "from": 0,
	"b": 1, "z": 1, "end": 1, "dst": 1, "dest": 1, "destination": 1, "remote": 1, "peer": 1, "neighbor": 1, "to": 1,
}

// planFields are the fields, by the names that their columns have, without the end.
var planFields = func() map[string]string {
	fields := map[string]string{}
	for field, names := range map[string]string{
		"device":     "device node nodename name hostname host server switch system systemname devicename guid nodeguid switchguid portguid",
		"port":       "port portnum portnumber portname portid interface interfacename ifname termination physicalport",
		"adapter":    "hca hcaport hcanumber hcaname adapter",
		"rack":       "rack racknumber rackname rackid cabinet",
		"unit":       "u ru unit uheight uposition rackunit position elevation location",
		"hall":       "hall datahall room floor",
		"row":        "row aisle",
		"group":      "rackgroup",
		"kind":       "type nodetype devicetype",
		"model":      "model nodemodel platform devicemodel",
		"firmware":   "firmware fw firmwareversion fwversion",
		"serial":     "serial serialnumber sn",
		"role":       "role noderole",
		"rail":       "rail",
		"board":      "name2",
		"label":      "label cablelabel cableid shuffleid cablename",
		"length":     "length cablelength",
		"lengthunit": "lengthunit",
		"state":      "state status linkstate portstate",
		"protocol":   "protocol",
		"width":      "width linkwidth",
		"speed":      "speed linkspeed rate",
		"profile":    "serverprofile",
		"nic":        "customnicname",
		"osnic":      "nicosname",
		"rdma":       "rdmaname",
		"partition":  "partition partitionname",
		"pkey":       "pkey",
		"manager":    "sm subnetmanager",
	} {
		for name := range strings.FieldsSeq(names) {
			fields[name] = field
		}
	}
	return fields
}()

// commonFields are fields of a cable, not of an end, wherever their column is.
var commonFields = []string{"label", "length", "lengthunit", "state", "protocol", "width", "speed", "profile", "nic", "osnic", "rdma", "partition", "pkey", "manager"}

// headerWords cuts the name of a column into words, in lower case, at all that is not a letter or digit and
// where small letters are followed by a capital: "#Fields:StartDevice" is start, device.
func headerWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]):
			flush()
		}
		word = append(word, r)
	}
	flush()
	if len(words) > 1 && (words[0] == "fields" || words[0] == "side") {
		words = words[1:]
	}
	if n := len(words); n > 2 && strings.Trim(words[n-1], "0123456789") == "" && strings.HasPrefix(words[0], "u") {
		words = words[:n-1] // U height_1
	}
	return words
}

// headerName returns the end that the name of a column shows, -1 if none, and its field; "" if it is
// unknown. The name of an end alone is its device.
func headerName(name string) (end int, field, raw string) {
	words := headerWords(name)
	if len(words) == 0 || len(words) > 5 {
		return -1, "", ""
	}
	raw = strings.Join(words, "")
	if f := planFields[raw]; f != "" {
		return -1, f, raw
	}
	if e, ok := endWords[words[0]]; ok {
		return endField(e, strings.Join(words[1:], ""))
	}
	if n := len(words) - 1; n > 0 {
		if e, ok := endWords[words[n]]; ok {
			return endField(e, strings.Join(words[:n], ""))
		}
	}
	for _, word := range []string{"start", "end", "src", "dst", "source", "destination", "neighbor"} { // startdevice
		if rest, ok := strings.CutPrefix(raw, word); ok {
			return endField(endWords[word], rest)
		}
	}
	return -1, "", raw
}

func endField(end int, raw string) (int, string, string) {
	if raw == "" {
		return end, "device", raw
	}
	return end, planFields[raw], raw
}

// headerOf returns the header that a row is; nil: it is not one.
func headerOf(cells []string) *planHeader {
	type column struct {
		at, end    int
		field, raw string
	}
	var columns []column
	count := map[string]int{} // of columns of no end, by field
	for i, c := range cells {
		end, field, raw := headerName(c)
		if field == "" {
			continue
		}
		columns = append(columns, column{i, end, field, raw})
		if end < 0 {
			count[field]++
		}
	}
	if len(columns) < 2 {
		return nil
	}
	if count["device"] == 3 && count["port"]+count["adapter"] == 2 { // CVT's manual prints a unit as a second name
		for i := range columns {
			next := i + 1
			if c := &columns[i]; c.field == "device" && c.end < 0 && (next == len(columns) || columns[next].field != "port" && columns[next].field != "adapter") {
				c.field = "unit"
				break
			}
		}
	}
	h := &planHeader{common: map[string]int{}, names: slices.Clone(cells)}
	h.ends[0], h.ends[1] = map[string]int{}, map[string]int{}
	named := [2]bool{} // a column device exists beside one name, which is then the port (NetBox)
	for _, c := range columns {
		if c.end >= 0 && c.raw == "device" {
			named[c.end] = true
		}
	}
	seen := map[string]int{}
	for _, c := range columns {
		if slices.Contains(commonFields, c.field) && c.end < 0 {
			if _, twice := h.common[c.field]; !twice {
				h.common[c.field] = c.at
			}
			continue
		}
		field := c.field
		if c.end >= 0 && c.raw == "name" && named[c.end] {
			field = "port"
		}
		adapter := field == "adapter"
		if adapter {
			field = "port"
		}
		end := c.end
		if end < 0 {
			if end = seen[field]; end > 1 {
				if field == "device" || field == "port" {
					return nil
				}
				continue
			}
			seen[field]++
		}
		if _, twice := h.ends[end][field]; twice {
			if field == "device" || field == "port" {
				return nil
			}
			continue
		}
		h.ends[end][field] = c.at
		h.adapter[end] = adapter
	}
	if h = h.classify(cells); h != nil && h.kind == tableLinks {
		for _, field := range []string{"model", "firmware", "serial"} {
			if count[field] == 1 { // of the cable
				delete(h.ends[0], field)
			}
		}
	}
	return h
}

// classify decides what kind of table a header begins; nil: none that is known.
func (h *planHeader) classify(cells []string) *planHeader {
	has := func(end int, fields ...string) bool {
		for _, f := range fields {
			if _, ok := h.ends[end][f]; !ok {
				return false
			}
		}
		return true
	}
	_, profile := h.common["profile"]
	_, rdma := h.common["rdma"]
	_, partition := h.common["partition"]
	some := 0
	for _, f := range []string{"kind", "model", "rack", "unit", "role", "rail", "firmware", "serial"} {
		if has(0, f) {
			some++
		}
	}
	switch {
	case has(0, "device", "port") && has(1, "device", "port"):
		h.inherit = has(0, "group", "board") && has(1, "group", "board")
		// A number is an adapter's in a column HCA/Port, and where a column states which devices are hosts.
		for end := range 2 {
			h.adapter[end] = h.adapter[end] || has(end, "kind") && !h.inherit
		}
	case profile && rdma && !has(0, "device"):
		h.kind = tableProfiles
	case partition && len(h.ends[0]) == 0:
		h.kind = tablePartitions
	case has(0, "device") && !has(1, "device") && some >= 2:
		h.kind = tableNodes
	case has(0, "hall", "rack") && !has(0, "device"):
		h.kind = tableFloor
	case len(cells) == 2 && has(0, "port") && has(1, "port") && h.adapter[1]:
		h.kind = tableAdapters
	default:
		return nil
	}
	return h
}

// mapKeys are the names of columns in a mapping, and their ends and fields.
var mapKeys = map[string]struct {
	end   int
	field string
}{
	"a_name": {0, "device"}, "a_port": {0, "port"}, "a_hall": {0, "hall"}, "a_row": {0, "row"}, "a_rack": {0, "rack"}, "a_unit": {0, "unit"},
	"b_name": {1, "device"}, "b_port": {1, "port"}, "b_hall": {1, "hall"}, "b_row": {1, "row"}, "b_rack": {1, "rack"}, "b_unit": {1, "unit"},
	"label": {-1, "label"}, "length": {-1, "length"},
}

// mapOrder is the order of the keys of a mapping in messages.
var mapOrder = []string{"a_name", "a_port", "b_name", "b_port", "a_hall", "a_row", "a_rack", "a_unit", "b_hall", "b_row", "b_rack", "b_unit", "label", "length"}

// PlanMap names the columns of a plan whose header cannot be recognised: the name of a column, or Col and
// its number, by a_name, a_port, b_name, b_port and so on.
type PlanMap map[string]string

// ParsePlanMap parses "a_name=Device,a_port=Col 3,...". Empty text is no mapping.
func ParsePlanMap(text string) (PlanMap, error) {
	if text == "" {
		return nil, nil
	}
	m := PlanMap{}
	for item := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch _, known := mapKeys[key]; {
		case !ok || value == "":
			return nil, fmt.Errorf("want KEY=COLUMN,..., as in a_name=Device,a_port=Col 3, not %q", item)
		case !known:
			return nil, fmt.Errorf("unknown key %q; supported: %s", key, strings.Join(mapOrder, ", "))
		case m[key] != "":
			return nil, fmt.Errorf("key %s is given twice", key)
		}
		m[key] = value
	}
	for _, key := range mapOrder[:4] {
		if m[key] == "" {
			return nil, fmt.Errorf("%s is missing; a_name, a_port, b_name and b_port are required", key)
		}
	}
	return m, nil
}

// header returns the header that a row is by the mapping; nil: a column that the mapping names is not in
// it.
func (m PlanMap) header(cells []string) *planHeader {
	h := &planHeader{common: map[string]int{}, names: slices.Clone(cells)}
	h.ends[0], h.ends[1] = map[string]int{}, map[string]int{}
	for key, name := range m {
		var at int
		if lower := strings.ToLower(name); !scans(lower, "col %d", &at) && !scans(lower, "column %d", &at) {
			at = slices.IndexFunc(cells, func(c string) bool { return strings.EqualFold(c, name) }) + 1
		}
		if at < 1 {
			return nil
		}
		if k := mapKeys[key]; k.end < 0 {
			h.common[k.field] = at - 1
		} else {
			h.ends[k.end][k.field] = at - 1
		}
	}
	return h
}

// missing lists the columns of the mapping that a row does not have.
func (m PlanMap) missing(cells []string) string {
	var list []string
	for _, key := range mapOrder {
		if name := m[key]; name != "" && (PlanMap{key: name}).header(cells) == nil {
			list = append(list, key+"="+name)
		}
	}
	return strings.Join(list, ", ")
}

// someQuoted lists the cells of a row for messages.
func someQuoted(cells []string) string {
	const most = 12
	var list []string
	for _, c := range cells[:min(len(cells), most)] {
		list = append(list, strconv.Quote(fabric.Clip(c)))
	}
	if len(cells) > most {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}

// numbered reports whether the mapping names all columns by number: there is no header then.
func (m PlanMap) numbered() bool { return len(m) > 0 && m.header(nil) != nil }

// proposal returns the mapping that a row suggests, with ? for what it does not show, and how many
// columns it shows.
func proposal(cells []string) (text string, known int) {
	h := [2]map[string]string{{}, {}}
	seen := map[string]int{}
	for _, c := range cells {
		end, field, _ := headerName(c)
		if field == "adapter" {
			field = "port"
		}
		if field != "device" && field != "port" {
			continue
		}
		if end < 0 {
			end = min(seen[field], 1)
			seen[field]++
		}
		if h[end][field] == "" {
			h[end][field] = c
			known++
		}
	}
	var parts []string
	for _, key := range mapOrder[:4] {
		name := h[mapKeys[key].end][mapKeys[key].field]
		if name == "" {
			name = "?"
		}
		parts = append(parts, key+"="+name)
	}
	return strings.Join(parts, ","), known
}
