package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// capability is what fabsh can do on a fabric with options O: a command, which runs at the prompt
// too, and a tool of fabsh mcp. Flags, help, completion and the schema of the tool are made from it.
type capability[O optionSet] struct {
	command *cobra.Command // its use and its help
	options func() O       // new options
	// run returns the result, nil if it was shown, and findings as the exit status.
	run func(ctx context.Context, s *session.Session, o O) (starlark.Value, error)

	// For the command. line sets what the words besides flags are; nil: it takes no words.
	line    func(o O, c *cobra.Command, words []string) error
	scripts script.Folder // of the scripts that words name; "": words name none
	missing string        // what the first word names, a script; "": words may name several scripts, or none
	// start runs the capability on a session of its own; nil: on the fabric of the session flags.
	start func(o O, c *cobra.Command, run func(context.Context, *session.Session) error) error

	// For the tool.
	tool  string      // its name for agents: "plan"; "": agents do not have it
	doc   string      // what agents read besides the summary and the help of flags
	words []mcp.Param // for words of the command besides flags
	// take sets what these words are; nil: words has no element.
	take   func(ctx context.Context, s *session.Session, a mcp.Arguments, o O) error
	isText func(mcp.Arguments) bool // whether the tool shows a text, and not JSON; nil: it never does
}

// optionSet is options, and the parameters that set them.
type optionSet interface{ params() params }

// fresh returns new options without defaults.
func fresh[T any]() *T { return new(T) }

// show runs the capability, and shows the result.
func (c *capability[O]) show(ctx context.Context, s *session.Session, o O) error {
	v, err := c.run(ctx, s, o)
	var exit *lang.ExitError
	if v == nil || err != nil && !errors.As(err, &exit) {
		return err
	}
	if failed := s.Show(v); failed != nil {
		return failed
	}
	return err
}

// asCommand returns the command.
func (c *capability[O]) asCommand(p *session.Program) *cobra.Command {
	o := c.options()
	o.params().addTo(c.command)
	c.command.RunE = func(command *cobra.Command, words []string) error {
		if c.line != nil {
			if err := c.line(o, command, words); err != nil {
				return err
			}
		}
		if c.scripts != "" {
			if wantsFlag(command, "list") {
				return writeDocs(p.Console.Out(), c.scripts.Shipped())
			}
			if err := c.checkScripts(command, words); err != nil {
				return err
			}
		}
		run := func(ctx context.Context, s *session.Session) error { return c.show(ctx, s, o) }
		if c.start != nil {
			return c.start(o, command, run)
		}
		return onScript(p, wantsHelp(command), run)
	}
	return c.command
}

// checkScripts returns an error if a script that words name does not exist, before a fabric is opened.
func (c *capability[O]) checkScripts(command *cobra.Command, words []string) error {
	if c.missing != "" && len(words) == 0 {
		return fmt.Errorf(`missing %s; give a name ("%s --list" lists the shipped ones) or a .star file`, c.missing, command.CommandPath())
	}
	if c.missing != "" {
		words = words[:1]
	}
	for _, w := range words {
		if strings.HasSuffix(w, ".star") {
			if err := CheckScript(command, w); err != nil {
				return err
			}
		} else if _, err := c.scripts.Locate(w); c.missing != "" && err != nil {
			return err
		}
	}
	return nil
}

// asTool returns the tool.
func (c *capability[O]) asTool() *agentTool {
	list := c.options().params()
	return &agentTool{words: c.words, flags: list, Tool: mcp.Tool{
		Name: c.tool, Title: c.command.Short, Doc: c.doc, Params: slices.Concat(c.words, list.tool()), IsText: c.isText,
		Run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			o := c.options()
			if err := a.SetFlags(o.params().offered().flags()); err != nil {
				return err
			}
			if c.take != nil {
				if err := c.take(ctx, s, a, o); err != nil {
					return err
				}
			}
			return c.show(ctx, s, o)
		},
	}}
}

// agentTool is a tool of fabsh mcp for a command. Its title is the summary of the command.
type agentTool struct {
	mcp.Tool
	words []mcp.Param
	flags params
}
