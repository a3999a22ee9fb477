package main

import (
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
)

func TestSlotsKeepTheContract(t *testing.T) {
	guardtest.Run(t, guardtest.Config{New: func(testing.TB) leaf.Guard { return make(slots, 8) }, Capacity: 8, Slots: true})
}
