// Package lang is a framework for builtins in Starlark: how builtins, types of values
// and results are declared, called, shown and encoded; fibers; failures; files. It
// does not depend on InfiniBand.
//
//	builtin.go kind.go call.go bind.go   a Builtin, its parameters, a Call of it, the struct
//	                             that its arguments bind to
//	error.go                     errors that begin with the name of the builtin
//	value.go result.go           types of values: attributes, methods; results of named parts
//	describe.go                  their help
//	runtime.go thread.go         what a session shares; fibers, which wait only in Block
//	parallel.go together.go      parallel; the same for functions in Go
//	failure.go exit.go           the value error, catch; how scripts end
//	universe.go                  functions of the language that could allocate too much memory
//	limit.go activity.go         limits of steps and time; whether a script waits or computes
//	replace.go                   string.replace, whose result is bounded
//	virtualclock.go              a clock that advances only when all fibers sleep
//	expect.go                    the module expect, for tests
//	output.go text.go encode.go decode.go table.go format.go   show, in text, JSON, CSV; tables; fmt
//	changed.go rows.go condition.go view.go   what a function changed, as text; methods of lists and tables, and their conditions; --where, --columns
//	layout.go fit.go             tables and text within a width
//	shade.go                     values that show as a picture
//	yaml.go                      the module yaml
//	comparison.go                comparisons with words that an attribute never has
//	harmless.go                  escapes of terminal control sequences in text
//	files.go outfiles.go fs.go   files that scripts may read and write; save.go, save();
//	                             savefile.go and renamenew_*.go, the files that it writes; named.go, files
//	                             that the command line names
//	re.go sum.go clock.go dialect.go  module re; sum; time and sleep; the dialect of Starlark
//
// Only Block waits, and attributes never do I/O.
package lang
