//go:build race

package pipeline_test

// everyNth: under the race detector each subset sees an nth of the scenarios, each scenario an nth of the subsets. 5 and
// 256 have no factor in common, so that no layer is always left out.
const everyNth = 5
