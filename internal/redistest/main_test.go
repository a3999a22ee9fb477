package redistest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	RunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(Exit))
}
