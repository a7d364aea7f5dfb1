// Package accept loads acceptance profiles, runs the audits that their items need, and has the values of
// the result. Rules for items are in fabric/accept.
package accept

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/accept"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// Profile is a profile with the audits that its items need.
type Profile struct {
	accept.Profile
	Audits  []string // names, or .star files
	Options []string // of the audits: "--majority=0.8"
	Deep    bool     // the audits read whole tables
}

// Keys of an item in a script.
const (
	keyName      = "name"
	keyTitle     = "title"
	keyCriterion = "criterion"
	keySource    = "source"
	keyChecks    = "checks"
	keyAudit     = "audit"
	keySeverity  = "severity"
	keyNeeds     = "needs"
	keyWatch     = "watch"
	keyPlan      = "plan"
	keyBeyond    = "beyond"
)

var itemKeys = []string{keyName, keyTitle, keyCriterion, keySource, keyChecks, keyAudit, keySeverity, keyNeeds, keyWatch, keyPlan, keyBeyond}

// maxItems is how many items a profile may have.
const maxItems = 1000

// Load reads a profile: a shipped one, or a .star file with the globals items, a list of dicts, and,
// optionally, options, a dict of options of audits, and deep. checks are the audits of each check.
func Load(ctx context.Context, in *script.Interpreter, name string, checks map[string][]string) (*Profile, error) {
	file, err := script.Profiles.Locate(name)
	if err != nil {
		return nil, err
	}
	p := &Profile{Profile: accept.Profile{Name: strings.TrimSuffix(path.Base(file), ".star")}}
	notExit := func(err error) error {
		return lang.NotExit(err, "not supported in a profile; the items set the exit status")
	}
	return p, in.RunOne(ctx, file, notExit, func(s *script.Script) error {
		p.Title, _, _ = strings.Cut(s.Doc, "\n")
		p.Title = cmp.Or(strings.TrimSuffix(p.Title, "."), p.Name)
		p.Deep = s.Globals["deep"] == starlark.True
		if err := p.read(s.Globals["items"], checks); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := p.readOptions(s.Globals["options"]); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	})
}

// read reads the items.
func (p *Profile) read(v starlark.Value, audits map[string][]string) error {
	list, ok := v.(*starlark.List)
	if !ok || list.Len() == 0 {
		return errors.New("not a profile; it does not set items to a list of dicts")
	}
	if list.Len() > maxItems {
		return fmt.Errorf("%d items; the maximum is %d", list.Len(), maxItems)
	}
	for i := range list.Len() {
		d, ok := list.Index(i).(*starlark.Dict)
		if !ok {
			return fmt.Errorf("items[%d]: got %s, want a dict", i, list.Index(i).Type())
		}
		item, own, err := itemOf(d)
		if err == nil {
			err = p.add(item, own, audits)
		}
		if err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

// itemOf reads an item, and the audits that it names.
func itemOf(d *starlark.Dict) (item accept.Item, own []string, err error) {
	item.Severity = audit.Warning
	for _, kv := range d.Items() {
		key, _ := starlark.AsString(kv[0])
		text, isText := starlark.AsString(kv[1])
		if key == keyPlan {
			b, ok := kv[1].(starlark.Bool)
			if !ok {
				return item, nil, fmt.Errorf("%s: got %s, want True or False", key, kv[1].Type())
			}
			item.Plan = bool(b)
			continue
		}
		if !slices.Contains(itemKeys, key) {
			return item, nil, fmt.Errorf("unknown key %s%s; supported: %s", kv[0], fabric.DidYouMean(key, itemKeys), strings.Join(itemKeys, ", "))
		}
		if !isText {
			return item, nil, fmt.Errorf("%s: got %s, want a string", key, kv[1].Type())
		}
		switch key {
		case keyName:
			item.Name = text
		case keyTitle:
			item.Title = text
		case keyCriterion:
			item.Criterion = text
		case keySource:
			item.Source = text
		case keyChecks:
			item.Checks = strings.Fields(text)
		case keyAudit:
			own = strings.Fields(text)
		case keyNeeds:
			item.Needs = strings.Fields(text)
			for _, name := range item.Needs {
				if mad.ByName(name) == nil {
					return item, nil, fmt.Errorf("%s: unknown attribute %q", key, name)
				}
			}
		case keySeverity:
			if item.Severity, err = audit.ParseSeverity(text); err != nil {
				return item, nil, fmt.Errorf("%s: %w", key, err)
			}
		case keyBeyond:
			item.Beyond = text
		case keyWatch:
			if item.Watch, err = time.ParseDuration(text); err != nil || item.Watch < 0 {
				return item, nil, fmt.Errorf("%s: %q is not a time; want one like %q", key, text, "2h5m")
			}
		}
	}
	return item, own, nil
}

// add adds an item, and the audits that have its checks. own are audits that the item names: for checks
// of others, and of audits that are not shipped.
func (p *Profile) add(item accept.Item, own []string, audits map[string][]string) error {
	switch {
	case item.Name == "" || item.Title == "" || item.Criterion == "":
		return fmt.Errorf("%s, %s and %s are required", keyName, keyTitle, keyCriterion)
	case slices.ContainsFunc(p.Items, func(x accept.Item) bool { return x.Name == item.Name }):
		return fmt.Errorf("two items are named %q", item.Name)
	case item.Beyond != "" && len(item.Checks) > 0:
		return fmt.Errorf("%q: %s and %s exclude each other", item.Name, keyBeyond, keyChecks)
	case item.Beyond == "" && len(item.Checks) == 0:
		return fmt.Errorf("%q: no %s; an item that datagrams cannot judge has the reason as %s", item.Name, keyChecks, keyBeyond)
	}
	for _, check := range item.Checks {
		if len(own) > 0 {
			item.Audits = own
			break
		}
		if audits[check] == nil {
			return fmt.Errorf("%q: unknown check %q%s; checks of an own audit need %s, its file", item.Name, check, fabric.DidYouMean(check, slices.Sorted(maps.Keys(audits))), keyAudit)
		}
		for _, a := range audits[check] {
			if a != "host" && !slices.Contains(item.Audits, a) {
				item.Audits = append(item.Audits, a)
			}
		}
		if len(item.Audits) == 0 {
			return fmt.Errorf("%q: check %q judges a host, not a fabric", item.Name, check)
		}
	}
	for _, a := range item.Audits {
		if !slices.Contains(p.Audits, a) {
			p.Audits = append(p.Audits, a)
		}
	}
	for i, a := range item.Audits { // reports have their names
		item.Audits[i] = strings.TrimSuffix(path.Base(a), ".star")
	}
	p.Items = append(p.Items, item)
	return nil
}

// readOptions reads the options of audits.
func (p *Profile) readOptions(v starlark.Value) error {
	if v == nil {
		return nil
	}
	d, ok := v.(*starlark.Dict)
	if !ok {
		return fmt.Errorf("options: got %s, want a dict of options to their values", v.Type())
	}
	for _, kv := range d.Items() {
		name, ok := starlark.AsString(kv[0])
		if !ok {
			return fmt.Errorf("options: got %s, want names", kv[0].Type())
		}
		value, isText := starlark.AsString(kv[1])
		if !isText {
			value = kv[1].String()
		}
		p.Options = append(p.Options, script.FlagName(name)+"="+value)
	}
	return nil
}
