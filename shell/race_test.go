//go:build race

package shell

// raced: the race detector is on, which makes stacks several times as large.
const raced = true
