// Package spec reads the text that describes a simulated subnet: a topology and its options.
//
//	spec.go      Parse: kinds of topologies, files
//	kind.go      the kinds of topologies, with their keys
//	key.go       the keys of all topologies
//	values.go    the values of the keys
//	topology.go  the keys of topologies
//	options.go   Options: loss, delay, dead ports, M_Keys, redirection
//	ports.go     the keys that name ports and nodes
//	adaptive.go  the keys of adaptive routing
//	rate.go      rates and bandwidths
package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
)

// Parse reads what follows "sim:" on the command line:
//
//	KIND[:KEY=VALUE,...]    a generated topology
//	FILE[:KEY=VALUE,...]    one from a file of ibnetdiscover or ibsim
//	KEY=VALUE,...           the default one, a small fat tree
//
// Kinds and CommonKeys list the kinds and the keys, each with a default.
// Files must be regular ones.
func Parse(spec string) (*fabric.Fabric, SubnetOptions, error) {
	regular := func(name string) (io.ReadCloser, error) { return format.OpenRegular(name) }
	return ParseFiles(spec, regular, regular)
}

// ParseFiles is Parse with files that open opens, and those that they name, which
// included opens.
func ParseFiles(spec string, open, included format.Opener) (*fabric.Fabric, SubnetOptions, error) {
	f, o, err := parse(spec, open, included)
	if err != nil {
		return nil, SubnetOptions{}, fmt.Errorf("simulated fabric %q: %w", spec, err)
	}
	return f, o, nil
}

func parse(spec string, open, included format.Opener) (*fabric.Fabric, SubnetOptions, error) {
	name, keys, _ := strings.Cut(spec, ":")
	if name == "" {
		name = kinds[0].Name
	}
	if k := slices.IndexFunc(kinds, func(k TopologyKind) bool { return k.Name == name }); k >= 0 {
		return kinds[k].generate(keys)
	}
	f, keys, err := load(spec, open, included)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, SubnetOptions{}, err
	case strings.Contains(name, "="): // the kind was omitted
		return kinds[0].generate(spec)
	default:
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return nil, SubnetOptions{}, fmt.Errorf("%w, and no such file", unknown("kind", name, names))
	}
	v, err := parseValues(keys)
	if err != nil {
		return nil, SubnetOptions{}, err
	}
	return v.finish(f)
}

func (k *TopologyKind) generate(keys string) (*fabric.Fabric, SubnetOptions, error) {
	v, err := parseValues(keys, k.Keys, generatedKeys)
	if err != nil {
		return nil, SubnetOptions{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	f, err := k.build(v)
	if err == nil {
		f, err = v.equip(f)
	}
	if err != nil {
		return nil, SubnetOptions{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	return v.finish(f)
}

// load reads the file that spec names, with keys behind a colon or without keys.
func load(spec string, open, included format.Opener) (f *fabric.Fabric, keys string, err error) {
	path := spec
	r, err := open(path)
	if colon := strings.LastIndexByte(spec, ':'); errors.Is(err, fs.ErrNotExist) && colon >= 0 {
		path, keys = spec[:colon], spec[colon+1:]
		r, err = open(path)
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	f, err = format.Load(r, path, included)
	return f, keys, err
}
