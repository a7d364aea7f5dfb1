// Package tenant judges whether tenants of a subnet are isolated from each other: by P_Key tables, the enforcement
// of partitions at switch ports, multicast groups, and the paths that exist.
//
// Read reads who the tenants are, and File.On finds their ports in a fabric. Judge compares each two of them by
// Facts, which the caller has read; it sends no request. What Facts lack is never taken for isolation.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
package tenant

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/hosts"
	"fabsh/mad"
)

// FullMember is the bit of a P_Key for full membership (IBA 10.9.1.1).
const FullMember = 0x8000

// DefaultKey is the P_Key of the default partition, without FullMember (IBA 10.9.1.2).
const DefaultKey = 0x7fff

const (
	maxFile    = 64 << 20 // bytes
	maxTenants = 1024     // each is compared with all others
	maxMembers = 1 << 20  // hosts and GUIDs of all tenants
	maxKeys    = 1 << 20  // P_Keys of all tenants
)

// Membership is how a port is a member of a partition.
type Membership uint8

// Memberships. Any is for files that state none.
const (
	Any Membership = iota
	Full
	Limited
	Both
)

var memberships = map[string]Membership{"": Any, "full": Full, "limited": Limited, "both": Both}

// Key is a partition of a tenant: a P_Key without FullMember.
type Key struct {
	Base       uint16
	Membership Membership
}

// String returns the key as in files: "0x0012=full".
func (k Key) String() string {
	for word, m := range memberships {
		if m == k.Membership && m != Any {
			return fmt.Sprintf("0x%04x=%s", k.Base, word)
		}
	}
	return fmt.Sprintf("0x%04x", k.Base)
}

// Tenant is who has hosts in a subnet.
type Tenant struct {
	Name  string
	Hosts []string   // names, the first word of the names of adapters
	GUIDs []mad.GUID // of ports, adapters or virtual ports
	Keys  []Key      // its partitions; nil: not stated
	// Shared means a service that tenants may reach, such as storage; Serves are the names of those
	// that may, nil: all.
	Shared bool
	Serves []string
}

// File is what a file states about tenants.
type File struct {
	Tenants []Tenant
	Notes   []string // what of the file does not count, and why
}

// Read reads the tenants of a file: YAML or CSV of fabsh, OpenSM's partitions.conf, or the JSON of UFM's
// partitions (GET /ufmRest/resources/pkeys?guids_data=true). name is used in errors.
//
// In the last two, each partition but the default one is a tenant; a port in several is a shared service of them.
func Read(r io.Reader, name string) (*File, error) {
	r, err := format.Bounded(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	f := &File{}
	switch kind := kindOf(text); kind {
	case "", "unknown":
		why := "empty"
		if kind != "" {
			why = "not a file of tenants"
		}
		return nil, fmt.Errorf("%s: %s; want tenants as YAML (tenants: ...) or CSV (with a column tenant), OpenSM's partitions.conf, or UFM's partitions as JSON", name, why)
	case "json":
		err = f.readUFM(text, name)
	case "yaml":
		err = f.readYAML(text, name)
	case "csv":
		err = f.readCSV(text, name)
	default:
		err = f.readPartitions(text, name)
	}
	if err == nil {
		err = f.check(name)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// kindOf returns the format of a file, by its first line that is not a comment.
func kindOf(text []byte) string {
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, len(text)+1)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '{' || line[0] == '[':
			return "json"
		case line == "---" || strings.HasPrefix(line, "tenants:"):
			return "yaml"
		}
		header := strings.ToLower(line)
		first := strings.FieldsFunc(header, func(r rune) bool { return strings.ContainsRune(",;|\t", r) })
		if len(first) > 0 && strings.Trim(first[0], ` "`) == "tenant" && !strings.Contains(line, "=") {
			return "csv"
		}
		if utf8.Valid(text) && strings.ContainsAny(line, "=:;") {
			return "partitions"
		}
		return "unknown"
	}
	return ""
}

