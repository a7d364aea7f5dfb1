//go:build linux

package umadtest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// archive is an initial RAM disk: a cpio of the "newc" format
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	bytes.Buffer
	inode int
	there map[string]bool
}

const (
	modeFile   = 0o100000
	modeFolder = 0o040000
	modeDevice = 0o020000
)

// file adds a file and the directories above it.
func (a *archive) file(name string, mode int, content []byte) {
	a.folder(path.Dir(name))
	a.add(name, modeFile|mode, 0, 0, content)
}

func (a *archive) folder(name string) {
	if name == "/" || a.there[name] {
		return
	}
	a.folder(path.Dir(name))
	a.add(name, modeFolder|0o755, 0, 0, nil)
}

// add writes an entry, once; major and minor are of a device.
func (a *archive) add(name string, mode, major, minor int, content []byte) {
	if a.there[name] {
		return
	}
	if a.there == nil {
		a.there = map[string]bool{}
	}
	a.there[name] = true
	a.inode++
	fmt.Fprint(a, "070701")
	for _, field := range []int{
		a.inode, mode, 0, 0, 1, 0, len(content), // user, group, links, time
		0, 0, major, minor, len(name), 0, // without the slash, with a NUL
	} {
		fmt.Fprintf(a, "%08X", field)
	}
	fmt.Fprintf(a, "%s\x00", name[1:])
	a.pad()
	a.Write(content)
	a.pad()
}

func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}

// end closes the archive.
func (a *archive) end() { a.add("/TRAILER!!!", 0, 0, 0, nil) }

// modules are the kernel modules of the unpacked kernel, and our own.
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

// dependencies returns the modules that a module names as its dependencies.
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
