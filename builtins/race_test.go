//go:build race

package builtins

// raced: the race detector is on, which makes all take seven times as long.
const raced = true
