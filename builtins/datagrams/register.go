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

// RegGet is reg_get: registers of Mellanox' devices.
var RegGet = lang.Builtin{
	Name:    "reg_get",
	Returns: "record of name",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "name", Kind: records.KindRegister, Doc: `name of a register: "MTMP", "MGIR", "PPCNT"; or "EEPROM", which is read through several`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, where the register is a port's and the target names none"},
		{Name: "via", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: `"gmp", by the vendor's class, to a LID; "smp", for registers up to 44 bytes; None: by GMP where the target has a LID`},
		{Name: "**fields", Kind: records.KindFields, Doc: "the fields that choose what is read, by name: sensor_index=64"},
	},
	Doc: `Reads a register of a Mellanox or NVIDIA device: temperatures, fans, firmware, modules, counters of the physical layer.
Registers are only ever read: what would write one, or clear what it counts, is refused, with --write too. A device without the register answers with an error whose status is "unsupported". "EEPROM" reads what is plugged into a port, and returns it as SFF8636 or CMIS. This was not tried on hardware.`,
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

// RegisterNames are the names that reg_get takes.
func RegisterNames() []string {
	names := []string{eeprom}
	for _, a := range mad.Registers() {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}

// registerRequest is a query of a register of some targets.
type registerRequest struct {
	*targetRequest
	args   *regGetArgs
	layout *mad.Attribute
	given  []byte // the fields that the call names
	ports  []int  // by target
}

func newRegisterRequest(c *lang.Call, a *regGetArgs) (*registerRequest, error) {
	layout := mad.RegisterNamed(a.Name)
	if layout == nil {
		return nil, lang.ParamError("name", "unknown register %q%s: there are %s", a.Name, fabric.DidYouMean(strings.ToUpper(a.Name), RegisterNames()), strings.Join(RegisterNames(), ", "))
	}
	r := &registerRequest{args: a, layout: layout, given: make([]byte, layout.Size)}
	if err := r.choose(c); err != nil {
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

// class is the management class that the query goes by.
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
		// A route alone has no LID.
		if len(targets) > 0 && !slices.ContainsFunc(targets, func(t topology.Target) bool { return t.LID != 0 || t.Node != nil || t.Route == nil }) {
			via = "smp"
		}
	}
	if via == "gmp" {
		return mad.ClassVendor0A, nil
	}
	if layout.Size > mad.SMPRegisterSize {
		return 0, lang.ParamError("via", "%s has %d bytes, and an SMP holds %d of a register: go by GMP, to a LID", layout.Name, layout.Size, mad.SMPRegisterSize)
	}
	return mad.ClassSubn, nil
}

// choose takes up the fields that the call names.
func (r *registerRequest) choose(c *lang.Call) error {
	for _, kv := range r.args.Fields {
		name := string(kv[0].(starlark.String))
		f, err := records.SetNamed(r.layout, r.given, name, kv[1])
		switch {
		case err != nil:
			return lang.Errorf("%w", err)
		case f.ReadOnly:
			return lang.Errorf("%s.%s is what the register answers: it chooses nothing", r.layout.Name, f.Script)
		case f.W1C && f.Uint(r.given) != 0:
			return c.Refuse("%s.%s is refused, with --write too: registers are only read (%s)", r.layout.Name, f.Script, f.Doc)
		}
	}
	return nil
}

// port is the port that is meant; NoPortGiven where the register is not a port's.
func (r *registerRequest) port(t *topology.Target) (int, error) {
	local, module := r.layout.Field("local_port"), r.layout.Field("module")
	field := local
	if local == nil {
		field = module
	}
	switch {
	case field == nil && r.args.Port != nil:
		return 0, lang.Errorf("%s is not a port's: leave port out", r.layout.Name)
	case field == nil:
		return topology.NoPortGiven, nil
	case slices.ContainsFunc(r.args.Fields, func(kv starlark.Tuple) bool { return string(kv[0].(starlark.String)) == field.Script }):
		return topology.NoPortGiven, nil
	}
	return portOf(r.c, r.layout, r.args.Port, t)
}

// content is what goes out to target i.
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

// fields are those that the call names, of all targets.
func (r *registerRequest) fields(int) []byte { return r.given }

// read queries all targets that are not done, of the fields that choose.
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
			err = &RegisterError{layout: r.layout, err: errors.New("the answer is about another part of it")}
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

// answer is the register in the answer.
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
		return nil, &RegisterError{layout: r.layout, err: errors.New("the answer is about another register, or malformed")}
	case status != mad.RegisterStatusOK:
		return nil, &RegisterError{layout: r.layout, status: status}
	}
	return content, nil
}

// RegisterError is why a device did not tell a register.
type RegisterError struct {
	layout *mad.Attribute
	status mad.RegisterStatus
	err    error // what is wrong with the answer; nil: status says it all
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

// Unsupported: the device has no such register.
func (e *RegisterError) Unsupported() bool { return e.status.Unsupported() }

// Describe is what a script sees of the error.
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
