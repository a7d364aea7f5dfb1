package builtins

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// guardFor is how long a look for a subnet manager counts.
const guardFor = 10 * time.Second

// guard is what the last look for a subnet manager found.
type guard struct {
	sm    *sa.SM
	until time.Time
}

// refuse is the refusal to change the fabric. It is remembered, for the exit
// status tells of it whatever becomes of the script.
func (c *call) refuse(format string, args ...any) error {
	c.session().refused = true
	return &RefusalError{Reason: c.Name + ": " + fmt.Sprintf(format, args...)}
}

// mayChange: the script may Set attr. A subnet manager expects what it has set
// to stay, so where one is at work it takes --override-sm.
func (c *call) mayChange(attr *mad.Attribute) (*engine.Engine, error) {
	e, err := c.engine()
	if err != nil {
		return nil, err
	}
	s, f := c.session(), c.fiber()
	simulated := e.Traits().Simulated
	switch {
	case len(f.loads) > 0:
		return nil, c.refuse("refused, for %s is being loaded, and a module cannot change the fabric while it is; do it in a function that the script calls", f.loads[len(f.loads)-1])
	case s.o.Write && e.Write():
	case simulated:
		return nil, c.refuse("refused, for this session is read-only: leave --read-only out to change the simulated fabric")
	default:
		return nil, c.refuse("refused, for it would change the fabric, which takes --write")
	}
	if simulated || s.o.OverrideSM || !attr.SMOwned {
		return e, nil
	}
	if now := s.clock.Now(); now.After(s.guard.until) {
		var view *fabric.Fabric
		if s.fabric != nil {
			view = s.fabric.f
		}
		var sm *sa.SM
		err := c.wait(func(ctx context.Context) (err error) {
			sm, err = s.sa.FindSM(ctx, view)
			return err
		})
		if err != nil {
			return nil, c.named(err)
		}
		s.guard = guard{sm: sm, until: s.clock.Now().Add(guardFor)}
	}
	if s.guard.sm != nil {
		return nil, c.refuse("refused, for %v sets %s and expects it to stay; OpenSM neither sees nor repairs a foreign change, for it compares with what it remembers; --override-sm makes the change all the same", s.guard.sm, attr.Name)
	}
	return e, nil
}

var smpSetBuiltin = Builtin{
	Name:  "smp_set",
	Group: groupMAD,
	Params: slices.Concat([]Param{
		{Name: "attr", Kind: KindSMPAttribute, Doc: `name of an attribute: "PortInfo"; or a record whose replace() named what to change`},
		{Name: "target", Kind: KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: KindPort, Default: "None", Doc: "port number, where the attribute is a port's and the target names none"},
	}, smpModifiers, []Param{
		{Name: "**fields", Kind: KindFields, Doc: "fields to change and their new values, as words or numbers"},
	}),
	Doc: `Changes fields of an attribute of subnet management.
It reads the attribute, changes what is named, writes it, and compares the response, which it returns.
Fields where a write asks for something (states, enabled widths and speeds, bits that 1 clears) go out as "leave as it is" unless they are named. A node or port of a fabric is first asked for its node GUID. Without --write, and where a subnet manager owns the attribute without --override-sm, it is refused, which ends the script with status 2.`,
	Example: `
> sw = discover().switches[0]
> smp_set("SwitchInfo", sw, life_time_value=20).life_time_value
20
> p = smp_get("PortInfo", sw, 1)
> smp_set(p.replace(hoq_life=16), sw.ports[1]).hoq_life
16
`,
	fn: func(c *call) (starlark.Value, error) {
		attr, given, named, err := c.fieldsToSet()
		if err != nil {
			return nil, err
		}
		r := &resolver{c: c}
		targets, many, err := r.targets(c.Value("target"))
		if err != nil {
			return nil, err
		}
		values := make([]starlark.Value, len(targets))
		changes := make([]*change.Set, len(targets))
		var open []*change.Set
		for i := range targets {
			t := &targets[i]
			modifier, err := c.smpModifier(attr, t)
			if err != nil {
				return nil, err
			}
			if err := t.reachable(); err != nil {
				values[i] = newFailure(c.failed(t, err))
				continue
			}
			changes[i] = &change.Set{Dest: t.dest(), GUID: t.guid(), Attr: attr, Modifier: modifier, Named: named, Edit: func(data []byte) {
				for _, name := range named {
					copyField(attr.Field(name), data, given)
				}
			}}
			open = append(open, changes[i])
		}
		e, err := c.mayChange(attr)
		if err != nil {
			return nil, err
		}
		if err := c.wait(func(ctx context.Context) error { return change.Apply(ctx, e, open...) }); err != nil {
			return nil, err
		}
		for i, change := range changes {
			switch {
			case change == nil:
			case change.Err != nil:
				c.count(change.Err)
				values[i] = newFailure(c.failed(&targets[i], change.Err))
			default:
				values[i] = newRecord(attr, change.After)
			}
		}
		return results(values, many)
	},
}

// fieldsToSet are the fields that the call names, with their values in an
// attribute that is otherwise blank.
func (c *call) fieldsToSet() (attr *mad.Attribute, given []byte, named []string, err error) {
	if r, ok := c.arg("attr").(*record); ok {
		attr, given, named = r.attr, slices.Clone(r.data), slices.Clone(r.named)
		if attr.Class.Family() != mad.ClassSubn {
			return nil, nil, nil, c.paramError("attr", "got %s, want a record of subnet management", r.Type())
		}
	} else {
		if attr, err = c.attribute(mad.ClassSubn); err != nil {
			return nil, nil, nil, err
		}
		given = make([]byte, attr.Size)
	}
	if !slices.Contains(attr.Methods, mad.MethodSet) {
		return nil, nil, nil, fmt.Errorf("%s: %s cannot be set", c.Name, attr.Name)
	}
	for _, kv := range c.fields {
		f, err := setNamed(attr, given, string(kv[0].(starlark.String)), kv[1])
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if !slices.Contains(named, f.Script) {
			named = append(named, f.Script)
		}
	}
	if len(named) == 0 && !(attr == mad.AttrSMInfo && c.Has("modifier")) { // there it asks for something by itself
		return nil, nil, nil, fmt.Errorf("%s: nothing to change: name fields, smp_set(%q, target, field=value), or give a record.replace(field=value)", c.Name, attr.Name)
	}
	for _, name := range named {
		if attr.Field(name).ReadOnly {
			return nil, nil, nil, fmt.Errorf("%s: %s.%s is read-only: agents ignore it", c.Name, attr.Name, name)
		}
	}
	return attr, given, named, nil
}

// copyField copies all elements of a field.
func copyField(f *mad.Field, to, from []byte) {
	if f.Bits > 64 {
		f.SetBytes(to, f.Bytes(from))
		return
	}
	for i := range f.Count {
		f.SetUintAt(to, i, f.UintAt(from, i))
	}
}

// reachable: SMPs can be addressed to t.
func (t *target) reachable() error { return t.addressSMP(new(engine.Call)) }

func (t *target) dest() fabric.Dest { return fabric.Dest{Route: t.route, LID: t.lid, Guard: t.guard} }

// guid is the node GUID that must answer; 0 where only an address is known.
func (t *target) guid() mad.GUID {
	if t.node == nil {
		return 0
	}
	return t.node.GUID()
}
