package accept

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"

	"fabsh/fabric/page"
)

//go:embed page.html
var pageText string

var acceptance = template.Must(template.New("page").Funcs(template.FuncMap{
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
	embedded, sum, err := page.EmbedJSON(data)
	if err != nil {
		return err
	}
	return acceptance.Execute(w, pageData{r, embedded, sum})
}
