//go:build linux

package umadtest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// modules are those of the unpacked kernel, and our own.
type modules map[string]string // path by name, with underscores for hyphens

func findModules(kernel string) modules {
	found := modules{}
	for _, folder := range below(kernel, "lib/modules", "vib") {
		filepath.WalkDir(folder, func(p string, _ fs.DirEntry, err error) error {
			if name, ok := strings.CutSuffix(filepath.Base(p), ".ko"); ok && err == nil {
				found[moduleName(name)] = p
			}
			return nil
		})
	}
	return found
}

func moduleName(file string) string { return strings.ReplaceAll(file, "-", "_") }

// add puts a module after those it depends on into a, and their names behind order.
func (m modules) add(a *archive, order []string, name string) ([]string, error) {
	name, optional := strings.CutPrefix(name, "?")
	p := m[name]
	switch {
	case a.there[modulePath(name)]:
		return order, nil
	case p == "" && optional:
		return order, nil
	case p == "":
		return nil, fmt.Errorf("no kernel module %s", name)
	}
	b, err := os.ReadFile(p)
	if err != nil {
		return nil, err
	}
	needed, err := dependencies(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	for _, n := range needed {
		if order, err = m.add(a, order, moduleName(n)); err != nil {
			return nil, err
		}
	}
	a.file(modulePath(name), 0o644, b)
	return append(order, name), nil
}

func modulePath(name string) string { return "/modules/" + name + ".ko" }

// dependencies are what a module says it depends on.
func dependencies(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	info := f.Section(".modinfo")
	if info == nil {
		return nil, fmt.Errorf("no kernel module")
	}
	b, err := info.Data()
	for line := range strings.SplitSeq(string(b), "\x00") {
		if list, ok := strings.CutPrefix(line, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, err
}