// yamlTenant is a tenant in YAML.
type yamlTenant struct {
	Tenant, Name string
	Hosts, GUIDs words
	PKeys        words `yaml:"pkeys"`
	Member       string
	Shared       bool
	Serves       words
}

// readYAML reads an object with the list tenants.
func (f *File) readYAML(text []byte, name string) error {
	var in struct{ Tenants []yamlTenant }
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("%s: %s; want a list tenants, each with tenant, hosts or guids, and if any pkeys, member, shared, serves", name, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	for i, t := range in.Tenants {
		if t.Tenant == "" {
			t.Tenant = t.Name
		}
		err := f.add(row{t.Tenant, t.Hosts, t.GUIDs, t.PKeys, t.Member, t.Shared, t.Serves})
		if err != nil {
			return fmt.Errorf("%s: tenant %d: %w", name, i+1, err)
		}
	}
	return nil
}

// words are words in YAML: a text with commas or spaces, or a list of texts or numbers.
type words []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		*w = words{n.Value}
	case yaml.SequenceNode:
		for _, x := range n.Content {
			if x.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: expected a word", x.Line)
			}
			*w = append(*w, x.Value)
		}
	default:
		return fmt.Errorf("line %d: expected words or a list of words", n.Line)
	}
	return nil
}

// readCSV reads a table with a header: tenant, and hosts, guids, pkeys, member, shared, serves. Rows of the same tenant
// add up.
func (f *File) readCSV(text []byte, name string) error {
	c := csv.NewReader(bytes.NewReader(text))
	for _, separator := range "|\t;" {
		if header, _, _ := bytes.Cut(text, []byte("\n")); bytes.ContainsRune(header, separator) {
			c.Comma = separator
		}
	}
	c.Comment, c.FieldsPerRecord, c.TrimLeadingSpace = '#', 0, true
	fail := func(err error) error {
		if wrong := new(csv.ParseError); errors.As(err, &wrong) {
			return fmt.Errorf("%s:%d: %w; quote lists of hosts that have commas", name, wrong.Line, wrong.Err)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	header, err := c.Read()
	if err != nil {
		return fail(err)
	}
	at := map[string]int{}
	for i, h := range header {
		h = strings.ToLower(strings.TrimSpace(h))
		if !slices.Contains(csvColumns, h) {
			return fmt.Errorf("%s:1: unknown column %.40q; supported: %s", name, h, strings.Join(csvColumns, ", "))
		}
		at[h] = i
	}
	for {
		fields, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fail(err)
		}
		line, _ := c.FieldPos(0)
		field := func(column string) string {
			if i, ok := at[column]; ok {
				return strings.TrimSpace(fields[i])
			}
			return ""
		}
		shared := false
		switch strings.ToLower(field("shared")) {
		case "", "no", "false", "0":
		case "yes", "true", "1":
			shared = true
		default:
			return fmt.Errorf("%s:%d: shared: invalid value %.20q; want yes or no", name, line, field("shared"))
		}
		if err := f.add(row{field("tenant"), words{field("hosts")}, words{field("guids")}, words{field("pkeys")}, field("member"), shared, words{field("serves")}}); err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

var csvColumns = []string{"tenant", "hosts", "guids", "pkeys", "member", "shared", "serves"}

// row is a part of a tenant, as a file has it.
type row struct {
	tenant             string
	hosts, guids, keys []string
	member             string
	shared             bool
	serves             []string
}

// add adds a row to its tenant.
func (f *File) add(r row) error {
	if err := checkName(r.tenant); err != nil {
		return err
	}
	i := slices.IndexFunc(f.Tenants, func(t Tenant) bool { return t.Name == r.tenant })
	if i < 0 {
		i = len(f.Tenants)
		f.Tenants = append(f.Tenants, Tenant{Name: r.tenant})
	}
	t := &f.Tenants[i]
	for _, list := range r.hosts {
		names, err := hosts.Expand(list)
		if err != nil {
			return fmt.Errorf("tenant %s: hosts: %w", r.tenant, err)
		}
		t.Hosts = append(t.Hosts, names...)
	}
	for _, word := range split(r.guids) {
		g, err := parseGUID(word)
		if err != nil || g == 0 {
			return fmt.Errorf("tenant %s: invalid GUID %.40q", r.tenant, word)
		}
		t.GUIDs = append(t.GUIDs, g)
	}
	for _, word := range split(r.keys) {
		k, err := parseKey(word, r.member)
		if err != nil {
			return fmt.Errorf("tenant %s: %w", r.tenant, err)
		}
		t.Keys = append(t.Keys, k)
	}
	t.Shared = t.Shared || r.shared
	t.Serves = append(t.Serves, split(r.serves)...)
	return nil
}

// split returns the words of texts, which commas, semicolons or spaces separate.
func split(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })...)
	}
	return list
}

