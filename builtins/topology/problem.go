package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// problem is the value `problem`.
type problem struct{ fabric.Problem }

// ProblemType declares the attributes of a problem.
var ProblemType *lang.Type[problem]

func init() {
	ProblemType = lang.NewType("problem", "A problem of a fabric, or of its discovery.",
		lang.Member[problem]{Name: "kind", Type: "string", Column: true, Doc: `"timed out", "duplicate guid", ...`, Get: func(p problem) starlark.Value { return starlark.String(p.Kind) }},
		lang.Member[problem]{Name: "text", Type: "string", Column: true, Doc: "the problem, its place, the number of attempts, and the remedy", Get: func(p problem) starlark.Value { return starlark.String(p.Text) }},
	)
}

func (p problem) String() string                           { return fmt.Sprintf("problem(%q, %q)", p.Kind, p.Text) }
func (p problem) Type() string                             { return "problem" }
func (p problem) Freeze()                                  {}
func (p problem) Truth() starlark.Bool                     { return true }
func (p problem) Hash() (uint32, error)                    { return lang.HashBytes([]byte(p.Text)), nil }
func (p problem) AttrNames() []string                      { return ProblemType.Names }
func (p problem) TypeDoc() lang.TypeDoc                    { return ProblemType.TypeDoc() }
func (p problem) Schema() string                           { return ProblemType.Schema() }
func (p problem) Facts() []lang.Fact                       { return ProblemType.Facts(p) }
func (p problem) Attr(name string) (starlark.Value, error) { return ProblemType.Attr(p, name) }
