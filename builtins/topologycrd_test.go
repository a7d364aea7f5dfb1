package builtins

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"fabsh/builtins/program"
	"fabsh/fabric/hosts"
	"fabsh/fabric/sim"
)

// TestTopologySchemas: what kueue and volcano write is valid by the schemas of the
// custom resources, where FABSH_CRDS is a folder with clones of kubernetes-sigs/kueue
// and volcano-sh/volcano, "kueue" and "volcano". Rules in CEL are not evaluated: those
// that matter are in kueueTopology and hyperNodes.
func TestTopologySchemas(t *testing.T) {
	clones := os.Getenv("FABSH_CRDS")
	if clones == "" || os.Getenv("FABSH_SOAK") == "" {
		t.Skip("FABSH_SOAK, and FABSH_CRDS with the schemas")
	}
	f, _, err := sim.Parse("fattree:k=4,levels=3")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind, file string
		words      []string
	}{
		{"kueue", "kueue/config/components/crd/bases/kueue.x-k8s.io_topologies.yaml", nil},
		{"kueue", "kueue/config/components/crd/bases/kueue.x-k8s.io_topologies.yaml", []string{"--api=v1beta1"}},
		{"volcano", "volcano/config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml", nil},
		{"volcano", "volcano/config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml", []string{"--prefix", "ib-"}},
	} {
		crd := readCRD(t, filepath.Join(clones, test.file))
		k, err := program.LoadTopology(t.Context(), plain(t, nil).Interpreter, test.kind, test.words, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := hosts.Find(f, hosts.GroupOptions{DNS: k.DNS})
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := k.Write(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, x := range objects(t, text) {
			if x["kind"] != crd.Spec.Names["kind"] {
				continue // of Kubernetes itself
			}
			group, version, _ := strings.Cut(x["apiVersion"].(string), "/")
			i := slices.IndexFunc(crd.Spec.Versions, func(v crdVersion) bool { return v.Name == version && v.Served })
			if group != crd.Spec.Group || i < 0 {
				t.Errorf("%s: there is no %s", test.file, x["apiVersion"])
				continue
			}
			checked++
			if err := crd.Spec.Versions[i].Schema["openAPIV3Schema"].check(x, x["kind"].(string)); err != nil {
				t.Errorf("%s %v: %v", test.kind, test.words, err)
			}
			x["spec"].(map[string]any)["colour"] = "red"
			if crd.Spec.Versions[i].Schema["openAPIV3Schema"].check(x, "") == nil {
				t.Error("a field that there is not is taken")
			}
		}
		if t.Logf("%s %v: %d objects are valid", test.kind, test.words, checked); checked == 0 {
			t.Error("no object was checked")
		}
	}
}

// objects are those of a text, the items of lists one by one.
func objects(t *testing.T, text string) (all []map[string]any) {
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var x map[string]any
		err := d.Decode(&x)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case x["kind"] == "List":
			for _, item := range x["items"].([]any) {
				all = append(all, item.(map[string]any))
			}
		default:
			all = append(all, x)
		}
	}
}

// crd is a CustomResourceDefinition, as far as it says what is valid.
type crd struct {
	Spec struct {
		Group    string
		Names    map[string]any
		Versions []crdVersion
	}
}

type crdVersion struct {
	Name   string
	Served bool
	Schema map[string]schema
}

func readCRD(t *testing.T, path string) (c crd) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(b, &c)
	}
	if err != nil || len(c.Spec.Versions) == 0 {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

// schema is a structural schema of OpenAPI 3 (Kubernetes' documentation, "Extend the
// Kubernetes API with CustomResourceDefinitions").
type schema struct {
	Type                 string
	Properties           map[string]schema
	AdditionalProperties *schema `yaml:"additionalProperties"`
	Items                *schema
	Required             []string
	Enum                 []any
	Pattern              string
	Minimum, Maximum     *float64
	MinItems             int  `yaml:"minItems"`
	MaxItems             *int `yaml:"maxItems"`
	MinLength            int  `yaml:"minLength"`
	MaxLength            *int `yaml:"maxLength"`
}

// check is why v, at a path, is not valid.
func (s schema) check(v any, at string) error {
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, s.Enum)
	}
	switch v := v.(type) {
	case map[string]any:
		if s.Type != "object" {
			return fmt.Errorf("%s: an object, want %s", at, s.Type)
		}
		for _, name := range s.Required {
			if v[name] == nil {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		for name, x := range v {
			of, known := s.Properties[name]
			switch {
			case !known && s.AdditionalProperties != nil:
				of = *s.AdditionalProperties
			case !known && s.Properties == nil: // metadata is Kubernetes' own
				continue
			case !known:
				return fmt.Errorf("%s has %s, which there is not", at, name)
			}
			if err := of.check(x, at+"."+name); err != nil {
				return err
			}
		}
	case []any:
		if s.Type != "array" || len(v) < s.MinItems || s.MaxItems != nil && len(v) > *s.MaxItems {
			return fmt.Errorf("%s: a list of %d, want %s", at, len(v), s.Type)
		}
		for i, x := range v {
			if err := s.Items.check(x, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case string:
		if s.Type != "string" || len(v) < s.MinLength || s.MaxLength != nil && len(v) > *s.MaxLength || !regexp.MustCompile(s.Pattern).MatchString(v) {
			return fmt.Errorf("%s: %q is not valid: %s %s", at, v, s.Type, s.Pattern)
		}
	case int:
		if s.Type != "integer" || s.Minimum != nil && float64(v) < *s.Minimum || s.Maximum != nil && float64(v) > *s.Maximum {
			return fmt.Errorf("%s: %d is not valid", at, v)
		}
	default:
		return fmt.Errorf("%s: %T, want %s", at, v, s.Type)
	}
	return nil
}
