package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"time"
)

// Evidence is what is known of a part of a fabric, for the support of its vendor.
type Evidence struct {
	Target, Fabric, Version string
	Time                    time.Time
	Sections                []EvidenceSection
}

// EvidenceSection is a table. Note describes where its values are from, or why they are unknown.
type EvidenceSection struct {
	Title, Note string
	Columns     []string
	Rows        [][]string
}

//go:embed evidence.html
var evidenceText string

var evidencePage = template.Must(template.New("evidence").Funcs(template.FuncMap{
	"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
}).Parse(evidenceText))

// WriteHTML writes the evidence as a page that needs no network and no script, and prints on A4. data is the
// evidence as JSON, which the page embeds; its SHA-256 is on the page.
func (e *Evidence) WriteHTML(w io.Writer, data []byte) error {
	embedded, sum, err := EmbedJSON(data)
	if err != nil {
		return err
	}
	return evidencePage.Execute(w, struct {
		*Evidence
		Data template.JS
		Sum  string
	}{e, embedded, sum})
}

// EmbedJSON returns data, a value as JSON, as the content of a script element, and the SHA-256 of that.
func EmbedJSON(data []byte) (embedded template.JS, sum string, err error) {
	var packed, safe bytes.Buffer
	if err := json.Compact(&packed, data); err != nil {
		return "", "", fmt.Errorf("data of the page: %w", err)
	}
	json.HTMLEscape(&safe, packed.Bytes())
	digest := sha256.Sum256(safe.Bytes())
	return template.JS(safe.String()), hex.EncodeToString(digest[:]), nil
}
