// Package archtest checks the rules of the house on the source itself: who may import whom, how long a file may be, what
// stands at the top level, and the habits that tests must not have.
//
// Each rule is a function from files to violations, one sentence each with the place first, so that a rule is itself tested
// on bad files that were never written to a disk. The test at the module's root applies them to the module.
package archtest
