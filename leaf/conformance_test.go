package leaf_test

import (
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
)

// The examples' own guard is one to copy.
func TestConformanceOfTheExamplesGuard(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New:      func(testing.TB) leaf.Guard { return &slots{max: 3} },
		Capacity: 3,
		Slots:    true,
	})
}