// checkName returns an error unless name can be a word of reports.
func checkName(name string) error {
	if name == "" {
		return errors.New("a tenant without a name")
	}
	if len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return fmt.Errorf("invalid tenant %.60q: want up to 200 printable characters without spaces", name)
	}
	return nil
}

// parseGUID parses a hexadecimal GUID, with or without 0x.
func parseGUID(word string) (mad.GUID, error) {
	g, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(word), "0x"), 16, 64)
	return mad.GUID(g), err
}

// parseKey parses 0x0012, 0x0012=limited, or 0x8012, which has the bit of full members.
func parseKey(word, member string) (Key, error) {
	text, of, given := strings.Cut(word, "=")
	if !given {
		of = member
	}
	m, ok := memberships[strings.ToLower(strings.TrimSpace(of))]
	if !ok {
		return Key{}, fmt.Errorf("P_Key %.40q: invalid membership %.20q; want full, limited or both", word, of)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 0, 16)
	if err != nil || n&^FullMember == 0 {
		return Key{}, fmt.Errorf("invalid P_Key %.40q; want 0x0001 to 0x7fff, with =full, =limited or =both, or with bit 15 for full members", word)
	}
	if n&FullMember != 0 {
		if m == Limited {
			return Key{}, fmt.Errorf("P_Key %.40q: bit 15 is that of full members, and the membership is limited", word)
		}
		m = max(m, Full)
	}
	return Key{uint16(n) &^ FullMember, m}, nil
}

// partition is a partition of a manager: its members by GUID.
type partition struct {
	name    string
	key     uint16
	members map[mad.GUID]Membership
}

// addPartitions makes tenants of partitions. A port in several is a shared service of them.
func (f *File) addPartitions(list []partition) error {
	in := map[mad.GUID][]int{}
	for i, p := range list {
		for g := range p.members {
			in[g] = append(in[g], i)
		}
	}
	at := map[string]int{}
	tenant := func(name string) *Tenant {
		i, ok := at[name]
		if !ok {
			i = len(f.Tenants)
			at[name] = i
			f.Tenants = append(f.Tenants, Tenant{Name: name})
		}
		return &f.Tenants[i]
	}
	for i := range list {
		if _, taken := at[list[i].name]; taken { // of two partitions with the same name
			list[i].name += fmt.Sprintf("-0x%04x", list[i].key)
		}
		tenant(list[i].name)
	}
	for _, g := range slices.Sorted(maps.Keys(in)) {
		var names []string
		for _, i := range in[g] {
			names = append(names, list[i].name)
		}
		name := strings.Join(names, "+")
		if len(name) > 200 {
			name = fmt.Sprintf("shared-by-%d-%s", len(names), names[0])
		}
		t := tenant(name)
		if len(names) > 1 {
			t.Shared, t.Serves = true, names
		}
		if len(t.GUIDs) == 0 {
			for _, i := range in[g] {
				t.Keys = append(t.Keys, Key{list[i].key, list[i].members[g]})
			}
		} else {
			for n, i := range in[g][:min(len(in[g]), len(t.Keys))] {
				if t.Keys[n].Membership != list[i].members[g] {
					t.Keys[n].Membership = Any
				}
			}
		}
		t.GUIDs = append(t.GUIDs, g)
	}
	f.Tenants = slices.DeleteFunc(f.Tenants, func(t Tenant) bool { return len(t.GUIDs) == 0 })
	return nil
}

