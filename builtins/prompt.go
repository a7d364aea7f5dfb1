package builtins

import (
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// What the prompt needs of a session beyond what scripts do.

// Remember keeps the text of a file that Session did not read itself, for
// messages that quote its lines.
func (s *Session) Remember(file, text string) { s.sources[file] = text }

// Defined tells the session of names that it does not see itself, for errors
// that name the nearest.
func (s *Session) Defined(names func() []string) { s.defined = names }

// HelpOn renders help on a value.
func (s *Session) HelpOn(v starlark.Value) (string, error) {
	text, err := s.helpOn(v)
	return s.Fit(text), err
}

// IsTool: name is a command of infiniband-diags or ibutils, of which help says
// what to type here.
func IsTool(name string) bool { return toolHint(name) != "" }

// ParamsOf gives the parameters of a function or method; nil where v is none.
// Those of a script's own function have a name and no more.
func ParamsOf(v starlark.Value) []lang.Param {
	switch fn := v.(type) {
	case *lang.Function:
		return fn.Params
	case *starlark.Function:
		params := make([]lang.Param, fn.NumParams())
		for i := range params {
			params[i].Name, _ = fn.Param(i)
		}
		if fn.HasKwargs() {
			params = params[:len(params)-1]
		}
		if fn.HasVarargs() {
			params = params[:len(params)-1]
		}
		return params
	}
	return nil
}

// Fabric is the latest that discover found, or the one that was loaded; nil:
// none yet.
func (s *Session) Fabric() *fabric.Fabric { return s.env.Fabric() }

// Modules are the names of all embedded modules, as load takes them, sorted.
func Modules() []string {
	var names []string
	for name, tree := range packages() {
		for _, file := range modulesOf(tree) {
			names = append(names, name+"//"+file)
		}
	}
	slices.Sort(names)
	return names
}
