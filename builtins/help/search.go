package help

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"fabsh/builtins/lang"
)

// maxShown is the maximum number of pages that a search shows.
const maxShown = 20

// Search lists the pages that have the words, best first: a word may be the name, a part of
// the name, in the summary, in the text. A word also finds its stem (flapping: flap), and the
// words of fabsh for it (excel: csv).
func (l *Library) Search(text string, width int) (string, error) {
	found, more, err := l.Found(text)
	if err != nil {
		return "", err
	}
	var rows [][2]string
	for _, f := range found {
		rows = append(rows, [2]string{l.call(f.Topic), f.Summary})
	}
	list := lang.Fit(formatRows(rows), width)
	if more > 0 {
		list += fmt.Sprintf("%d more; add a word to narrow the search\n", more)
	}
	return list, nil
}

// Found is a page that a search found.
type Found struct{ Topic, Summary string } // Find has the page of the topic

// Found returns the pages that a search shows, best first, and how many more it found.
func (l *Library) Found(text string) (list []Found, more int, err error) {
	words := searchWords(text)
	if len(words) == 0 && slices.Contains(nameWords(strings.ToLower(text)), "how") { // "how do I"
		words = searchWords(questionsGuide)
	}
	if len(words) == 0 {
		return nil, 0, fmt.Errorf("nothing to search for; write %s", l.search("WORD"))
	}
	type hit struct {
		page  Page
		score int
	}
	var hits []hit
	pages, best := l.Pages(), 0
	for _, p := range pages {
		if score := matchWeight(p, text, words); score > 0 {
			hits, best = append(hits, hit{p, score}), max(best, score)
		}
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score < best/5 })
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(b.score-a.score, slices.Index(kindOrder, a.page.Kind)-slices.Index(kindOrder, b.page.Kind), cmp.Compare(a.page.Name, b.page.Name))
	})
	hits = slices.CompactFunc(hits, func(a, b hit) bool { return samePage(a.page, b.page) })
	fields := map[[2]string]bool{} // records of the subnet administrator repeat the fields of attributes
	hits = slices.DeleteFunc(hits, func(h hit) bool {
		if h.page.Kind != KindField {
			return false
		}
		_, name, _ := strings.Cut(h.page.Name, ".")
		key := [2]string{name, h.page.Summary}
		repeated := fields[key]
		fields[key] = true
		return repeated
	})
	if len(hits) == 0 {
		return nil, 0, fmt.Errorf("no topic has %q; %s lists all guides", strings.Join(words, " "), l.call("guides"))
	}
	for _, h := range hits[:min(maxShown, len(hits))] {
		list = append(list, Found{l.nameOf(h.page, pages), h.page.Summary})
	}
	return list, max(0, len(hits)-maxShown), nil
}

// nameOf returns the topic that finds a page: its name, with the kind if a page of another
// kind has the same name.
func (l *Library) nameOf(p Page, pages []Page) string {
	other := func(q Page) bool { return q.Name == p.Name && q.Kind != p.Kind }
	if p.Kind != KindTopic && slices.ContainsFunc(pages, other) {
		return string(p.Kind) + " " + p.Name
	}
	return p.Name
}

// questionsGuide is the guide with questions and their answers.
const questionsGuide = "examples-guide"

// searchWords returns the words of a query, except for common ones.
func searchWords(text string) (words []string) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), unicode.IsSpace) {
		word = strings.TrimRight(strings.TrimSuffix(word, "'s"), "?,;")
		if word != "" && !slices.Contains(ignoredWords, word) {
			words = append(words, word)
		}
	}
	return words
}

// ignoredWords are common words that a search ignores.
var ignoredWords = []string{"a", "an", "the", "of", "to", "do", "i", "how", "my", "is", "in", "on", "with", "for", "and", "or", "it", "what", "as", "from", "use", "two"}

// synonyms are the words of fabsh for words that users search for, by their stems.
var synonyms = map[string][]string{
	"bad":         {"degraded", "error", "fault"},
	"broken":      {"degraded", "down", "fault"},
	"dashboard":   {"grafana", "monitoring-guide"},
	"dead":        {"down", "unresponsive"},
	"excel":       {"csv"},
	"flaky":       {"flap"},
	"graph":       {"picture"},
	"history":     {"diff", "--state", "since"},
	"hypervisor":  {"virtual_port", "virtual"},
	"ipoib":       {"multicast", "partitions"},
	"mellanox":    {"nvidia"},
	"metric":      {"prometheus", "monitoring-guide"},
	"replug":      {"cable", "module"},
	"reseat":      {"cable", "module"},
	"slow":        {"slower", "speed", "congestion"},
	"spreadsheet": {"csv"},
	"sriov":       {"virtual_port", "virtual"},
	"sr-iov":      {"virtual_port", "virtual"},
	"undo":        {"revert"},
	"rollback":    {"revert"},
	"vf":          {"virtual_port", "virtual"},
	"vfs":         {"virtual_port", "virtual"},
	"vm":          {"virtual_port", "virtual"},
	"xls":         {"csv"},
	"xlsx":        {"csv"},
}

