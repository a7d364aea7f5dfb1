// Command fabsh is a scriptable shell for InfiniBand fabrics.
package main

import (
	"os"

	"fabsh/shell"
)

func main() { os.Exit(shell.Main()) }