// readUFM reads {"0x12": {"partition": NAME, "guids": [{"guid", "membership"}]}} (UFM Enterprise REST API, PKey
// GUIDs). Without the members, as the API lists keys, there are no tenants.
func (f *File) readUFM(text []byte, name string) error {
	var in map[string]struct {
		Partition string
		GUIDs     *[]struct {
			GUID       string
			Membership string
			Index0     bool
		}
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("%s: not the JSON of UFM's partitions: %w; get it with /ufmRest/resources/pkeys?guids_data=true", name, err)
	}
	var list []partition
	for _, number := range slices.Sorted(maps.Keys(in)) {
		k, err := parseKey(number, "")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p, x := partition{in[number].Partition, k.Base, map[mad.GUID]Membership{}}, in[number]
		if x.GUIDs == nil {
			return fmt.Errorf("%s: P_Key %.10s: no list of its GUIDs; get it with /ufmRest/resources/pkeys?guids_data=true", name, number)
		}
		if p.name == "" {
			p.name = fmt.Sprintf("0x%04x", p.key)
		}
		p.name = strings.ReplaceAll(p.name, " ", "_")
		for _, m := range *x.GUIDs {
			g, err := parseGUID(m.GUID)
			of, ok := memberships[strings.ToLower(m.Membership)]
			if err != nil || !ok {
				return fmt.Errorf("%s: P_Key %.10s: invalid GUID %.40q or membership %.20q", name, number, m.GUID, m.Membership)
			}
			p.members[g] = of
		}
		if p.key != DefaultKey {
			list = append(list, p)
		}
	}
	return f.addPartitions(list)
}

// readPartitions reads OpenSM's partitions.conf (opensm doc/partition-config.txt, osm_prtn_config.c): statements of NAME=P_KEY, flags
// : members; Later lines of a partition add members.
func (f *File) readPartitions(text []byte, name string) error {
	var list []partition
	byKey := map[uint16]int{}
	words := map[string]bool{}
	statement, begun, members := "", 0, 0
	add := func() error {
		head, tail, colon := strings.Cut(statement, ":")
		where := fmt.Sprintf("%s:%d", name, begun)
		if !colon {
			return fmt.Errorf("%s: invalid partition %.60q; want NAME=P_KEY : MEMBERS; or a file of tenants", where, strings.TrimSpace(statement))
		}
		flags := strings.Split(head, ",")
		title, number, _ := strings.Cut(strings.TrimSpace(flags[0]), "=")
		title, number = strings.TrimSpace(title), strings.TrimSpace(number)
		if number == "" && title != "" && title[0] >= '0' && title[0] <= '9' {
			title, number = "", title
		}
		member := Limited
		for _, flag := range flags[1:] {
			if k, v, _ := strings.Cut(flag, "="); strings.TrimSpace(k) == "defmember" {
				m, ok := memberships[strings.TrimSpace(v)]
				if !ok || m == Any {
					return fmt.Errorf("%s: invalid defmember %.20q; want full, limited or both", where, v)
				}
				member = m
			}
		}
		key := uint16(DefaultKey)
		switch n, err := strconv.ParseUint(number, 0, 16); {
		case title == "Default" && number == "":
		case number == "":
			return fmt.Errorf("%s: partition %.60q has no P_Key; OpenSM numbers such partitions itself; give it one", where, title)
		case err != nil || n&DefaultKey == 0:
			return fmt.Errorf("%s: invalid P_Key %.20q; want 0x0001 to 0x7fff", where, number)
		default:
			key = uint16(n) & DefaultKey
		}
		if title == "" {
			title = fmt.Sprintf("0x%04x", key)
		}
		i, ok := byKey[key]
		if !ok {
			i = len(list)
			byKey[key] = i
			list = append(list, partition{strings.ReplaceAll(title, " ", "_"), key, map[mad.GUID]Membership{}})
		}
		for _, word := range strings.Split(tail, ",") {
			who, of, given := strings.Cut(strings.TrimSpace(word), "=")
			who, m := strings.TrimSpace(who), member
			if who == "mgid" {
				break // a multicast group
			}
			if given {
				if m, ok = memberships[strings.TrimSpace(of)]; !ok || m == Any {
					return fmt.Errorf("%s: invalid membership %.20q; want full, limited or both", where, of)
				}
			}
			switch who {
			case "", "NONE":
				continue
			case "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "ALL_VCAS", "SELF":
				if key != DefaultKey {
					words[fmt.Sprintf("%s of partition %s", who, list[i].name)] = true
				}
				continue
			}
			g, err := strconv.ParseUint(who, 0, 64)
			if err != nil || g == 0 {
				return fmt.Errorf("%s: invalid member %.60q; want a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF", where, who)
			}
			list[i].members[mad.GUID(g)] = m
			if members++; members > maxMembers {
				return fmt.Errorf("%s: more than %d members", name, maxMembers)
			}
		}
		return nil
	}
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.Contains(line, "\r") {
			return fmt.Errorf("%s:%d: carriage return: OpenSM refuses the file; convert it to line ends of Unix", name, n+1)
		}
		for i, part := range strings.Split(line, ";") {
			if i > 0 && strings.TrimSpace(statement) != "" {
				if err := add(); err != nil {
					return err
				}
			}
			if i > 0 {
				statement, begun = "", 0
			}
			if strings.TrimSpace(part) != "" {
				if begun == 0 {
					begun = n + 1
				}
				statement += " " + part
			}
		}
	}
	if strings.TrimSpace(statement) != "" {
		return fmt.Errorf("%s:%d: missing semicolon at the end of the partition", name, begun)
	}
	for _, w := range slices.Sorted(maps.Keys(words)) {
		f.Notes = append(f.Notes, fmt.Sprintf("%s are not members of a tenant: they are too many ports to be one", w))
	}
	return f.addPartitions(slices.DeleteFunc(list, func(p partition) bool { return p.key == DefaultKey }))
}

