package lang

import (
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/fabric/plural"
)

// ExpectEq is expect.eq.
var ExpectEq = Builtin{
	Name:   "expect.eq",
	Group:  GroupTest,
	Params: []Param{{Name: "got", Kind: KindAny, Doc: "the actual value"}, {Name: "want", Kind: KindAny, Doc: "the expected value"}},
	Doc: `Fails unless two values are equal.
The failure shows both; for lists, tuples, dicts and strings of several lines also the first difference.`,
	Example: `
> expect.eq(1 + 1, 2)
> print(catch(expect.eq, [1, 2, 3], [1, 5, 3]).message)
expect.eq: not equal
  got:  [1, 2, 3]
  want: [1, 5, 3]
  first difference: at [1]: got 2, want 5
`,
	Run: Do(func(_ *Call, a *expectation) (starlark.Value, error) {
		equal, err := starlark.Equal(a.Got, a.Want)
		if err != nil {
			return nil, Errorf("%w", err)
		}
		if equal {
			return starlark.None, nil
		}
		text := fmt.Sprintf("not equal\n  got:  %s\n  want: %s", shownValue(a.Got), shownValue(a.Want))
		if place := difference(a.Got, a.Want, 0); strings.HasPrefix(place, "at ") {
			text += "\n  first difference: " + place
		}
		return nil, Errorf("%s", text)
	}),
}

// expectation is an actual value, and the value that it must or must not have.
type expectation struct{ Got, Want starlark.Value }

// ExpectNe is expect.ne.
var ExpectNe = Builtin{
	Name:   "expect.ne",
	Group:  GroupTest,
	Params: []Param{{Name: "got", Kind: KindAny, Doc: "the actual value"}, {Name: "want", Kind: KindAny, Doc: "the value that it must not have"}},
	Doc:    "Fails if two values are equal.",
	Example: `
> expect.ne(1 + 1, 3)
`,
	Run: Do(func(_ *Call, a *expectation) (starlark.Value, error) {
		equal, err := starlark.Equal(a.Got, a.Want)
		if err != nil {
			return nil, Errorf("%w", err)
		}
		if equal {
			return nil, Errorf("equal\n  both: %s", shownValue(a.Got))
		}
		return starlark.None, nil
	}),
}

// ExpectTrue is expect.true.
var ExpectTrue = Builtin{
	Name:   "expect.true",
	Group:  GroupTest,
	Params: []Param{{Name: "value", Kind: KindAny, Doc: "any value"}},
	Doc:    "Fails if a value is false: False, None, 0, empty, or an error value.",
	Example: `
> expect.true(discover().switches)
> print(catch(expect.true, []).message)
expect.true: not true
  got:  []
`,
	Run: Do(func(_ *Call, a *struct{ Value starlark.Value }) (starlark.Value, error) {
		if !a.Value.Truth() {
			return nil, Errorf("not true\n  got:  %s", shownValue(a.Value))
		}
		return starlark.None, nil
	}),
}

// ExpectContains is expect.contains.
var ExpectContains = Builtin{
	Name:   "expect.contains",
	Group:  GroupTest,
	Params: []Param{{Name: "container", Kind: KindAny, Doc: "a list, tuple, dict, set, string, or any value that supports `in`"}, {Name: "item", Kind: KindAny, Doc: "the expected item"}},
	Doc:    "Fails unless an item is in a container, or a string is a part of another.",
	Example: `
> expect.contains([n.name for n in discover().switches], "leaf-1")
> expect.contains("leaf-1/3", "leaf")
`,
	Run: Do(func(_ *Call, a *struct{ Container, Item starlark.Value }) (starlark.Value, error) {
		in, err := starlark.Binary(syntax.IN, a.Item, a.Container)
		if err != nil {
			return nil, Errorf("%w", err)
		}
		if !in.Truth() {
			return nil, Errorf("not found\n  item: %s\n  in:   %s", shownValue(a.Item), shownValue(a.Container))
		}
		return starlark.None, nil
	}),
}

