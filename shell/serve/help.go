package serve

import (
	"html/template"
	"slices"
	"strings"
	"unicode"

	"fabsh/fabric"
)

// helpData is what the page Help shows.
type helpData struct {
	Topic  string
	Text   string // of the topic
	Words  string
	Found  []choice // by a search
	More   int
	None   string // why nothing was found
	Groups []helpGroup
}

type helpGroup struct {
	Name  string
	Items []choice
}

// help shows a topic, what a search finds, or the list of topics.
func (s *Site) help(v *view) error {
	v.Template, v.Tab, v.Title = "help", "help", "Help"
	d := &helpData{Words: clean(v.query.Get("words"))}
	v.Data = d
	topic := v.request.PathValue("topic")
	if check := v.request.PathValue("check"); check != "" {
		topic = check
		if text := s.Explain(check); text != "" {
			d.Topic, d.Text = clean(check), printable(text)
			v.Title = "Check " + d.Topic
			return nil
		}
	}
	if len(topic) > maxParam || len(d.Words) > maxParam {
		return badRequest("topic too long")
	}
	if topic != "" {
		text, err := s.Topic(topic)
		if err != nil {
			e := notFound("no help on %q", fabric.Clip(topic))
			e.near = []choice{{Text: "Search help for it", URL: template.URL("/help?words=" + template.URLQueryEscaper(topic))}}
			return e
		}
		d.Topic, d.Text = clean(topic), printable(text)
		v.Title = "Help: " + d.Topic
		return nil
	}
	if strings.TrimSpace(d.Words) != "" {
		list, more, err := s.Search(d.Words)
		if err != nil {
			d.None = clean(err.Error())
		}
		for _, t := range list {
			d.Found = append(d.Found, choice{Text: clean(t.Name), Note: clean(t.Summary), URL: v.to("help", t.Name)})
		}
		d.More = more
	}
	for _, t := range s.Topics {
		i := slices.IndexFunc(d.Groups, func(g helpGroup) bool { return g.Name == t.Group })
		if i < 0 {
			i = len(d.Groups)
			d.Groups = append(d.Groups, helpGroup{Name: t.Group})
		}
		d.Groups[i].Items = append(d.Groups[i].Items, choice{Text: t.Name, Note: t.Summary, URL: v.to("help", t.Name)})
	}
	return nil
}

// printable returns text of several lines without characters that steer a terminal or the direction of
// writing.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, text)
}
