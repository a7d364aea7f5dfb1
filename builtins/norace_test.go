//go:build !race

package builtins

const raced = false
