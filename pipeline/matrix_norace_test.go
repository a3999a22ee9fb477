//go:build !race

package pipeline_test

// everyNth: each subset sees all scenarios.
const everyNth = 1