// SearchTables are what the search of the manual has in common with Search.
type SearchTables struct {
	Ignored  []string            `json:"ignored"`
	Synonyms map[string][]string `json:"synonyms"`
}

// TablesOfSearch returns the tables of the search.
func TablesOfSearch() SearchTables {
	return SearchTables{Ignored: slices.Clone(ignoredWords), Synonyms: maps.Clone(synonyms)}
}

// stem returns a word without the ending of a form: flapping, flapped and flaps are flap. The
// script of the manual has the same rules.
func stem(word string) string {
	for _, ending := range []string{"ing", "ed"} {
		bare, ok := strings.CutSuffix(word, ending)
		if n := len(bare); ok && n >= 3 {
			if bare[n-1] == bare[n-2] && strings.IndexByte("bdgmnprt", bare[n-1]) >= 0 {
				return bare[:n-1]
			}
			return bare
		}
	}
	if bare, ok := strings.CutSuffix(word, "ies"); ok && len(bare) >= 2 {
		return bare + "y"
	}
	if bare, ok := strings.CutSuffix(word, "s"); ok && len(bare) >= 3 && !strings.HasSuffix(bare, "s") {
		return bare
	}
	return word
}

// otherWords returns the stem of a word and the words of fabsh for it.
func otherWords(word string) (list []string) {
	base := stem(word)
	if base != word {
		list = append(list, base)
	}
	list = append(list, synonyms[word]...)
	if base != word {
		list = append(list, synonyms[base]...)
	}
	return list
}

// Weights of a word by its position.
const (
	isQuery      = 200 // the name is the whole query
	inName       = 100 // the word is the name
	inOther      = 80  // another name, or a word of an enumerated field
	inPart       = 60  // a part of the name
	inBeginning  = 40  // a part of the name begins with it
	inMiddle     = 20  // the name has it
	inSummary    = 15
	inText       = 5
	perWord      = 30
	isTopicBonus = 12 // guides explain, so they are before fields
	fieldShare   = 4  // a field of an attribute, which is one of many alike, has 1/4 unless the query names it
)

// matchWeight returns the weight of the words of a query in a page, 0 if it has none of them.
func matchWeight(p Page, query string, words []string) (score int) {
	m := newMatcher(p)
	for _, w := range words {
		weight := m.weight(w)
		for _, other := range otherWords(w) { // less than the word itself
			weight = max(weight, m.weight(other)*4/5)
		}
		if weight > 0 {
			score += weight + perWord
		}
	}
	if score == 0 {
		return 0
	}
	if query := fold(query); len(words) > 1 && (fold(p.Name) == query || slices.ContainsFunc(p.Also, func(s string) bool { return fold(s) == query })) {
		score += isQuery
	}
	switch p.Kind {
	case KindTopic, KindGuide, KindCommand, KindFunction:
		score += isTopicBonus
	case KindField:
		if score < inOther+perWord || len(words) > 1 && score < isQuery {
			score /= fieldShare
		}
	}
	return score
}

// matcher is a page to search in.
type matcher struct {
	Page
	name, summary string
	parts         []string // of its names
	text          string   // in lower case, made when it is needed
}

func newMatcher(p Page) *matcher {
	m := &matcher{Page: p, name: strings.ToLower(p.Name), summary: strings.ToLower(p.Summary)}
	m.parts = nameWords(m.name)
	for _, also := range p.Also {
		m.parts = append(m.parts, nameWords(strings.ToLower(also))...)
	}
	return m
}

// weight returns the weight of a word by its position; 0: the page does not have it.
func (m *matcher) weight(w string) int {
	switch folded := fold(w); {
	case m.name == w || fold(m.name) == folded:
		return inName
	case slices.ContainsFunc(m.Also, func(s string) bool { return fold(s) == folded }), slices.ContainsFunc(m.Words, func(s string) bool { return fold(s) == folded }):
		return inOther
	case slices.ContainsFunc(m.parts, func(s string) bool { return sameWord(s, w) }):
		return inPart
	case len(w) > 2 && slices.ContainsFunc(m.parts, func(s string) bool { return strings.HasPrefix(s, w) }):
		return inBeginning
	case len(w) > 2 && (strings.Contains(m.name, w) || strings.Contains(fold(m.name), folded)):
		return inMiddle
	case hasWord(m.summary, w):
		return inSummary
	case m.Kind == KindField || m.Kind == KindMember: // their text adds nothing
		return 0
	}
	if m.text == "" {
		if m.lower != nil {
			m.text = m.lower()
		} else {
			m.text = strings.ToLower(m.Text(0))
		}
	}
	if hasWord(m.text, w) {
		return inText
	}
	return 0
}

// nameWords returns the words of a name.
func nameWords(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// hasWord reports whether a text has a word; a word of one or two letters, as a whole.
func hasWord(text, word string) bool {
	if len(word) > 2 {
		return strings.Contains(text, word)
	}
	return slices.Contains(nameWords(text), word)
}

// sameWord reports whether two words are one, singular or plural.
func sameWord(a, b string) bool { return strings.TrimSuffix(a, "s") == strings.TrimSuffix(b, "s") }
