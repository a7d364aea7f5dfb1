package accept

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"time":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"duration": timeText,
	"fabric":   func(text string) string { return strings.TrimPrefix(text, "fabric: ") },
}).Parse(pageText))

// pageData is what the template shows.
type pageData struct {
	*Result
	Data template.JS // the JSON, safe in a script element
	Sum  string      // of the JSON, SHA-256
}

// WriteHTML writes the result as a page that needs no network and no script, and prints on A4. data is the
// result as JSON, which the page embeds; its SHA-256 is on the page.
func (r *Result) WriteHTML(w io.Writer, data []byte) error {
	var packed bytes.Buffer
	if err := json.Compact(&packed, data); err != nil {
		return fmt.Errorf("data of the page: %w", err)
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, packed.Bytes())
	sum := sha256.Sum256(safe.Bytes())
	return page.Execute(w, pageData{r, template.JS(safe.String()), hex.EncodeToString(sum[:])})
}
