package shell

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

// bashFunctions replace what cobra's script for bash uses of the package bash-completion.
//
//go:embed completion.bash
var bashFunctions string

// addCompletion adds cobra's command completion. Its script for bash needs no package.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil {
		panic(err) // cobra adds it
	}
	bash.Long = `Generate the autocompletion script for the bash shell. The package bash-completion
is not needed.

To load completions in your current shell session, and in each new one if this
line is in ~/.bashrc:

	source <(fabsh completion bash)

"make install" and the Debian package install the script for bash-completion,
which then loads it without that line.
`
	generate := bash.RunE
	bash.RunE = func(c *cobra.Command, words []string) error {
		if err := generate(c, words); err != nil {
			return err
		}
		_, err := io.WriteString(c.OutOrStdout(), bashFunctions)
		return err
	}
}
