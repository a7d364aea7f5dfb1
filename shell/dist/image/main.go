// The command image makes the OCI image of a release, as an OCI image layout in a tar file: from an empty base, with
// the static programs, a user and the directories that they use. The same programs give the same bytes.
//
// It is a module of its own: the program does not need go-containerregistry.
//
//	go run . -version 1.2.3 -epoch 1790000000 -out fabsh.tar ARCHITECTURE=PROGRAM...
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	version := flag.String("version", "", "the `VERSION`, which is the image's tag")
	epoch := flag.Int64("epoch", 0, "the time of all files, in `SECONDS` since 1970")
	out := flag.String("out", "", "the `FILE` to write")
	flag.Parse()
	if err := write(*out, *version, time.Unix(*epoch, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "image %s: %v\n", *out, err)
		os.Exit(2)
	}
}

// write writes the image of programs, "amd64=dist/fabsh-linux-amd64".
func write(name, version string, at time.Time, programs []string) (err error) {
	if version == "" || len(programs) == 0 {
		return errors.New("no version or no programs; use -version VERSION ARCHITECTURE=PROGRAM")
	}
	images := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		architecture, path, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("program %q: want ARCHITECTURE=PROGRAM", p)
		}
		program, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		image, err := imageOf(program, architecture, version, at)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	dir, err := os.MkdirTemp("", "fabsh-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := files.AppendIndex(images, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})); err != nil {
		return err
	}
	to, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	archive := tar.NewWriter(to)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(archive, tar.Header{Name: name, Mode: 0o644, ModTime: at}, data)
	})
	return errors.Join(err, archive.Close())
}

// user is the ID of the user that the image runs as.
const user = 65534

// imageOf returns the image for an architecture.
func imageOf(program []byte, architecture, version string, at time.Time) (v1.Image, error) {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	for _, f := range []struct {
		name  string
		mode  int64
		owner int
		data  []byte // of a file; a name of a directory ends with a slash
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\nnogroup:x:%d:\n", user)},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnobody:x:%d:%[1]d:fabsh:%s:/sbin/nologin\n", user, home)},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/fabsh", 0o755, 0, program},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{home[1:] + "/", 0o750, user, nil},
	} {
		if err := add(archive, tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, ModTime: at}, f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "fabsh " + version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = v1.Time{Time: at}, "linux", architecture
	config.Config = v1.Config{
		User:       fmt.Sprint(user),
		Env:        []string{"PATH=/usr/bin", "HOME=" + home},
		WorkingDir: home,
		Entrypoint: []string{"/usr/bin/fabsh"},
		Labels:     map[string]string{"org.opencontainers.image.title": "fabsh", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "BSD-3-Clause"},
	}
	return mutate.ConfigFile(image, config)
}

// home is the home of the user, where fabsh keeps its state.
const home = "/var/lib/fabsh"

// add adds a file, or a directory if data is nil.
func add(archive *tar.Writer, h tar.Header, data []byte) error {
	h.Format, h.Typeflag, h.Size = tar.FormatUSTAR, tar.TypeReg, int64(len(data))
	if strings.HasSuffix(h.Name, "/") {
		h.Typeflag = tar.TypeDir
	}
	if err := archive.WriteHeader(&h); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}