// check returns an error if the tenants contradict each other, or are too many.
func (f *File) check(name string) error {
	members, keys := 0, 0
	byGUID, byHost := map[mad.GUID]string{}, map[string]string{}
	known := map[string]bool{}
	for i := range f.Tenants {
		t := &f.Tenants[i]
		known[t.Name] = true
		members, keys = members+len(t.Hosts)+len(t.GUIDs), keys+len(t.Keys)
		for _, host := range t.Hosts {
			if of, ok := byHost[host]; ok && of != t.Name {
				return fmt.Errorf("%s: host %s is of tenants %s and %s; a host that both may reach is a tenant of its own, with shared", name, fabric.Clip(host), of, t.Name)
			}
			byHost[host] = t.Name
		}
		for _, g := range t.GUIDs {
			if of, ok := byGUID[g]; ok && of != t.Name {
				return fmt.Errorf("%s: GUID %v is of tenants %s and %s; a port that both may reach is a tenant of its own, with shared", name, g, of, t.Name)
			}
			byGUID[g] = t.Name
		}
	}
	switch {
	case len(f.Tenants) == 0:
		return fmt.Errorf("%s: no tenants", name)
	case len(f.Tenants) > maxTenants:
		return fmt.Errorf("%s: %d tenants; the limit is %d", name, len(f.Tenants), maxTenants)
	case members > maxMembers || keys > maxKeys:
		return fmt.Errorf("%s: more than %d hosts and GUIDs, or %d P_Keys", name, maxMembers, maxKeys)
	}
	for _, t := range f.Tenants {
		if len(t.Serves) > 0 && !t.Shared {
			return fmt.Errorf("%s: tenant %s: serves requires shared", name, t.Name)
		}
		for _, other := range t.Serves {
			if !known[other] && !strings.Contains(t.Name, "+") && !strings.HasPrefix(t.Name, "shared-by-") {
				return fmt.Errorf("%s: tenant %s: serves: unknown tenant %.60q", name, t.Name, other)
			}
		}
	}
	return nil
}