// ExpectFails is expect.fails.
var ExpectFails = Builtin{
	Name:   "expect.fails",
	Group:  GroupTest,
	Params: []Param{{Name: "fn", Kind: KindFunction, Doc: "called without arguments, usually a lambda"}, {Name: "match", Kind: KindText, Default: `""`, Doc: "a regular expression that the message must match"}},
	Doc: `Fails unless a function fails, and with a message that a regular expression matches.
It returns the failure as an error value. Errors that catch does not catch, such as exit(), also end the test.`,
	Example: `
> e = expect.fails(lambda: smp_get("NodeInfo", 999), "timed out")
> e.status
"timed out"
`,
	Run: Do(func(c *Call, a *struct {
		FN    starlark.Callable
		Match string
	}) (starlark.Value, error) {
		re, err := regexp.Compile(a.Match)
		if err != nil {
			return nil, ParamError("match", "%w", err)
		}
		v, err := c.callUncounted(a.FN, nil, nil)
		switch {
		case err == nil:
			return nil, Errorf("it did not fail\n  it returned: %s", shownValue(v))
		case !Catchable(c.Fiber(), err):
			return nil, err
		case !re.MatchString(err.Error()):
			return nil, Errorf("another failure\n  got:  %s\n  want: a match of %q", cutText(err.Error()), a.Match)
		}
		return NewFailure(err), nil
	}),
}

// GroupTest is the heading of the functions for tests.
const GroupTest = "Tests"

// maxShownValue is the maximum length of a value in a failure, in bytes.
const maxShownValue = 2000

// shownValue returns a value as a failure shows it.
func shownValue(v starlark.Value) string { return cutText(v.String()) }

func cutText(text string) string {
	if len(text) <= maxShownValue {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes in total)", strings.ToValidUTF8(text[:maxShownValue], ""), len(text))
}

// maxDifferenceDepth is the maximum nesting to which a difference is searched.
const maxDifferenceDepth = 100

// difference returns the first difference of two unequal values: "at
// [1]["x"]: got 2, want 3". If one of them is not a container, it begins with the
// colon.
func difference(got, want starlark.Value, depth int) string {
	whole := fmt.Sprintf(": got %s, want %s", Brief(got), Brief(want))
	if depth == maxDifferenceDepth || got.Type() != want.Type() {
		return whole
	}
	within := func(place string, g, w starlark.Value) string {
		rest := difference(g, w, depth+1)
		if inner, ok := strings.CutPrefix(rest, "at "); ok {
			if rest = inner; rest[0] != '[' && rest[0] != '.' {
				rest = ", " + rest
			}
		}
		return "at " + place + rest
	}
	switch got := got.(type) {
	case starlark.String:
		g, w := strings.Split(string(got), "\n"), strings.Split(string(want.(starlark.String)), "\n")
		if len(g) == 1 && len(w) == 1 {
			return whole
		}
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				return fmt.Sprintf("at line %d: got %s, want %s", i+1, Brief(starlark.String(g[i])), Brief(starlark.String(w[i])))
			}
		}
		return fmt.Sprintf("at the end: got %s, want %s", plural.Count(len(g), "line", "lines"), plural.Count(len(w), "line", "lines"))
	case *starlark.Dict:
		other := want.(*starlark.Dict)
		for _, item := range got.Items() {
			w, found, err := other.Get(item[0])
			if err != nil || !found {
				return fmt.Sprintf("at [%s]: unexpected key, got %s", Brief(item[0]), Brief(item[1]))
			}
			if equal, err := starlark.Equal(item[1], w); err != nil || !equal {
				return within("["+Brief(item[0])+"]", item[1], w)
			}
		}
		for _, item := range other.Items() {
			if _, found, err := got.Get(item[0]); err == nil && !found {
				return fmt.Sprintf("at [%s]: missing key, want %s", Brief(item[0]), Brief(item[1]))
			}
		}
	case *starlark.List, starlark.Tuple:
		g, w := got.(starlark.Indexable), want.(starlark.Indexable)
		for i := range min(g.Len(), w.Len()) {
			if equal, err := starlark.Equal(g.Index(i), w.Index(i)); err != nil || !equal {
				return within(fmt.Sprintf("[%d]", i), g.Index(i), w.Index(i))
			}
		}
		return fmt.Sprintf("at the end: got %s, want %s", plural.Count(g.Len(), "element", "elements"), plural.Count(w.Len(), "element", "elements"))
	case Factual:
		w := want.(Factual).Facts()
		for i, f := range got.Facts() {
			if i >= len(w) || f.Name != w[i].Name {
				break
			}
			if equal, err := starlark.Equal(f.Value, w[i].Value); err != nil || !equal {
				return within("."+f.Name, f.Value, w[i].Value)
			}
		}
	}
	return whole
}
