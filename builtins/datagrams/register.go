package datagrams

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// RegGet is reg_get, which reads registers of Mellanox devices.
var RegGet = lang.Builtin{
	Name:    "reg_get",
	Returns: "record of name",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "name", Kind: records.KindRegister, Doc: `name of a register: "MTMP", "MGIR", "PPCNT"; or "EEPROM", which is read by several requests`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the register belongs to a port and the target names none"},
		{Name: "via", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: `"gmp": by the vendor's class, to a LID; "smp": for registers up to 44 bytes; None: "gmp" if the target has a LID`},
		{Name: "**fields", Kind: records.KindFields, Doc: "fields that select the data to read, by name: sensor_index=64"},
	},
	Doc: `Reads a register of a Mellanox or NVIDIA device: temperatures, fans, firmware, modules, counters of the physical layer.
Registers are only read: requests that would write a register or clear its counters are refused, even with --write. Devices are asked once, by GeneralInfo, whether they have registers: they get no request if they do not. Without the register the result is an error with the status "unsupported". "EEPROM" reads the module in a port and returns it as SFF8636 or CMIS. This function was not tested on hardware.`,
	Example: `
> sw = discover().switches[0]
> catch(reg_get, "MTMP", sw).status
"unsupported"
> sim.temperature(sw, 46.5)
> reg_get("MTMP", sw, sensor_index=0).temperature
46.5
`,
	Run: lang.Do(func(c *lang.Call, a *regGetArgs) (starlark.Value, error) {
		if strings.EqualFold(a.Name, eeprom) {
			return a.readEEPROM(c)
		}
		r, err := newRegisterRequest(c, a)
		if err != nil {
			return nil, err
		}
		if err := r.read(r.fields); err != nil {
			return nil, err
		}
		return r.results()
	}),
}

// regGetArgs are the arguments of reg_get.
type regGetArgs struct {
	Name   string
	Target starlark.Value
	Port   *int
	Via    *string
	Fields []starlark.Tuple
}

