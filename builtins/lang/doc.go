// Package lang is the framework of a language of builtins over Starlark: how a
// builtin, a type of values, a result is declared, called, shown and encoded;
// fibers; failures; files. It knows nothing of InfiniBand.
//
//	builtin.go kind.go call.go bind.go   a Builtin, its parameters, a Call of it, the struct
//	                             that its arguments bind to
//	error.go                     errors that begin with the name of the builtin
//	value.go result.go           types of values: attributes, methods; results of named parts
//	describe.go                  what help says of them
//	runtime.go thread.go         what a session shares; fibers, which wait through Block alone
//	parallel.go failure.go exit.go   parallel; the value error, catch; how scripts end
//	universe.go                  functions of the language that could ask for too much memory
//	limit.go activity.go         bounds of steps and time; who waits, who computes
//	replace.go                   string.replace, whose result is bounded
//	virtualclock.go              a clock that stands still until all fibers sleep
//	expect.go                    the module expect, for tests
//	output.go text.go encode.go decode.go table.go format.go   show, in text, JSON, CSV; tables; fmt
//	layout.go fit.go             tables and text on a screen of some width
//	shade.go                     values that show as a picture
//	yaml.go                      the module yaml
//	comparison.go                comparisons with words that an attribute never is
//	harmless.go                  text that a terminal would obey, escaped
//	files.go outfiles.go fs.go   files that scripts may read and write; named.go, files
//	                             that the command line names
//	re.go sum.go clock.go dialect.go  module re; sum; time and sleep; the dialect of Starlark
//
// Nothing waits except through Block, and attributes never do I/O.
package lang
