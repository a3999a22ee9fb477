// Package apitest reads what the module exports, as the compiler sees it, and compares it with what was written about it:
// the golden of each package, the contract, llms.txt and README.md.
//
// An API is a sorted list of lines, one per exported thing, in the manner of the Go project's own api files: the name, the
// type without parameter names, the value of a constant. Two APIs are the same when their lines are.
package apitest
