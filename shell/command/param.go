package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/shell/mcp"
)

// param is a parameter of a capability. The flag of its command, completion, and the member of the
// arguments of its tool for agents are made from it.
type param struct {
	name string
	// to is set: a *bool, *string, *int, *[]string, pflag.Value, or a func(string) error. Its value
	// is the default.
	to       any
	doc      string          // `WORD` in it names the value
	values   []string        // the possible values; nil: any
	propose  func() []string // of any value, some for completion; nil: none
	file     bool            // the value names a file to read
	alone    string          // the value of the flag without one; "": it needs a value
	withheld string          // why agents do not have it; "": they have it
	former   bool            // the former name of another one
}

// params are the parameters of a capability, as help lists them.
type params []param

// flags returns the parameters as flags. A flag that takes a value does not take an empty one.
func (list params) flags() *pflag.FlagSet {
	f := newFlags("")
	for _, p := range list {
		value := true
		switch to := p.to.(type) {
		case *bool:
			f.BoolVar(to, p.name, *to, p.doc)
			value = false
		case *string:
			f.StringVar(to, p.name, *to, p.doc)
		case *int:
			f.Var((*positive)(to), p.name, p.doc)
		case *[]string:
			f.Var((*textList)(to), p.name, p.doc)
		case pflag.Value:
			f.Var(to, p.name, p.doc)
		case func(string) error:
			f.Func(p.name, p.doc, to)
		default:
			panic(fmt.Sprintf("--%s: %T", p.name, p.to))
		}
		flag := f.Lookup(p.name)
		flag.Hidden = p.former
		switch {
		case p.alone != "":
			flag.NoOptDefVal = p.alone
		case value:
			flag.Value = &given{Value: flag.Value}
		}
	}
	return f
}

// addTo declares the parameters as flags of a command, with completion of their values.
func (list params) addTo(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(list.flags())
	for _, p := range list {
		switch {
		case p.values != nil:
			c.RegisterFlagCompletionFunc(p.name, cobra.FixedCompletions(p.values, cobra.ShellCompDirectiveNoFileComp))
		case p.propose != nil:
			c.RegisterFlagCompletionFunc(p.name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				return check.Matching(p.propose(), typed), cobra.ShellCompDirectiveDefault
			})
		case p.file:
			c.MarkFlagFilename(p.name)
		}
	}
}

// offered returns the parameters that agents have.
func (list params) offered() params {
	return slices.DeleteFunc(slices.Clone(list), func(p param) bool { return p.withheld != "" })
}

// tool returns the parameters that agents have, as those of a tool.
func (list params) tool() (tool []mcp.Param) {
	flags := list.flags()
	for _, p := range list.offered() {
		t := mcp.FlagParam(flags.Lookup(p.name))
		if t.Words = p.values; p.alone != "" && p.values != nil {
			t.Kind, t.Words = mcp.KindText, append([]string{p.alone}, p.values...)
		}
		if p.file {
			t.Doc += theFile
		}
		tool = append(tool, t)
	}
	return tool
}

// docOf returns the doc of a parameter of a builtin that does the same, for a flag whose value is a
// word of it: noun, in place of the word in the doc.
func docOf(b *lang.Builtin, name, word, noun string) string {
	i := slices.IndexFunc(b.Params, func(p lang.Param) bool { return p.Name == name })
	if word == "" {
		return b.Params[i].Doc
	}
	return strings.Replace(b.Params[i].Doc, word, "`"+noun+"`", 1)
}

// newFlags returns an empty set of flags, which help lists in the order of declaration.
func newFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// given is the value of a flag that takes one, which must not be empty, and its texts.
type given struct {
	pflag.Value
	texts []string
}

func (v *given) Set(text string) error {
	if text == "" {
		return errors.New("missing value")
	}
	v.texts = append(v.texts, text)
	return v.Value.Set(text)
}

// positive is a number from 1; 0: not given.
type positive int

func (n *positive) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return errors.New("want a number from 1")
	}
	*n = positive(v)
	return nil
}

func (n *positive) Type() string { return "int" }

func (n *positive) String() string {
	if *n == 0 {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// textList is the texts of a flag that may be given several times.
type textList []string

func (l *textList) Set(text string) error { *l = append(*l, text); return nil }
func (l *textList) Type() string          { return "textArray" }
func (l *textList) String() string        { return "" }
