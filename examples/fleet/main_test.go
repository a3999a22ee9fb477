package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// A test's workers are this test binary.
func TestMain(m *testing.M) {
	if isWorker() {
		os.Exit(work())
	}
	goleak.VerifyTestMain(m)
}
