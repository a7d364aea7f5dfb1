package help

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"fabsh/builtins/lang"
)

// maxShown is the maximum number of pages that a search shows.
const maxShown = 20

// Search lists the pages that have the words, best first: a word may be the name, a part of
// the name, in the summary, in the text.
func (l *Library) Search(text string, width int) (string, error) {
	words := searchWords(text)
	if len(words) == 0 {
		return "", fmt.Errorf("nothing to search for; write %s", l.search("WORD"))
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
	if len(hits) == 0 {
		return "", fmt.Errorf("no topic has %q; %s lists all guides", strings.Join(words, " "), l.call("guides"))
	}
	var rows [][2]string
	for _, h := range hits[:min(maxShown, len(hits))] {
		rows = append(rows, [2]string{l.call(l.nameOf(h.page, pages)), h.page.Summary})
	}
	found := lang.Fit(formatRows(rows), width)
	if n := len(hits) - maxShown; n > 0 {
		found += fmt.Sprintf("%d more; add a word to narrow the search\n", n)
	}
	return found, nil
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
)

// matchWeight returns the weight of the words of a query in a page, 0 if it has none of them.
func matchWeight(p Page, query string, words []string) (score int) {
	name := strings.ToLower(p.Name)
	parts := nameWords(name)
	for _, also := range p.Also {
		parts = append(parts, nameWords(strings.ToLower(also))...)
	}
	summary := strings.ToLower(p.Summary)
	text := ""
	for _, w := range words {
		weight := 0
		switch folded := fold(w); {
		case name == w || fold(name) == folded:
			weight = inName
		case slices.ContainsFunc(p.Also, func(s string) bool { return fold(s) == folded }), slices.ContainsFunc(p.Words, func(s string) bool { return fold(s) == folded }):
			weight = inOther
		case slices.ContainsFunc(parts, func(s string) bool { return sameWord(s, w) }):
			weight = inPart
		case len(w) > 2 && slices.ContainsFunc(parts, func(s string) bool { return strings.HasPrefix(s, w) }):
			weight = inBeginning
		case len(w) > 2 && (strings.Contains(name, w) || strings.Contains(fold(name), folded)):
			weight = inMiddle
		case hasWord(summary, w):
			weight = inSummary
		default:
			if text == "" && p.Kind != KindField && p.Kind != KindMember { // their text adds nothing
				if p.lower != nil {
					text = p.lower()
				} else {
					text = strings.ToLower(p.Text(0))
				}
			}
			if hasWord(text, w) {
				weight = inText
			}
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
	}
	return score
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
