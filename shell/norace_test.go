//go:build !race

package shell

const raced = false
