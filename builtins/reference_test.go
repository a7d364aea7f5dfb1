package builtins

import (
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
)

// TestReference: REFERENCE.md is what the declarations say.
func TestReference(t *testing.T) { golden(t, "REFERENCE.md", help.Reference(Functions())) }

// TestDeclarations: nothing is declared by halves.
func TestDeclarations(t *testing.T) {
	for _, b := range documentedBuiltins() {
		if b.Doc == "" || b.Example == "" || b.Run == nil {
			t.Errorf("%s lacks a doc, an example or its function", b.Name)
			continue
		}
		if err := b.Check(); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(b.Summary(), ".") || !strings.HasSuffix(b.Doc, ".") {
			t.Errorf("%s: the doc is no full sentence: %q", b.Name, b.Doc)
		}
		optional := false
		for _, p := range b.Params {
			if p.Doc == "" {
				t.Errorf("%s: parameter %s lacks a doc", b.Name, p.Name)
			}
			if p.Default != "" && p.Default != "None" && p.Kind != lang.KindAny && p.DefaultValue() == nil {
				t.Errorf("%s: parameter %s has a default that is none of its kind: %s", b.Name, p.Name, p.Default)
			}
			if optional && p.Default == "" && !p.Keyword && !strings.HasPrefix(p.Name, "*") {
				t.Errorf("%s: parameter %s must be given but follows one that need not", b.Name, p.Name)
			}
			optional = optional || p.Default != ""
		}
	}
	for _, b := range functions() {
		if !strings.Contains(strings.Join(help.Groups, "\n"), b.Group) || b.Group == "" {
			t.Errorf("%s is in no group", b.Name)
		}
	}
}

// TestNames: these are all global names, and each has help.
func TestNames(t *testing.T) {
	f := plain(t, nil)
	want := "at catch detail discover dr errors every exit expect finding fmt fs " +
		"get_ar get_guids get_lft get_mft get_pkeys get_plft get_routes get_sl2vl get_vlarb " +
		"gid guid help hex hostlist isolate json load_fabric load_jobs load_routes load_thresholds mad_get mad_send mad_set math metric not_judged ok parallel " +
		"perf_clear perf_get perf_rates perf_set plan " +
		"port_disable port_enable port_reset port_set " +
		"quit random re reg_get report reset restore " +
		"sa_delete sa_get sa_getmulti sa_gettable sa_gettrace sa_set sa_subscribe save " +
		"set_guids set_lft set_mft set_pkeys set_sl2vl set_vlarb " +
		"show sleep smp_get smp_set stats sum table this_host ticket time yaml"
	if got := strings.Join(f.Interpreter.Globals.Keys(), " "); got != want {
		t.Errorf("global names\n%s\nwant\n%s", got, want)
	}
	for name, v := range f.Interpreter.Globals {
		if _, err := help.Of(f.Runtime).Find(name, 0); err != nil {
			t.Errorf("help(%q): %v", name, err)
		}
		if _, isUniversal := starlark.Universe[name]; isUniversal {
			t.Errorf("%s hides a name of the language", name)
		}
		if v.Type() == "" || v.String() == "" {
			t.Errorf("%s has no type or repr", name)
		}
	}
}

// documentedBuiltins are all functions and methods that have documentation.
func documentedBuiltins() []*lang.Builtin {
	list := Functions()
	for _, d := range check.Types() {
		for _, m := range d.Members {
			if m.Method != nil {
				list = append(list, m.Method)
			}
		}
	}
	return list
}
