package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fabsh/builtins/help"
	"fabsh/shell/lsp"
	"fabsh/shell/session"
)

// lspCommand serves editors.
func lspCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: findings, completion and help for scripts (Language Server Protocol)",
		Long: `Serve an editor by the Language Server Protocol, over standard input and output: the
findings of check while a script is typed; completion as at the prompt; help on the
word at the cursor, and the parameters of a call; definitions, also in modules; the
outline of a script; the format of fmt.

The editor starts this command. It never runs a script, opens no fabric, and reads only
the modules beside a script in the editor's workspace, those of -I, and those that are
part of fabsh. When a definition is in one of the latter, a copy is written in the
user's cache directory for the editor.

Exit status: 0 the editor ended the session; 2 it ended otherwise.`,
		Example: `  fabsh lsp -I lib
  nvim: vim.lsp.start_client({name = "fabsh", cmd = {"fabsh", "lsp"}, root_dir = vim.fn.getcwd()})`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if p.StdinIsTerminal() {
				return errors.New("lsp: standard input is a terminal; an editor starts this command (fabsh help lsp)")
			}
			return withoutFabric(p, "lsp", func(ctx context.Context, s *session.Session) error {
				server := &lsp.Server{Interpreter: s.Interpreter, Library: help.Of(s.Runtime), Version: session.Version()}
				if cache, err := os.UserCacheDir(); err == nil {
					server.Modules = filepath.Join(cache, "fabsh", "modules")
				}
				return server.Serve(ctx, p.Stdin, p.Console.Out())
			})
		},
	}
}