// RegisterNames returns the names that reg_get accepts.
func RegisterNames() []string {
	names := []string{eeprom}
	for _, a := range mad.Registers() {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}

// registerRequest is a query of a register at some targets.
type registerRequest struct {
	*targetRequest
	args   *regGetArgs
	layout *mad.Attribute
	given  []byte // the fields of the call
	ports  []int  // by target
}

func newRegisterRequest(c *lang.Call, a *regGetArgs) (*registerRequest, error) {
	layout := mad.RegisterNamed(a.Name)
	if layout == nil {
		return nil, lang.ParamError("name", "unknown register %q%s; supported: %s", a.Name, fabric.DidYouMean(strings.ToUpper(a.Name), RegisterNames()), strings.Join(RegisterNames(), ", "))
	}
	r := &registerRequest{args: a, layout: layout, given: make([]byte, layout.Size)}
	if err := r.setFields(c); err != nil {
		return nil, err
	}
	class, err := a.class(c, layout)
	if err != nil {
		return nil, err
	}
	r.targetRequest = &targetRequest{c: c, class: class}
	if err := r.resolve(a.Target); err != nil {
		return nil, err
	}
	r.ports = make([]int, len(r.targets))
	for i := range r.targets {
		if r.ports[i], err = r.port(&r.targets[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// class returns the management class of the query.
func (a *regGetArgs) class(c *lang.Call, layout *mad.Attribute) (mad.Class, error) {
	via := ""
	if a.Via != nil {
		via = *a.Via
	}
	switch via {
	case "", "gmp", "smp":
	default:
		return 0, lang.ParamError("via", `got %q, want "gmp" or "smp"`, via)
	}
	if via == "" {
		r := &topology.Resolver{Call: c}
		targets, _, err := r.Targets(a.Target)
		if err != nil {
			return 0, err
		}
		via = "gmp"
		// A target that is only a route has no LID.
		if len(targets) > 0 && !slices.ContainsFunc(targets, func(t topology.Target) bool { return t.LID != 0 || t.Node != nil || t.Route == nil }) {
			via = "smp"
		}
	}
	if via == "gmp" {
		return mad.ClassVendor0A, nil
	}
	if layout.Size > mad.SMPRegisterSize {
		return 0, lang.ParamError("via", "%s has %d bytes, but an SMP has space for %d; use via=\"gmp\" and a LID", layout.Name, layout.Size, mad.SMPRegisterSize)
	}
	return mad.ClassSubn, nil
}

// setFields processes the fields of the call.
func (r *registerRequest) setFields(c *lang.Call) error {
	for _, kv := range r.args.Fields {
		name := string(kv[0].(starlark.String))
		f, err := records.SetNamed(r.layout, r.given, name, kv[1])
		switch {
		case err != nil:
			return lang.Errorf("%w", err)
		case f.ReadOnly:
			return lang.Errorf("%s.%s is a result of the register and cannot be given", r.layout.Name, f.Script)
		case f.W1C && f.Uint(r.given) != 0:
			return c.Refuse("%s.%s is refused, even with --write: registers are only read (%s)", r.layout.Name, f.Script, f.Doc)
		}
	}
	return nil
}

// port returns the port of the query; NoPortGiven if the register does not belong to a
// port.
func (r *registerRequest) port(t *topology.Target) (int, error) {
	local, module := r.layout.Field("local_port"), r.layout.Field("module")
	field := local
	if local == nil {
		field = module
	}
	switch {
	case field == nil && r.args.Port != nil:
		return 0, lang.Errorf("%s does not belong to a port; leave port out", r.layout.Name)
	case field == nil:
		return topology.NoPortGiven, nil
	case slices.ContainsFunc(r.args.Fields, func(kv starlark.Tuple) bool { return string(kv[0].(starlark.String)) == field.Script }):
		return topology.NoPortGiven, nil
	}
	return portOf(r.c, r.layout, r.args.Port, t)
}

// content returns the data for target i.
func (r *registerRequest) content(i int, fields []byte) []byte {
	data := slices.Clone(fields)
	port := r.ports[i]
	if port == topology.NoPortGiven {
		return data
	}
	if f := r.layout.Field("module"); f != nil {
		f.SetUint(data, uint64(max(port-1, 0)))
		return data
	}
	r.layout.Field("local_port").SetUint(data, uint64(port&0xff))
	r.layout.Field("lp_msb").SetUint(data, uint64(port>>8))
	r.layout.Field("pnat").SetUint(data, uint64(mad.PortAccessIBPort))
	return data
}

// fields returns the fields of the call, for all targets.
func (r *registerRequest) fields(int) []byte { return r.given }

// read queries all targets that are not done; fields returns the selecting fields.
func (r *registerRequest) read(fields func(i int) []byte) error {
	calls, err := r.send(func(i int, call *engine.Call) { r.put(call, r.content(i, fields(i))) })
	if err != nil {
		return err
	}
	for i := range calls {
		if r.values[i] != nil {
			continue
		}
		asked := r.layout.Resolve(r.content(i, fields(i)), 0)
		content, err := r.answer(&calls[i])
		if err == nil && r.layout.Resolve(content, 0) != asked {
			err = &RegisterError{layout: r.layout, err: errors.New("the answer is for another part of it")}
		}
		topology.ObserveOne(r.c, r.layout, &r.targets[i], err)
		if r.answered(i, err) {
			r.values[i] = r.targets[i].Answer(records.NewAnswer(r.layout, 0, content), r.ports[i])
		}
	}
	return nil
}

// put writes the query.
func (r *registerRequest) put(call *engine.Call, content []byte) {
	h := mad.Header{Class: mad.ClassVendor0A, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrAccessRegister.ID, Modifier: uint32(r.layout.Register)}
	if r.class == mad.ClassSubn {
		h = mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrMlnxAccessRegister.ID}
	}
	call.PutMAD(h, nil)
	mad.PutRegister(call.MAD[:], r.layout, content)
}

// answer returns the register in the answer.
func (r *registerRequest) answer(call *engine.Call) ([]byte, error) {
	var me *engine.Error
	if errors.As(call.Err, &me) && me.Err == nil {
		if s := mad.RegisterStatusOf(me.Status); s != mad.RegisterStatusOK {
			return nil, &RegisterError{layout: r.layout, status: s}
		}
		if me.Status == mad.StatusBadMethod {
			return nil, &RegisterError{layout: r.layout, status: mad.RegisterStatusMethodNotSupported}
		}
	}
	if call.Err != nil {
		return nil, call.Err
	}
	content, status, ok := mad.RegisterContent(call.MAD[:], r.layout)
	switch {
	case !ok:
		return nil, &RegisterError{layout: r.layout, err: errors.New("the answer is for another register, or malformed")}
	case status != mad.RegisterStatusOK:
		return nil, &RegisterError{layout: r.layout, status: status}
	}
	return content, nil
}

// RegisterError is the error of a register that was not read.
type RegisterError struct {
	layout *mad.Attribute
	status mad.RegisterStatus
	err    error // the error of the answer; nil: see status
}

func (e *RegisterError) Error() string {
	switch {
	case e.status == mad.RegisterStatusOK:
		return fmt.Sprintf("register %s: %v", e.layout.Name, e.err)
	case e.status.Unsupported():
		return fmt.Sprintf("the device does not have register %s (%s)", e.layout.Name, strings.ReplaceAll(e.status.String(), "_", " "))
	}
	return fmt.Sprintf("register %s: %s", e.layout.Name, strings.ReplaceAll(e.status.String(), "_", " "))
}

func (e *RegisterError) Unwrap() error { return e.err }

// Unsupported reports whether the device does not have the register.
func (e *RegisterError) Unsupported() bool { return e.status.Unsupported() }

// Describe returns the error's attributes for scripts.
func (e *RegisterError) Describe() (op, target, status string) {
	switch {
	case e.status == mad.RegisterStatusOK:
		status = "bad answer"
	case e.status.Unsupported():
		status = "unsupported"
	default:
		status = strings.ReplaceAll(e.status.String(), "_", " ")
	}
	return "reg_get(" + e.layout.Name + ")", "", status
}

// eeprom is the name by which reg_get reads a module through MCIA.
const eeprom = "EEPROM"

// A module's EEPROM is read in pieces of 48 bytes, which all firmware supports (linux
// mlxsw reg.h MLXSW_REG_MCIA_EEPROM_SIZE), from either half of its 256 bytes.
const (
	eepromPiece = 48
	eepromPage  = 128
	eepromI2C   = 0x50
)

// readEEPROM reads the modules in ports, and returns records with their own layout,
// SFF8636 or CMIS.
func (a *regGetArgs) readEEPROM(c *lang.Call) (starlark.Value, error) {
	if len(a.Fields) > 0 {
		return nil, lang.Errorf(`"EEPROM" is always read whole; use "MCIA" for parts`)
	}
	mcia := *a
	mcia.Name = "MCIA"
	r, err := newRegisterRequest(c, &mcia)
	if err != nil {
		return nil, err
	}
	m := &modules{registerRequest: r, memory: make([][]byte, len(r.targets)), layout: make([]*mad.Attribute, len(r.targets))}
	failed := slices.Clone(r.values)
	copy(m.values, failed)
	// Both kinds have the lower half and page 0.
	if err := m.page(0, 0, 0); err != nil {
		return nil, err
	}
	if err := m.page(0, eepromPage, eepromPage); err != nil {
		return nil, err
	}
	m.identify()
	if err := m.page(0x11, eepromPage, 2*eepromPage); err != nil {
		return nil, err
	}
	for i := range m.values {
		if m.values[i] == nil {
			m.values[i] = m.targets[i].Answer(records.New(m.layout[i], m.memory[i]), m.ports[i])
		}
	}
	return m.results()
}

// modules are the modules in the ports of a request.
type modules struct {
	*registerRequest
	memory [][]byte         // the contents; nil until identified
	layout []*mad.Attribute // the layout of each
}

// page reads the half of a page that begins at address, to its place in the layouts.
// Page 0x11 exists in CMIS modules with more than one page.
func (m *modules) page(page, address, at int) error {
	for from := 0; from < eepromPage; from += eepromPiece {
		size := min(eepromPiece, eepromPage-from)
		before := slices.Clone(m.values)
		for i := range m.values {
			if page != 0 && m.values[i] == nil && !m.hasPages(i) {
				m.values[i] = starlark.None // no request
			}
		}
		if err := m.read(func(int) []byte { return pieceOf(page, address+from, size) }); err != nil {
			return err
		}
		for i, v := range m.values {
			rec, ok := v.(*records.Record)
			if before[i] != nil || !ok {
				if v == starlark.None {
					m.values[i] = nil
				}
				continue
			}
			m.take(i, rec, at+from, size)
		}
	}
	return nil
}

// pieceOf returns the fields of MCIA that select a piece.
func pieceOf(page, address, size int) []byte {
	data := make([]byte, mad.LayoutMCIA.Size)
	(&mad.MCIA{I2CDeviceAddress: eepromI2C, PageNumber: uint8(page), DeviceAddress: uint16(address), Size: uint16(size)}).Encode(data)
	return data
}

// take stores a piece that target i has answered.
func (m *modules) take(i int, rec *records.Record, at, size int) {
	m.values[i] = nil
	var piece mad.MCIA
	piece.Decode(rec.Data)
	if piece.ModuleStatus != mad.ModuleStatusOK {
		m.answered(i, &moduleError{status: piece.ModuleStatus})
		return
	}
	if m.memory[i] == nil {
		m.memory[i] = make([]byte, 3*eepromPage)
	}
	copy(m.memory[i][at:], piece.EEPROM[:size])
}

// identify determines the layout of each module.
func (m *modules) identify() {
	for i, memory := range m.memory {
		if m.values[i] != nil {
			continue
		}
		switch id := mad.ModuleIdentifier(memory[0]); id {
		case mad.ModuleIdentifierQSFP, mad.ModuleIdentifierQSFPPlus, mad.ModuleIdentifierQSFP28:
			m.layout[i] = mad.LayoutSFF8636
		case mad.ModuleIdentifierQSFPDD, mad.ModuleIdentifierOSFP, mad.ModuleIdentifierSFPDD, mad.ModuleIdentifierDSFP, mad.ModuleIdentifierQSFPCMIS:
			m.layout[i] = mad.LayoutCMIS
		default:
			m.answered(i, &moduleError{kind: id, unknown: true})
		}
	}
}

// hasPages reports whether the module of target i has page 0x11.
func (m *modules) hasPages(i int) bool {
	if m.layout[i] != mad.LayoutCMIS {
		return false
	}
	var c mad.CMIS
	c.Decode(m.memory[i])
	return !c.FlatMem
}

// moduleError is the error of a module that was not read.
type moduleError struct {
	status  mad.ModuleStatus
	kind    mad.ModuleIdentifier
	unknown bool // its kind is, kind
}

func (e *moduleError) Error() string {
	if e.unknown {
		return "unknown layout of modules of kind " + e.kind.String()
	}
	return "the module was not read: " + e.reason()
}

func (e *moduleError) reason() string { return strings.ReplaceAll(e.status.String(), "_", " ") }

// Describe returns the error's attributes for scripts.
func (e *moduleError) Describe() (op, target, status string) {
	if e.unknown {
		return "reg_get(EEPROM)", "", "unsupported"
	}
	return "reg_get(EEPROM)", "", e.reason()
}
