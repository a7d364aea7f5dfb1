//go:build linux

package umadtest

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programFolder is where a machine has its programs.
const programFolder = "/usr/bin/"

// addProgram puts a program and the libraries it needs into a. They are searched
// below root, then on the host.
func addProgram(a *archive, root, name string) error {
	p, err := find(name, append(below(root, "usr/bin", "usr/sbin"), below("/", "usr/bin", "usr/sbin")...))
	if err != nil {
		return fmt.Errorf("no program %s; run make peers", name)
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

// Newer is where a machine has tools of infiniband-diags of a release of choice: those
// that rdmacore.sh makes of the source of rdma-core that FABSH_RDMA_CORE names. It is
// not there without.
const Newer = "/newer/"

// addNewer compiles these tools, and puts them into a.
func addNewer(a *archive, root, dir string) error {
	source := os.Getenv("FABSH_RDMA_CORE")
	if source == "" {
		return nil
	}
	dir = filepath.Join(dir, "newer")
	c := exec.Command(filepath.Join(root, "mad/umad/umadtest/rdmacore.sh"), source, dir)
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", c, err, said)
	}
	tools, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, p := range tools {
		if err := addLibraries(a, root, p); err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		a.file(Newer+filepath.Base(p), 0o755, b)
	}
	return nil
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

// find returns the first file called name in directories.
func find(name string, folders []string) (string, error) {
	for _, f := range folders {
		p := filepath.Join(f, name)
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, strings.Join(folders, ", "))
}
