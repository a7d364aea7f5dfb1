package builtins

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	vocabulary "fabsh/builtins/routing"
	"fabsh/fabric/routing"
	"fabsh/scripts"
)

// TestEngineOptions: the parameters of route() are the options of all engines.
func TestEngineOptions(t *testing.T) {
	var params, options []string
	for _, p := range vocabulary.RouteMethod.Params[1:] {
		params = append(params, p.Name)
	}
	for _, e := range routing.Engines() {
		options = append(options, e.Options...)
	}
	slices.Sort(params)
	slices.Sort(options)
	if options = slices.Compact(options); !slices.Equal(params, options) {
		t.Errorf("route() takes %v, the engines %v", params, options)
	}
}

// TestPolicyDocs: a shipped policy that has the name of an engine says of itself
// what the engine says.
func TestPolicyDocs(t *testing.T) {
	shipped := ShippedPolicies()
	for _, e := range routing.Engines() {
		i := slices.IndexFunc(shipped, func(p PolicyDoc) bool { return p.Name == e.Name })
		if i < 0 {
			continue
		}
		if shipped[i].Doc != e.Doc {
			t.Errorf("%s.star says\n%s\nthe engine\n%s", e.Name, shipped[i].Doc, e.Doc)
		}
		src, err := fs.ReadFile(scripts.FS, policyFolder+"/"+e.Name+".star")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(src), "):\n    \"\"\""+e.Doc+"\n") {
			t.Errorf("%s.star: route() does not begin with\n%s", e.Name, e.Doc)
		}
	}
}
