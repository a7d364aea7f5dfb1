// The command vsix packs the extension for VS Code: a zip file of the folder of the extension, with its
// modules, and a manifest made from its package.json. The same files give the same bytes.
//
// It is a module of its own, as image is.
//
//	go run . -epoch 1790000000 -license LICENSE -out fabsh.vsix FOLDER
package main

import (
	"archive/zip"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

func main() {
	epoch := flag.Int64("epoch", 0, "the time of all files, in `SECONDS` since 1970")
	license := flag.String("license", "", "the `FILE` with the license")
	out := flag.String("out", "", "the `FILE` to write")
	flag.Parse()
	if err := write(*out, *license, time.Unix(*epoch, 0).UTC(), flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "vsix %s: %v\n", *out, err)
		os.Exit(2)
	}
}

// write packs a folder.
func write(out, license string, at time.Time, folder string) (err error) {
	if _, err := os.Stat(path.Join(folder, "node_modules")); err != nil {
		return fmt.Errorf("%s has no node_modules; make vsix fetches them", folder)
	}
	manifest, err := manifestOf(folder)
	if err != nil {
		return err
	}
	terms, err := os.ReadFile(license)
	if err != nil {
		return err
	}
	f, err := os.Create(out + ".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	z := zip.NewWriter(f)
	add := func(name string, text []byte) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at})
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	list := []struct {
		name string
		text []byte
	}{{"extension.vsixmanifest", manifest}, {"[Content_Types].xml", []byte(contentTypes)}, {"extension/LICENSE.txt", terms}}
	dir := os.DirFS(folder)
	err = fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error { // in lexical order
		if err != nil || e.IsDir() || !isPacked(name) {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		list = append(list, struct {
			name string
			text []byte
		}{"extension/" + name, text})
		return err
	})
	if err != nil {
		return err
	}
	for _, x := range list {
		if err := add(x.name, x.text); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}

// isPacked reports whether a file is needed at run time, or a license.
func isPacked(name string) bool {
	base := path.Base(name)
	switch {
	case base == ".gitignore" || strings.HasSuffix(base, "package-lock.json"):
		return false
	case strings.HasPrefix(strings.ToUpper(base), "LICENSE"):
		return true
	}
	for _, end := range []string{".d.ts", ".md", ".map", ".yml"} {
		if strings.HasSuffix(base, end) {
			return false
		}
	}
	return !strings.Contains(name, "/.")
}

// contentTypes are the types of the files, by the Open Packaging Conventions.
const contentTypes = xml.Header + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="json" ContentType="application/json"/><Default Extension="js" ContentType="application/javascript"/><Default Extension="txt" ContentType="text/plain"/><Default Extension="vsixmanifest" ContentType="text/xml"/></Types>
`

// manifest is the manifest of a package (VSX schema 2011), as far as VS Code reads it.
type manifest struct {
	XMLName  xml.Name `xml:"http://schemas.microsoft.com/developer/vsx-schema/2011 PackageManifest"`
	Version  string   `xml:"Version,attr"`
	Identity struct {
		Language  string `xml:"Language,attr"`
		ID        string `xml:"Id,attr"`
		Version   string `xml:"Version,attr"`
		Publisher string `xml:"Publisher,attr"`
	} `xml:"Metadata>Identity"`
	DisplayName string   `xml:"Metadata>DisplayName"`
	Description string   `xml:"Metadata>Description"`
	Categories  string   `xml:"Metadata>Categories"`
	Engine      property `xml:"Metadata>Properties>Property"`
	Target      struct {
		ID string `xml:"Id,attr"`
	} `xml:"Installation>InstallationTarget"`
	Dependencies string `xml:"Dependencies"`
	Asset        struct {
		Type        string `xml:"Type,attr"`
		Path        string `xml:"Path,attr"`
		Addressable bool   `xml:"Addressable,attr"`
	} `xml:"Assets>Asset"`
}

type property struct {
	ID    string `xml:"Id,attr"`
	Value string `xml:"Value,attr"`
}

// manifestOf returns the manifest of an extension.
func manifestOf(folder string) ([]byte, error) {
	f, err := os.Open(path.Join(folder, "package.json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var p struct {
		Name, DisplayName, Description, Version, Publisher string
		Categories                                         []string
		Engines                                            struct{ VSCode string }
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("package.json: %w", err)
	}
	m := manifest{Version: "2.0.0", DisplayName: p.DisplayName, Description: p.Description, Categories: strings.Join(p.Categories, ",")}
	m.Identity.Language, m.Identity.ID, m.Identity.Version, m.Identity.Publisher = "en-US", p.Name, p.Version, p.Publisher
	m.Engine = property{"Microsoft.VisualStudio.Code.Engine", p.Engines.VSCode}
	m.Target.ID = "Microsoft.VisualStudio.Code"
	m.Asset.Type, m.Asset.Path, m.Asset.Addressable = "Microsoft.VisualStudio.Code.Manifest", "extension/package.json", true
	out, err := xml.MarshalIndent(m, "", "  ")
	return append([]byte(xml.Header), append(out, '\n')...), err
}
