//go:build linux

package umadtest

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// programFolder is where a machine has its programs.
const programFolder = "/usr/bin/"

// addProgram puts a program and the libraries it needs into a. They are looked
// for below root, then on the host.
func addProgram(a *archive, root, name string) error {
	p, err := find(name, append(below(root, "usr/bin", "usr/sbin"), below("/", "usr/bin", "usr/sbin")...))
	if err != nil {
		return fmt.Errorf("no program %s: run make peers", name)
	}
	if err := addLibraries(a, root, p); err != nil {
		return err
	}
	// The C library loads it when a thread ends.
	if err := addLibrary(a, root, "libgcc_s.so.1"); err != nil {
		return err
	}
	b, err := os.ReadFile(p)
	a.file(programFolder+name, 0o755, b)
	return err
}

// libraryFolder is where the dynamic linker looks.
const libraryFolder = "/lib/x86_64-linux-gnu/"

// addLibraries adds what the program or library at p needs.
func addLibraries(a *archive, root, p string) error {
	f, err := elf.Open(p)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	defer f.Close()
	if section := f.Section(".interp"); section != nil {
		b, err := section.Data()
		if err != nil {
			return err
		}
		linker := strings.TrimRight(string(b), "\x00")
		if b, err = os.ReadFile(linker); err != nil {
			return err
		}
		a.file(linker, 0o755, b)
	}
	names, err := f.ImportedLibraries()
	for _, name := range names {
		if err := addLibrary(a, root, name); err != nil {
			return err
		}
	}
	return err
}

func addLibrary(a *archive, root, name string) error {
	if a.there[libraryFolder+name] {
		return nil
	}
	p, err := find(name, append(below(root, "usr"+libraryFolder, libraryFolder), below("/", "usr"+libraryFolder, libraryFolder)...))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	a.file(libraryFolder+name, 0o755, b)
	return addLibraries(a, root, p)
}

func below(root string, folders ...string) (list []string) {
	for _, f := range folders {
		list = append(list, filepath.Join(root, f))
	}
	return list
}

// find is the first file called name in folders.
func find(name string, folders []string) (string, error) {
	for _, f := range folders {
		p := filepath.Join(f, name)
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, strings.Join(folders, ", "))
}
